/* What the tables of the drivers for CycloneDDS 0.10 and 11 have alike: entries, and the functions behind
 * them, which are not there without the library. */
#ifndef MYELIN_CYCLONEDDS_TABLE_H
#define MYELIN_CYCLONEDDS_TABLE_H

#include "config.h"
#include "driver.h"
#include "myelin_roudi.h"

/* The largest payload that was tried. CycloneDDS sets no limit of its own below 2 GiB; but RouDi
 * touches 16 chunks of this size, and UDP loses so many of a sample's fragments that one round trip
 * takes 0.2 s. */
#define PAYLOAD_BYTES_MAX (16u << 20)
/* Publishers of a topic, and subscribers: together they fit into a domain. */
#define PEERS_MAX (MYELIN_CYCLONEDDS_PROCESSES_MAX / 4)
/* Topics over iceoryx: below what CycloneDDS attaches to iceoryx's listener in a process. */
#define SHARED_TOPICS_MAX 100
/* iceoryx 2 cuts a queue off there, and a reader may hold one sample less. */
#define SHARED_DEPTH_MAX 255

#define SYSTEM(named, waits, described) \
  MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .missing = MISSING, \
  .wait = (waits), .payload_bytes_max = PAYLOAD_BYTES_MAX, \
  .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE | \
               MYELIN_BENCH_FLOOD | MYELIN_BENCH_STARTUP, \
  .publishers_max = PEERS_MAX, .subscribers_max = PEERS_MAX
#define UDP \
  .transport = MYELIN_BENCH_TRANSPORT_LOOPBACK, .across_hosts = 1, .topics_max = UINT32_MAX, \
  .reliability = MYELIN_BENCH_BEST_EFFORT | MYELIN_BENCH_RELIABLE
#define ICEORYX \
  .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY, .topics_max = SHARED_TOPICS_MAX, .daemon = 1, \
  .depth_max = SHARED_DEPTH_MAX, \
  .reliability = MYELIN_BENCH_BEST_EFFORT

#define DRIVER \
  DRIVER_OF(systems, myelin_cyclonedds_link), .options = "pools", .check = PRESENT(myelin_cyclonedds_check), \
  .probe = PRESENT(myelin_cyclonedds_probe), .notes = PRESENT(myelin_cyclonedds_notes), \
  .start_daemon = PRESENT(myelin_cyclonedds_start_daemon), \
  .daemon_pids = myelin_roudi_daemon_pids, .check_daemon = myelin_roudi_check_daemon, \
  .stop_daemon = myelin_roudi_stop_daemon

extern const struct myelin_bench_link myelin_cyclonedds_link;

/* As the kit's header has them. */
int myelin_cyclonedds_check(const struct myelin_bench_prepare *prepare);
void myelin_cyclonedds_probe(struct myelin_bench_system *system);
const char *myelin_cyclonedds_notes(const struct myelin_bench_prepare *prepare);
int myelin_cyclonedds_start_daemon(const struct myelin_bench_prepare *prepare, void **daemon);

#endif /* MYELIN_CYCLONEDDS_TABLE_H */
