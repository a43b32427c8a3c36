/* CycloneDDS 11: shared memory is a plug-in, loaded by its path, and there are loans at both ends.
 * PSMX_IOX is the path of CycloneDDS's own plug-in for iceoryx; that for Myelin is searched for
 * when the driver runs. */
#define _GNU_SOURCE
#include "library_version.h"
#include "../../cyclonedds/src/version.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../cyclonedds/src/config.h"
#include "dds/version.h"

const char *myelin_cyclonedds_version(void)
{
  return library_version((const void *)(uintptr_t)dds_create_participant, DDS_VERSION);
}

const char *const myelin_cyclonedds_driver = "cyclonedds11";

/* CycloneDDS's header of a sample in a chunk (its `dds_psmx_metadata`), and the padding that
 * iceoryx reserves between it and a message of alignment 8:
 *
 *     | iceoryx 40 B | CycloneDDS 48 B | padding 8 B | message, rounded up to 8 B |
 */
const uint64_t myelin_cyclonedds_around_bytes = 48 + 8;

/* The path of psmx_myelin: MYELIN_PSMX if that is set, else beside this program; NULL if it does
 * not exist. */
static const char *psmx_myelin(void)
{
  static char path[PATH_MAX + sizeof "/libpsmx_myelin.so"];
  const char *said = getenv("MYELIN_PSMX");
  if (said != NULL && *said != '\0')
    return access(said, R_OK) == 0 ? said : NULL;
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  if (length <= 0)
    return NULL;
  path[length] = '\0';
  (void)strcpy(strrchr(path, '/'), "/libpsmx_myelin.so");
  return access(path, R_OK) == 0 ? path : NULL;
}

const char *myelin_cyclonedds_missing(const char *system)
{
  if (!myelin_cyclonedds_is_shared_memory(system))
    return NULL;
  if (myelin_cyclonedds_is_iceoryx(system))
    return access(PSMX_IOX, R_OK) == 0
               ? NULL
               : "this CycloneDDS has no libpsmx_iox.so: apt-get install libiceoryx-posh-dev, then "
                 "make cyclonedds11";
  return psmx_myelin() != NULL ? NULL
                               : "no libpsmx_myelin.so: make cyclonedds11 builds it; for one in "
                                 "another place, set MYELIN_PSMX to its path";
}

bool myelin_cyclonedds_reads_in_place(const char *system)
{
  return myelin_cyclonedds_is_shared_memory(system) && strstr(system, "-copy") == NULL;
}

bool myelin_cyclonedds_shares(dds_entity_t end)
{
  return dds_is_shared_memory_available(end);
}

dds_return_t myelin_cyclonedds_request_loan(dds_entity_t writer, void **memory)
{
  return dds_request_loan(writer, memory);
}

void myelin_cyclonedds_write_interface(FILE *out, const char *system)
{
  const char *type = "myelin";
  const char *library = psmx_myelin();
  const char *config = "";
  if (!myelin_cyclonedds_is_shared_memory(system))
    return;
  if (myelin_cyclonedds_is_iceoryx(system)) {
    type = "iox";
    library = PSMX_IOX;
    config = " config=\"LOG_LEVEL=WARN;\"";
  } else if (strstr(system, "-block") != NULL) {
    config = " config=\"WAIT=block;\"";
  }
  (void)fprintf(out, "        <PubSubMessageExchange type=\"%s\" library=\"%s\"%s/>\n", type,
                library != NULL ? library : "psmx_myelin", config);
}

/* The plug-in is the only setting. */
void myelin_cyclonedds_write_shared_memory(FILE *out, const char *system)
{
  (void)out;
  (void)system;
}
