/* Preloaded into a program, counts the bytes of its large copies, from any caller. When the program
 * ends, it writes their sum into the file named by COPIES. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LARGE = 1 << 20 };

static atomic_ullong copied;

static void count(size_t bytes)
{
  if (bytes >= LARGE)
    atomic_fetch_add(&copied, bytes);
}

void *memcpy(void *to, const void *from, size_t bytes)
{
  count(bytes);
  mempcpy(to, from, bytes);
  return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
  count(bytes);
  bcopy(from, to, bytes);
  return to;
}

__attribute__((destructor)) static void tell(void)
{
  FILE *file = fopen(getenv("COPIES"), "w");
  if (file == NULL)
    return;
  fprintf(file, "%llu", copied);
  fclose(file);
}
