/* What differs between the versions of CycloneDDS, beside their systems: version.c of this driver is for
 * 0.10, that of `../../cyclonedds11` for 11; all else is common to both. */
#ifndef MYELIN_CYCLONEDDS_VERSION_H
#define MYELIN_CYCLONEDDS_VERSION_H

#include <stdbool.h>
#include <stdio.h>

#include "dds/dds.h"
#include "myelin_bench_kit.h"

/* Of the library that runs. */
const char *myelin_cyclonedds_version(void);

/* The driver's name, which is that of its table of options. */
extern const char *const myelin_cyclonedds_driver;

/* Bytes that a chunk of iceoryx has around a message, without iceoryx's own header. */
extern const uint64_t myelin_cyclonedds_around_bytes;

/* Why a system cannot run, although the library is there; NULL if it can. */
const char *myelin_cyclonedds_missing(const char *system);

/* Whether the system's subscriber reads where the publisher wrote. */
bool myelin_cyclonedds_reads_in_place(const char *system);

/* Whether a reader's or writer's samples can be in shared memory. */
bool myelin_cyclonedds_shares(dds_entity_t end);

/* Memory for a sample of the writer's. */
dds_return_t myelin_cyclonedds_request_loan(dds_entity_t writer, void **memory);

/* What the configuration says of shared memory, within `Interfaces` on this host and behind all else. */
void myelin_cyclonedds_write_interface(FILE *out, const char *system);
void myelin_cyclonedds_write_shared_memory(FILE *out, const char *system);

#endif /* MYELIN_CYCLONEDDS_VERSION_H */
