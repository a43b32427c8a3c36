/* A round trip over ZeroMQ's PUB and SUB, written directly against libzmq, without the kit and the
 * driver's adaptor, which are compared with it. Sockets, options and waiting are the driver's.
 *
 *     roundtrip pong DOMAIN RUN PAYLOAD
 *     roundtrip ping DOMAIN RUN PAYLOAD [MESSAGES [WARMUP]]
 *
 * Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
 * and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
 * (nearest rank). Pong ends when ping tells it to, or when its standard input closes. DOMAIN is not
 * used, because an ipc endpoint belongs only to RUN.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

enum { STAMP_BYTES = 1024, ENDPOINT_BYTES = 128, MATCH_WITHIN_MS = 10000, LOOK_AROUND_MS = 100,
       ANSWER_WITHIN_MS = 2000, RECONNECT_MS = 1, LINGER_MS = 5000 };

/* The number of the message that ends pong. */
static const uint64_t END_OF_STREAM = UINT64_MAX;

struct ends {
  void *context;
  void *publisher;
  void *subscriber;
  size_t bytes;
};

static void die(const char *what)
{
  fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
  exit(1);
}

static void set(void *socket, int option, int value)
{
  if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
    die("zmq_setsockopt");
}

static uint64_t now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void endpoint(char *text, const char *run, bool is_ping)
{
  snprintf(text, ENDPOINT_BYTES, "ipc://@check-zeromq-%s-%s", run, is_ping ? "ping" : "pong");
}

