/* The version of the loaded library, which may be newer than the headers that a driver was built with. */
#ifndef MYELIN_LIBRARY_VERSION_H
#define MYELIN_LIBRARY_VERSION_H

#ifndef _GNU_SOURCE
#error "_GNU_SOURCE has to be defined before the first header"
#endif

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Reads the version from the name of the file that contains `symbol`, for instance libddsc.so.0.10.5. If the name
 * has no version, it returns `headers`, the version of the headers. LCM's file name has another version. */
static inline const char *library_version(const void *symbol, const char *headers)
{
  Dl_info info;
  if (dladdr(symbol, &info) == 0)
    return headers;
  /* Not freed: the returned version is a part of it. */
  const char *path = realpath(info.dli_fname, NULL);
  const char *version = path != NULL ? strstr(path, ".so.") : NULL;
  if (version == NULL)
    return headers;
  version += strlen(".so.");
  const int is_whole = strspn(version, "0123456789.") == strlen(version) &&
                       strchr(version, '.') != strrchr(version, '.');
  return is_whole ? version : headers;
}

#endif
