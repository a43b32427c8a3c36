/* Driver of `myelin bench` for CycloneDDS 0.10: over UDP, on the loopback interface or to another
 * host, and over iceoryx shared memory with and without loans.
 *
 *     driver.c   the systems, and what they need of RouDi
 *     config.c   CycloneDDS's configuration (XML)
 *     link.c     the adaptor against the DDS C API
 *     match.c    waits for the other side
 *
 * iceoryx's daemon, its pools and what it leaves behind are the crate `myelin-bench-roudi`'s. Without
 * CycloneDDS, MISSING is why.
 *
 * Limits: a domain has room for 120 participants, of which those that start at once need twice as
 * many as they are; hence PEERS_MAX publishers and as many subscribers. Over iceoryx a stream is best
 * effort alone: CycloneDDS 0.10 leaves iceoryx to discard the oldest of a full queue, whatever the
 * reliability, and takes KEEP_ALL off shared memory. Its queues have room for 256 samples, and one
 * thread of a process waits for at most 127 readers.
 *
 * `udp` is CycloneDDS with the receive buffer it asks for by itself (1 MiB), `udp-tuned` with the
 * largest the kernel grants. On a virtual machine with two cores (`net.core.rmem_max` of 4 MiB) 20
 * reliable messages of 10 MiB took 19 s with the former, nearly all of it for fragments sent again,
 * and 0.8 s with the latter.
 *
 * `check/` holds a round trip written without the kit; `bench/check/fidelity.py` compares the two.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "myelin_roudi.h"

#ifndef MISSING
#define MISSING NULL
extern const struct myelin_bench_link myelin_cyclonedds_link;
extern const char *const myelin_cyclonedds_version;
#define LINK (&myelin_cyclonedds_link)
#define VERSION myelin_cyclonedds_version
#define BUFFER_NOTE myelin_cyclonedds_buffer_note
#else
#define LINK NULL
#define VERSION ((const char *)NULL)
#define BUFFER_NOTE(tuned) ((void)(tuned), "")
#endif

/* The largest payload that was tried. CycloneDDS sets no limit of its own below 2 GiB; but RouDi
 * touches 16 chunks of this size, and UDP loses so many of a sample's fragments that one round trip
 * takes 0.2 s. */
#define PAYLOAD_BYTES_MAX (16u << 20)
/* Publishers of a topic, and subscribers: together they fit into a domain. */
#define PEERS_MAX (MYELIN_CYCLONEDDS_PROCESSES_MAX / 4)
/* Topics over iceoryx: below what CycloneDDS 0.10 attaches to iceoryx's listener in a process. */
#define SHARED_TOPICS_MAX 100
/* iceoryx 2 cuts a queue off there, and a reader may hold one sample less. */
#define SHARED_DEPTH_MAX 255
/* Chunks of a round trip. A direction holds at most the 5 messages after whose loss the kit gives up,
 * one on loan, and one that iceoryx's publisher keeps for reuse: 7, twice, and two to spare. RouDi
 * touches every page of its pools, so more would only be memory. */
#define ROUND_TRIP_CHUNKS 16
/* CycloneDDS's header in a chunk (its `iceoryx_header`), and the padding that iceoryx reserves between
 * it and a message of alignment 8:
 *
 *     | iceoryx 40 B | CycloneDDS 56 B | padding 8 B | message, rounded up to 8 B |
 */
#define AROUND_BYTES (56 + 8)

bool myelin_cyclonedds_is_shared_memory(const char *system)
{
  return strncmp(system, "cyclonedds.iceoryx", strlen("cyclonedds.iceoryx")) == 0;
}

bool myelin_cyclonedds_is_tuned(const char *system)
{
  return strcmp(system, "cyclonedds.udp-tuned") == 0;
}

/* Chunks of the pool a run gets by itself. Of a stream: what the queues of iceoryx and the histories
 * of the readers keep, which of one publisher are the same last samples for all subscribers; the one
 * that each subscriber has in its hands; and for each publisher the one on loan and the one that
 * iceoryx keeps for reuse. */
static uint32_t chunks(const struct myelin_bench_prepare *prepare)
{
  if (!prepare->one_way)
    return ROUND_TRIP_CHUNKS;
  const uint64_t pings = prepare->publishers;
  const uint64_t pongs = prepare->subscribers;
  const uint64_t queues = pings < pongs ? pings : pongs;
  /* Over iceoryx, where it matters, below 2^64: depth and topics are small. */
  const uint64_t all = prepare->topics * (queues * 2 * prepare->depth + pongs + 2 * pings);
  if (all >= UINT32_MAX)
    return UINT32_MAX;
  return all > ROUND_TRIP_CHUNKS ? (uint32_t)all : ROUND_TRIP_CHUNKS;
}

