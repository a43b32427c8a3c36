/* Each part of the C API once, and its errors for invalid arguments. The domain comes from the environment. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const struct myelin_field imu_fields[] = {
    MYELIN_FIELD(struct imu, stamp_ns),
    MYELIN_FIELD(struct imu, acceleration),
    MYELIN_FIELD(struct imu, temperature),
    MYELIN_FIELD(struct imu, _pad),
};
static const struct myelin_struct imu = MYELIN_STRUCT_OF(struct imu, "Imu", imu_fields);
static const struct myelin_payload of_imu = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&imu, 0));
static const struct myelin_payload of_numbers = MYELIN_PAYLOAD(MYELIN_SLICE, MYELIN_TYPE(MYELIN_U32, 0));

static myelin_node *node;

static myelin_topic *topic_of(const char *name, const struct myelin_payload *payload) {
  myelin_topic *topic;
  OK(myelin_topic_open(node, name, payload, NULL, &topic));
  return topic;
}

struct pair {
  myelin_topic *topic;
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
};

static struct pair pair_of(const char *name, const struct myelin_payload *payload,
                           const struct myelin_subscriber_options *options) {
  struct pair pair = {.topic = topic_of(name, payload)};
  OK(myelin_publisher_open(pair.topic, NULL, &pair.publisher));
  OK(myelin_subscriber_open(pair.topic, options, &pair.subscriber));
  OK(myelin_publisher_wait_for_match(pair.publisher, 1, WATCHDOG_NS));
  return pair;
}

static void close_pair(struct pair pair) {
  OK(myelin_publisher_close(pair.publisher));
  OK(myelin_subscriber_close(pair.subscriber));
  OK(myelin_topic_close(pair.topic));
}

static void version(void) {
  CHECK(myelin_version() == MYELIN_VERSION);
  uint64_t before = myelin_now();
  CHECK(myelin_now() >= before && before > 0);
  CHECK(sizeof(struct myelin_type) == 48);
}

static void copies_and_loans(void) {
  struct pair pair = pair_of("copies", &of_imu, NULL);
  struct imu sent = {.stamp_ns = 7, .acceleration = {1, 2, 3}, .temperature = 21.5f};
  struct myelin_published published = MYELIN_INIT(myelin_published);
  OK(myelin_publisher_publish_copy(pair.publisher, &sent, sizeof sent, &published));
  CHECK(published.sequence == 0);
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  OK(myelin_subscriber_receive(pair.subscriber, WATCHDOG_NS, &sample));
  CHECK(sample.bytes == sizeof sent && memcmp(sample.data, &sent, sizeof sent) == 0);
  CHECK(sample.sequence == 0 && sample.lost_before == 0 && sample.published_ns == 0);
  /* A small payload stays where it is while others are taken. */
  struct myelin_sample other = MYELIN_INIT(myelin_sample), copy = sample;
  struct imu later = {.stamp_ns = 8};
  OK(myelin_publisher_publish_copy(pair.publisher, &later, sizeof later, NULL));
  OK(myelin_subscriber_has_unread(pair.subscriber));
  OK(myelin_subscriber_take(pair.subscriber, &other));
  CHECK(myelin_subscriber_has_unread(pair.subscriber) == MYELIN_NOTHING);
  CHECK(((const struct imu *)other.data)->stamp_ns == 8);
  CHECK(memcmp(sample.data, &sent, sizeof sent) == 0);
  OK(myelin_sample_release(&other));
  OK(myelin_sample_clone(&sample, &other));
  OK(myelin_sample_release(&sample));
  CHECK(sample.data == NULL && ((const struct imu *)other.data)->stamp_ns == 7);
  FAILS(myelin_sample_release(&sample), MYELIN_ERROR_HANDLE, "closed");
  FAILS(myelin_sample_release(&copy), MYELIN_ERROR_HANDLE, "closed");
  OK(myelin_sample_release(&other));
  CHECK(myelin_subscriber_take(pair.subscriber, &sample) == MYELIN_NOTHING);
  CHECK(myelin_subscriber_receive(pair.subscriber, 1000, &sample) == MYELIN_NOTHING);

  struct myelin_loan loan = MYELIN_INIT(myelin_loan), second = loan;
  OK(myelin_publisher_loan(pair.publisher, sizeof sent, &loan));
  OK(myelin_publisher_loan(pair.publisher, sizeof sent, &second));
  struct myelin_loan kept = loan;
  memcpy(loan.data, &sent, sizeof sent);
  OK(myelin_publisher_publish(pair.publisher, &loan, NULL));
  CHECK(loan.data == NULL);
  FAILS(myelin_publisher_publish(pair.publisher, &loan, NULL), MYELIN_ERROR_LOAN, "already");
  FAILS(myelin_publisher_publish(pair.publisher, &kept, NULL), MYELIN_ERROR_LOAN, "already");
  FAILS(myelin_publisher_discard(pair.publisher, &kept), MYELIN_ERROR_LOAN, "already");
  OK(myelin_publisher_discard(pair.publisher, &second));
  OK(myelin_subscriber_take(pair.subscriber, &sample));
  CHECK(memcmp(sample.data, &sent, sizeof sent) == 0);
  OK(myelin_sample_release(&sample));

  FAILS(myelin_publisher_publish_copy(pair.publisher, &sent, 3, NULL), MYELIN_ERROR_TYPE, "Imu");
  FAILS(myelin_publisher_loan(pair.publisher, 3, &loan), MYELIN_ERROR_TYPE, "3 B");
  FAILS(myelin_publisher_publish_copy(pair.publisher, NULL, sizeof sent, NULL),
        MYELIN_ERROR_SETTING, "NULL");
  size_t count;
  OK(myelin_publisher_matched(pair.publisher, &count));
  CHECK(count == 1);
  OK(myelin_subscriber_matched(pair.subscriber, &count));
  CHECK(count == 1);
  OK(myelin_publisher_reserve(pair.publisher, 2, sizeof sent));
  OK(myelin_publisher_assert_liveliness(pair.publisher));
  close_pair(pair);
}

