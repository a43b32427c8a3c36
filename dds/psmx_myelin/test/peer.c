/* A program that uses only CycloneDDS's API and does not know the plug-in, for crates/myelin-dds/tests/psmx.
 *
 *     peer pub|sub Small|Image|Text|Keyed TOPIC [SETTING]…
 *     domain=N partition=NAME depth=N limit=N all best-effort late loans listener one-writer beside=TOPIC
 *
 * It prints "ready shared|network" first, and "matched N" whenever the number of matches changes. It ends at the end of
 * its standard input.
 *
 * A publisher executes the lines of its standard input, and prints "done RETURN" after each:
 *   write FIRST COUNT   writes samples
 *   dispose ID          disposes of an instance
 *   others COUNT        creates and deletes as many other writers, one after the other
 *
 * A subscriber prints "took NUMBER MEMORY" for each sample, and "gone ID" for a disposed instance. MEMORY is "shared"
 * for a loan in shared memory, and otherwise "own". After the line "stop" it prints "stopped", and takes nothing until
 * "go".
 *   one-writer     prints "of another writer" if a publication handle differs from the first one
 *   beside=TOPIC   has a second reader, of TOPIC. Its listener prints "called", and waits while the program is stopped.
 *                  The program also prints "lost" when DDS has lost a writer. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "dds/dds.h"
#include "messages.h"

enum type { SMALL, IMAGE, TEXT, KEYED, TYPES };
static const char *const names[TYPES] = {"Small", "Image", "Text", "Keyed"};
static const dds_topic_descriptor_t *const descriptors[TYPES] = {&psmx_Small_desc, &psmx_Image_desc,
                                                                 &psmx_Text_desc, &psmx_Keyed_desc};
union sample {
  psmx_Small small;
  psmx_Image image;
  psmx_Text text;
  psmx_Keyed keyed;
};

static enum type type;
static bool loans, of_one_writer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define PRINT(...) \
  (pthread_mutex_lock(&lock), printf(__VA_ARGS__), fflush(stdout), pthread_mutex_unlock(&lock))

/* Whether an address is in the memory of a memfd. The program itself creates none. */
static bool is_shared(const void *address) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  bool found = false;
  while (!found && fgets(line, sizeof line, maps)) {
    uintptr_t from, to;
    const bool is_range = sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2;
    found = is_range && (uintptr_t)address >= from && (uintptr_t)address < to && strstr(line, "memfd:");
  }
  fclose(maps);
  return found;
}

/* Fills a sample from its number, so that a reader can check that it is whole. */
static void fill(union sample *sample, uint64_t number, char *text, uint8_t *rest) {
  switch (type) {
  case SMALL:
    sample->small.number = number;
    memset(sample->small.rest, (int)number, sizeof sample->small.rest);
    break;
  case IMAGE:
    sample->image.number = number;
    memset(sample->image.rest, (int)number, sizeof sample->image.rest);
    break;
  case TEXT:
    sprintf(text, "%" PRIu64, number);
    sample->text = (psmx_Text){.number = number, .is_odd = number % 2, .words = text};
    sample->text.rest._buffer = rest;
    sample->text.rest._length = sample->text.rest._maximum = (uint32_t)(number % 1000);
    if (loans) {  // CycloneDDS frees the parts together with the sample
      sample->text.words = dds_string_dup(text);
      sample->text.rest._buffer = dds_alloc(number % 1000);
      sample->text.rest._release = true;
    }
    break;
  case KEYED:
    sample->keyed.id = (uint32_t)(number % 100);
    sample->keyed.number = number;
    break;
  case TYPES: abort();
  }
}

static bool is_filled(const uint8_t *bytes, size_t count, uint64_t number) {
  for (size_t at = 0; at < count; ++at) {
    if (bytes[at] != (uint8_t)number) return false;
  }
  return true;
}

/* Returns a sample's number, or UINT64_MAX if the sample is not whole. */
static uint64_t number_of(const union sample *sample) {
  char expected[32];
  switch (type) {
  case SMALL:
    if (!is_filled(sample->small.rest, sizeof sample->small.rest, sample->small.number)) break;
    return sample->small.number;
  case IMAGE:
    if (!is_filled(sample->image.rest, sizeof sample->image.rest, sample->image.number)) break;
    return sample->image.number;
  case TEXT:
    sprintf(expected, "%" PRIu64, sample->text.number);
    if (strcmp(expected, sample->text.words) || sample->text.is_odd != sample->text.number % 2 ||
        sample->text.rest._length != sample->text.number % 1000)
      break;
    return sample->text.number;
  case KEYED: return sample->keyed.number;
  case TYPES: abort();
  }
  return UINT64_MAX;
}

