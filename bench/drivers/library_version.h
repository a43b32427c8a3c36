/* The version of a library that runs, which may be newer than the headers that a driver was built with. */
#ifndef MYELIN_LIBRARY_VERSION_H
#define MYELIN_LIBRARY_VERSION_H

#ifndef _GNU_SOURCE
#error "_GNU_SOURCE has to be defined before the first header"
#endif

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* By the name of the file that has `symbol`, for instance libddsc.so.0.10.5; `headers`, the version of the
 * headers, where the name does not tell. Of libraries whose files are named so; LCM's are not. */
static inline const char *library_version(const void *symbol, const char *headers)
{
  Dl_info info;
  if (dladdr(symbol, &info) == 0)
    return headers;
  /* Kept: the version is a part of it. */
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
