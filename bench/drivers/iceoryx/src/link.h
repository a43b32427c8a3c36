/* The adaptor in link.cpp. */
#ifndef MYELIN_ICEORYX_LINK_H
#define MYELIN_ICEORYX_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The system that sleeps on a WaitSet; the other one polls. */
#define MYELIN_ICEORYX_WAITSET "iceoryx.waitset"

extern const struct myelin_bench_link myelin_iceoryx_link;

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_ICEORYX_LINK_H */