static dds_return_t write_one(dds_entity_t writer, uint64_t number) {
  static union sample own;
  static uint8_t rest[1000];
  char text[32];
  void *lent = NULL;
  if (loans) CHECK(dds_request_loan(writer, &lent));
  fill(loans ? lent : &own, number, text, rest);
  return dds_write(writer, loans ? lent : (void *)&own);
}

static void follow_lines(dds_entity_t writer) {
  char line[100];
  uint64_t first, count;
  while (fgets(line, sizeof line, stdin)) {
    dds_return_t code = DDS_RETCODE_OK;
    if (sscanf(line, "write %" SCNu64 " %" SCNu64, &first, &count) == 2) {
      for (uint64_t at = 0; at < count && code == DDS_RETCODE_OK; ++at) code = write_one(writer, first + at);
    } else if (sscanf(line, "dispose %" SCNu64, &first) == 1) {
      code = dds_dispose(writer, &(psmx_Keyed){.id = (uint32_t)first});
    } else if (sscanf(line, "others %" SCNu64, &count) == 1) {
      dds_qos_t *qos = dds_create_qos();
      CHECK(dds_get_qos(writer, qos));
      const dds_entity_t participant = dds_get_participant(writer), topic = dds_get_topic(writer);
      for (uint64_t at = 0; at < count && code == DDS_RETCODE_OK; ++at)
        code = dds_delete(CHECK(dds_create_writer(participant, topic, qos, NULL)));
      dds_delete_qos(qos);
    }
    PRINT("done %s\n", dds_strretcode(code));
  }
}

static void take_all(dds_entity_t reader, void *unused) {
  (void)unused;
  static union sample own;
  for (;;) {
    void *sample = loans ? NULL : &own;
    dds_sample_info_t info;
    if (CHECK(dds_take(reader, &sample, &info, 1, 1)) == 0) return;
    static dds_instance_handle_t writer;
    if (writer == 0) writer = info.publication_handle;
    if (of_one_writer && info.publication_handle != writer) PRINT("of another writer\n");
    if (info.valid_data) {
      PRINT("took %" PRIu64 " %s\n", number_of(sample), is_shared(sample) ? "shared" : "own");
    } else if (info.instance_state == DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE) {
      PRINT("gone %" PRIu32 "\n", ((psmx_Keyed *)sample)->id);
    }
    if (loans) CHECK(dds_return_loan(reader, &sample, 1));
  }
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static bool is_ending;  // guarded by the gate; no thread takes samples during the deletion

static void wait_at_gate(dds_entity_t reader, void *unused) {
  (void)reader, (void)unused;
  PRINT("called\n");
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
}

static void print_losses(dds_entity_t publications, void *unused) {
  (void)unused;
  void *publication = NULL;
  dds_sample_info_t info;
  while (CHECK(dds_take(publications, &publication, &info, 1, 1)) > 0) {
    if (info.instance_state != DDS_ALIVE_INSTANCE_STATE) PRINT("lost\n");
    CHECK(dds_return_loan(publications, &publication, 1));
  }
}

static dds_entity_t wait_set_of(dds_entity_t reader) {
  const dds_entity_t set = CHECK(dds_create_waitset(DDS_CYCLONEDDS_HANDLE));
  CHECK(dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS));
  CHECK(dds_waitset_attach(set, reader, reader));
  return set;
}

static void *take_when_woken(void *set) {
  for (;;) {
    dds_attach_t reader;
    const bool is_woken = CHECK(dds_waitset_wait(*(dds_entity_t *)set, &reader, 1, DDS_INFINITY)) > 0;
    pthread_mutex_lock(&gate);
    const bool goes_on = !is_ending;
    if (is_woken && goes_on) take_all((dds_entity_t)reader, NULL);
    pthread_mutex_unlock(&gate);
    if (!goes_on) return NULL;
  }
}

static void print_matches(uint32_t count) { PRINT("matched %" PRIu32 "\n", count); }

static void on_subscription(dds_entity_t it, const dds_subscription_matched_status_t now, void *unused) {
  (void)it, (void)unused, print_matches(now.current_count);
}

