/* The adaptor: one role of a round trip or of a stream over CycloneDDS 0.10, in the form of the
 * kit's table.
 *
 * Ping writes topic `ping_<run>` and reads `pong_<run>`, pong the other way round; of a stream
 * there is `ping_<run>` alone, best effort. There are two topics, not one topic in two partitions,
 * because 0.10 ignores partitions over shared memory and each side would then read its own writes.
 * In the run's name `_` stands for `-`, which CycloneDDS does not allow and which the protocol's
 * names have instead of `_`.
 *
 * The type is `struct { unsigned long long sequence; octet payload[N]; }` without `payload` if N
 * is 0: its memory layout is the kit's message, byte for byte. The descriptor is what idlc 0.10.2
 * generates for it (with -t: the XTypes information, which no two programs of one type need, is
 * left out), made here so that any N works without a code generator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "dds/ddsc/dds_loan_api.h"
#include "dds/version.h"
#include "myelin_bench_kit.h"

/* Samples that writer and reader keep. One message is in flight, up to 5 when answers fail to
 * come (then the kit gives up), so 16 never overwrites one; and it is the capacity that CycloneDDS
 * gives the iceoryx queue, so it bounds how many chunks of shared memory a direction can hold. */
enum { HISTORY_DEPTH = 16 };

/* Of streams: the depth of ROS 2's quality of service for sensors, which is best effort, too. */
enum { STREAM_DEPTH = 5 };

/* How long a write may block on a full writer history: RoundtripPing's value. */
static const dds_duration_t WRITE_BLOCKS_MAX = DDS_SECS(10);

/* Longest name of a topic: iceoryx 2 cuts the rest off, and two names that differ only beyond it
 * would be one topic. */
enum { TOPIC_NAME_MAX = 100 };

struct link {
  dds_entity_t domain;
  dds_entity_t writer;  /* 0 for pong of a stream */
  dds_entity_t reader;  /* 0 for ping of a stream, as is the waitset */
  dds_entity_t waitset;
  size_t message_bytes; /* 8 + N */
  size_t type_bytes;    /* sizeof of the type: message_bytes rounded up to 8 */
  void *loan;           /* of the writer, between loan and publish_loan */
  void *received;       /* type_bytes; where take copies to */
  void *staging;        /* type_bytes; NULL unless the type has padding, see publish */
};

/* Set by myelin_cyclonedds_configure for the open that follows. */
static const char *configuration;
static int wants_shared_memory;

void myelin_cyclonedds_configure(const char *xml, int shared_memory)
{
  configuration = xml;
  wants_shared_memory = shared_memory;
}

const char *myelin_cyclonedds_version(void)
{
  return DDS_VERSION;
}

/* Reports `what` and, if it is an error code of DDS, its text. Returns -1. */
static int fail(const char *what, dds_return_t code, const char *remedy)
{
  char text[256];
  if (code < 0)
    (void)snprintf(text, sizeof text, "CycloneDDS: %s: %s", what, dds_strretcode(-code));
  else
    (void)snprintf(text, sizeof text, "CycloneDDS: %s", what);
  myelin_bench_error(text, remedy);
  return -1;
}

static void close_link(void *context)
{
  struct link *link = context;
  if (link == NULL)
    return;
  if (link->domain > 0)
    (void)dds_delete(link->domain);
  free(link->received);
  free(link->staging);
  free(link);
}