static void held_samples_and_losses(void) {
  struct myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.held_max = 1;
  struct pair pair = pair_of("held", NULL, &options);
  char bytes[1000] = {1};
  for (int each = 0; each < 10; each++)
    OK(myelin_publisher_publish_copy(pair.publisher, bytes, sizeof bytes, NULL));
  struct myelin_sample one = MYELIN_INIT(myelin_sample), two = one;
  OK(myelin_subscriber_take(pair.subscriber, &one));
  CHECK(one.lost_before == 2 && one.sequence == 2);
  FAILS(myelin_subscriber_take(pair.subscriber, &two), MYELIN_ERROR_TOO_MANY, "held_max");
  uint64_t lost;
  OK(myelin_subscriber_lost(pair.subscriber, &lost));
  CHECK(lost == 2);
  OK(myelin_sample_release(&one));
  OK(myelin_subscriber_take(pair.subscriber, &two));
  /* Held samples outlive their subscriber. */
  close_pair(pair);
  CHECK(two.bytes == sizeof bytes && ((const char *)two.data)[0] == 1);
  OK(myelin_sample_release(&two));
}

struct counted {
  _Atomic uint64_t calls;
  _Atomic int released;
  struct myelin_sample kept;
  myelin_publisher *publisher;
};

static void count(const struct myelin_sample *sample, void *context) {
  struct counted *counted = context;
  if (counted->calls == 0) {
    OK(myelin_sample_clone(sample, &counted->kept));
    struct myelin_sample lent = *sample;
    FAILS(myelin_sample_release(&lent), MYELIN_ERROR_HANDLE, "lent");
    /* Inside the publish of this very publisher. */
    FAILS(myelin_publisher_publish_copy(counted->publisher, "x", 1, NULL), MYELIN_ERROR_REENTERED,
          "share the publisher");
    FAILS(myelin_publisher_close(counted->publisher), MYELIN_ERROR_HANDLE, "inside a publish");
  }
  counted->calls++;
}

static void counted_is_over(void *context) { ((struct counted *)context)->released++; }

static void callbacks(void) {
  struct pair pair = pair_of("calls", NULL, NULL);
  struct counted counted = {.kept = MYELIN_INIT(myelin_sample), .publisher = pair.publisher};
  myelin_callback *callback;
  OK(myelin_subscriber_on_sample(pair.subscriber, count, &counted, counted_is_over, &callback));
  FAILS(myelin_subscriber_close(pair.subscriber), MYELIN_ERROR_HANDLE, "closed");
  OK(myelin_publisher_publish_copy(pair.publisher, "first", 5, NULL));
  OK(myelin_publisher_publish_copy(pair.publisher, "second", 6, NULL));
  uint64_t calls;
  OK(myelin_callback_calls(callback, &calls));
  CHECK(calls == 2 && counted.calls == 2 && counted.released == 0);
  OK(myelin_callback_error(callback));
  OK(myelin_callback_close(callback));
  CHECK(counted.released == 1);
  CHECK(counted.kept.bytes == 5 && memcmp(counted.kept.data, "first", 5) == 0);
  OK(myelin_sample_release(&counted.kept));
  FAILS(myelin_callback_close(callback), MYELIN_ERROR_HANDLE, "closed");
  /* The context is released also if there is no callback. */
  FAILS(myelin_subscriber_on_sample(NULL, count, &counted, counted_is_over, &callback),
        MYELIN_ERROR_HANDLE, "NULL");
  CHECK(counted.released == 2);
  OK(myelin_publisher_close(pair.publisher));
  OK(myelin_topic_close(pair.topic));
}

static void *trigger(void *guard) {
  OK(myelin_guard_condition_trigger(guard));
  return NULL;
}

/* A thread that waits, and the keys that it got. */
struct waiter {
  myelin_wait_set *set;
  pthread_t thread;
  uint64_t key;
  size_t ready;
  int code;
};

static void *wait_once(void *context) {
  struct waiter *waiter = context;
  do waiter->code = myelin_wait_set_wait(waiter->set, MYELIN_FOREVER, &waiter->key, 1, &waiter->ready);
  while (waiter->code == MYELIN_ERROR_BUSY); /* `begin` looks */
  return NULL;
}

static void begin(struct waiter *waiter) {
  CHECK(pthread_create(&waiter->thread, NULL, wait_once, waiter) == 0);
  /* Until it is inside. */
  uint64_t key;
  size_t ready;
  while (myelin_wait_set_wait(waiter->set, 0, &key, 1, &ready) != MYELIN_ERROR_BUSY) usleep(100);
  CHECK(strstr(myelin_error_message(), "another thread waits") != NULL);
}

static void ends_with(struct waiter *waiter, uint64_t key) {
  CHECK(pthread_join(waiter->thread, NULL) == 0);
  CHECK(waiter->code == MYELIN_OK && waiter->ready == 1 && waiter->key == key);
}

