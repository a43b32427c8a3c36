/* CycloneDDS's configuration: made here, handed to the library, and left in the run's folder so that
 * anyone can repeat the run with `CYCLONEDDS_URI=file://…/cyclonedds.xml`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "security.h"
#include "version.h"

enum {
  /* What CycloneDDS asks for by itself. */
  DEFAULT_BYTES = 1 << 20,
  /* More than any stream of the bench has under way. */
  BUFFER_BYTES_MAX = 64 << 20,
  /* Participants that find each other by default (index 0 to 9) ... */
  INDICES_DEFAULT = 10,
  /* ... and as many of them as find an index even if all start at once. */
  PROCESSES_DEFAULT = INDICES_DEFAULT / 2
};

static const char *configuration(const char *system)
{
  return strchr(system, '.') + 1;
}

bool myelin_cyclonedds_is_shared_memory(const char *system)
{
  return strncmp(configuration(system), "udp", strlen("udp")) != 0;
}

bool myelin_cyclonedds_is_iceoryx(const char *system)
{
  return strncmp(configuration(system), "iceoryx", strlen("iceoryx")) == 0;
}

bool myelin_cyclonedds_is_tuned(const char *system)
{
  return strcmp(configuration(system), "udp-tuned") == 0;
}

/* Largest datagram UDP can carry. */
#define LARGEST "<MaxMessageSize>65500B</MaxMessageSize>"

/* The most that the kernel grants as a receive buffer: it cuts off what is above without a word. */
static uint64_t grantable_bytes(void)
{
  uint64_t bytes = 0;
  FILE *file = fopen("/proc/sys/net/core/rmem_max", "r");
  if (file == NULL)
    return 0;
  if (fscanf(file, "%" SCNu64, &bytes) != 1)
    bytes = 0;
  (void)fclose(file);
  return bytes;
}

/* Bytes of receive buffer to ask the kernel for; `tuned` asks for as much as it grants. */
static uint64_t buffer_bytes(bool tuned)
{
  if (!tuned)
    return DEFAULT_BYTES;
  const uint64_t grantable = grantable_bytes();
  if (grantable < DEFAULT_BYTES)
    return DEFAULT_BYTES;
  return grantable < BUFFER_BYTES_MAX ? grantable : BUFFER_BYTES_MAX;
}

const char *myelin_cyclonedds_buffer_note(bool tuned)
{
  static char text[256];
  const uint64_t asked = buffer_bytes(tuned);
  const uint64_t limit = grantable_bytes();
  (void)snprintf(text, sizeof text,
                 "UDP receive buffer: %" PRIu64 " B requested, %" PRIu64
                 " B granted (net.core.rmem_max = %" PRIu64 ")%s",
                 asked, asked < limit ? asked : limit, limit,
                 limit < DEFAULT_BYTES
                     ? "; this is small, allow more: sysctl -w net.core.rmem_max=4194304"
                     : "");
  return text;
}

/* Where the run's messages travel, and in how large datagrams. */
static void write_general(FILE *out, const struct myelin_bench_prepare *prepare, bool tuned)
{
  (void)fputs("    <General>\n", out);
  if (prepare->peer == NULL) {
    (void)fputs(
        "      <!-- Loopback only: nothing leaves the host, and no other host disturbs the run. -->\n"
        "      <Interfaces>\n"
        "        <NetworkInterface name=\"lo\" multicast=\"false\"/>\n",
        out);
    myelin_cyclonedds_write_interface(out, prepare->system);
    (void)fputs(
        "      </Interfaces>\n"
        "      <AllowMulticast>false</AllowMulticast>\n"
        "      <!-- The largest datagram of UDP: the loopback interface does not split it. -->\n"
        "      " LARGEST "\n",
        out);
  } else {
    /* The default is left where packets may be lost: a datagram is lost with any of its packets. */
    (void)fprintf(out,
                  "      <Transport>%s</Transport>\n"
                  "      <!-- Only this interface to the other host. -->\n"
                  "      <Interfaces>\n"
                  "        <NetworkInterface address=\"%s\" multicast=\"false\"/>\n"
                  "      </Interfaces>\n"
                  "      <AllowMulticast>false</AllowMulticast>\n"
                  "%s",
                  strchr(prepare->own, ':') == NULL ? "udp" : "udp6", prepare->own,
                  tuned ? "      " LARGEST "\n" : "");
  }
  if (tuned)
    /* As large as a datagram, also when they are sent again: the kernel counts its own overhead for
     * each against the receive buffer. */
    (void)fputs("      <FragmentSize>65000B</FragmentSize>\n"
                "      <MaxRexmitMessageSize>65500B</MaxRexmitMessageSize>\n",
                out);
  (void)fputs("    </General>\n", out);
}