static dds_entity_t create_topic(dds_entity_t participant, const struct link *link,
                                 const char *run, const char *direction)
{
  const uint32_t payload_bytes = (uint32_t)(link->message_bytes - 8);
  const uint32_t array[] = {DDS_OP_ADR | DDS_OP_TYPE_8BY, 0,
                            DDS_OP_ADR | DDS_OP_TYPE_ARR | DDS_OP_SUBTYPE_1BY, 8, payload_bytes,
                            DDS_OP_RTS};
  const uint32_t number_only[] = {DDS_OP_ADR | DDS_OP_TYPE_8BY, 0, DDS_OP_RTS};
  char type_name[32];
  char topic_name[TOPIC_NAME_MAX + 1];
  (void)snprintf(type_name, sizeof type_name, "myelin::Message%" PRIu32, payload_bytes);
  (void)snprintf(topic_name, sizeof topic_name, "%s_%s", direction, run);
  for (char *dash = topic_name; (dash = strchr(dash, '-')) != NULL;)
    *dash = '_';
  const dds_topic_descriptor_t descriptor = {
      .m_size = (uint32_t)link->type_bytes,
      .m_align = 8,
      .m_flagset = DDS_TOPIC_FIXED_SIZE,
      .m_nkeys = 0,
      .m_typename = type_name,
      .m_keys = NULL,
      .m_nops = payload_bytes > 0 ? 3 : 2,
      .m_ops = payload_bytes > 0 ? array : number_only,
      .m_meta = ""};
  return dds_create_topic(participant, &descriptor, topic_name, NULL, NULL);
}

static dds_qos_t *create_qos(const struct myelin_bench_prepare *prepare)
{
  dds_qos_t *qos = dds_create_qos();
  if (prepare->one_way)
    dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
  else
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, WRITE_BLOCKS_MAX);
  const int depth = prepare->one_way ? STREAM_DEPTH : HISTORY_DEPTH;
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, depth);
  dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
  return qos;
}

static int create_writer(struct link *link, dds_entity_t participant, const dds_qos_t *qos,
                         const struct myelin_bench_prepare *prepare)
{
  const char *direction = prepare->is_ping ? "ping" : "pong";
  const dds_entity_t topic = create_topic(participant, link, prepare->run, direction);
  if (topic < 0)
    return fail("creating the outgoing topic", topic, NULL);
  link->writer = dds_create_writer(participant, topic, qos, NULL);
  return link->writer < 0 ? fail("creating the writer", link->writer, NULL) : 0;
}

static int create_reader(struct link *link, dds_entity_t participant, const dds_qos_t *qos,
                         const struct myelin_bench_prepare *prepare)
{
  const char *direction = prepare->is_ping ? "pong" : "ping";
  const dds_entity_t topic = create_topic(participant, link, prepare->run, direction);
  if (topic < 0)
    return fail("creating the incoming topic", topic, NULL);
  link->reader = dds_create_reader(participant, topic, qos, NULL);
  if (link->reader < 0)
    return fail("creating the reader", link->reader, NULL);
  const dds_entity_t condition = dds_create_readcondition(link->reader, DDS_ANY_STATE);
  link->waitset = dds_create_waitset(participant);
  dds_return_t code = condition < 0 ? condition : link->waitset;
  if (code >= 0)
    code = dds_waitset_attach(link->waitset, condition, 0);
  return code < 0 ? fail("creating the waitset", code, NULL) : 0;
}

static int create_endpoints(struct link *link, const struct myelin_bench_prepare *prepare)
{
  const dds_entity_t participant = dds_create_participant(prepare->domain, NULL, NULL);
  if (participant < 0)
    return fail("creating the participant", participant, NULL);
  dds_qos_t *qos = create_qos(prepare);
  /* First what receives: whoever finds our writer finds our reader too. */
  int status = 0;
  if (!prepare->one_way || !prepare->is_ping)
    status = create_reader(link, participant, qos, prepare);
  if (status == 0 && (!prepare->one_way || prepare->is_ping))
    status = create_writer(link, participant, qos, prepare);
  dds_delete_qos(qos);
  return status;
}

/* How many others the writer (reader) is matched with; 1 where there is none. */
static dds_return_t count_readers(const struct link *link, uint32_t *count)
{
  dds_publication_matched_status_t status = {.current_count = 1};
  const dds_return_t code =
      link->writer > 0 ? dds_get_publication_matched_status(link->writer, &status) : 0;
  *count = status.current_count;
  return code;
}