/* This thread adds, removes and closes; a waiting thread takes the changes into account. */
static void wait_sets_of_threads(void) {
  struct pair pair = pair_of("sets", NULL, NULL);
  struct waiter waiter = {0};
  myelin_guard_condition *guard;
  OK(myelin_wait_set_open(node, &waiter.set));
  begin(&waiter);
  OK(myelin_wait_set_add(waiter.set, pair.subscriber, 20));
  OK(myelin_publisher_publish_copy(pair.publisher, "x", 1, NULL));
  ends_with(&waiter, 20);
  OK(myelin_wait_set_remove(waiter.set, 20));
  begin(&waiter);
  OK(myelin_wait_set_set_wait(waiter.set, MYELIN_WAIT_BLOCK));
  OK(myelin_wait_set_guard_condition(waiter.set, 21, &guard));
  OK(myelin_guard_condition_trigger(guard));
  ends_with(&waiter, 21);
  begin(&waiter);
  int descriptor;
  OK(myelin_wait_set_descriptor(waiter.set, &descriptor));
  CHECK(close(descriptor) == 0);
  OK(myelin_wait_set_timer(waiter.set, 1000000, 22));
  ends_with(&waiter, 22);
  OK(myelin_wait_set_remove(waiter.set, 22));
  begin(&waiter);
  OK(myelin_wait_set_close(waiter.set));
  CHECK(pthread_join(waiter.thread, NULL) == 0);
  CHECK(waiter.code == MYELIN_ERROR_CLOSED);
  uint64_t key;
  size_t ready;
  CHECK(myelin_wait_set_wait(waiter.set, 0, &key, 1, &ready) == MYELIN_ERROR_HANDLE);
  /* The guard of a closed set does nothing. */
  OK(myelin_guard_condition_trigger(guard));
  OK(myelin_guard_condition_close(guard));
  close_pair(pair);
}

static void wait_sets(void) {
  struct pair pair = pair_of("set", NULL, NULL);
  myelin_wait_set *set;
  myelin_guard_condition *guard;
  OK(myelin_wait_set_open(node, &set));
  OK(myelin_wait_set_add(set, pair.subscriber, 10));
  FAILS(myelin_wait_set_add(set, pair.subscriber, 10), MYELIN_ERROR_SETTING, "wait set");
  OK(myelin_wait_set_guard_condition(set, 11, &guard));
  OK(myelin_wait_set_set_wait(set, MYELIN_WAIT_BLOCK));
  uint64_t keys[4];
  size_t ready;
  CHECK(myelin_wait_set_wait(set, 0, keys, 4, &ready) == MYELIN_NOTHING && ready == 0);
  OK(myelin_publisher_publish_copy(pair.publisher, "x", 1, NULL));
  OK(myelin_wait_set_wait(set, WATCHDOG_NS, keys, 4, &ready));
  CHECK(ready == 1 && keys[0] == 10);
  int descriptor;
  OK(myelin_wait_set_descriptor(set, &descriptor));
  struct pollfd poll_fd = {.fd = descriptor, .events = POLLIN};
  CHECK(poll(&poll_fd, 1, 60000) == 1);
  /* Room for one of the two ready members: the next wait reports the other. */
  OK(myelin_guard_condition_trigger(guard));
  OK(myelin_wait_set_wait(set, WATCHDOG_NS, keys, 1, &ready));
  CHECK(ready == 1);
  uint64_t first = keys[0];
  OK(myelin_wait_set_wait(set, WATCHDOG_NS, keys, 1, &ready));
  CHECK(ready == 1 && first + keys[0] == 21);
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  OK(myelin_subscriber_take(pair.subscriber, &sample));
  OK(myelin_sample_release(&sample));

  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, trigger, guard) == 0);
  do OK(myelin_wait_set_wait(set, MYELIN_FOREVER, keys, 4, &ready));
  while (keys[0] != 11);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(myelin_wait_set_timer(set, 1000000, 12));
  OK(myelin_wait_set_wait(set, WATCHDOG_NS, keys, 4, &ready));
  CHECK(ready == 1 && keys[0] == 12);
  OK(myelin_wait_set_remove(set, 12));
  CHECK(myelin_wait_set_remove(set, 12) == MYELIN_NOTHING);
  FAILS(myelin_wait_set_wait(set, 0, keys, 0, &ready), MYELIN_ERROR_SETTING, "room");
  CHECK(close(descriptor) == 0);
  OK(myelin_guard_condition_close(guard));
  OK(myelin_wait_set_close(set));
  close_pair(pair);
  wait_sets_of_threads();
}

static void *interrupt(void *subscriber) {
  OK(myelin_subscriber_interrupt(subscriber));
  return NULL;
}

static void descriptors_and_interrupts(void) {
  struct myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.descriptor = true;
  options.wait = MYELIN_WAIT_BLOCK;
  struct pair pair = pair_of("descriptor", NULL, &options);
  int descriptor;
  OK(myelin_subscriber_descriptor(pair.subscriber, &descriptor));
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  CHECK(myelin_subscriber_take(pair.subscriber, &sample) == MYELIN_NOTHING);
  OK(myelin_publisher_publish_copy(pair.publisher, "x", 1, NULL));
  struct pollfd poll_fd = {.fd = descriptor, .events = POLLIN};
  CHECK(poll(&poll_fd, 1, 60000) == 1);
  OK(myelin_subscriber_wait(pair.subscriber, WATCHDOG_NS));
  OK(myelin_subscriber_take(pair.subscriber, &sample));
  OK(myelin_sample_release(&sample));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, interrupt, pair.subscriber) == 0);
  CHECK(myelin_subscriber_receive(pair.subscriber, MYELIN_FOREVER, &sample) == MYELIN_NOTHING);
  CHECK(pthread_join(thread, NULL) == 0);
  close_pair(pair);
  struct pair plain = pair_of("plain", NULL, NULL);
  FAILS(myelin_subscriber_descriptor(plain.subscriber, &descriptor), MYELIN_ERROR_SETTING,
        "descriptor");
  close_pair(plain);
}

