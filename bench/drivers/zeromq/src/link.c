/* The adaptor: one role of a round trip or of a stream over ZeroMQ's PUB and SUB, as the functions
 * of the kit's table.
 *
 * Each publishing end binds its own socket, each taking end connects to those of all others. The
 * endpoints have abstract names (`ipc://@…`), so that nothing is left in the file system. With one
 * topic a message is one frame. With several, a frame with the topic's number precedes it, by which
 * ZeroMQ filters.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "myelin_bench_kit.h"

enum {
  ENDPOINT_BYTES = 128,
  /* An abstract name has at most 107 characters. */
  RUN_CHARACTERS_MAX = 72,
  TOPIC_BYTES = 4,
  /* ZeroMQ's default, for round trips. One message in flight would allow a smaller value, but a PUB
   * checks only about every 3 million cycles (1 ms) whether its queue has been read. Until then it
   * drops messages to a subscriber whose queue it considers full. */
  ROUND_TRIP_HWM = 1000,
  /* Interval until a refused connection is retried; by default 100. */
  RECONNECT_MS = 1,
  /* Time limit for sending the rest when the publisher is closed; by default for ever. */
  LINGER_MS = 5000,
  /* Longest wait in one call, so that the time limit of a socket need not be set for each call. */
  RECEIVE_MS_MAX = 1000
};

static const char MONITOR[] = "inproc://matching";

struct link {
  void *context;
  void *publisher;  /* XPUB; NULL for pong of a stream */
  void *subscriber; /* SUB; NULL for ping of a stream */
  size_t message_bytes;
  uint32_t topics;
  uint32_t selected;
  int receive_ms; /* the current time limit of the subscriber */
  zmq_msg_t outgoing;
  bool has_loan;
  zmq_msg_t incoming;
};

/* With ZeroMQ's text of its last error. */
static int fail_by(const char *what)
{
  return myelin_bench_fail(NULL, "ZeroMQ: %s: %s", what, zmq_strerror(zmq_errno()));
}

static void close_link(void *context)
{
  struct link *link = context;
  if (link == NULL)
    return;
  (void)zmq_msg_close(&link->outgoing);
  (void)zmq_msg_close(&link->incoming);
  if (link->subscriber != NULL)
    (void)zmq_close(link->subscriber);
  if (link->publisher != NULL)
    (void)zmq_close(link->publisher);
  if (link->context != NULL)
    (void)zmq_ctx_term(link->context);
  free(link);
}

