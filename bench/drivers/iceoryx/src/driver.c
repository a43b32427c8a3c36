/* Driver of `myelin bench` for iceoryx 2.0 ("classic"): zero copy by loans. One system polls
 * without limit, the other sleeps on a WaitSet.
 *
 *     driver.c   the systems, and their requirements on RouDi
 *     link.cpp   the adaptor against iceoryx's C++ API
 *
 * The crate `myelin-bench-roudi` handles RouDi, its pools and its leftovers. `README.md` explains
 * the choices and limits. Without iceoryx, MISSING says why.
 */
#include <inttypes.h>

#include "driver.h"
#include "link.h"
#include "myelin_roudi.h"

/* The largest tested payload. iceoryx's limit is 4 GiB, but RouDi's memory is smaller. */
#define PAYLOAD_BYTES_MAX (64u << 20)
/* Samples that a subscriber can keep (iceoryx's MAX_SUBSCRIBER_QUEUE_CAPACITY, compiled in). */
#define DEPTH_MAX 256
/* Limit of subscribers in a WaitSet. */
#define TOPICS_MAX 128
/* Limit of processes of a role. iceoryx allows 300 in all, and the publishers below. */
#define PROCESSES_MAX 64
/* iceoryx's MAX_PUBLISHERS is 512; RouDi's introspection uses some of them. */
#define PUBLISHER_PORTS_MAX 500
/* A direction of a round trip holds at most the 5 messages after whose loss the kit gives up, one
 * on loan, and the last one, which iceoryx's publisher keeps for reuse: 7, twice, and two spare
 * ones. */
#define ROUND_TRIP_CHUNKS 16
#define CHUNKS_TO_SPARE 2

/* Number of chunks that a stream can hold at once, on each topic: those in the subscribers' queues,
 * one taken by each subscriber, and for each publisher one on loan and the last one, kept for
 * reuse. With one publisher all queues keep the same last samples, so further subscribers need no
 * more chunks for their queues. */
static uint32_t stream_chunks(const struct myelin_bench_prepare *prepare)
{
  const uint64_t pings = prepare->publishers;
  const uint64_t pongs = prepare->subscribers;
  const uint64_t queues = pings < pongs ? pings : pongs;
  /* Below 2^64, since the limits below have been checked. */
  const uint64_t of_a_topic = queues * prepare->depth + pongs + 2 * pings;
  const uint64_t all = prepare->topics * of_a_topic + CHUNKS_TO_SPARE;
  return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

static struct myelin_roudi_need need(const struct myelin_bench_prepare *prepare)
{
  const uint32_t chunks = prepare->one_way ? stream_chunks(prepare) : ROUND_TRIP_CHUNKS;
  const struct myelin_roudi_need need = {
      .driver = "iceoryx", .around_bytes = 0, .chunks = chunks, .shared_memory = 1};
  return need;
}

/* Checks iceoryx's compiled-in limits. The publishers of a stream are ping's, one per topic, and
 * those by which the sides find each other (see `match` in link.cpp). */
static int check_limits(const struct myelin_bench_prepare *prepare)
{
  const uint64_t pings = prepare->publishers;
  const uint64_t ports = pings * prepare->topics + 2 * pings * prepare->subscribers;
  if (ports <= PUBLISHER_PORTS_MAX)
    return 0;
  return myelin_bench_fail("use fewer topics, publishers or subscribers",
                           "%s: %" PRIu32 " publishers of %" PRIu32 " topics for %" PRIu32
                           " subscribers need %" PRIu64 " publishers of iceoryx, which allows %d",
                           prepare->system, prepare->publishers, prepare->topics,
                           prepare->subscribers, ports, PUBLISHER_PORTS_MAX);
}

static int check(const struct myelin_bench_prepare *prepare)
{
  if (check_limits(prepare) != 0)
    return -1;
  const struct myelin_roudi_need needed = need(prepare);
  return myelin_roudi_check(prepare, &needed);
}

static int start_daemon(const struct myelin_bench_prepare *prepare, void **daemon)
{
  const struct myelin_roudi_need needed = need(prepare);
  return myelin_roudi_start_daemon(prepare, &needed, daemon);
}

#define SYSTEM(named, described, waits) \
  { \
    MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .wait = (waits), \
    .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .loans = 1, .missing = MISSING, \
    .payload_bytes_max = PAYLOAD_BYTES_MAX, \
    .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
                 MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP | MYELIN_BENCH_REPLAY, \
    .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE, \
    .publishers_max = PROCESSES_MAX, .subscribers_max = PROCESSES_MAX, .topics_max = TOPICS_MAX, \
    .depth_max = DEPTH_MAX, \
    .daemon = 1, \
  }

static const struct myelin_bench_system systems[] = {
    SYSTEM("iceoryx.poll", "iceoryx: shared memory, loans, subscriber polled without limit",
           MYELIN_BENCH_WAIT_POLL),
    SYSTEM(MYELIN_ICEORYX_WAITSET, "iceoryx: shared memory, loans, WaitSet",
           MYELIN_BENCH_WAIT_BLOCK),
};

DRIVER_MAIN(DRIVER_OF(systems, myelin_iceoryx_link), .options = "pools", .check = check, .probe = myelin_roudi_probe, .start_daemon = start_daemon, .daemon_pids = myelin_roudi_daemon_pids, .check_daemon = myelin_roudi_check_daemon, .stop_daemon = myelin_roudi_stop_daemon, .clean = myelin_roudi_clean)
