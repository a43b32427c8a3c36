/* As src/main.rs, in C. */
#define _GNU_SOURCE
#include "counts.h"
#include <myelin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define TRY(call)                                                                \
  do {                                                                           \
    int code_ = (call);                                                          \
    if (code_ != MYELIN_OK) {                                                    \
      fprintf(stderr, "%s: %d %s\n", #call, code_, myelin_error_message());      \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

static myelin_node *from, *to;
static myelin_publisher *publisher;
static myelin_subscriber *subscriber;
static myelin_wait_set *set;
static myelin_client *client;
static myelin_server *server;
static char seven[64];
/* The first call of a service may take a moment. */
static uint64_t call_limit_ns = LIMIT_NS;

static void match(myelin_node *from_node, myelin_node *to_node, const char *name) {
  myelin_topic *here, *there;
  TRY(myelin_topic_open(from_node, name, NULL, NULL, &here));
  TRY(myelin_topic_open(to_node, name, NULL, NULL, &there));
  TRY(myelin_publisher_open(here, NULL, &publisher));
  TRY(myelin_subscriber_open(there, NULL, &subscriber));
  TRY(myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS));
  TRY(myelin_subscriber_wait_for_match(subscriber, 1, LIMIT_NS));
}

static void publish(void) { TRY(myelin_publisher_publish_copy(publisher, seven, sizeof seven, NULL)); }

static void take(void) {
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  TRY(myelin_subscriber_take(subscriber, &sample));
  if (((const char *)sample.data)[0] != 7) exit(2);
  TRY(myelin_sample_release(&sample));
}

static void take_all(void) {
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  while (myelin_subscriber_take(subscriber, &sample) == MYELIN_OK) TRY(myelin_sample_release(&sample));
}

static void publish_take(void) {
  publish();
  take();
}

static void lend(void) {
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  TRY(myelin_publisher_loan(publisher, 4096, &loan));
  ((char *)loan.data)[0] = 7;
  TRY(myelin_publisher_publish(publisher, &loan, NULL));
}

static void lend_take(void) {
  lend();
  take();
}

static void turn(void) {
  publish();
  uint64_t keys[4];
  size_t count;
  TRY(myelin_wait_set_wait(set, LIMIT_NS, keys, 4, &count));
  if (count != 1) exit(2);
  take();
}

static void call(void) {
  uint64_t number;
  TRY(myelin_client_send(client, seven, sizeof seven, &number));
  struct myelin_request request = MYELIN_INIT(myelin_request);
  TRY(myelin_server_receive(server, call_limit_ns, &request));
  TRY(myelin_request_reply(&request, seven, sizeof seven));
  TRY(myelin_request_release(&request));
  struct myelin_reply reply = MYELIN_INIT(myelin_reply);
  TRY(myelin_client_receive(client, number, call_limit_ns, &reply));
  TRY(myelin_reply_release(&reply));
}

static void on_sample(const struct myelin_sample *sample, void *calls) {
  if (((const char *)sample->data)[0] == 7) ++*(int *)calls;
}

static atomic_int thread, taken;

static void *sleeper(void *unused) {
  (void)unused;
  atomic_store(&thread, (int)syscall(SYS_gettid));
  for (int wake = 0; wake < WAKES; wake++) {
    struct myelin_sample sample = MYELIN_INIT(myelin_sample);
    TRY(myelin_subscriber_receive(subscriber, LIMIT_NS, &sample));
    TRY(myelin_sample_release(&sample));
    atomic_fetch_add(&taken, 1);
  }
  return NULL;
}

#define COUNT(name, operation)                                       \
  do {                                                               \
    for (int time = 0; time < WARM_UP; time++) operation();          \
    COUNTED(name, operation, EACH);                                  \
  } while (0)

int main(void) {
  memset(seven, 7, sizeof seven);
  TRY(myelin_node_open("from", NULL, &from));
  TRY(myelin_node_open("to", NULL, &to));
  match(from, to, "copy");
  COUNT(publish_copy, publish);
  take_all();
  COUNT(publish_copy_take, publish_take);

  match(from, to, "loan");
  lend();
  struct myelin_sample first = MYELIN_INIT(myelin_sample);
  TRY(myelin_subscriber_receive(subscriber, LIMIT_NS, &first)); /* it has mapped the memory */
  TRY(myelin_sample_release(&first));
  COUNT(loan_publish, lend);
  take_all();
  COUNT(loan_publish_take, lend_take);

  TRY(myelin_wait_set_open(to, &set));
  for (uint64_t number = 0; number < 10; number++) {
    char name[16];
    snprintf(name, sizeof name, "set/%d", (int)number);
    match(from, to, name);
    TRY(myelin_wait_set_add(set, subscriber, number));
  }
  COUNT(wait_set_turn, turn);

  int calls = 0;
  struct myelin_callback *callback;
  match(from, from, "callback");
  TRY(myelin_subscriber_on_sample(subscriber, on_sample, &calls, NULL, &callback));
  COUNT(callback, publish);
  if (calls != WARM_UP + EACH) return 2;

  TRY(myelin_server_open(from, "service", NULL, NULL, &server));
  TRY(myelin_client_open(to, "service", NULL, NULL, &client));
  while (myelin_client_wait_for_service(client, 1000000) == MYELIN_NOTHING) {
    struct myelin_request none = MYELIN_INIT(myelin_request);
    if (myelin_server_receive(server, 0, &none) == MYELIN_OK) return 2;
  }
  call();
  call_limit_ns = 0;
  COUNT(service_call, call);

  match(from, to, "wake");
  pthread_t other;
  if (pthread_create(&other, NULL, sleeper, NULL)) return 3;
  for (int wake = 0; wake < WAKES; wake++) {
    while (atomic_load(&taken) < wake || !sleeps(atomic_load(&thread))) usleep(1000);
    COUNTED(wake, publish, 1);
  }
  pthread_join(other, NULL);
  return 0;
}
