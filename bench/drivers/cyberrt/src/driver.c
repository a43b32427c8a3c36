/* Driver of `myelin bench` for Apollo CyberRT: over its shared memory with either notifier, in its
 * arenas, by RTPS, and within one process.
 *
 *     driver.c       the systems
 *     link.cpp       the adaptor against CyberRT
 *     own_space.rs   the private network and System V objects of a run
 *
 * `README.md` says how to build CyberRT, and explains its peculiarities. Without CyberRT, MISSING
 * says why; without arenas, MISSING_ARENAS does.
 */
#define _GNU_SOURCE
#include "driver.h"
#include "link.h"

#include <limits.h>
#include <stdio.h>
#include <sys/personality.h>
#include <unistd.h>

#ifndef MISSING_ARENAS
#define MISSING_ARENAS MISSING
#endif

static void probe(struct myelin_bench_system *system)
{
  if (!system->missing)
    system->missing = myelin_cyberrt_missing();
}

/* An arena's messages contain the publisher's pointers, so CyberRT can read them only if all
 * processes have the same addresses. A personality takes effect at the next exec. */
static void keep_addresses(char **arguments)
{
  int persona = personality(0xffffffff);
  if (persona == -1 || persona & ADDR_NO_RANDOMIZE)
    return;
  /* By its path, from which the process gets its name. */
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length == -1 || personality(persona | ADDR_NO_RANDOMIZE) == -1)
    return;
  path[length] = '\0';
  execv(path, arguments);
  perror(path);
}

/* The largest tested payload; CyberRT overruns its blocks beyond 32 MiB. */
#define PAYLOAD_BYTES_MAX (16u << 20)
/* Largest tested number of processes of a role. */
#define PROCESSES_MAX 4

#define SYSTEM(named, described, why_missing) \
  MYELIN_BENCH_SIZE(system), .name = (named), .about = (described), .version = VERSION, \
  .missing = (why_missing), .wait = MYELIN_BENCH_WAIT_CALLBACK, .loans = 1, \
  .payload_bytes_max = PAYLOAD_BYTES_MAX

#define TWO_PROCESSES \
  .workloads = MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE, \
  .subscribers_max = PROCESSES_MAX

static const struct myelin_bench_system systems[] = {
    {SYSTEM(MYELIN_CYBERRT_SHM, "CyberRT, serialised into shared memory; a thread polls every 50 us",
            MISSING),
     TWO_PROCESSES, .publishers_max = PROCESSES_MAX,
     .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY},
    {SYSTEM(MYELIN_CYBERRT_SHM_MULTICAST,
            "CyberRT, serialised into shared memory; a UDP multicast wakes a thread", MISSING),
     TWO_PROCESSES, .publishers_max = PROCESSES_MAX,
     .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY},
    /* One publisher: with several, each message is delivered once for each publisher. */
    {SYSTEM(MYELIN_CYBERRT_ARENA,
            "CyberRT, message built and read in an arena in shared memory; a thread polls every 50 us",
            MISSING_ARENAS),
     TWO_PROCESSES, .transport = MYELIN_BENCH_TRANSPORT_SHARED_MEMORY},
    {SYSTEM(MYELIN_CYBERRT_INTRA, "CyberRT in one process, message handed over, called by its scheduler",
            MISSING),
     .workloads = MYELIN_BENCH_STREAM | MYELIN_BENCH_IMAGE,
     .transport = MYELIN_BENCH_TRANSPORT_PROCESS, .one_process = 1},
    {SYSTEM(MYELIN_CYBERRT_RTPS, "CyberRT, serialised, by RTPS of Fast DDS over UDP", MISSING), TWO_PROCESSES,
     .publishers_max = PROCESSES_MAX, .transport = MYELIN_BENCH_TRANSPORT_LOOPBACK, .across_hosts = 1},
};

static const struct myelin_bench_driver driver = {
    DRIVER_OF(systems, myelin_cyberrt_link),
    .probe = probe,
};

int main(int count, char **arguments)
{
  (void)count;
  keep_addresses(arguments);
  return myelin_bench_main(&driver);
}
