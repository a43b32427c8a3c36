/* What the functions of the table do: what a run needs of RouDi, and what is said of it. */
#include "table.h"

#include <stdio.h>

#include "version.h"

/* Chunks of a round trip. A direction holds at most the 5 messages after whose loss the kit gives up,
 * one on loan, and one that iceoryx's publisher keeps for reuse: 7, twice, and two to spare. RouDi
 * touches every page of its pools, so more would only be memory. */
#define ROUND_TRIP_CHUNKS 16

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
      .driver = myelin_cyclonedds_driver,
      .around_bytes = myelin_cyclonedds_around_bytes,
      .chunks = chunks(prepare),
      .shared_memory = myelin_cyclonedds_is_iceoryx(prepare->system)};
  return need;
}

int myelin_cyclonedds_check(const struct myelin_bench_prepare *prepare)
{
  const struct myelin_roudi_need needed = need(prepare);
  return myelin_roudi_check(prepare, &needed);
}

void myelin_cyclonedds_probe(struct myelin_bench_system *system)
{
  static char text[128];
  if (system->missing == NULL)
    system->missing = myelin_cyclonedds_missing(system->name);
  if (!myelin_cyclonedds_is_iceoryx(system->name)) {
    system->version = myelin_cyclonedds_version();
    return;
  }
  myelin_roudi_probe(system);
  if (system->version != NULL) {
    (void)snprintf(text, sizeof text, "%s with iceoryx %s", myelin_cyclonedds_version(),
                   system->version);
    system->version = text;
  }
}

const char *myelin_cyclonedds_notes(const struct myelin_bench_prepare *prepare)
{
  static char text[512];
  if (myelin_cyclonedds_is_shared_memory(prepare->system))
    return NULL;
  const char *of_reliable = prepare->reliable
                                ? "\nreliable: a reader with `depth` samples to take blocks the "
                                  "receiving thread of CycloneDDS, for 10 ms each time"
                                : "";
  (void)snprintf(text, sizeof text, "%s%s",
                 myelin_cyclonedds_buffer_note(myelin_cyclonedds_is_tuned(prepare->system)), of_reliable);
  return text;
}

int myelin_cyclonedds_start_daemon(const struct myelin_bench_prepare *prepare, void **daemon)
{
  const struct myelin_roudi_need needed = need(prepare);
  return myelin_roudi_start_daemon(prepare, &needed, daemon);
}