static void write_discovery(FILE *out, const struct myelin_bench_prepare *prepare)
{
  (void)fputs(
      "    <Discovery>\n"
      "      <!-- Without multicast, processes are found at the ports of the first indices of\n"
      "           this domain, so each process must take an index. -->\n"
      "      <ParticipantIndex>auto</ParticipantIndex>\n",
      out);
  const uint64_t processes = (uint64_t)prepare->publishers + prepare->subscribers;
  if (processes > PROCESSES_DEFAULT) {
    const uint64_t twice = 2 * processes;
    const uint64_t least = twice > INDICES_DEFAULT ? twice : INDICES_DEFAULT;
    const uint64_t indices =
        least < MYELIN_CYCLONEDDS_PROCESSES_MAX ? least : MYELIN_CYCLONEDDS_PROCESSES_MAX;
    (void)fprintf(
        out,
        "      <!-- Two indices for each process: with fewer, processes that start together\n"
        "           try the same ones. -->\n"
        "      <MaxAutoParticipantIndex>%" PRIu64 "</MaxAutoParticipantIndex>\n",
        indices - 1);
  }
  (void)fprintf(out,
                "      <Peers>\n"
                "        <Peer Address=\"%s\"/>\n"
                "      </Peers>\n"
                "    </Discovery>\n",
                prepare->peer == NULL ? "127.0.0.1" : prepare->peer);
}

static void write_internal(FILE *out, bool tuned)
{
  (void)fputs(
      "    <Internal>\n"
      "      <!-- A run is short: with these two settings, processes match within 10 ms of their\n"
      "           start. Neither changes the path of a message. Ask a newly found writer at once,\n"
      "           not 10 ms later, what it has written (discovery is such writers) ... -->\n"
      "      <PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>\n"
      "      <!-- ... and do not wait at the end, up to 1 s, for acknowledgements of messages\n"
      "           that are answered: that took 80 ms in one run of four. -->\n"
      "      <WriterLingerDuration>0 s</WriterLingerDuration>\n",
      out);
  if (tuned) {
    const uint64_t bytes = buffer_bytes(tuned);
    (void)fprintf(out,
                  "      <!-- As much as net.core.rmem_max allows ... -->\n"
                  "      <SocketReceiveBufferSize max=\"%" PRIu64 "B\"/>\n"
                  "      <!-- ... and no more unacknowledged bytes than fit into it. -->\n"
                  "      <Watermarks>\n"
                  "        <WhcHigh>%" PRIu64 "B</WhcHigh>\n"
                  "      </Watermarks>\n"
                  "      <MaxQueuedRexmitBytes>%" PRIu64 "B</MaxQueuedRexmitBytes>\n",
                  bytes, bytes, bytes);
  }
  (void)fputs("    </Internal>\n", out);
}

static void write_xml(FILE *out, const struct myelin_bench_prepare *prepare)
{
  const bool tuned = myelin_cyclonedds_is_tuned(prepare->system);
  (void)fprintf(out,
                "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                "<CycloneDDS xmlns=\"https://cdds.io/config\">\n"
                "  <Domain Id=\"%" PRIu32 "\">\n",
                prepare->domain);
  write_general(out, prepare, tuned);
  write_discovery(out, prepare);
  write_internal(out, tuned);
  myelin_cyclonedds_write_security(out, prepare);
  myelin_cyclonedds_write_shared_memory(out, prepare->system);
  (void)fputs("  </Domain>\n"
              "</CycloneDDS>\n",
              out);
}

static int save(const struct myelin_bench_prepare *prepare, const char *xml)
{
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/%scyclonedds.xml", prepare->directory, prepare->file_prefix);
  FILE *file = fopen(path, "w");
  bool is_written = file != NULL && fputs(xml, file) >= 0;
  if (file != NULL)
    is_written = fclose(file) == 0 && is_written;
  if (is_written)
    return 0;
  return myelin_bench_fail(NULL, "writing %s: %s", path, strerror(errno));
}

int myelin_cyclonedds_configure(const struct myelin_bench_prepare *prepare, char **xml)
{
  size_t bytes = 0;
  *xml = NULL;
  FILE *out = open_memstream(xml, &bytes);
  if (out != NULL)
    write_xml(out, prepare);
  if (out == NULL || fclose(out) != 0)
    return myelin_bench_fail(NULL, "CycloneDDS: out of memory");
  return save(prepare, *xml);
}
