/* The adaptor: one role of a round trip or of a stream over CycloneDDS, in the form of the kit's
 * table.
 *
 * Ping writes topic `ping_<run>` and reads `pong_<run>`, pong the other way round. There are two
 * topics, not one topic in two partitions, because 0.10 ignores partitions over shared memory and
 * each side would then read its own writes. Of a stream there is `ping_<run>` alone, or if it has
 * several topics, `ping0_<run>`, `ping1_<run>` …, each with a writer and a reader of its own; one
 * waitset serves all readers. In the run's name `_` stands for `-`, which CycloneDDS does not allow
 * and which the protocol's names have instead of `_`.
 *
 * Quality of service of a stream, with `depth` of the scenario:
 *
 *   best effort   KEEP_LAST(depth): a reader that lags loses its oldest samples
 *   reliable      KEEP_ALL, and the reader takes in no more than `depth` samples. With KEEP_LAST a
 *                 reliable writer of 0.10 overwrites what is not acknowledged yet, and a reliable
 *                 reader what is not taken yet: nobody is told. A KEEP_ALL writer of 0.10 heeds no
 *                 resource limit; it blocks when Watermarks/WhcHigh bytes are unacknowledged. A
 *                 full KEEP_ALL reader holds up the thread that receives, 10 ms at a time, so that
 *                 the rest stays in the socket's buffer and unacknowledged.
 *
 * The type is `struct { unsigned long long sequence; octet payload[N]; }` without `payload` if N
 * is 0: its memory layout is the kit's message, byte for byte. The descriptor is what idlc
 * generates for it (with -t: the XTypes information, which no two programs of one type need, is
 * left out), made here so that any N works without a code generator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "link.h"
#include "myelin_roudi.h"
#include "security.h"
#include "version.h"

/* Samples that writer and reader of a round trip keep. One message is in flight, up to 5 when
 * answers fail to come (then the kit gives up), so 16 never overwrites one; and it is the capacity
 * that CycloneDDS gives the iceoryx queue, so it bounds how many chunks of shared memory a
 * direction can hold. */
enum { HISTORY_DEPTH = 16 };

/* How long a write of a round trip may block on a full writer history: RoundtripPing's value. */
static const dds_duration_t WRITE_BLOCKS_MAX = DDS_SECS(10);

/* How long the end of a reliable stream waits for what is under way. */
static const dds_duration_t ACKNOWLEDGED_MAX = DDS_SECS(5);

/* Longest name of a topic: iceoryx 2 cuts the rest off, and two names that differ only beyond it
 * would be one topic. */
enum { TOPIC_NAME_MAX = 100 };

/* Reports `what` and, if it is an error code of DDS, its text. Returns -1. */
int myelin_cyclonedds_fail(const char *what, dds_return_t code, const char *remedy)
{
  return myelin_bench_fail(remedy, "CycloneDDS: %s%s%s", what, code < 0 ? ": " : "",
                           code < 0 ? dds_strretcode(-code) : "");
}

/* What has been written may not have arrived, and goes with its writer. */
static void await_acknowledgements(const struct link *link)
{
  const dds_time_t until = dds_time() + ACKNOWLEDGED_MAX;
  for (uint32_t index = 0; index < link->topics; index++) {
    const dds_duration_t left = until - dds_time();
    (void)dds_wait_for_acks(link->writers[index], left > 0 ? left : 0);
  }
}

static void close_link(void *context)
{
  struct link *link = context;
  if (link == NULL)
    return;
  if (link->is_reliable_stream)
    await_acknowledgements(link);
  if (link->domain > 0)
    (void)dds_delete(link->domain);
  free(link->writers);
  free(link->readers);
  free(link->ready);
  free(link->received);
  free(link->staging);
  free(link);
}

static dds_entity_t create_topic(dds_entity_t participant, const struct link *link,
                                 const char *run, const char *direction, uint32_t index)
{
  const uint32_t payload_bytes = (uint32_t)(link->message_bytes - 8);
  const uint32_t array[] = {DDS_OP_ADR | DDS_OP_TYPE_8BY, 0,
                            DDS_OP_ADR | DDS_OP_TYPE_ARR | DDS_OP_SUBTYPE_1BY, 8, payload_bytes,
                            DDS_OP_RTS};
  const uint32_t number_only[] = {DDS_OP_ADR | DDS_OP_TYPE_8BY, 0, DDS_OP_RTS};
  char type_name[32];
  char topic_name[TOPIC_NAME_MAX + 1];
  (void)snprintf(type_name, sizeof type_name, "myelin::Message%" PRIu32, payload_bytes);
  if (link->topics > 1)
    (void)snprintf(topic_name, sizeof topic_name, "%s%" PRIu32 "_%s", direction, index, run);
  else
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
  const bool reliable = !prepare->one_way || prepare->reliable;
  dds_qos_t *qos = dds_create_qos();
  if (!reliable)
    dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
  else
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE,
                         prepare->one_way ? DDS_INFINITY : WRITE_BLOCKS_MAX);
  const int32_t depth = prepare->one_way ? (int32_t)prepare->depth : HISTORY_DEPTH;
  if (prepare->reliable) {
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    if (!prepare->is_ping)
      dds_qset_resource_limits(qos, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  } else {
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, depth);
  }
  dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
  return qos;
}