static void serve(struct myelin_request *request, void *context) {
  (void)context;
  const struct imu *asked = request->data;
  if (asked->stamp_ns == 0) { /* not replied to */
    OK(myelin_request_release(request));
    return;
  }
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  FAILS(myelin_request_reply(request, asked, 3), MYELIN_ERROR_TYPE, "[u32]");
  OK(myelin_request_loan(request, asked->stamp_ns * sizeof(uint32_t), &loan));
  for (uint64_t each = 0; each < asked->stamp_ns; each++) ((uint32_t *)loan.data)[each] = each;
  OK(myelin_request_send(request, &loan));
  FAILS(myelin_request_send(request, &loan), MYELIN_ERROR_LOAN, "already");
  FAILS(myelin_request_reply(request, "four", 4), MYELIN_ERROR_SETTING, "once");
  struct myelin_request copy = *request;
  OK(myelin_request_release(request));
  FAILS(myelin_request_release(&copy), MYELIN_ERROR_HANDLE, "closed");
}

static void *serve_one(void *server) {
  struct myelin_request request = MYELIN_INIT(myelin_request);
  OK(myelin_server_receive(server, WATCHDOG_NS, &request));
  uint32_t replied = 5;
  OK(myelin_request_reply(&request, &replied, sizeof replied));
  OK(myelin_request_release(&request));
  return NULL;
}

static void services(void) {
  myelin_server *server;
  myelin_client *client;
  struct imu goal = {.stamp_ns = 3};
  struct myelin_reply reply = MYELIN_INIT(myelin_reply);
  OK(myelin_client_open(node, "service", &of_imu, &of_numbers, &client));
  FAILS(myelin_client_call(client, &goal, sizeof goal, 1000, &reply), MYELIN_ERROR_NO_SERVER,
        "no server");
  OK(myelin_server_open(node, "service", &of_imu, &of_numbers, &server));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, serve_one, server) == 0);
  OK(myelin_client_wait_for_service(client, WATCHDOG_NS));
  OK(myelin_client_call(client, &goal, sizeof goal, WATCHDOG_NS, &reply));
  CHECK(reply.bytes == 4 && *(const uint32_t *)reply.data == 5);
  OK(myelin_reply_release(&reply));
  FAILS(myelin_reply_release(&reply), MYELIN_ERROR_HANDLE, "closed");
  CHECK(pthread_join(thread, NULL) == 0);
  size_t count;
  OK(myelin_server_clients(server, &count));
  CHECK(count == 1);

  myelin_callback *serving;
  OK(myelin_server_on_request(server, serve, NULL, NULL, &serving));
  uint64_t call;
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  OK(myelin_client_loan(client, sizeof goal, &loan));
  memcpy(loan.data, &goal, sizeof goal);
  OK(myelin_client_send_loan(client, &loan, &call));
  OK(myelin_client_receive(client, call, WATCHDOG_NS, &reply));
  CHECK(reply.bytes == 12 && ((const uint32_t *)reply.data)[2] == 2);
  OK(myelin_reply_release(&reply));
  FAILS(myelin_client_receive(client, call, 0, &reply), MYELIN_ERROR_LOAN, "already");
  goal.stamp_ns = 0;
  OK(myelin_client_send(client, &goal, sizeof goal, &call));
  FAILS(myelin_client_receive(client, call, WATCHDOG_NS, &reply), MYELIN_ERROR_NO_REPLY, "dropped");
  OK(myelin_client_send(client, &goal, sizeof goal, &call));
  OK(myelin_client_abandon(client, call));
  OK(myelin_callback_close(serving));
  OK(myelin_client_close(client));
}

// Attributes are seen by others; a subscriber that requests more than is offered is refused.
static void records(void) {
  const unsigned char gid[] = {0, 1, 255};
  const struct myelin_attribute attributes[] = {{"ros.gid", gid, sizeof gid}, {"empty", NULL, 0}};
  struct myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  options.attributes = attributes, options.attribute_count = 2;
  options.matching = MYELIN_MATCHING_REQUESTED_OFFERED;
  options.reliability = MYELIN_KEEP_LAST;
  options.lifespan_ns = 7000000, options.is_alive_by_topic = true;
  myelin_topic *offered = topic_of("records", &of_imu), *requested;
  OK(myelin_topic_open(node, "records", &of_imu, &options, &requested));
  struct myelin_publisher_options leased = MYELIN_INIT(myelin_publisher_options);
  leased.liveliness_ns = 5000000;
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
  OK(myelin_publisher_open(offered, &leased, &publisher));
  OK(myelin_subscriber_open(requested, NULL, &subscriber));
  struct myelin_event event = MYELIN_INIT(myelin_event);
  OK(myelin_subscriber_event(subscriber, &event));
  CHECK(event.kind == MYELIN_EVENT_INCOMPATIBLE && event.setting == MYELIN_SETTING_RELIABILITY);
  CHECK(strcmp(event.offered, "best effort") == 0 && strcmp(event.requested, "reliable") == 0);
  CHECK(strstr(event.text, "best effort") != NULL);

  myelin_graph *graph;
  OK(myelin_node_graph(node, &graph));
  struct myelin_graph_endpoint endpoint = MYELIN_INIT(myelin_graph_endpoint);
  struct myelin_attribute attribute;
  int found = 0;
  for (size_t each = 0; myelin_graph_endpoint_at(graph, each, &endpoint) == MYELIN_OK; each++) {
    if (endpoint.is_publisher) {
      CHECK(endpoint.liveliness_ns == 5000000 && endpoint.matching == MYELIN_MATCHING_EXACT);
      CHECK(endpoint.lifespan_ns == MYELIN_FOREVER && !endpoint.is_alive_by_topic);
      continue;
    }
    found++;
    CHECK(endpoint.lifespan_ns == 7000000 && endpoint.is_alive_by_topic);
    CHECK(endpoint.resends && endpoint.matching == MYELIN_MATCHING_REQUESTED_OFFERED);
    OK(myelin_graph_attribute_at(graph, endpoint.endpoint, 0, &attribute));
    CHECK(strcmp(attribute.name, "empty") == 0 && attribute.bytes == 0);
    OK(myelin_graph_attribute_at(graph, endpoint.endpoint, 1, &attribute));
    CHECK(strcmp(attribute.name, "ros.gid") == 0 && attribute.bytes == sizeof gid);
    CHECK(memcmp(attribute.value, gid, sizeof gid) == 0);
    CHECK(myelin_graph_attribute_at(graph, endpoint.endpoint, 2, &attribute) == MYELIN_NOTHING);
  }
  CHECK(found == 1);
  struct myelin_graph_match match = MYELIN_INIT(myelin_graph_match);
  OK(myelin_graph_match_at(graph, 0, &match));
  CHECK(match.state == MYELIN_MATCH_REFUSED && match.setting == MYELIN_SETTING_RELIABILITY);
  CHECK(strcmp(match.offered, "best effort") == 0 && strcmp(match.requested, "reliable") == 0);
  OK(myelin_graph_close(graph));
  OK(myelin_publisher_close(publisher));
  OK(myelin_subscriber_close(subscriber));
  OK(myelin_topic_close(offered));
  OK(myelin_topic_close(requested));

  myelin_topic *none;
  options.matching = 7;
  FAILS(myelin_topic_open(node, "records", &of_imu, &options, &none), MYELIN_ERROR_SETTING, "myelin_matching");
  options.matching = 0, options.attributes = NULL;
  FAILS(myelin_topic_open(node, "records", &of_imu, &options, &none), MYELIN_ERROR_SETTING, "attributes is NULL");
}