static void on_publication(dds_entity_t it, const dds_publication_matched_status_t now, void *unused) {
  (void)it, (void)unused, print_matches(now.current_count);
}

int main(int count, char **arguments) {
  if (count < 4) return fprintf(stderr, "see peer.c\n"), 2;
  const bool is_publisher = !strcmp(arguments[1], "pub");
  while (type < TYPES && strcmp(arguments[2], names[type])) ++type;
  if (type == TYPES) return fprintf(stderr, "no type %s\n", arguments[2]), 2;

  dds_qos_t *qos = dds_create_qos();
  uint32_t domain = 0;
  int32_t depth = 1, limit = DDS_LENGTH_UNLIMITED;
  bool all = false, best_effort = false, late = false, listens = false;
  const char *beside = NULL;
  for (int at = 4; at < count; ++at) {
    const char *word = arguments[at], *value = strchr(word, '=');
    if (!strncmp(word, "domain=", 7)) domain = (uint32_t)atoi(value + 1);
    else if (!strncmp(word, "partition=", 10)) dds_qset_partition1(qos, value + 1);
    else if (!strncmp(word, "depth=", 6)) depth = atoi(value + 1);
    else if (!strncmp(word, "limit=", 6)) limit = atoi(value + 1);
    else if (!strncmp(word, "beside=", 7)) beside = value + 1;
    else if (!strcmp(word, "all")) all = true;
    else if (!strcmp(word, "best-effort")) best_effort = true;
    else if (!strcmp(word, "late")) late = true;
    else if (!strcmp(word, "loans")) loans = true;
    else if (!strcmp(word, "one-writer")) of_one_writer = true;
    else if (!strcmp(word, "listener")) listens = true;
    else return fprintf(stderr, "no setting %s\n", word), 2;
  }
  const dds_history_kind_t kind = all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  dds_qset_reliability(qos, best_effort ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE,
                       DDS_SECS(10));
  dds_qset_history(qos, kind, depth);
  dds_qset_resource_limits(qos, limit, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  dds_qset_durability(qos, late ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  if (is_publisher) {
    dds_qset_durability_service(qos, 0, kind, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED);
    dds_qset_writer_data_lifecycle(qos, false);
  }

  const dds_entity_t participant = CHECK(dds_create_participant(domain, NULL, NULL));
  const dds_entity_t topic = CHECK(dds_create_topic(participant, descriptors[type], arguments[3], NULL, NULL));
  dds_listener_t *listener = dds_create_listener(NULL);
  dds_lset_publication_matched(listener, on_publication);
  dds_lset_subscription_matched(listener, on_subscription);
  if (beside) {
    dds_listener_t *waits = dds_create_listener(NULL);
    dds_lset_data_available(waits, wait_at_gate);
    const dds_entity_t other = CHECK(dds_create_topic(participant, descriptors[type], beside, NULL, NULL));
    CHECK(dds_create_reader(participant, other, qos, waits));
    dds_lset_data_available(waits, print_losses);
    CHECK(dds_create_reader(participant, DDS_BUILTIN_TOPIC_DCPSPUBLICATION, NULL, waits));
    dds_delete_listener(waits);
  }
  if (listens) dds_lset_data_available(listener, take_all);
  const dds_entity_t endpoint = CHECK(is_publisher ? dds_create_writer(participant, topic, qos, listener)
                                                   : dds_create_reader(participant, topic, qos, listener));
  // Before "ready": the test may end this program right after that line.
  static dds_entity_t set;
  if (!is_publisher && !listens) set = wait_set_of(endpoint);
  PRINT("ready %s\n", dds_is_shared_memory_available(endpoint) ? "shared" : "network");
  if (is_publisher) {
    follow_lines(endpoint);
  } else {
    pthread_t thread;
    if (!listens) pthread_create(&thread, NULL, take_when_woken, &set);
    char line[100];
    bool is_stopped = false;
    while (fgets(line, sizeof line, stdin)) {
      const bool stop = !strcmp(line, "stop\n");
      if (stop != is_stopped) (stop ? pthread_mutex_lock : pthread_mutex_unlock)(&gate);
      is_stopped = stop;
      if (stop) PRINT("stopped\n");
    }
    if (!is_stopped) pthread_mutex_lock(&gate);
    is_ending = true;
    pthread_mutex_unlock(&gate);  // a listener may wait for it, and the deletion waits for the listener
  }
  CHECK(dds_delete(participant));
  return 0;
}
