/* A round trip over CycloneDDS, 0.10 or 11, written straight against its API, without the kit and without
 * the driver's adaptor: what they are checked against. Types come from idlc, configuration from
 * CYCLONEDDS_URI; QoS, topics and waiting are the driver's.
 *
 *   roundtrip pong DOMAIN RUN PAYLOAD [loan]
 *   roundtrip ping DOMAIN RUN PAYLOAD [loan] [MESSAGES [WARMUP]]
 *
 * Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
 * and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
 * (nearest rank). Pong ends when ping has gone.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "Roundtrip.h"
#include "dds/dds.h"
#include "dds/version.h"
#if DDS_VERSION_MAJOR < 11
#include "dds/ddsc/dds_loan_api.h"
#define dds_request_loan dds_loan_sample
#define dds_is_shared_memory_available dds_is_loan_available
#endif

enum { HISTORY_DEPTH = 16, STAMP_BYTES = 1024, NAME_MAX_BYTES = 128 };

static const dds_duration_t ANSWER_WITHIN = DDS_SECS(2);
static const dds_duration_t MATCH_WITHIN = DDS_SECS(10);
static const dds_duration_t LOOK_AROUND = DDS_MSECS(100);

static const struct type {
  size_t payload_bytes;
  size_t bytes;
  const dds_topic_descriptor_t *descriptor;
} types[] = {
    {0, sizeof(Roundtrip_Message0), &Roundtrip_Message0_desc},
    {64, sizeof(Roundtrip_Message64), &Roundtrip_Message64_desc},
    {1024, sizeof(Roundtrip_Message1024), &Roundtrip_Message1024_desc},
    {65536, sizeof(Roundtrip_Message65536), &Roundtrip_Message65536_desc},
};

struct ends {
  const struct type *type;
  bool loans;
  bool in_place; /* a sample is read where it was written, and given back; 0.10 copies it */
  dds_entity_t writer;
  dds_entity_t reader;
  dds_entity_t waitset;
  uint64_t *received;
};

static void check(dds_return_t code, const char *what)
{
  if (code >= 0)
    return;
  fprintf(stderr, "%s: %s\n", what, dds_strretcode(-code));
  exit(1);
}

static void die(const char *what)
{
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static uint64_t now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static dds_entity_t create_topic(dds_entity_t participant, const struct type *type,
                                 const char *direction, const char *run)
{
  char name[NAME_MAX_BYTES];
  snprintf(name, sizeof name, "%s_%s", direction, run);
  const dds_entity_t topic = dds_create_topic(participant, type->descriptor, name, NULL, NULL);
  check(topic, "dds_create_topic");
  return topic;
}

static void wait_until_matched(const struct ends *ends, dds_entity_t participant)
{
  const dds_entity_t waitset = dds_create_waitset(participant);
  check(waitset, "dds_create_waitset");
  check(dds_set_status_mask(ends->writer, DDS_PUBLICATION_MATCHED_STATUS), "mask");
  check(dds_set_status_mask(ends->reader, DDS_SUBSCRIPTION_MATCHED_STATUS), "mask");
  check(dds_waitset_attach(waitset, ends->writer, 0), "dds_waitset_attach");
  check(dds_waitset_attach(waitset, ends->reader, 0), "dds_waitset_attach");
  for (;;) {
    dds_publication_matched_status_t out;
    dds_subscription_matched_status_t in;
    check(dds_get_publication_matched_status(ends->writer, &out), "status");
    check(dds_get_subscription_matched_status(ends->reader, &in), "status");
    if (out.current_count > 0 && in.current_count > 0)
      break;
    const dds_return_t events = dds_waitset_wait(waitset, NULL, 0, MATCH_WITHIN);
    check(events, "dds_waitset_wait");
    if (events == 0)
      die("no other side");
  }
  check(dds_delete(waitset), "dds_delete");
}

static dds_entity_t open_ends(struct ends *ends, bool is_ping, uint32_t domain, const char *run)
{
  const dds_entity_t participant = dds_create_participant(domain, NULL, NULL);
  check(participant, "dds_create_participant");
  const dds_entity_t out = create_topic(participant, ends->type, is_ping ? "ping" : "pong", run);
  const dds_entity_t in = create_topic(participant, ends->type, is_ping ? "pong" : "ping", run);
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, HISTORY_DEPTH);
  dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
  ends->reader = dds_create_reader(participant, in, qos, NULL);
  check(ends->reader, "dds_create_reader");
  ends->writer = dds_create_writer(participant, out, qos, NULL);
  check(ends->writer, "dds_create_writer");
  dds_delete_qos(qos);
  const dds_entity_t condition = dds_create_readcondition(ends->reader, DDS_ANY_STATE);
  check(condition, "dds_create_readcondition");
  ends->waitset = dds_create_waitset(participant);
  check(ends->waitset, "dds_create_waitset");
  check(dds_waitset_attach(ends->waitset, condition, 0), "dds_waitset_attach");
  wait_until_matched(ends, participant);
  if (ends->loans && !dds_is_shared_memory_available(ends->writer))
    die("no loans: shared memory is not in use");
  return participant;
}

