/* The smallest driver in C: a middleware that returns each message to its sender, within one
 * process. It shows everything that a C driver needs, and the kit's tests run it. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "myelin_bench_kit.h"

/* The kit's tests can pretend that it has another header version. */
#ifndef ECHO_ABI
#define ECHO_ABI MYELIN_BENCH_ABI
#endif

struct echo {
  unsigned char *message;
  size_t bytes;
  size_t bytes_max;
  int waits; /* whether there is a message to take */
};

static int echo_open(const struct myelin_bench_prepare *prepare, void **link) {
  if (prepare->peer) {
    char text[256];
    snprintf(text, sizeof text, "cannot echo to %s from %s on %s, port %u", prepare->peer,
             prepare->own, prepare->interface, (unsigned)prepare->port);
    myelin_bench_error(text, NULL);
    return -1;
  }
  if (strstr(prepare->options_json, "\"fail\"")) {
    myelin_bench_error("told to fail", "leave out the option `fail`");
    return -1;
  }
  /* Goes to the run's log, like standard error. */
  printf("a middleware says what it likes\n");
  fflush(stdout);
  struct echo *echo = calloc(1, sizeof *echo);
  if (echo) echo->message = malloc(prepare->message_bytes);
  if (!echo || !echo->message) return -1;
  echo->bytes_max = prepare->message_bytes;
  *link = echo;
  return 0;
}

static int echo_publish(void *link, const void *message, size_t bytes) {
  struct echo *echo = link;
  if (bytes > echo->bytes_max) return -1;
  memcpy(echo->message, message, bytes);
  echo->bytes = bytes;
  echo->waits = 1;
  return 0;
}

static int echo_take(void *link, uint64_t until_ns, const void **message, size_t *bytes) {
  struct echo *echo = link;
  if (!echo->waits) {
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return 0;
  }
  echo->waits = 0;
  *message = echo->message;
  *bytes = echo->bytes;
  return 1;
}

static void echo_close(void *link) {
  struct echo *echo = link;
  free(echo->message);
  free(echo);
}

static const struct myelin_bench_system systems[] = {{
    MYELIN_BENCH_SIZE(system),
    .name = "echo.memory",
    .about = "hands each message back within one process",
    .version = "1",
    .wait = MYELIN_BENCH_WAIT_POLL,
    .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY,
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM,
    .payload_bytes_max = 1048576,
    .across_hosts = 1,
}};

static const struct myelin_bench_link functions = {
    MYELIN_BENCH_SIZE(link),
    .open = echo_open,
    .publish = echo_publish,
    .take = echo_take,
    .close = echo_close,
};

static const struct myelin_bench_driver driver = {
    .abi = ECHO_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = 1,
    .link = &functions,
    .options = "fail",
};

int main(void) { return myelin_bench_main(&driver); }
