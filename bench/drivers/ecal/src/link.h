/* Declarations that driver.c, link.cpp and main.rs share. */
#ifndef MYELIN_ECAL_LINK_H
#define MYELIN_ECAL_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The system whose messages are read in place. */
#define MYELIN_ECAL_ZERO_COPY "ecal.shm-zero-copy"

/* In link.cpp. */
extern const struct myelin_bench_link myelin_ecal_link;
void myelin_ecal_probe(struct myelin_bench_system *system);

/* In main.rs: from now on files that eCAL opens by shm_open are in the run's folder, until leave.
 */
int myelin_ecal_enter(const char *run);
void myelin_ecal_leave(void);
int myelin_ecal_clean(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_ECAL_LINK_H */