static void write_message(const struct ends *ends, const uint64_t *message)
{
  if (!ends->loans) {
    check(dds_write(ends->writer, message), "dds_write");
    return;
  }
  void *loan;
  check(dds_request_loan(ends->writer, &loan), "loan");
  memcpy(loan, message, ends->type->bytes);
  check(dds_write(ends->writer, loan), "dds_write");
}

static void give_back(struct ends *ends, void *sample)
{
  if (ends->in_place)
    check(dds_return_loan(ends->reader, &sample, 1), "dds_return_loan");
}

/* Whether a message came within `limit`; it is then at ends->received, until it is given back. */
static bool read_message(struct ends *ends, dds_duration_t limit)
{
  dds_sample_info_t info[1];
  for (;;) {
    const dds_return_t triggered = dds_waitset_wait(ends->waitset, NULL, 0, limit);
    check(triggered, "dds_waitset_wait");
    if (triggered == 0)
      return false;
    void *samples[1] = {ends->in_place ? NULL : ends->received};
    const dds_return_t count = dds_take(ends->reader, samples, info, 1, 1);
    check(count, "dds_take");
    if (count > 0 && info[0].valid_data) {
      ends->received = samples[0];
      return true;
    }
    if (count > 0)
      give_back(ends, samples[0]);
    dds_subscription_matched_status_t in;
    check(dds_get_subscription_matched_status(ends->reader, &in), "status");
    if (in.current_count == 0)
      return false;
  }
}

static void pong(struct ends *ends)
{
  dds_subscription_matched_status_t in;
  do {
    while (read_message(ends, LOOK_AROUND)) {
      write_message(ends, ends->received);
      give_back(ends, ends->received);
    }
    check(dds_get_subscription_matched_status(ends->reader, &in), "status");
  } while (in.current_count > 0);
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

static void ping(struct ends *ends, size_t messages, size_t warmup)
{
  uint64_t *round_trips_ns = calloc(messages, sizeof *round_trips_ns);
  uint64_t *message = calloc(1, ends->type->bytes);
  if (round_trips_ns == NULL || message == NULL)
    die("out of memory");
  const size_t words = ends->type->bytes / sizeof *message;
  for (size_t word = 1; word < words; word++)
    message[word] = (uint64_t)word * 0x9e3779b97f4a7c15u;
  for (size_t number = 0; number < warmup + messages; number++) {
    message[0] = number;
    for (size_t word = 1; word < words; word += STAMP_BYTES / sizeof *message)
      message[word] = number;
    const uint64_t begin_ns = now_ns();
    write_message(ends, message);
    if (!read_message(ends, ANSWER_WITHIN))
      die("no answer");
    const uint64_t end_ns = now_ns();
    if (memcmp(ends->received, message, number < warmup ? ends->type->bytes : sizeof number) != 0)
      die("an answer to another message, or a damaged one");
    give_back(ends, ends->received);
    if (number >= warmup)
      round_trips_ns[number - warmup] = end_ns - begin_ns;
  }
  qsort(round_trips_ns, messages, sizeof *round_trips_ns, ascending);
  printf("p50 %" PRIu64 " p99 %" PRIu64 "\n", nearest_rank(round_trips_ns, messages, 50),
         nearest_rank(round_trips_ns, messages, 99));
  free(message);
  free(round_trips_ns);
}

static const struct type *find_type(size_t payload_bytes)
{
  for (size_t index = 0; index < sizeof types / sizeof *types; index++)
    if (types[index].payload_bytes == payload_bytes)
      return &types[index];
  die("PAYLOAD is 0, 64, 1024 or 65536");
  return NULL;
}

int main(int argc, char **argv)
{
  if (argc < 5)
    die("usage: roundtrip ping|pong DOMAIN RUN PAYLOAD [loan] [MESSAGES [WARMUP]]");
  const bool is_ping = strcmp(argv[1], "ping") == 0;
  struct ends ends = {.type = find_type(strtoul(argv[4], NULL, 10))};
  ends.loans = argc > 5 && strcmp(argv[5], "loan") == 0;
  const int numbers = ends.loans ? 6 : 5;
  const size_t messages = argc > numbers ? strtoul(argv[numbers], NULL, 10) : 10000;
  const size_t warmup = argc > numbers + 1 ? strtoul(argv[numbers + 1], NULL, 10) : 1000;
  ends.in_place = ends.loans && DDS_VERSION_MAJOR >= 11;
  void *received = calloc(1, ends.type->bytes);
  ends.received = received;
  if (received == NULL || messages == 0)
    die("nothing to do");
  const dds_entity_t participant =
      open_ends(&ends, is_ping, (uint32_t)strtoul(argv[2], NULL, 10), argv[3]);
  printf("ready\n");
  fflush(stdout);
  if (!is_ping)
    pong(&ends);
  else if (getchar() != EOF)
    ping(&ends, messages, warmup);
  check(dds_delete(participant), "dds_delete");
  free(received);
  return 0;
}
