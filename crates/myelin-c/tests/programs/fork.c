/* In a child of fork the memory of an inherited loan, sample or request's loan is zeros of its own: the child can
 * write it and give it back without harm to its parent, and to its own mappings. The child closes everything, at
 * any state of the parent's threads. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define BYTES 100000

struct ends {
  myelin_node *node;
  myelin_topic *topic;
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
};

static struct ends open_ends(const char *name) {
  struct ends ends;
  OK(myelin_node_open(name, NULL, &ends.node));
  OK(myelin_topic_open(ends.node, name, NULL, NULL, &ends.topic));
  OK(myelin_publisher_open(ends.topic, NULL, &ends.publisher));
  OK(myelin_subscriber_open(ends.topic, NULL, &ends.subscriber));
  OK(myelin_publisher_wait_for_match(ends.publisher, 1, WATCHDOG_NS));
  return ends;
}

static void close_ends(struct ends ends) {
  OK(myelin_publisher_close(ends.publisher));
  OK(myelin_subscriber_close(ends.subscriber));
  OK(myelin_topic_close(ends.topic));
  OK(myelin_node_close(ends.node));
}

static int is_all(const void *data, char byte) {
  const char *bytes = data;
  for (size_t at = 0; at < BYTES; at++)
    if (bytes[at] != byte) return 0;
  return 1;
}

/* A sample of so many bytes of this value. */
static struct myelin_sample pass(struct ends ends, char byte) {
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  OK(myelin_publisher_loan(ends.publisher, BYTES, &loan));
  memset(loan.data, byte, BYTES);
  OK(myelin_publisher_publish(ends.publisher, &loan, NULL));
  OK(myelin_subscriber_receive(ends.subscriber, WATCHDOG_NS, &sample));
  return sample;
}

static struct {
  struct ends ends;
  struct myelin_sample sample;
  myelin_wait_set *set;
  _Atomic int is_over;
} shared;

/* Makes and closes handles, and changes a set. */
static void *change(void *number) {
  const uint64_t key = (uintptr_t)number;
  while (!shared.is_over) {
    struct myelin_sample clone = MYELIN_INIT(myelin_sample);
    OK(myelin_sample_clone(&shared.sample, &clone));
    OK(myelin_sample_release(&clone));
    OK(myelin_wait_set_timer(shared.set, 1000000, key));
    OK(myelin_wait_set_remove(shared.set, key));
  }
  return NULL;
}

/* Actions of other threads during a fork do not stop the child. */
static void fork_among_threads(void) {
  enum { THREADS = 3, CHILDREN = 50 };
  pthread_t threads[THREADS];
  shared.ends = open_ends("threads");
  shared.sample = pass(shared.ends, 7);
  OK(myelin_wait_set_open(shared.ends.node, &shared.set));
  for (uintptr_t at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, change, (void *)at) == 0);
  for (int count = 0; count < CHILDREN; count++) {
    pid_t child = fork();
    if (child == 0) {
      uint64_t key;
      size_t keys;
      myelin_node *own;
      myelin_wait_set *set;
      alarm(WATCHDOG_NS / 1000000000);
      FAILS(myelin_wait_set_timer(shared.set, 1000000, 9), MYELIN_ERROR_FORKED, "fork");
      FAILS(myelin_wait_set_remove(shared.set, 9), MYELIN_ERROR_FORKED, "fork");
      FAILS(myelin_wait_set_wait(shared.set, 0, &key, 1, &keys), MYELIN_ERROR_FORKED, "fork");
      OK(myelin_node_open("own", NULL, &own));
      OK(myelin_wait_set_open(own, &set));
      OK(myelin_wait_set_close(set));
      OK(myelin_node_close(own));
      OK(myelin_wait_set_close(shared.set));
      OK(myelin_sample_release(&shared.sample));
      close_ends(shared.ends);
      _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  shared.is_over = 1;
  for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  OK(myelin_wait_set_close(shared.set));
  OK(myelin_sample_release(&shared.sample));
  close_ends(shared.ends);
}

int main(void) {
  struct ends ends = open_ends("parent");
  myelin_server *server;
  myelin_client *client;
  OK(myelin_server_open(ends.node, "service", NULL, NULL, &server));
  OK(myelin_client_open(ends.node, "service", NULL, NULL, &client));
  struct myelin_sample sample = pass(ends, 7);
  struct myelin_loan loan = MYELIN_INIT(myelin_loan), second = loan, request = loan;
  OK(myelin_publisher_loan(ends.publisher, BYTES, &loan));
  OK(myelin_publisher_loan(ends.publisher, BYTES, &second));
  OK(myelin_client_loan(client, BYTES, &request));
  memset(loan.data, 1, BYTES);
  memset(request.data, 1, BYTES);

  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    struct ends own = open_ends("child");
    struct myelin_sample own_sample = pass(own, 3);
    CHECK(is_all(sample.data, 0) && is_all(loan.data, 0));
    memset(loan.data, 9, BYTES);
    memset(second.data, 9, BYTES);
    memset(request.data, 9, BYTES);
    CHECK(is_all(own_sample.data, 3));
    FAILS(myelin_publisher_publish(ends.publisher, &loan, NULL), MYELIN_ERROR_FORKED, "fork");
    OK(myelin_publisher_discard(ends.publisher, &second));
    OK(myelin_client_discard(client, &request));
    OK(myelin_sample_release(&sample));
    OK(myelin_client_close(client));
    OK(myelin_server_close(server));
    close_ends(ends);
    OK(myelin_sample_release(&own_sample));
    close_ends(own);
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);

  CHECK(is_all(sample.data, 7) && is_all(loan.data, 1) && is_all(request.data, 1));
  OK(myelin_sample_release(&sample));
  OK(myelin_publisher_publish(ends.publisher, &loan, NULL));
  OK(myelin_subscriber_receive(ends.subscriber, WATCHDOG_NS, &sample));
  CHECK(is_all(sample.data, 1));
  OK(myelin_sample_release(&sample));
  OK(myelin_publisher_discard(ends.publisher, &second));
  OK(myelin_client_discard(client, &request));
  OK(myelin_client_close(client));
  OK(myelin_server_close(server));
  close_ends(ends);
  fork_among_threads();
  puts("all forks");
  return 0;
}
