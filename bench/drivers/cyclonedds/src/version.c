/* CycloneDDS 0.10: iceoryx is built into the library, loans are a writer's alone. */
#define _GNU_SOURCE
#include "library_version.h"
#include "version.h"

#include "config.h"
#include "dds/ddsc/dds_loan_api.h"
#include "dds/version.h"
#include "security.h"

const char *myelin_cyclonedds_version(void)
{
  return library_version((const void *)(uintptr_t)dds_create_participant, DDS_VERSION);
}

const char *const myelin_cyclonedds_driver = "cyclonedds";

/* CycloneDDS's header in a chunk (its `iceoryx_header`), and the padding that iceoryx reserves between
 * it and a message of alignment 8:
 *
 *     | iceoryx 40 B | CycloneDDS 56 B | padding 8 B | message, rounded up to 8 B |
 */
const uint64_t myelin_cyclonedds_around_bytes = 56 + 8;

const char *myelin_cyclonedds_missing(const char *system)
{
  return strcmp(system, "cyclonedds.udp-secure") == 0 ? myelin_cyclonedds_no_security() : NULL;
}

/* dds_take copies in any case, and its own "loans" of a reader are heap memory that it allocates. */
bool myelin_cyclonedds_reads_in_place(const char *system)
{
  (void)system;
  return false;
}

bool myelin_cyclonedds_shares(dds_entity_t end)
{
  return dds_is_loan_available(end);
}

dds_return_t myelin_cyclonedds_request_loan(dds_entity_t writer, void **memory)
{
  return dds_loan_sample(writer, memory);
}

void myelin_cyclonedds_write_interface(FILE *out, const char *system)
{
  (void)out;
  (void)system;
}

void myelin_cyclonedds_write_shared_memory(FILE *out, const char *system)
{
  (void)fprintf(out,
                "    <SharedMemory>\n"
                "      <!-- Always set, so that the file does not depend on a default. -->\n"
                "      <Enable>%s</Enable>\n"
                "      <LogLevel>warn</LogLevel>\n"
                "    </SharedMemory>\n",
                myelin_cyclonedds_is_shared_memory(system) ? "true" : "false");
}
