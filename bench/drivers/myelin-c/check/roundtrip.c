/* A round trip over libmyelin, written directly against myelin.h, without the kit and the driver's
 * adaptor, which are compared with it.
 *
 *     roundtrip pong DOMAIN RUN PAYLOAD poll|block
 *     roundtrip ping DOMAIN RUN PAYLOAD poll|block [MESSAGES [WARMUP]]
 *
 * Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
 * and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
 * (nearest rank). Pong ends when ping tells it to, or when its standard input closes.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <myelin.h>

enum { STAMP_BYTES = 1024, COPIED_BYTES_MAX = 104 };

static const uint64_t SECOND_NS = 1000000000, END_OF_STREAM = UINT64_MAX;

struct ends {
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
  size_t bytes;
};

static void must(myelin_code code, const char *what)
{
  if (code == MYELIN_OK)
    return;
  fprintf(stderr, "%s: %s\n", what, code == MYELIN_NOTHING ? "not in time" : myelin_error_message());
  exit(1);
}

static myelin_topic *open_topic(myelin_node *node, const char *run, bool of_ping)
{
  char name[128];
  myelin_topic *topic;
  snprintf(name, sizeof name, "check/%s/%s", run, of_ping ? "ping" : "pong");
  must(myelin_topic_open(node, name, NULL, NULL, &topic), "topic");
  return topic;
}

static void open_ends(struct ends *ends, char **arguments, bool is_ping)
{
  struct myelin_node_options domain = MYELIN_INIT(myelin_node_options);
  struct myelin_subscriber_options waiting = MYELIN_INIT(myelin_subscriber_options);
  myelin_node *node;
  domain.has_domain = true;
  domain.domain = (uint32_t)strtoul(arguments[2], NULL, 10);
  waiting.wait = strcmp(arguments[5], "poll") == 0 ? MYELIN_WAIT_POLL : MYELIN_WAIT_BLOCK;
  must(myelin_node_open("check", &domain, &node), "node");
  myelin_topic *own = open_topic(node, arguments[3], is_ping);
  myelin_topic *other = open_topic(node, arguments[3], !is_ping);
  must(myelin_publisher_open(own, NULL, &ends->publisher), "publisher");
  must(myelin_subscriber_open(other, &waiting, &ends->subscriber), "subscriber");
  must(myelin_publisher_wait_for_match(ends->publisher, 1, 10 * SECOND_NS), "the other side");
  must(myelin_subscriber_wait_for_match(ends->subscriber, 1, 10 * SECOND_NS), "the other side");
}

static void publish(const struct ends *ends, const void *message)
{
  if (ends->bytes <= COPIED_BYTES_MAX) {
    must(myelin_publisher_publish_copy(ends->publisher, message, ends->bytes, NULL), "publish");
    return;
  }
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  must(myelin_publisher_loan(ends->publisher, ends->bytes, &loan), "loan");
  memcpy(loan.data, message, ends->bytes);
  must(myelin_publisher_publish(ends->publisher, &loan, NULL), "publish");
}

static bool is_told_to_end(void)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char byte;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

static void pong(const struct ends *ends)
{
  struct myelin_sample sample = MYELIN_INIT(myelin_sample);
  while (true) {
    const myelin_code code = myelin_subscriber_receive(ends->subscriber, SECOND_NS / 10, &sample);
    if (code == MYELIN_NOTHING) {
      if (is_told_to_end())
        return;
      continue;
    }
    must(code, "receive");
    const bool is_last = *(const uint64_t *)sample.data == END_OF_STREAM;
    if (!is_last)
      publish(ends, sample.data);
    must(myelin_sample_release(&sample), "release");
    if (is_last)
      return;
  }
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
  struct myelin_sample answer = MYELIN_INIT(myelin_sample);
  message[0] = number;
  for (size_t at = STAMP_BYTES; at + sizeof number <= ends->bytes; at += STAMP_BYTES)
    message[at / sizeof number] = number;
  const uint64_t begin_ns = myelin_now();
  publish(ends, message);
  must(myelin_subscriber_receive(ends->subscriber, 2 * SECOND_NS, &answer), "the answer");
  const uint64_t end_ns = myelin_now();
  if (answer.bytes != ends->bytes || memcmp(answer.data, message, compared) != 0) {
    fprintf(stderr, "an answer to another message, or a damaged one\n");
    exit(1);
  }
  must(myelin_sample_release(&answer), "release");
  return end_ns - begin_ns;
}

static void ping(const struct ends *ends, size_t messages, size_t warmup)
{
  uint64_t *round_trips_ns = calloc(messages, sizeof *round_trips_ns);
  uint64_t *message = calloc(1, ends->bytes + sizeof *message);
  if (round_trips_ns == NULL || message == NULL)
    exit(1);
  for (size_t word = 1; word <= ends->bytes / sizeof *message; word++)
    message[word] = (uint64_t)word * 0x9e3779b97f4a7c15u;
  for (size_t number = 0; number < warmup; number++)
    exchange(ends, message, number, ends->bytes);
  for (size_t number = 0; number < messages; number++)
    round_trips_ns[number] = exchange(ends, message, warmup + number, sizeof *message);
  message[0] = END_OF_STREAM;
  publish(ends, message);
  qsort(round_trips_ns, messages, sizeof *round_trips_ns, ascending);
  printf("p50 %" PRIu64 " p99 %" PRIu64 "\n", nearest_rank(round_trips_ns, messages, 50),
         nearest_rank(round_trips_ns, messages, 99));
}

int main(int argc, char **argv)
{
  if (argc < 6) {
    fprintf(stderr, "usage: roundtrip ping|pong DOMAIN RUN PAYLOAD poll|block [MESSAGES [WARMUP]]\n");
    return 1;
  }
  const bool is_ping = strcmp(argv[1], "ping") == 0;
  const size_t messages = argc > 6 ? strtoul(argv[6], NULL, 10) : 10000;
  const size_t warmup = argc > 7 ? strtoul(argv[7], NULL, 10) : 1000;
  struct ends ends = {.bytes = sizeof(uint64_t) + strtoul(argv[4], NULL, 10)};
  if (messages == 0) {
    fprintf(stderr, "MESSAGES is at least 1\n");
    return 1;
  }
  open_ends(&ends, argv, is_ping);
  printf("ready\n");
  fflush(stdout);
  if (!is_ping)
    pong(&ends);
  else if (getchar() != EOF)
    ping(&ends, messages, warmup);
  myelin_subscriber_close(ends.subscriber);
  myelin_publisher_close(ends.publisher);
  return 0;
}