static struct myelin_roudi_need need(const struct myelin_bench_prepare *prepare)
{
  const struct myelin_roudi_need need = {
      .driver = "cyclonedds",
      .around_bytes = AROUND_BYTES,
      .chunks = chunks(prepare),
      .shared_memory = myelin_cyclonedds_is_shared_memory(prepare->system)};
  return need;
}

static int check(const struct myelin_bench_prepare *prepare)
{
  const bool shared_memory = myelin_cyclonedds_is_shared_memory(prepare->system);
  const uint32_t depth_max = shared_memory ? SHARED_DEPTH_MAX : INT_MAX;
  if (prepare->one_way && (prepare->depth < 1 || prepare->depth > depth_max)) {
    char text[128];
    char remedy[128];
    (void)snprintf(text, sizeof text, "depth: %" PRIu32 " for %s", prepare->depth, prepare->system);
    (void)snprintf(remedy, sizeof remedy, "from 1 to %" PRIu32 "; with UDP there is no such limit",
                   depth_max);
    myelin_bench_error(text, remedy);
    return -1;
  }
  const struct myelin_roudi_need needed = need(prepare);
  return myelin_roudi_check(prepare, &needed);
}

static void probe(struct myelin_bench_system *system)
{
  static char text[128];
  if (!myelin_cyclonedds_is_shared_memory(system->name)) {
    system->version = VERSION;
    return;
  }
  myelin_roudi_probe(system);
  if (VERSION != NULL && system->version != NULL) {
    (void)snprintf(text, sizeof text, "%s with iceoryx %s", VERSION, system->version);
    system->version = text;
  }
}

static const char *notes(const struct myelin_bench_prepare *prepare)
{
  static char text[512];
  if (myelin_cyclonedds_is_shared_memory(prepare->system))
    return NULL;
  const char *of_reliable = prepare->one_way && prepare->reliable
                                ? "\nreliable: a reader that has `depth` samples to take holds up "
                                  "the receiving thread of CycloneDDS, 10 ms at a time"
                                : "";
  (void)snprintf(text, sizeof text, "%s%s",
                 BUFFER_NOTE(myelin_cyclonedds_is_tuned(prepare->system)), of_reliable);
  return text;
}

static int start_daemon(const struct myelin_bench_prepare *prepare, void **daemon)
{
  const struct myelin_roudi_need needed = need(prepare);
  return myelin_roudi_start_daemon(prepare, &needed, daemon);
}

#define SYSTEM(named, described) \
  MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .missing = MISSING, \
  .wait = MYELIN_BENCH_WAIT_BLOCK, .payload_bytes_max = PAYLOAD_BYTES_MAX, \
  .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
               MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP, \
  .publishers_max = PEERS_MAX, .subscribers_max = PEERS_MAX
#define UDP \
  .transport = MYELIN_BENCH_TRANSPORT_LOOPBACK, .across_hosts = 1, .topics_max = UINT32_MAX, \
  .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE
#define ICEORYX \
  .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .topics_max = SHARED_TOPICS_MAX, .daemon = 1, \
  .reliability = MYELIN_BENCH_BEST_EFFORT

static const struct myelin_bench_system systems[] = {
    {SYSTEM("cyclonedds.udp", "CycloneDDS, serialised, UDP, waitset"), UDP},
    {SYSTEM("cyclonedds.udp-tuned", "the same with the largest receive buffer the kernel grants and "
                                    "large fragments"),
     UDP},
    {SYSTEM("cyclonedds.iceoryx", "CycloneDDS over iceoryx shared memory, written into loans, read by "
                                  "copy, waitset"),
     ICEORYX, .loans = 1},
    {SYSTEM("cyclonedds.iceoryx-copy", "CycloneDDS over iceoryx shared memory, written from own "
                                       "memory, waitset"),
     ICEORYX},
};

static const struct myelin_bench_driver driver = {
    .abi = MYELIN_BENCH_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = sizeof systems / sizeof systems[0],
    .link = LINK,
    .options = "pools",
    .check = check,
    .probe = probe,
    .notes = notes,
    .start_daemon = start_daemon,
    .daemon_pids = myelin_roudi_daemon_pids,
    .check_daemon = myelin_roudi_check_daemon,
    .stop_daemon = myelin_roudi_stop_daemon,
    .clean = myelin_roudi_clean,
};

int main(void)
{
  return myelin_bench_main(&driver);
}
