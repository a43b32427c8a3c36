/* What counts.c and counts.cpp share with src/main.rs: an operation runs within a function `counted_OPERATION`, of
 * which callgrind counts the instructions, between two marks in strace's output. */
#pragma once
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WARM_UP = 100, EACH = 200, WAKES = 20 };
#define LIMIT_NS 30000000000u

/* A line in strace's output: a write to no descriptor, which fails. */
static inline void mark(const char *what) {
  if (write(-1, what, strlen(what)) != -1) _exit(3);
}

#ifdef __cplusplus
#define COUNTED_NAME extern "C"
#else
#define COUNTED_NAME
#endif
#define COUNTED_FUNCTION(name)                                                                  \
  COUNTED_NAME __attribute__((noinline, used)) void counted_##name(void (*operation)(void), int times) { \
    for (int time = 0; time < times; time++) operation();                                       \
  }
#define COUNTED(name, operation, times) \
  (mark("counted " #name), counted_##name(operation, times), mark("counted"))

/* Whether a thread of this process sleeps. */
static inline int sleeps(int thread) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char *end = strrchr(text, ')');
  return end && end[1] == ' ' && end[2] == 'S';
}

COUNTED_FUNCTION(publish_copy)
COUNTED_FUNCTION(publish_copy_take)
COUNTED_FUNCTION(loan_publish)
COUNTED_FUNCTION(loan_publish_take)
COUNTED_FUNCTION(wait_set_turn)
COUNTED_FUNCTION(callback)
COUNTED_FUNCTION(service_call)
COUNTED_FUNCTION(wake)
