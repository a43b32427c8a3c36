/* RouDi, the daemon of iceoryx, for drivers in C and C++; src/capi.rs implements it. Errors work as
 * in the kit's header. */
#ifndef MYELIN_ROUDI_H
#define MYELIN_ROUDI_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A run's requirements on RouDi's memory pools. */
struct myelin_roudi_need {
  const char *driver;    /* the table of options, which may contain `pools` */
  uint64_t around_bytes; /* bytes that the middleware adds to a message */
  uint32_t chunks;       /* number of chunks that a run can hold at once */
  int shared_memory;     /* whether its messages use pools; the options are checked in any case */
};

/* For `probe` of a driver: sets RouDi's version, or that it is not installed, unless something else
 * is missing already. */
void myelin_roudi_probe(struct myelin_bench_system *system);

/* Checks that the pools in the options are valid and that a message fits. */
int myelin_roudi_check(const struct myelin_bench_prepare *prepare,
                       const struct myelin_roudi_need *need);

/* Fails if no RouDi is running: iceoryx would wait for one, and then abort. */
int myelin_roudi_expect(void);

/* For the functions of a driver with these names. */
int myelin_roudi_start_daemon(const struct myelin_bench_prepare *prepare,
                              const struct myelin_roudi_need *need, void **daemon);
size_t myelin_roudi_daemon_pids(void *daemon, uint32_t *pids, size_t pids_max);
int myelin_roudi_check_daemon(void *daemon);
int myelin_roudi_stop_daemon(void *daemon);
int myelin_roudi_clean(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_ROUDI_H */
