/* The functions that a signal handler may call neither allocate nor free, with any arguments, also while the
 * interrupted thread is writing a message. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "check.h"

/* Only for this thread: the node's own thread may allocate at any time. */
static _Thread_local volatile int in_handler;
static _Atomic unsigned allocations;

static void count(void) { allocations += in_handler > 0; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
void *malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void *calloc(size_t elements, size_t bytes) {
  count();
  return __libc_calloc(elements, bytes);
}
void *realloc(void *old, size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
int posix_memalign(void **to, size_t align, size_t bytes) {
  count();
  *to = __libc_memalign(align, bytes);
  return *to == NULL;
}
void free(void *memory) {
  count();
  __libc_free(memory);
}

static myelin_guard_condition *guard, *closed_guard;
static myelin_subscriber *subscriber;
static myelin_server *server;
static _Atomic unsigned handled, wrong;

static void expect(enum myelin_code code, enum myelin_code expected, const char *text) {
  if (code != expected || strstr(myelin_error_message(), text) == NULL) wrong++;
}

static void handle(int signal) {
  (void)signal;
  in_handler++;
  expect(myelin_guard_condition_trigger(guard), MYELIN_OK, "");
  expect(myelin_guard_condition_trigger(NULL), MYELIN_ERROR_HANDLE, "the guard is NULL");
  expect(myelin_guard_condition_trigger(closed_guard), MYELIN_ERROR_HANDLE, "this guard is closed");
  expect(myelin_guard_condition_trigger((myelin_guard_condition *)subscriber), MYELIN_ERROR_HANDLE, "not belong to a guard");
  expect(myelin_subscriber_interrupt(subscriber), MYELIN_OK, "");
  expect(myelin_subscriber_interrupt(NULL), MYELIN_ERROR_HANDLE, "the subscriber is NULL");
  expect(myelin_server_interrupt(server), MYELIN_OK, "");
  expect(myelin_server_interrupt((myelin_server *)1), MYELIN_ERROR_HANDLE, "this is not a server");
  in_handler--;
  handled++;
}

int main(void) {
  myelin_node *node;
  myelin_topic *topic;
  myelin_wait_set *set;
  OK(myelin_node_open("signals", NULL, &node));
  OK(myelin_topic_open(node, "numbers", NULL, NULL, &topic));
  OK(myelin_subscriber_open(topic, NULL, &subscriber));
  OK(myelin_server_open(node, "service", NULL, NULL, &server));
  OK(myelin_wait_set_open(node, &set));
  OK(myelin_wait_set_guard_condition(set, 1, &guard));
  OK(myelin_wait_set_guard_condition(set, 2, &closed_guard));
  OK(myelin_guard_condition_close(closed_guard));

  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (handled < 2000) {
    CHECK(myelin_topic_close(NULL) == MYELIN_ERROR_HANDLE);
    CHECK(strlen(myelin_error_message()) < 2048);
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  CHECK(wrong == 0);
  CHECK(allocations == 0);

  OK(myelin_guard_condition_close(guard));
  OK(myelin_wait_set_close(set));
  OK(myelin_server_close(server));
  OK(myelin_subscriber_close(subscriber));
  OK(myelin_topic_close(topic));
  OK(myelin_node_close(node));
  puts("all signals");
  return 0;
}
