/* How handles end: in any order, in their own callbacks, with their thread, after main. Nothing hangs or stays. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

#define BYTES 1000

struct parts {
  myelin_node *node;
  myelin_topic *topic;
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
  myelin_sample *sample;
  myelin_callback *callback;
  myelin_server *server;
  myelin_client *client;
  myelin_wait_set *set;
  myelin_guard_condition *guard;
  int passes;
};
enum { PARTS = 10 };

static void ignore(const struct myelin_sample *sample, void *context) {
  (void)sample;
  (void)context;
}

static struct parts *parts_of(void) {
  struct parts *parts = calloc(1, sizeof *parts);
  parts->sample = calloc(1, sizeof *parts->sample);
  *parts->sample = (struct myelin_sample)MYELIN_INIT(myelin_sample);
  myelin_subscriber *called;
  static char bytes[BYTES];
  OK(myelin_node_open("ends", NULL, &parts->node));
  OK(myelin_topic_open(parts->node, "image", NULL, NULL, &parts->topic));
  OK(myelin_publisher_open(parts->topic, NULL, &parts->publisher));
  OK(myelin_subscriber_open(parts->topic, NULL, &parts->subscriber));
  OK(myelin_subscriber_open(parts->topic, NULL, &called));
  OK(myelin_subscriber_on_sample(called, ignore, NULL, NULL, &parts->callback));
  OK(myelin_publisher_wait_for_match(parts->publisher, 2, WATCHDOG_NS));
  OK(myelin_publisher_publish_copy(parts->publisher, bytes, BYTES, NULL));
  OK(myelin_subscriber_receive(parts->subscriber, WATCHDOG_NS, parts->sample));
  OK(myelin_server_open(parts->node, "service", NULL, NULL, &parts->server));
  OK(myelin_client_open(parts->node, "service", NULL, NULL, &parts->client));
  OK(myelin_client_wait_for_service(parts->client, WATCHDOG_NS));
  uint64_t call;
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  OK(myelin_client_send(parts->client, bytes, BYTES, &call)); /* never taken */
  OK(myelin_client_loan(parts->client, BYTES, &loan));        /* never sent */
  loan = (struct myelin_loan)MYELIN_INIT(myelin_loan);
  OK(myelin_publisher_loan(parts->publisher, BYTES, &loan)); /* never published */
  OK(myelin_wait_set_open(parts->node, &parts->set));
  OK(myelin_wait_set_add(parts->set, parts->subscriber, 1));
  OK(myelin_wait_set_guard_condition(parts->set, 2, &parts->guard));
  return parts;
}

static void close_part(struct parts *parts, unsigned which) {
  switch (which) {
    case 0: OK(myelin_node_close(parts->node)); break;
    case 1: OK(myelin_topic_close(parts->topic)); break;
    case 2: OK(myelin_publisher_close(parts->publisher)); break;
    case 3: OK(myelin_subscriber_close(parts->subscriber)); break;
    case 4: OK(myelin_sample_release(parts->sample)); break;
    case 5: OK(myelin_callback_close(parts->callback)); break;
    case 6: OK(myelin_server_close(parts->server)); break;
    case 7: OK(myelin_client_close(parts->client)); break;
    case 8: OK(myelin_wait_set_close(parts->set)); break;
    case 9: OK(myelin_guard_condition_close(parts->guard)); break;
  }
}

static void close_in_order(uint64_t seed) {
  struct parts *parts = parts_of();
  unsigned order[PARTS];
  for (unsigned at = 0; at < PARTS; at++) order[at] = at;
  for (unsigned left = PARTS; left > 0; left--) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    unsigned at = (unsigned)(seed >> 33) % left;
    close_part(parts, order[at]);
    order[at] = order[left - 1];
  }
  free(parts->sample);
  free(parts);
}

static size_t entries(const char *folder) {
  DIR *opened = opendir(folder);
  size_t count = 0;
  while (readdir(opened) != NULL) count++;
  closedir(opened);
  return count;
}

/* The kernel lists a thread for a moment after it was joined, also in the numbers of before. */
static void expect_open(size_t descriptors, size_t threads) {
  uint64_t begun = myelin_now();
  while (entries("/proc/self/fd") > descriptors || entries("/proc/self/task") > threads) {
    CHECK(myelin_now() - begun < WATCHDOG_NS);
    sched_yield();
  }
}

static void orders(void) {
  for (uint64_t seed = 0; seed < 2; seed++) close_in_order(seed);
  size_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (uint64_t seed = 2; seed < 20; seed++) close_in_order(seed);
  expect_open(descriptors, threads);
}

/* A callback that closes itself, the node and another publisher. */
struct closing {
  myelin_callback *callback;
  myelin_publisher *other;
  myelin_node *node;
  int calls, releases;
};

static void close_all(const struct myelin_sample *sample, void *context) {
  struct closing *closing = context;
  (void)sample;
  closing->calls++;
  OK(myelin_publisher_close(closing->other));
  OK(myelin_callback_close(closing->callback));
  OK(myelin_node_close(closing->node));
}

static void released(void *context) { __atomic_fetch_add(&((struct closing *)context)->releases, 1, __ATOMIC_RELEASE); }

static void own_callbacks(void) {
  struct closing closing = {0};
  myelin_topic *topic;
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
  OK(myelin_node_open("own", NULL, &closing.node));
  OK(myelin_topic_open(closing.node, "own", NULL, NULL, &topic));
  OK(myelin_publisher_open(topic, NULL, &publisher));
  OK(myelin_publisher_open(topic, NULL, &closing.other));
  OK(myelin_subscriber_open(topic, NULL, &subscriber));
  OK(myelin_subscriber_on_sample(subscriber, close_all, &closing, released, &closing.callback));
  OK(myelin_publisher_wait_for_match(publisher, 1, WATCHDOG_NS));
  OK(myelin_publisher_publish_copy(publisher, "x", 1, NULL));
  OK(myelin_publisher_publish_copy(publisher, "x", 1, NULL));
  CHECK(closing.calls == 1);
  OK(myelin_topic_close(topic));
  OK(myelin_publisher_close(publisher));
  uint64_t begun = myelin_now();
  while (__atomic_load_n(&closing.releases, __ATOMIC_ACQUIRE) != 1) CHECK(myelin_now() - begun < WATCHDOG_NS);
}

static pthread_key_t key;

static void close_parts(void *context) {
  struct parts *parts = context;
  /* After the destructors of all others' thread-local values. */
  if (parts->passes++ < 2 && pthread_setspecific(key, parts) == 0) return;
  for (unsigned which = 0; which < PARTS; which++) close_part(parts, which);
  CHECK(myelin_topic_close(NULL) == MYELIN_ERROR_HANDLE && strlen(myelin_error_message()) > 0);
  free(parts->sample);
  free(parts);
}

static void *keep(void *none) {
  CHECK(pthread_setspecific(key, parts_of()) == 0);
  return none;
}

static void thread_ends(void) {
  CHECK(pthread_key_create(&key, close_parts) == 0);
  pthread_t thread;
  for (int round = 0; round < 3; round++) {
    CHECK(pthread_create(&thread, NULL, keep, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
}

static struct parts *left;

static void after_main(void) {
  left->passes = 2;
  close_parts(left);
  puts("all ends");
}

int main(void) {
  orders();
  own_callbacks();
  thread_ends();
  left = parts_of();
  CHECK(atexit(after_main) == 0);
  return 0;
}