static int create_writer(struct link *link, dds_entity_t participant, const dds_qos_t *qos,
                         const struct myelin_bench_prepare *prepare, uint32_t index)
{
  const char *direction = prepare->is_ping ? "ping" : "pong";
  const dds_entity_t topic = create_topic(participant, link, prepare->run, direction, index);
  if (topic < 0)
    return fail("creating the outgoing topic", topic, NULL);
  link->writers[index] = dds_create_writer(participant, topic, qos, NULL);
  return link->writers[index] < 0 ? fail("creating the writer", link->writers[index], NULL) : 0;
}

static int create_reader(struct link *link, dds_entity_t participant, const dds_qos_t *qos,
                         const struct myelin_bench_prepare *prepare, uint32_t index)
{
  const char *direction = prepare->is_ping ? "pong" : "ping";
  const dds_entity_t topic = create_topic(participant, link, prepare->run, direction, index);
  if (topic < 0)
    return fail("creating the incoming topic", topic, NULL);
  link->readers[index] = dds_create_reader(participant, topic, qos, NULL);
  if (link->readers[index] < 0)
    return fail("creating the reader", link->readers[index], NULL);
  const dds_entity_t condition = dds_create_readcondition(link->readers[index], DDS_ANY_STATE);
  dds_return_t code = condition;
  if (code >= 0)
    code = dds_waitset_attach(link->waitset, condition, (dds_attach_t)index);
  return code < 0 ? fail("attaching to the waitset", code, NULL) : 0;
}

static int create_readers(struct link *link, dds_entity_t participant, const dds_qos_t *qos,
                          const struct myelin_bench_prepare *prepare)
{
  link->readers = calloc(link->topics, sizeof *link->readers);
  link->ready = calloc(link->topics, sizeof *link->ready);
  if (link->readers == NULL || link->ready == NULL)
    return fail("out of memory", 0, NULL);
  link->waitset = dds_create_waitset(participant);
  if (link->waitset < 0)
    return fail("creating the waitset", link->waitset, NULL);
  for (uint32_t index = 0; index < link->topics; index++)
    if (create_reader(link, participant, qos, prepare, index) != 0)
      return -1;
  return 0;
}

static int create_writers(struct link *link, dds_entity_t participant, const dds_qos_t *qos,
                          const struct myelin_bench_prepare *prepare)
{
  link->writers = calloc(link->topics, sizeof *link->writers);
  if (link->writers == NULL)
    return fail("out of memory", 0, NULL);
  for (uint32_t index = 0; index < link->topics; index++)
    if (create_writer(link, participant, qos, prepare, index) != 0)
      return -1;
  link->writer = link->writers[0];
  link->is_reliable_stream = prepare->reliable;
  return 0;
}

static int create_endpoints(struct link *link, const struct myelin_bench_prepare *prepare)
{
  const dds_entity_t participant = dds_create_participant(prepare->domain, NULL, NULL);
  if (participant < 0)
    return fail("creating the participant", participant, myelin_cyclonedds_refusal(prepare));
  dds_qos_t *qos = create_qos(prepare);
  /* First what receives: whoever finds our writer finds our reader too. */
  int status = 0;
  if (prepare->subscribes)
    status = create_readers(link, participant, qos, prepare);
  if (status == 0 && prepare->publishes)
    status = create_writers(link, participant, qos, prepare);
  dds_delete_qos(qos);
  return status;
}

/* CycloneDDS falls back to UDP without a word when shared memory cannot be used. */
static int prove_transport(const struct link *link, const char *system)
{
  uint32_t sharing = 0;
  for (uint32_t index = 0; index < link->topics; index++) {
    sharing += link->writers != NULL && myelin_cyclonedds_shares(link->writers[index]);
    sharing += link->readers != NULL && myelin_cyclonedds_shares(link->readers[index]);
  }
  if (!myelin_cyclonedds_is_shared_memory(system))
    return sharing > 0 ? fail("uses shared memory although it is switched off", 0, NULL) : 0;
  const uint32_t ends = (link->writers != NULL) + (link->readers != NULL);
  if (sharing < ends * link->topics)
    return fail("a reader or writer does not use shared memory", 0,
                "needs a libddsc with shared memory, as in Debian's packages; with several topics, "
                "use fewer");
  return 0;
}