static void events_and_graph(void) {
  struct pair pair = pair_of("graph", &of_imu, NULL);
  struct myelin_event event = MYELIN_INIT(myelin_event);
  OK(myelin_publisher_event(pair.publisher, &event));
  CHECK(event.kind == MYELIN_EVENT_MATCHED && event.pid == (uint32_t)getpid());
  CHECK(myelin_publisher_event(pair.publisher, &event) == MYELIN_NOTHING);

  myelin_graph *graph;
  OK(myelin_node_graph(node, &graph));
  struct myelin_graph_node found = MYELIN_INIT(myelin_graph_node);
  OK(myelin_graph_node_at(graph, 0, &found));
  CHECK(strcmp(found.name, "parts") == 0 && found.pid == (uint32_t)getpid());
  CHECK(myelin_graph_node_at(graph, 1, &found) == MYELIN_NOTHING);
  struct myelin_graph_endpoint endpoint = MYELIN_INIT(myelin_graph_endpoint);
  uint64_t hash;
  OK(myelin_payload_hash(&of_imu, &hash));
  int publishers = 0;
  for (size_t each = 0; myelin_graph_endpoint_at(graph, each, &endpoint) == MYELIN_OK; each++) {
    CHECK(strcmp(endpoint.topic, "graph") == 0 && strcmp(endpoint.type_name, "Imu") == 0);
    CHECK(endpoint.type_hash == hash && endpoint.depth == 8 && endpoint.node == found.node);
    publishers += endpoint.is_publisher;
  }
  CHECK(publishers == 1);
  OK(myelin_publisher_publish_copy(pair.publisher, &(struct imu){.stamp_ns = 1}, sizeof(struct imu), NULL));
  myelin_graph *counted;
  OK(myelin_node_graph_within(node, MYELIN_FOREVER, &counted));
  struct myelin_graph_counters counters = MYELIN_INIT(myelin_graph_counters);
  for (size_t each = 0; myelin_graph_endpoint_at(counted, each, &endpoint) == MYELIN_OK; each++) {
    OK(myelin_graph_counters_at(counted, each, &counters));
    CHECK(counters.published == endpoint.is_publisher && counters.taken == 0 && counters.lost == 0);
    CHECK(counters.published_bytes == counters.published * sizeof(struct imu) && counters.memory_bytes > 0);
  }
  CHECK(myelin_graph_counters_at(counted, 9, &counters) == MYELIN_NOTHING);
  OK(myelin_graph_close(counted));
  myelin_graph *one;
  OK(myelin_node_endpoint(node, endpoint.endpoint, &one));
  struct myelin_graph_endpoint same = MYELIN_INIT(myelin_graph_endpoint);
  OK(myelin_graph_endpoint_at(one, 0, &same));
  CHECK(same.endpoint == endpoint.endpoint && strcmp(same.topic, "graph") == 0);
  CHECK(myelin_graph_endpoint_at(one, 1, &same) == MYELIN_NOTHING);
  CHECK(myelin_graph_node_at(one, 0, &found) == MYELIN_NOTHING);
  OK(myelin_graph_close(one));
  uint64_t before, after;
  OK(myelin_node_graph_changes(node, &before));
  OK(myelin_node_graph_changes(node, &after));
  CHECK(before == after && before > 0);
  CHECK(myelin_node_endpoint(node, 1, &one) == MYELIN_NOTHING && one == NULL);
  struct myelin_graph_match match = MYELIN_INIT(myelin_graph_match);
  OK(myelin_graph_match_at(graph, 0, &match));
  CHECK(match.state == MYELIN_MATCH_MATCHED && match.reason == NULL);
  CHECK(match.setting == MYELIN_SETTING_NONE && match.offered == NULL);
  CHECK(strcmp(found.language, "C") == 0 && strcmp(found.node_namespace, "") == 0);
  CHECK(found.user == geteuid() && strlen(found.host) > 0 && strlen(found.program) > 0);
  CHECK(endpoint.created_ns > 0 && endpoint.deadline_ns == MYELIN_FOREVER && !endpoint.resends);
  struct myelin_attribute attribute;
  CHECK(myelin_graph_attribute_at(graph, endpoint.endpoint, 0, &attribute) == MYELIN_NOTHING);
  OK(myelin_graph_close(graph));
  OK(myelin_subscriber_close(pair.subscriber));
  while (myelin_publisher_event(pair.publisher, &event) == MYELIN_NOTHING) sched_yield();
  CHECK(event.kind == MYELIN_EVENT_UNMATCHED && !event.died);
  OK(myelin_publisher_close(pair.publisher));
  OK(myelin_topic_close(pair.topic));
  myelin_network network;
  char text[8];
  OK(myelin_node_network(node, text, sizeof text, &network));
  CHECK(network == MYELIN_NETWORK_OFF && text[0] == 0);
  char folder[4096];
  OK(myelin_node_runtime_dir(node, folder, sizeof folder));
  CHECK(strncmp(folder, getenv("MYELIN_RUNTIME_DIR"), strlen(getenv("MYELIN_RUNTIME_DIR"))) == 0);
  OK(myelin_node_runtime_dir(node, text, sizeof text));
  CHECK(strlen(text) == sizeof text - 1 && strncmp(folder, text, sizeof text - 1) == 0);
}

