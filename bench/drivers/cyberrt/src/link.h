/* The C++ and Rust parts of this driver, for the table in C. */
#ifndef MYELIN_CYBERRT_LINK_H
#define MYELIN_CYBERRT_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MYELIN_CYBERRT_SHM "cyberrt.shm"
#define MYELIN_CYBERRT_SHM_MULTICAST "cyberrt.shm-multicast"
#define MYELIN_CYBERRT_ARENA "cyberrt.arena"
#define MYELIN_CYBERRT_INTRA "cyberrt.intra"
#define MYELIN_CYBERRT_RTPS "cyberrt.rtps"

/* link.cpp */
extern const struct myelin_bench_link myelin_cyberrt_link;
/* own_space.rs: moves the calling thread into the namespaces of the run. */
int myelin_cyberrt_enter(const struct myelin_bench_prepare *prepare);
/* own_space.rs: why that is not permitted; NULL if it is. */
const char *myelin_cyberrt_missing(void);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_CYBERRT_LINK_H */