static int create_domain(struct link *link, const struct myelin_bench_prepare *prepare)
{
  char *xml = NULL;
  int status = myelin_cyclonedds_configure(prepare, &xml);
  if (status == 0) {
    link->domain = dds_create_domain(prepare->domain, xml);
    if (link->domain < 0)
      status = fail("creating the domain", link->domain, "its own message is in this run's log");
  }
  free(xml);
  return status;
}

static int allocate(struct link *link, const char *system)
{
  const bool copies = !myelin_cyclonedds_reads_in_place(system);
  const bool pads = link->type_bytes != link->message_bytes;
  if (copies)
    link->received = calloc(1, link->type_bytes);
  if (pads)
    link->staging = calloc(1, link->type_bytes);
  const bool is_out = (copies && link->received == NULL) || (pads && link->staging == NULL);
  return is_out ? fail("out of memory", 0, NULL) : 0;
}

static int open_link(const struct myelin_bench_prepare *prepare, void **context)
{
  if (strlen("ping4294967295_") + strlen(prepare->run) > TOPIC_NAME_MAX)
    return fail("the run's name is too long for a topic", 0, "at most 85 characters");
  /* iceoryx would wait for RouDi for a minute and then abort the process. */
  if (myelin_cyclonedds_is_iceoryx(prepare->system) && myelin_roudi_expect() != 0)
    return -1;
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL)
    return fail("out of memory", 0, NULL);
  link->topics = prepare->topics;
  link->message_bytes = (size_t)prepare->message_bytes;
  link->type_bytes = (link->message_bytes + 7) & ~(size_t)7;
  int status = allocate(link, prepare->system);
  if (status == 0)
    status = create_domain(link, prepare);
  if (status == 0)
    status = create_endpoints(link, prepare);
  if (status == 0)
    status = myelin_cyclonedds_match(link, prepare);
  if (status == 0)
    status = prove_transport(link, prepare->system);
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
  const dds_return_t code = myelin_cyclonedds_request_loan(link->writer, &link->loan);
  if (code < 0)
    return fail("no memory to loan", code, "set more chunks in the message's pool (options.pools)");
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
  if (link->ready_next < link->ready_count)
    return 1; /* of several topics, one that the last wait has told of */
  const uint64_t left_ns = myelin_bench_left_ns(until_ns);
  const dds_duration_t left = left_ns < INT64_MAX ? (dds_duration_t)left_ns : DDS_INFINITY;
  const dds_return_t triggered =
      dds_waitset_wait(link->waitset, link->ready, link->topics, left);
  if (triggered < 0)
    return fail("waiting", triggered, NULL);
  link->ready_next = 0;
  link->ready_count = triggered < (dds_return_t)link->topics ? (uint32_t)triggered : link->topics;
  return triggered > 0;
}

static void release(void *context)
{
  struct link *link = context;
  if (link->lent != NULL)
    (void)dds_return_loan(link->lender, &link->lent, 1);
  link->lent = NULL;
}

/* Copies the sample into memory of our own, or takes it where it lies. Of several topics each that is
 * ready is asked for one sample; what is left of it is told of by the next wait. */
static int take(void *context, uint64_t until_ns, const void **message, size_t *bytes)
{
  struct link *link = context;
  (void)until_ns;
  if (link->ready_next == link->ready_count)
    return 0;
  const dds_entity_t reader = link->readers[link->ready[link->ready_next++]];
  void *sample = link->received;
  dds_sample_info_t info;
  const dds_return_t count = dds_take(reader, &sample, &info, 1, 1);
  if (count < 0)
    return fail("taking", count, NULL);
  if (count > 0 && link->received == NULL) {
    link->lent = sample;
    link->lender = reader;
  }
  if (count == 0 || !info.valid_data) { /* invalid: the writer has gone */
    release(link);
    return 0;
  }
  *message = sample;
  *bytes = link->message_bytes;
  return 1;
}

static void select_topic(void *context, uint32_t topic)
{
  struct link *link = context;
  link->writer = link->writers[topic];
}

const struct myelin_bench_link myelin_cyclonedds_link = {MYELIN_BENCH_SIZE(link),
                                                         .open = open_link,
                                                         .loan = loan,
                                                         .publish_loan = publish_loan,
                                                         .publish = publish,
                                                         .wait = wait_for_sample,
                                                         .take = take,
                                                         .release = release,
                                                         .close = close_link,
                                                         .select = select_topic};