static void open_ends(struct ends *ends, const char *run, bool is_ping)
{
  char text[ENDPOINT_BYTES];
  ends->context = zmq_ctx_new();
  ends->publisher = zmq_socket(ends->context, ZMQ_XPUB);
  ends->subscriber = zmq_socket(ends->context, ZMQ_SUB);
  void *monitor = zmq_socket(ends->context, ZMQ_PAIR);
  if (ends->publisher == NULL || ends->subscriber == NULL || monitor == NULL)
    die("zmq_socket");
  set(ends->publisher, ZMQ_LINGER, LINGER_MS);
  endpoint(text, run, is_ping);
  if (zmq_bind(ends->publisher, text) != 0)
    die("zmq_bind");
  set(ends->subscriber, ZMQ_RECONNECT_IVL, RECONNECT_MS);
  set(ends->subscriber, ZMQ_LINGER, 0);
  if (zmq_setsockopt(ends->subscriber, ZMQ_SUBSCRIBE, "", 0) != 0)
    die("ZMQ_SUBSCRIBE");
  if (zmq_socket_monitor(ends->subscriber, "inproc://m", ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0 ||
      zmq_connect(monitor, "inproc://m") != 0)
    die("zmq_socket_monitor");
  endpoint(text, run, !is_ping);
  if (zmq_connect(ends->subscriber, text) != 0)
    die("zmq_connect");
  /* Matched: the other side has subscribed here, and we are connected to it. */
  char frame[64];
  set(ends->publisher, ZMQ_RCVTIMEO, MATCH_WITHIN_MS);
  set(monitor, ZMQ_RCVTIMEO, MATCH_WITHIN_MS);
  if (zmq_recv(ends->publisher, frame, sizeof frame, 0) < 0 ||
      zmq_recv(monitor, frame, sizeof frame, 0) < 0)
    die("no other side");
  zmq_socket_monitor(ends->subscriber, NULL, 0);
  set(monitor, ZMQ_LINGER, 0);
  zmq_close(monitor);
}

static void close_ends(struct ends *ends)
{
  zmq_close(ends->subscriber);
  zmq_close(ends->publisher);
  zmq_ctx_term(ends->context);
}

static void send_copy(const struct ends *ends, const void *bytes)
{
  zmq_msg_t message;
  if (zmq_msg_init_size(&message, ends->bytes) != 0)
    die("zmq_msg_init_size");
  memcpy(zmq_msg_data(&message), bytes, ends->bytes);
  if (zmq_msg_send(&message, ends->publisher, 0) < 0)
    die("zmq_msg_send");
}

static bool is_told_to_end(void)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char byte;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

static void pong(const struct ends *ends)
{
  set(ends->subscriber, ZMQ_RCVTIMEO, LOOK_AROUND_MS);
  zmq_msg_t message;
  zmq_msg_init(&message);
  while (true) {
    if (zmq_msg_recv(&message, ends->subscriber, 0) < 0) {
      if (zmq_errno() != EAGAIN)
        die("zmq_msg_recv");
      if (is_told_to_end())
        break;
      continue;
    }
    uint64_t number;
    memcpy(&number, zmq_msg_data(&message), sizeof number);
    if (number == END_OF_STREAM)
      break;
    send_copy(ends, zmq_msg_data(&message));
  }
  zmq_msg_close(&message);
}

static int ascending(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a;
  const uint64_t y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t nearest_rank(const uint64_t *sorted, size_t count, size_t percent)
{
  return sorted[(count * percent + 99) / 100 - 1];
}

/* Exchanges one message and its answer, and compares the first `compared` bytes. */
static uint64_t exchange(const struct ends *ends, uint64_t *message, uint64_t number,
                         size_t compared)
{
  message[0] = number;
  for (size_t at = STAMP_BYTES; at + sizeof number <= ends->bytes; at += STAMP_BYTES)
    message[at / sizeof number] = number;
  const uint64_t begin_ns = now_ns();
  send_copy(ends, message);
  zmq_msg_t answer;
  zmq_msg_init(&answer);
  if (zmq_msg_recv(&answer, ends->subscriber, 0) < 0)
    die("no answer");
  const uint64_t end_ns = now_ns();
  if (zmq_msg_size(&answer) != ends->bytes ||
      memcmp(zmq_msg_data(&answer), message, compared) != 0) {
    fprintf(stderr, "an answer to another message, or a damaged one\n");
    exit(1);
  }
  zmq_msg_close(&answer);
  return end_ns - begin_ns;
}

static void ping(const struct ends *ends, size_t messages, size_t warmup)
{
  uint64_t *round_trips_ns = calloc(messages, sizeof *round_trips_ns);
  uint64_t *message = calloc(1, ends->bytes + sizeof *message);
  if (round_trips_ns == NULL || message == NULL)
    die("out of memory");
  for (size_t word = 1; word <= ends->bytes / sizeof *message; word++)
    message[word] = (uint64_t)word * 0x9e3779b97f4a7c15u;
  set(ends->subscriber, ZMQ_RCVTIMEO, ANSWER_WITHIN_MS);
  for (size_t number = 0; number < warmup; number++)
    exchange(ends, message, number, ends->bytes);
  for (size_t number = 0; number < messages; number++)
    round_trips_ns[number] = exchange(ends, message, warmup + number, sizeof *message);
  message[0] = END_OF_STREAM;
  send_copy(ends, message);
  qsort(round_trips_ns, messages, sizeof *round_trips_ns, ascending);
  printf("p50 %" PRIu64 " p99 %" PRIu64 "\n", nearest_rank(round_trips_ns, messages, 50),
         nearest_rank(round_trips_ns, messages, 99));
  free(message);
  free(round_trips_ns);
}

int main(int argc, char **argv)
{
  if (argc < 5) {
    fprintf(stderr, "usage: roundtrip ping|pong DOMAIN RUN PAYLOAD [MESSAGES [WARMUP]]\n");
    return 1;
  }
  const bool is_ping = strcmp(argv[1], "ping") == 0;
  const size_t messages = argc > 5 ? strtoul(argv[5], NULL, 10) : 10000;
  const size_t warmup = argc > 6 ? strtoul(argv[6], NULL, 10) : 1000;
  struct ends ends = {.bytes = sizeof(uint64_t) + strtoul(argv[4], NULL, 10)};
  if (messages == 0) {
    fprintf(stderr, "MESSAGES is at least 1\n");
    return 1;
  }
  open_ends(&ends, argv[3], is_ping);
  printf("ready\n");
  fflush(stdout);
  if (!is_ping)
    pong(&ends);
  else if (getchar() != EOF)
    ping(&ends, messages, warmup);
  close_ends(&ends);
  return 0;
}