static bool set(void *socket, int option, int value)
{
  return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static void endpoint(char *text, const char *run, const char *role, uint32_t index)
{
  (void)snprintf(text, ENDPOINT_BYTES, "ipc://@myelin-zeromq-%s-%s%" PRIu32, run, role, index);
}

static void write_topic(uint8_t *bytes, uint32_t topic)
{
  for (int index = 0; index < TOPIC_BYTES; index++)
    bytes[index] = (uint8_t)(topic >> (8 * index));
}

static uint32_t read_topic(const uint8_t *bytes)
{
  uint32_t topic = 0;
  for (int index = 0; index < TOPIC_BYTES; index++)
    topic |= (uint32_t)bytes[index] << (8 * index);
  return topic;
}

static int high_water_mark(const struct myelin_bench_prepare *prepare)
{
  return prepare->one_way ? (int)prepare->depth : ROUND_TRIP_HWM;
}

/* An XPUB: a PUB that reports who subscribes. VERBOSE: also if it is not the first subscriber of a
 * topic. */
static int create_publisher(struct link *link, const struct myelin_bench_prepare *prepare)
{
  char address[ENDPOINT_BYTES];
  endpoint(address, prepare->run, prepare->is_ping ? "ping" : "pong", prepare->index);
  link->publisher = zmq_socket(link->context, ZMQ_XPUB);
  if (link->publisher == NULL)
    return fail_by("creating the publisher");
  const bool is_set = set(link->publisher, ZMQ_XPUB_VERBOSE, 1) &&
                      set(link->publisher, ZMQ_XPUB_NODROP, prepare->reliable) &&
                      set(link->publisher, ZMQ_SNDHWM, high_water_mark(prepare)) &&
                      set(link->publisher, ZMQ_LINGER, LINGER_MS);
  if (!is_set)
    return fail_by("setting an option of the publisher");
  if (zmq_bind(link->publisher, address) != 0)
    return fail_by("binding the publisher");
  return 0;
}

static int subscribe(struct link *link)
{
  if (link->topics == 1)
    return zmq_setsockopt(link->subscriber, ZMQ_SUBSCRIBE, "", 0);
  int status = 0;
  for (uint32_t topic = 0; status == 0 && topic < link->topics; topic++) {
    uint8_t prefix[TOPIC_BYTES];
    write_topic(prefix, topic);
    status = zmq_setsockopt(link->subscriber, ZMQ_SUBSCRIBE, prefix, sizeof prefix);
  }
  return status;
}

/* Subscribes before it connects, so that the publisher learns all topics at once. */
static int create_subscriber(struct link *link, const struct myelin_bench_prepare *prepare,
                             void **monitor)
{
  link->subscriber = zmq_socket(link->context, ZMQ_SUB);
  if (link->subscriber == NULL)
    return fail_by("creating the subscriber");
  if (!set(link->subscriber, ZMQ_RCVHWM, high_water_mark(prepare)) ||
      !set(link->subscriber, ZMQ_RECONNECT_IVL, RECONNECT_MS) ||
      !set(link->subscriber, ZMQ_LINGER, 0))
    return fail_by("setting an option of the subscriber");
  if (subscribe(link) != 0)
    return fail_by("subscribing");
  *monitor = zmq_socket(link->context, ZMQ_PAIR);
  if (*monitor == NULL ||
      zmq_socket_monitor(link->subscriber, MONITOR, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0 ||
      zmq_connect(*monitor, MONITOR) != 0)
    return fail_by("monitoring the subscriber");
  for (uint32_t index = 0; index < prepare->others; index++) {
    char address[ENDPOINT_BYTES];
    endpoint(address, prepare->run, prepare->is_ping ? "pong" : "ping", index);
    if (zmq_connect(link->subscriber, address) != 0)
      return fail_by("connecting the subscriber");
  }
  return 0;
}

/* The next message of a socket, while matching: 1, or 0 after until_ns. */
static int receive_until(void *socket, zmq_msg_t *message, uint64_t until_ns)
{
  for (;;) {
    const uint64_t left_ms = (myelin_bench_left_ns(until_ns) + 999999u) / 1000000u;
    if (!set(socket, ZMQ_RCVTIMEO, (int)(left_ms < RECEIVE_MS_MAX ? left_ms : RECEIVE_MS_MAX)))
      return fail_by("setting a time limit");
    if (zmq_msg_recv(message, socket, 0) >= 0)
      return 1;
    if (zmq_errno() != EAGAIN && zmq_errno() != EINTR)
      return fail_by("matching");
    if (left_ms == 0)
      return 0;
  }
}

/* The error if matching takes too long, with the counts so far. */
static int timed_out(const char *what, uint64_t found, uint64_t expected)
{
  return myelin_bench_fail("see the other side's log; match_timeout_ms sets the limit",
                           "ZeroMQ: timeout: %" PRIu64 " of %" PRIu64 " %s", found, expected, what);
}

/* Reads subscriptions until each of the others has subscribed to each topic. */
static int await_subscriptions(struct link *link, uint32_t others, uint64_t until_ns)
{
  const uint64_t expected = (uint64_t)others * link->topics;
  for (uint64_t found = 0; found < expected;) {
    zmq_msg_t message;
    (void)zmq_msg_init(&message);
    const int status = receive_until(link->publisher, &message, until_ns);
    const uint8_t *bytes = zmq_msg_data(&message);
    /* 1: subscribed, 0: unsubscribed. */
    const bool is_one = status > 0 && zmq_msg_size(&message) > 0 && bytes[0] <= 1;
    if (is_one)
      found = bytes[0] == 1 ? found + 1 : found - (found > 0);
    (void)zmq_msg_close(&message);
    if (status < 0)
      return status;
    if (status == 0)
      return timed_out("subscriptions received", found, expected);
  }
  return 0;
}

/* Reads the monitor's events until the subscriber is connected to each of the others. */
static int await_connections(void *monitor, uint32_t others, uint64_t until_ns)
{
  for (uint32_t found = 0; found < others;) {
    zmq_msg_t message;
    (void)zmq_msg_init(&message);
    const int status = receive_until(monitor, &message, until_ns);
    /* An event has two frames; the second is the endpoint. */
    if (status > 0 && zmq_msg_more(&message))
      found++;
    (void)zmq_msg_close(&message);
    if (status < 0)
      return status;
    if (status == 0)
      return timed_out("publishers connected", found, others);
  }
  return 0;
}

static int open_ends(struct link *link, const struct myelin_bench_prepare *prepare, void **monitor)
{
  link->context = zmq_ctx_new();
  if (link->context == NULL)
    return fail_by("creating the context");
  int status = prepare->publishes ? create_publisher(link, prepare) : 0;
  if (status == 0 && prepare->subscribes)
    status = create_subscriber(link, prepare, monitor);
  if (status == 0 && prepare->publishes)
    status = await_subscriptions(link, prepare->others, prepare->match_until_ns);
  if (status == 0 && prepare->subscribes)
    status = await_connections(*monitor, prepare->others, prepare->match_until_ns);
  return status;
}

static int open_link(const struct myelin_bench_prepare *prepare, void **context)
{
  if (strlen(prepare->run) > RUN_CHARACTERS_MAX)
    return myelin_bench_fail("at most 72 characters", "ZeroMQ: the run's name is too long");
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL)
    return myelin_bench_fail(NULL, "ZeroMQ: out of memory");
  link->message_bytes = (size_t)prepare->message_bytes;
  link->topics = prepare->topics;
  link->receive_ms = -1;
  (void)zmq_msg_init(&link->outgoing);
  (void)zmq_msg_init(&link->incoming);
  void *monitor = NULL;
  const int status = open_ends(link, prepare, &monitor);
  /* Removes the monitor, so that it does not change the measured path. */
  if (link->subscriber != NULL)
    (void)zmq_socket_monitor(link->subscriber, NULL, 0);
  if (monitor != NULL) {
    (void)set(monitor, ZMQ_LINGER, 0);
    (void)zmq_close(monitor);
  }
  if (status != 0) {
    if (link->publisher != NULL)
      (void)set(link->publisher, ZMQ_LINGER, 0);
    close_link(link);
    return status;
  }
  *context = link;
  return 0;
}

static void select_topic(void *context, uint32_t topic)
{
  struct link *link = context;
  link->selected = topic;
}

/* A message of ZeroMQ, to be filled in place and sent. */
static int loan(void *context, size_t bytes, void **memory)
{
  struct link *link = context;
  (void)zmq_msg_close(&link->outgoing);
  if (zmq_msg_init_size(&link->outgoing, bytes) != 0) {
    (void)zmq_msg_init(&link->outgoing);
    return fail_by("no memory for a message");
  }
  *memory = zmq_msg_data(&link->outgoing);
  return 0;
}

static int publish_loan(void *context)
{
  struct link *link = context;
  if (link->topics > 1) {
    uint8_t prefix[TOPIC_BYTES];
    write_topic(prefix, link->selected);
    while (zmq_send(link->publisher, prefix, sizeof prefix, ZMQ_SNDMORE) < 0)
      if (zmq_errno() != EINTR)
        return fail_by("sending the topic");
  }
  while (zmq_msg_send(&link->outgoing, link->publisher, 0) < 0)
    if (zmq_errno() != EINTR)
      return fail_by("sending");
  return 0;
}

static int publish(void *context, const void *message, size_t bytes)
{
  void *memory = NULL;
  const int status = loan(context, bytes, &memory);
  if (status != 0)
    return status;
  memcpy(memory, message, bytes);
  return publish_loan(context);
}

/* 1: the next frame is in link->incoming; 0: none until until_ns. */
static int receive(struct link *link, uint64_t until_ns)
{
  for (;;) {
    const uint64_t left_ms = (myelin_bench_left_ns(until_ns) + 999999u) / 1000000u;
    const int limit_ms = (int)(left_ms < RECEIVE_MS_MAX ? left_ms : RECEIVE_MS_MAX);
    if (limit_ms != link->receive_ms && !set(link->subscriber, ZMQ_RCVTIMEO, limit_ms))
      return fail_by("setting a time limit");
    link->receive_ms = limit_ms;
    if (zmq_msg_recv(&link->incoming, link->subscriber, 0) >= 0)
      return 1;
    if (zmq_errno() != EAGAIN && zmq_errno() != EINTR)
      return fail_by("receiving");
    if (left_ms == 0)
      return 0;
  }
}

static int take(void *context, uint64_t until_ns, const void **message, size_t *bytes)
{
  struct link *link = context;
  int status = receive(link, until_ns);
  if (status > 0 && link->topics > 1) {
    const bool is_topic = zmq_msg_size(&link->incoming) == TOPIC_BYTES &&
                          read_topic(zmq_msg_data(&link->incoming)) < link->topics;
    if (!is_topic || !zmq_msg_more(&link->incoming))
      return myelin_bench_fail(NULL, "ZeroMQ: a message without a topic");
    status = receive(link, until_ns); /* All frames of a message arrive at once. */
  }
  if (status <= 0)
    return status;
  *message = zmq_msg_data(&link->incoming);
  *bytes = zmq_msg_size(&link->incoming);
  return 1;
}

/* Frees the memory now, not within the next take. */
static void release(void *context)
{
  struct link *link = context;
  (void)zmq_msg_close(&link->incoming);
  (void)zmq_msg_init(&link->incoming);
}

void myelin_zeromq_probe(struct myelin_bench_system *system)
{
  static char text[32];
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  (void)snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
  system->version = text;
}

const struct myelin_bench_link myelin_zeromq_link = {MYELIN_BENCH_SIZE(link),
                                                     .open = open_link,
                                                     .loan = loan,
                                                     .publish_loan = publish_loan,
                                                     .publish = publish,
                                                     .take = take, /* waits in zmq_msg_recv */
                                                     .release = release,
                                                     .close = close_link,
                                                     .select = select_topic};