static dds_return_t count_writers(const struct link *link, uint32_t *count)
{
  dds_subscription_matched_status_t status = {.current_count = 1};
  const dds_return_t code =
      link->reader > 0 ? dds_get_subscription_matched_status(link->reader, &status) : 0;
  *count = status.current_count;
  return code;
}

/* Waits on the status events of writer and reader until each has its one counterpart. */
static int wait_until_matched(struct link *link, dds_entity_t waitset, uint64_t until_ns)
{
  for (;;) {
    uint32_t readers = 0;
    uint32_t writers = 0;
    dds_return_t code = count_readers(link, &readers);
    if (code >= 0)
      code = count_writers(link, &writers);
    if (code < 0)
      return fail("reading the matched status", code, NULL);
    if (readers > 0 && writers > 0)
      return 0;
    const uint64_t now_ns = myelin_bench_now_ns();
    if (now_ns >= until_ns) {
      const char *what = "timeout: no other side in either direction";
      if (writers > 0)
        what = "timeout: nobody reads what this side writes";
      else if (readers > 0)
        what = "timeout: nobody writes for this side";
      return fail(what, 0, "see the other side's log; match_timeout_ms sets the limit");
    }
    code = dds_waitset_wait(waitset, NULL, 0, (dds_duration_t)(until_ns - now_ns));
    if (code < 0)
      return fail("waiting for the other side", code, NULL);
  }
}

/* Has `waitset` wait for a change of the status `mask` of `entity`, if there is such an entity;
 * what its mask was before goes to `before`. */
static dds_return_t watch(dds_entity_t waitset, dds_entity_t entity, uint32_t mask,
                          uint32_t *before)
{
  if (entity <= 0)
    return 0;
  (void)dds_get_status_mask(entity, before);
  const dds_return_t code = dds_set_status_mask(entity, mask);
  return code < 0 ? code : dds_waitset_attach(waitset, entity, 0);
}

static int match(struct link *link, uint64_t until_ns)
{
  const dds_entity_t some = link->writer > 0 ? link->writer : link->reader;
  const dds_entity_t waitset = dds_create_waitset(dds_get_participant(some));
  if (waitset < 0)
    return fail("creating the waitset", waitset, NULL);
  uint32_t writer_mask = 0;
  uint32_t reader_mask = 0;
  dds_return_t code = watch(waitset, link->writer, DDS_PUBLICATION_MATCHED_STATUS, &writer_mask);
  if (code >= 0)
    code = watch(waitset, link->reader, DDS_SUBSCRIPTION_MATCHED_STATUS, &reader_mask);
  const int status = code < 0 ? fail("attaching to the waitset", code, NULL)
                              : wait_until_matched(link, waitset, until_ns);
  /* The measured path is to be as it would be without this. */
  (void)dds_delete(waitset);
  if (link->writer > 0)
    (void)dds_set_status_mask(link->writer, writer_mask);
  if (link->reader > 0)
    (void)dds_set_status_mask(link->reader, reader_mask);
  return status;
}

/* CycloneDDS falls back to UDP without a word when shared memory cannot be used. */
static int prove_transport(const struct link *link)
{
  const bool writer = link->writer > 0 && dds_is_loan_available(link->writer);
  const bool reader = link->reader > 0 && dds_is_loan_available(link->reader);
  if (!wants_shared_memory)
    return writer || reader ? fail("uses shared memory although it is switched off", 0, NULL) : 0;
  const char *remedy = "needs a libddsc with shared memory: "
                       "apt-get install --reinstall libddsc0debian";
  if (link->reader > 0 && !reader)
    return fail("the reader does not use shared memory", 0, remedy);
  if (link->writer > 0 && !writer)
    return fail("the writer does not use shared memory", 0, remedy);
  return 0;
}

