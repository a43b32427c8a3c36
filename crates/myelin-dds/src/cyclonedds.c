/* Finds CycloneDDS when somebody asks for the network. */
#include <dlfcn.h>
#include <string.h>

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

const char *myelin_dds_load(const char *library)
{
  /* It stays: its threads may outlive whoever has asked for them. */
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL)
    return dlerror();
  for (size_t index = 0; index < sizeof NAMES / sizeof *NAMES; index++) {
    void *found = dlsym(handle, NAMES[index].name);
    if (found == NULL)
      return dlerror();
    memcpy((char *)&ddsc + NAMES[index].at, &found, sizeof found);
  }
  myelin_dds_types_found();
  return NULL;
}
