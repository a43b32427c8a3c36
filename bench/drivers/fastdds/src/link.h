/* The adaptor in link.cpp, and what of this driver is in Rust. */
#ifndef MYELIN_FASTDDS_LINK_H
#define MYELIN_FASTDDS_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The system that shares the publisher's memory. */
#define MYELIN_FASTDDS_DATASHARING "fastdds.datasharing"

/* link.cpp */
extern const struct myelin_bench_link myelin_fastdds_link;
extern const char *const myelin_fastdds_version;

/* main.rs: Fast DDS's configuration of a run, also left in the run's folder; to be given back. */
int myelin_fastdds_profiles(const struct myelin_bench_prepare *prepare, char **xml);
void myelin_fastdds_free(char *xml);
/* main.rs: whether the histories of a run have room. */
int myelin_fastdds_check(const struct myelin_bench_prepare *prepare);
/* main.rs: removes what killed processes have left. */
int myelin_fastdds_clean(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_FASTDDS_LINK_H */