/* Every function with an invalid handle. */
static void observers(void) {
  myelin_topic *topic = topic_of("observed", NULL);
  myelin_observer *observer;
  myelin_publisher *publisher;
  struct myelin_observed seen = MYELIN_INIT(myelin_observed);
  struct myelin_observed_publisher of = MYELIN_INIT(myelin_observed_publisher);
  size_t matched = 1;
  uint64_t interval_ns = 0;
  OK(myelin_observer_open(topic, &observer));
  OK(myelin_publisher_open(topic, NULL, &publisher));
  CHECK(myelin_observer_take(observer, &seen) == MYELIN_NOTHING);
  OK(myelin_publisher_publish_copy(publisher, "hello", 5, NULL));
  OK(myelin_observer_wait(observer, WATCHDOG_NS));
  OK(myelin_observer_take(observer, &seen));
  CHECK(seen.bytes == 5 && seen.length == 5 && !memcmp(seen.data, "hello", 5));
  CHECK(seen.sequence == 0 && seen.overwritten_before == 0 && seen.missing == MYELIN_MISSING_NOTHING);
  OK(myelin_publisher_matched(publisher, &matched));
  CHECK(matched == 0);
  for (int each = 0; each < 20; each++)
    OK(myelin_publisher_publish_copy(publisher, "hello", 5, NULL));
  OK(myelin_observer_take_header(observer, &seen));
  CHECK(seen.sequence == 13 && seen.overwritten_before == 12 && seen.length == 5 && !seen.data);
  while (myelin_observer_take(observer, &seen) == MYELIN_OK) {
  }
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  OK(myelin_publisher_loan(publisher, 4000, &loan));
  OK(myelin_publisher_publish(publisher, &loan, NULL));
  OK(myelin_publisher_loan(publisher, 4000, &loan)); /* the same memory again */
  OK(myelin_observer_take(observer, &seen));
  CHECK(seen.length == 4000 && seen.bytes == 0 && !seen.data && seen.missing == MYELIN_MISSING_REUSED);
  OK(myelin_publisher_discard(publisher, &loan));
  OK(myelin_observer_publisher(observer, 0, &of));
  CHECK(of.published == 22 && of.seen == 10 && of.overwritten == 12 && of.without_payload == 1);
  CHECK(myelin_observer_publisher(observer, 1, &of) == MYELIN_NOTHING);
  OK(myelin_observer_interval(observer, &interval_ns));
  CHECK(interval_ns >= 1000000 && interval_ns <= 100000000);
  OK(myelin_observer_interrupt(observer));
  CHECK(myelin_observer_wait(observer, MYELIN_FOREVER) == MYELIN_NOTHING);
  FAILS(myelin_observer_take(observer, NULL), MYELIN_ERROR_SETTING, "NULL");
  OK(myelin_observer_close(observer));
  FAILS(myelin_observer_close(observer), MYELIN_ERROR_HANDLE, "observer");
  OK(myelin_publisher_close(publisher));
  OK(myelin_topic_close(topic));
}

