/* RouDi, the daemon of iceoryx, for drivers in C and C++: what src/capi.rs exports. Errors are as the
 * kit's header says. */
#ifndef MYELIN_ROUDI_H
#define MYELIN_ROUDI_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a run needs of RouDi's memory pools. */
struct myelin_roudi_need {
  const char *driver;    /* the table of options in which `pools` may be stated */
  uint64_t around_bytes; /* that the middleware adds to a message */
  uint32_t chunks;       /* that a run can hold at once */
  int shared_memory;     /* whether its messages go into pools; the options are checked in any case */
};

/* For `probe` of a driver: RouDi's version, or that it is not installed, unless something else is
 * missing already. */
void myelin_roudi_probe(struct myelin_bench_system *system);

/* Whether the stated pools are some, and a message fits. */
int myelin_roudi_check(const struct myelin_bench_prepare *prepare,
                       const struct myelin_roudi_need *need);

/* An error that says so if no RouDi is running: iceoryx would wait for one, and then abort. */
int myelin_roudi_expect(void);

/* For the functions of a driver that have these names. */
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
