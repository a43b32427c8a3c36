/* Finds CycloneDDS when a program uses the network. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/version.h"

#include "bridge.h"
#include "cyclonedds.h"

struct ddsc ddsc;

static const struct {
  const char *name;
  size_t at;
} NAMES[] = {
#define DDSC_PLACE(name) {#name, offsetof(struct ddsc, name)},
    DDSC_NAMES(DDSC_PLACE)
#undef DDSC_PLACE
};

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define SERIES TEXT(DDS_VERSION_MAJOR) "." TEXT(DDS_VERSION_MINOR)

/* Parts that a build of CycloneDDS can be without; then its structures are others. */
static const struct {
  const char *name;
  const char *function; /* there only with it */
  bool is_ours;
} PARTS[] = {
#ifdef DDS_HAS_SHM
    {"ENABLE_SHM", "iox_sub_context_init", true},
#else
    {"ENABLE_SHM", "iox_sub_context_init", false},
#endif
#ifdef DDS_HAS_TYPE_DISCOVERY
    {"ENABLE_TYPE_DISCOVERY", "ddsi_tl_handle_reply", true},
#else
    {"ENABLE_TYPE_DISCOVERY", "ddsi_tl_handle_reply", false},
#endif
#ifdef DDS_HAS_SECURITY
    {"ENABLE_SECURITY", "q_omg_participant_get_cryptography", true},
#else
    {"ENABLE_SECURITY", "q_omg_participant_get_cryptography", false},
#endif
};

/* The file of the loaded library. */
static char file[PATH_MAX];

/* NULL if the library that contains this function has the structures that this was compiled for. CycloneDDS has
 * no function that returns its version; the name of its file contains it. */
static const char *refused(void *handle, void *function)
{
  static char reason[PATH_MAX + 128];
  Dl_info info;
  if (dladdr(function, &info) == 0 || realpath(info.dli_fname, file) == NULL)
    file[0] = '\0';
  const char *suffix = strstr(file, ".so.");
  const char *version = suffix != NULL ? suffix + strlen(".so.") : SERIES ".";
  const int fits = strncmp(version, SERIES ".", strlen(SERIES ".")) == 0;
  if (!fits) {
    snprintf(reason, sizeof reason, "%s is version %s, and this program was built for CycloneDDS %s", file, version,
             SERIES);
    return reason;
  }
  for (size_t index = 0; index < sizeof PARTS / sizeof *PARTS; index++) {
    if ((dlsym(handle, PARTS[index].function) != NULL) != PARTS[index].is_ours) {
      snprintf(reason, sizeof reason, "%s was built with %s=%s, and this program for one with the opposite", file,
               PARTS[index].name, PARTS[index].is_ours ? "OFF" : "ON");
      return reason;
    }
  }
  return NULL;
}

const char *myelin_dds_load(const char *library)
{
  /* It stays loaded: its threads may outlive the code that has started them. */
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL)
    return dlerror();
  for (size_t index = 0; index < sizeof NAMES / sizeof *NAMES; index++) {
    void *found = dlsym(handle, NAMES[index].name);
    if (found == NULL)
      return dlerror();
    memcpy((char *)&ddsc + NAMES[index].at, &found, sizeof found);
  }
  void *any;
  memcpy(&any, &ddsc, sizeof any);
  const char *reason = refused(handle, any);
  if (reason == NULL)
    myelin_dds_types_found();
  return reason;
}

const char *myelin_dds_file(void)
{
  return file;
}

static void on_log(void *heard, const dds_log_data_t *data)
{
  void (*call)(const char *);
  memcpy(&call, &heard, sizeof call);
  call(data->message);
}

void myelin_dds_log(void (*heard)(const char *text))
{
  void *argument;
  memcpy(&argument, &heard, sizeof argument);
  ddsc.dds_set_log_sink(on_log, argument);
}