static void none_is_refused(void) {
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  struct myelin_reply reply = MYELIN_INIT(myelin_reply);
  struct myelin_request request = MYELIN_INIT(myelin_request);
  struct myelin_event event = MYELIN_INIT(myelin_event);
  struct myelin_graph_node found = MYELIN_INIT(myelin_graph_node);
  struct myelin_graph_topic graph_topic = MYELIN_INIT(myelin_graph_topic);
  myelin_graph *graph;
  myelin_graph_watcher *watcher;
  myelin_client *client;
  myelin_server *server;
  myelin_wait_set *set;
  myelin_guard_condition *guard;
  myelin_observer *observer;
  struct myelin_observed observed = MYELIN_INIT(myelin_observed);
  struct myelin_observed_publisher observed_publisher = MYELIN_INIT(myelin_observed_publisher);
  uint64_t number;
  size_t count;
  int descriptor;
  myelin_network network;
  const myelin_code refusals[] = {
      myelin_node_close(NULL),
      myelin_node_graph(NULL, &graph),
      myelin_node_endpoint(NULL, 1, &graph),
      myelin_node_graph_changes(NULL, NULL),
      myelin_node_network(NULL, NULL, 0, &network),
      myelin_node_runtime_dir(NULL, NULL, 0),
      myelin_graph_close(NULL),
      myelin_graph_node_at(NULL, 0, &found),
      myelin_graph_topic_at(NULL, 0, &graph_topic),
      myelin_graph_watcher_open(NULL, "*", &watcher),
      myelin_graph_watcher_update(NULL, 0, &graph),
      myelin_graph_watcher_close(NULL),
      myelin_topic_close(NULL),
      myelin_publisher_close(NULL),
      myelin_publisher_publish_copy(NULL, "x", 1, NULL),
      myelin_publisher_loan(NULL, 1, &loan),
      myelin_publisher_publish(NULL, &loan, NULL),
      myelin_publisher_discard(NULL, &loan),
      myelin_publisher_reserve(NULL, 1, 1),
      myelin_publisher_matched(NULL, &count),
      myelin_publisher_wait_for_match(NULL, 1, 0),
      myelin_publisher_assert_liveliness(NULL),
      myelin_publisher_event(NULL, &event),
      myelin_subscriber_close(NULL),
      myelin_subscriber_take(NULL, &sample),
      myelin_subscriber_receive(NULL, 0, &sample),
      myelin_subscriber_wait(NULL, 0),
      myelin_subscriber_interrupt(NULL),
      myelin_subscriber_descriptor(NULL, &descriptor),
      myelin_subscriber_has_unread(NULL),
      myelin_subscriber_lost(NULL, &number),
      myelin_subscriber_matched(NULL, &count),
      myelin_subscriber_wait_for_match(NULL, 1, 0),
      myelin_subscriber_event(NULL, &event),
      myelin_sample_release(&sample),
      myelin_sample_clone(&sample, &sample),
      myelin_callback_close(NULL),
      myelin_callback_calls(NULL, &number),
      myelin_callback_lost(NULL, &number),
      myelin_callback_error(NULL),
      myelin_client_open(NULL, "x", NULL, NULL, &client),
      myelin_client_close(NULL),
      myelin_client_call(NULL, "x", 1, 0, &reply),
      myelin_client_send(NULL, "x", 1, &number),
      myelin_client_loan(NULL, 1, &loan),
      myelin_client_send_loan(NULL, &loan, &number),
      myelin_client_discard(NULL, &loan),
      myelin_client_receive(NULL, 1, 0, &reply),
      myelin_client_abandon(NULL, 1),
      myelin_client_wait_for_service(NULL, 0),
      myelin_client_servers(NULL, &count),
      myelin_client_late(NULL, &number),
      myelin_client_set_wait(NULL, MYELIN_WAIT_BLOCK),
      myelin_client_event(NULL, &event),
      myelin_reply_release(&reply),
      myelin_server_open(NULL, "x", NULL, NULL, &server),
      myelin_server_close(NULL),
      myelin_server_receive(NULL, 0, &request),
      myelin_server_interrupt(NULL),
      myelin_server_set_wait(NULL, MYELIN_WAIT_BLOCK),
      myelin_server_clients(NULL, &count),
      myelin_server_event(NULL, &event),
      myelin_request_reply(&request, "x", 1),
      myelin_request_loan(&request, 1, &loan),
      myelin_request_send(&request, &loan),
      myelin_request_release(&request),
      myelin_wait_set_open(NULL, &set),
      myelin_wait_set_close(NULL),
      myelin_wait_set_add(NULL, NULL, 1),
      myelin_wait_set_add_server(NULL, NULL, 1),
      myelin_wait_set_guard_condition(NULL, 1, &guard),
      myelin_wait_set_timer(NULL, 1, 1),
      myelin_wait_set_remove(NULL, 1),
      myelin_wait_set_wait(NULL, 0, &number, 1, &count),
      myelin_wait_set_descriptor(NULL, &descriptor),
      myelin_wait_set_set_wait(NULL, MYELIN_WAIT_BLOCK),
      myelin_guard_condition_trigger(NULL),
      myelin_guard_condition_close(NULL),
      myelin_observer_open(NULL, &observer),
      myelin_observer_close(NULL),
      myelin_observer_take(NULL, &observed),
      myelin_observer_take_header(NULL, &observed),
      myelin_observer_wait(NULL, 0),
      myelin_observer_interrupt(NULL),
      myelin_observer_interval(NULL, &number),
      myelin_observer_publisher(NULL, 0, &observed_publisher),
  };
  for (size_t each = 0; each < sizeof refusals / sizeof *refusals; each++)
    if (refusals[each] != MYELIN_ERROR_HANDLE) {
      fprintf(stderr, "refusal %zu is %d\n", each, (int)refusals[each]);
      exit(1);
    }
}

/* A type's name may be of any length, others have at most 255 bytes. */
static void names(void) {
  char text[301] = "";
  memset(text, 'n', sizeof text - 1);
  struct myelin_struct wide = imu;
  wide.name = text;
  const struct myelin_payload of_wide = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&wide, 0));
  close_pair(pair_of("of a long name", &of_wide, NULL));
  myelin_server *server;
  myelin_client *client;
  OK(myelin_server_open(node, "of long names", &of_wide, &of_wide, &server));
  OK(myelin_client_open(node, "of long names", &of_wide, &of_wide, &client));
  OK(myelin_server_close(server));
  OK(myelin_client_close(client));
  FAILS(myelin_server_open(node, text, NULL, NULL, &server), MYELIN_ERROR_SETTING,
        "a service's name");
  myelin_topic *topic = topic_of(text, NULL);
  myelin_publisher *publisher;
  FAILS(myelin_publisher_open(topic, NULL, &publisher), MYELIN_ERROR_SETTING, "(300 bytes)");
  OK(myelin_topic_close(topic));
  myelin_node *none;
  FAILS(myelin_node_open(text, NULL, &none), MYELIN_ERROR_SETTING, "a node's name");
  text[255] = 0;
  OK(myelin_server_open(node, text, NULL, NULL, &server));
  OK(myelin_server_close(server));
}

