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
void myelin_fastdds_probe(struct myelin_bench_system *system); /* the version of the library that runs */

/* main.rs: the configuration of a run for Fast DDS 2 or 3 (`major`), also left in the run's folder.
 * Without `sends_whole` shared memory takes fragments of at most 64 KiB. The caller frees it. */
int myelin_fastdds_profiles(const struct myelin_bench_prepare *prepare, unsigned major,
                            int sends_whole, char **xml);
void myelin_fastdds_free(char *xml);
/* main.rs: whether the histories of a run have room. */
int myelin_fastdds_check(const struct myelin_bench_prepare *prepare);
/* main.rs: removes what killed processes have left. */
int myelin_fastdds_clean(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_FASTDDS_LINK_H */