static int open_link(const struct myelin_bench_prepare *prepare, void **context)
{
  const uint64_t until_ns = myelin_bench_now_ns() + prepare->match_timeout_ns;
  if (strlen("ping_") + strlen(prepare->run) > TOPIC_NAME_MAX)
    return fail("the run's name is too long for a topic", 0, "at most 95 characters");
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL)
    return fail("out of memory", 0, NULL);
  link->message_bytes = (size_t)prepare->message_bytes;
  link->type_bytes = (link->message_bytes + 7) & ~(size_t)7;
  link->received = calloc(1, link->type_bytes);
  if (link->type_bytes != link->message_bytes)
    link->staging = calloc(1, link->type_bytes);
  int status = link->received == NULL ||
                       (link->staging == NULL && link->type_bytes != link->message_bytes)
                   ? fail("out of memory", 0, NULL)
                   : 0;
  if (status == 0) {
    link->domain = dds_create_domain(prepare->domain, configuration);
    if (link->domain < 0)
      status = fail("creating the domain", link->domain, "its own words are in this run's log");
  }
  if (status == 0)
    status = create_endpoints(link, prepare);
  if (status == 0)
    status = match(link, until_ns);
  if (status == 0)
    status = prove_transport(link);
  if (status != 0) {
    close_link(link);
    return status;
  }
  *context = link;
  return 0;
}

static int loan(void *context, size_t bytes, void **memory)
{
  struct link *link = context;
  if (bytes != link->message_bytes)
    return fail("a message of another size than prepared", 0, NULL);
  const dds_return_t code = dds_loan_sample(link->writer, &link->loan);
  if (code < 0)
    return fail("no memory to loan", code, "more chunks in the message's pool (options.pools)");
  *memory = link->loan;
  return 0;
}

static int publish_loan(void *context)
{
  struct link *link = context;
  const dds_return_t code = dds_write(link->writer, link->loan);
  return code < 0 ? fail("writing the loan", code, NULL) : 0;
}

static int publish(void *context, const void *message, size_t bytes)
{
  struct link *link = context;
  if (bytes != link->message_bytes)
    return fail("a message of another size than prepared", 0, NULL);
  if (link->staging != NULL) {
    /* Over shared memory dds_write copies the whole type, padding included: more than the
     * caller's message has. */
    memcpy(link->staging, message, bytes);
    message = link->staging;
  }
  const dds_return_t code = dds_write(link->writer, message);
  return code < 0 ? fail("writing", code, NULL) : 0;
}

static int wait_for_sample(void *context, uint64_t until_ns)
{
  struct link *link = context;
  const uint64_t now_ns = myelin_bench_now_ns();
  const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  const dds_duration_t left = left_ns < INT64_MAX ? (dds_duration_t)left_ns : DDS_INFINITY;
  const dds_return_t triggered = dds_waitset_wait(link->waitset, NULL, 0, left);
  return triggered < 0 ? fail("waiting", triggered, NULL) : triggered > 0;
}

/* Copies the sample out: into memory of our own, as dds_take of 0.10 copies in any case, and its
 * own "loans" of a reader are heap memory that it allocates. */
static int take(void *context, uint64_t until_ns, const void **message, size_t *bytes)
{
  struct link *link = context;
  (void)until_ns;
  dds_sample_info_t info;
  const dds_return_t count = dds_take(link->reader, &link->received, &info, 1, 1);
  if (count < 0)
    return fail("taking", count, NULL);
  if (count == 0 || !info.valid_data) /* invalid: the writer has gone */
    return 0;
  *message = link->received;
  *bytes = link->message_bytes;
  return 1;
}

const struct myelin_bench_link myelin_cyclonedds_link = {.open = open_link,
                                                         .loan = loan,
                                                         .publish_loan = publish_loan,
                                                         .publish = publish,
                                                         .wait = wait_for_sample,
                                                         .take = take,
                                                         .release = NULL,
                                                         .close = close_link};
