/* The adaptor in link.cpp. */
#ifndef MYELIN_LIBXR_LINK_H
#define MYELIN_LIBXR_LINK_H

#include "myelin_bench_kit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The system whose subscribers are called; those of the other one wait. */
#define MYELIN_LIBXR_CALLBACK "libxr.callback"
/* Payload of the largest compiled type. */
#define MYELIN_LIBXR_PAYLOAD_BYTES_MAX (16u << 20)

extern const struct myelin_bench_link myelin_libxr_link;
/* Checks that there is a type for the size of a run's messages. */
int myelin_libxr_check(const struct myelin_bench_prepare *prepare);

#ifdef __cplusplus
}
#endif

#endif /* MYELIN_LIBXR_LINK_H */