static void nonsense(void) {
  myelin_topic *topic = (myelin_topic *)node;
  myelin_node *none = NULL;
  FAILS(myelin_node_open(NULL, NULL, &none), MYELIN_ERROR_SETTING, "name is NULL");
  FAILS(myelin_node_open("\xff", NULL, &none), MYELIN_ERROR_SETTING, "UTF-8");
  FAILS(myelin_node_open("x", NULL, NULL), MYELIN_ERROR_SETTING, "node is NULL");
  struct myelin_node_options options = MYELIN_INIT(myelin_node_options);
  options.size = 3;
  FAILS(myelin_node_open("x", &options, &none), MYELIN_ERROR_SETTING, "MYELIN_INIT");
  options.size = sizeof options;
  options.group = "no such group";
  FAILS(myelin_node_open("x", &options, &none), MYELIN_ERROR_SETTING, "no such group");
  CHECK(none == NULL);
  FAILS(myelin_node_close(NULL), MYELIN_ERROR_HANDLE, "NULL");
  FAILS(myelin_topic_close(topic), MYELIN_ERROR_HANDLE, "does not belong to a topic");
  int local;
  FAILS(myelin_node_close((myelin_node *)&local), MYELIN_ERROR_HANDLE, "node");
  FAILS(myelin_node_close((myelin_node *)(uintptr_t)UINT64_MAX), MYELIN_ERROR_HANDLE, "not a node");
  FAILS(myelin_topic_open(NULL, "x", NULL, NULL, &topic), MYELIN_ERROR_HANDLE, "NULL");
  CHECK(topic == NULL);

  myelin_publisher *publisher = NULL, *other;
  FAILS(myelin_topic_open(node, NULL, NULL, NULL, &topic), MYELIN_ERROR_SETTING, "name is NULL");
  topic = topic_of("line\nbreak", NULL);
  FAILS(myelin_publisher_open(topic, NULL, &publisher), MYELIN_ERROR_SETTING, "1 to 255 bytes");
  OK(myelin_topic_close(topic));
  topic = topic_of("", NULL);
  FAILS(myelin_publisher_open(topic, NULL, &publisher), MYELIN_ERROR_SETTING, "1 to 255 bytes");
  OK(myelin_topic_close(topic));
  FAILS(myelin_publisher_open(topic, NULL, &publisher), MYELIN_ERROR_HANDLE, "closed");
  topic = topic_of("typed", &of_imu);
  OK(myelin_publisher_open(topic, NULL, &publisher));
  myelin_subscriber *subscriber;
  myelin_topic *wrong = topic_of("typed", &of_numbers);
  FAILS(myelin_subscriber_open(wrong, NULL, &subscriber), MYELIN_ERROR_TYPE, "carries Imu");
  /* Its place is taken again by another: the old handle stays a closed one. */
  OK(myelin_publisher_close(publisher));
  OK(myelin_publisher_open(topic, NULL, &other));
  FAILS(myelin_publisher_close(publisher), MYELIN_ERROR_HANDLE, "closed");
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  FAILS(myelin_publisher_loan(publisher, sizeof(struct imu), &loan), MYELIN_ERROR_HANDLE, "closed");
  FAILS(myelin_publisher_publish(other, &loan, NULL), MYELIN_ERROR_LOAN, "already");
  loan.size = 0;
  FAILS(myelin_publisher_loan(other, sizeof(struct imu), &loan), MYELIN_ERROR_SETTING, "MYELIN_INIT");
  OK(myelin_publisher_close(other));
  OK(myelin_topic_close(topic));
  OK(myelin_topic_close(wrong));

  struct gap { uint8_t a; uint64_t b; };
  const struct myelin_field gap_fields[] = {MYELIN_FIELD(struct gap, a), MYELIN_FIELD(struct gap, b)};
  const struct myelin_struct gap = MYELIN_STRUCT_OF(struct gap, "Gap", gap_fields);
  const struct myelin_payload of_gap = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&gap, 0));
  FAILS(myelin_topic_open(node, "x", &of_gap, NULL, &topic), MYELIN_ERROR_SETTING, "7 B of padding before");
  struct myelin_payload of_form = of_imu;
  of_form.form = 9;
  FAILS(myelin_topic_open(node, "x", &of_form, NULL, &topic), MYELIN_ERROR_SETTING, "form is 9");
  struct myelin_payload odd = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE(77, 0));
  FAILS(myelin_topic_open(node, "x", &odd, NULL, &topic), MYELIN_ERROR_SETTING, "kind is 77");
  /* A struct that contains itself. */
  struct myelin_struct cycle = gap;
  const struct myelin_field own[] = {{"own", 0, MYELIN_TYPE_STRUCT(&cycle, 0)}};
  cycle.fields = own;
  cycle.field_count = 1;
  struct myelin_payload of_cycle = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&cycle, 0));
  FAILS(myelin_topic_open(node, "x", &of_cycle, NULL, &topic), MYELIN_ERROR_SETTING, "nested");
  struct myelin_topic_options reliable = MYELIN_INIT(myelin_topic_options);
  reliable.reliability = 5;
  FAILS(myelin_topic_open(node, "x", NULL, &reliable, &topic), MYELIN_ERROR_SETTING,
        "reliability is 5");
}

int main(void) {
  OK(myelin_node_open("parts", NULL, &node));
  version();
  copies_and_loans();
  held_samples_and_losses();
  callbacks();
  wait_sets();
  descriptors_and_interrupts();
  services();
  observers();
  none_is_refused();
  names();
  nonsense();
  OK(myelin_node_close(node));
  OK(myelin_node_open("parts", NULL, &node));
  events_and_graph();
  records();
  OK(myelin_node_close(node));
  FAILS(myelin_node_close(node), MYELIN_ERROR_HANDLE, "closed");
  printf("all parts\n");
  return 0;
}
