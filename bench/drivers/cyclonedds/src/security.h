/* DDS Security: CycloneDDS's own plug-ins, with the files of an enclave of SROS 2. */
#ifndef MYELIN_CYCLONEDDS_SECURITY_H
#define MYELIN_CYCLONEDDS_SECURITY_H

#include <stdio.h>

#include "myelin_bench_kit.h"

/* Why there is no security, and what to install; NULL if there is. */
const char *myelin_cyclonedds_no_security(void);

/* The configuration's part for a process with an enclave; nothing for another one. */
void myelin_cyclonedds_write_security(FILE *out, const struct myelin_bench_prepare *prepare);

/* What to do if a process with an enclave does not match; NULL for another one. */
const char *myelin_cyclonedds_refusal(const struct myelin_bench_prepare *prepare);

#endif /* MYELIN_CYCLONEDDS_SECURITY_H */
