/* What systems are by their names, and CycloneDDS's configuration for a run. */
#ifndef MYELIN_CYCLONEDDS_CONFIG_H
#define MYELIN_CYCLONEDDS_CONFIG_H

#include <stdbool.h>

#include "myelin_bench_kit.h"

/* A domain has ports for so many participants. */
#define MYELIN_CYCLONEDDS_PROCESSES_MAX 120

/* What the names of systems say. */
bool myelin_cyclonedds_is_shared_memory(const char *system);
bool myelin_cyclonedds_is_iceoryx(const char *system);
bool myelin_cyclonedds_is_tuned(const char *system);

/* The configuration of a run, also left in its folder; the caller frees `xml`, in any case. */
int myelin_cyclonedds_configure(const struct myelin_bench_prepare *prepare, char **xml);

/* What is asked for and what the kernel grants; valid until the next call. */
const char *myelin_cyclonedds_buffer_note(bool tuned);

#endif /* MYELIN_CYCLONEDDS_CONFIG_H */
