/* Loads, uses and unloads a plug-in, again and again. It does not link the library itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  for (int i = 0; i < 10 && count == 2; i++) {
    void *plug_in = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    int (*use)(void) = NULL;
    if (plug_in) *(void **)&use = dlsym(plug_in, "use");
    if (!use) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    int calls = use();
    if (calls != 10) {
      fprintf(stderr, "%d calls\n", calls);
      return 1;
    }
    if (dlclose(plug_in)) return 1;
    if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD)) {
      fprintf(stderr, "the plug-in is still there\n");
      return 1;
    }
  }
  puts("all rounds");
  return 0;
}
