/* One thread sees the writes of another through the library alone: there is neither a lock nor an atomic in
 * this program. The thread sanitizer reports any violation; with the word `race` there is a fault that it
 * has to find. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { SAMPLES = 100 };

static myelin_topic *topic;
static uint64_t calls, written;
static myelin_callback *callback;
static myelin_guard_condition *guard;
static myelin_subscriber *subscriber;

static void count(const struct myelin_sample *sample, void *context) {
  CHECK(sample->bytes == sizeof(uint64_t) && context == &calls);
  calls++;
}

static void released(void *context) {
  CHECK(context == &calls && calls == 2 * SAMPLES);
  calls = 0;
}

static void *publish(void *role) {
  myelin_publisher *publisher;
  (void)role;
  OK(myelin_publisher_open(topic, NULL, &publisher));
  OK(myelin_publisher_wait_for_match(publisher, 1, WATCHDOG_NS));
  for (uint64_t each = 0; each < SAMPLES; each++)
    OK(myelin_publisher_publish_copy(publisher, &each, sizeof each, NULL));
  OK(myelin_publisher_close(publisher));
  return NULL;
}

/* Two threads' publishers run one callback, never twice at once; its end is after its last call. */
static void callbacks(void) {
  pthread_t threads[2];
  for (int each = 0; each < 2; each++) CHECK(pthread_create(&threads[each], NULL, publish, NULL) == 0);
  uint64_t returned = 0;
  while (returned < 2 * SAMPLES) {
    OK(myelin_callback_calls(callback, &returned));
    usleep(100);
  }
  OK(myelin_callback_close(callback));
  CHECK(calls == 0);
  for (int each = 0; each < 2; each++) CHECK(pthread_join(threads[each], NULL) == 0);
}

static void *write_and_trigger(void *role) {
  (void)role;
  written = 7;
  OK(myelin_guard_condition_trigger(guard));
  return NULL;
}

static void *write_and_interrupt(void *role) {
  (void)role;
  written = 8;
  OK(myelin_subscriber_interrupt(subscriber));
  return NULL;
}

/* Writes before the end of a wait are seen after the wait. */
static void waits(myelin_node *node) {
  myelin_wait_set *set;
  pthread_t thread;
  uint64_t key;
  size_t count;
  OK(myelin_wait_set_open(node, &set));
  OK(myelin_wait_set_guard_condition(set, 1, &guard));
  CHECK(pthread_create(&thread, NULL, write_and_trigger, NULL) == 0);
  OK(myelin_wait_set_wait(set, WATCHDOG_NS, &key, 1, &count));
  CHECK(written == 7);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(myelin_guard_condition_close(guard));
  OK(myelin_wait_set_close(set));

  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  OK(myelin_subscriber_open(topic, NULL, &subscriber));
  CHECK(pthread_create(&thread, NULL, write_and_interrupt, NULL) == 0);
  CHECK(myelin_subscriber_receive(subscriber, WATCHDOG_NS, &sample) == MYELIN_NOTHING);
  CHECK(written == 8);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(myelin_subscriber_close(subscriber));
}

static void *write_only(void *role) {
  (void)role;
  written++;
  return NULL;
}

static void race(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, write_only, NULL) == 0);
  written++;
  CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv) {
  myelin_node *node;
  myelin_subscriber *called;
  (void)argv;
  if (argc > 1) return race(), 0;
  OK(myelin_node_open("threads", NULL, &node));
  struct myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  options.depth = SAMPLES; /* a publisher does not wait for the other one's call */
  OK(myelin_topic_open(node, "threads", NULL, &options, &topic));
  OK(myelin_subscriber_open(topic, NULL, &called));
  OK(myelin_subscriber_on_sample(called, count, &calls, released, &callback));
  callbacks();
  waits(node);
  OK(myelin_topic_close(topic));
  OK(myelin_node_close(node));
  printf("all threads\n");
  return 0;
}
