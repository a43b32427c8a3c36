/* A custom type, as rmw_cyclonedds has them. With "broken" it behaves as in versions up to 4.2.1 (issue 585 there): it
 * reports the size of a message without the CDR header, writes the header too, and expects the header. With "mended" it
 * does neither.
 *
 *     header pub|sub broken|mended [late]
 *
 * A publisher waits for a match and then writes messages of 0 to 99 bytes. "late" sets transient-local durability, with
 * which CycloneDDS serialises a message with its header apart. A subscriber prints "took all" after it has taken all
 * messages, whole and in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "dds/dds.h"
#include "dds/ddsc/dds_psmx.h"
#include "dds/ddsi/ddsi_protocol.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "dds/ddsi/ddsi_sertype.h"

enum { MESSAGES = 100, HEADER = 4 };

static bool is_broken;

/* A message is a sequence of bytes. */
struct message {
  uint32_t bytes;
  uint8_t data[MESSAGES];
};

/* A serialised message: header, length, bytes, and padding to a multiple of four. */
struct serialized {
  struct ddsi_serdata c;
  uint32_t bytes;
  uint8_t data[HEADER + sizeof(struct message) + 3];
};

static const uint8_t header[HEADER] = {0, 1, 0, 0};

static uint32_t body_bytes(const struct message *message) { return sizeof message->bytes + message->bytes; }
static uint32_t padded(uint32_t bytes) { return (bytes + 3) / 4 * 4; }

static struct serialized *make(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, uint32_t bytes) {
  struct serialized *made = calloc(1, sizeof *made);
  ddsi_serdata_init(&made->c, type, kind);
  made->bytes = padded(bytes);
  return made;
}

static struct ddsi_serdata *from_sample(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                        const void *sample) {
  struct serialized *made = make(type, kind, HEADER + body_bytes(sample));
  memcpy(made->data, header, HEADER);
  memcpy(made->data + HEADER, sample, body_bytes(sample));
  made->data[HEADER - 1] = (uint8_t)(made->bytes - HEADER - body_bytes(sample));
  return &made->c;
}

static struct ddsi_serdata *from_psmx(const struct ddsi_sertype *type, dds_loaned_sample_t *loan) {
  const uint32_t apart = is_broken ? 0 : HEADER, bytes = loan->metadata->sample_size;
  struct serialized *made = make(type, SDK_DATA, apart + bytes);
  if (apart + bytes > sizeof made->data) abort();
  memcpy(made->data, header, HEADER);
  memcpy(made->data + apart, loan->sample_ptr, bytes);
  return &made->c;
}

static dds_return_t get_serialized_size(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                        const void *sample, size_t *size, uint16_t *encoding) {
  (void)type, (void)kind;
  *size = body_bytes(sample);
  memcpy(encoding, header, sizeof *encoding);
  return DDS_RETCODE_OK;
}

static bool serialize_into(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, const void *sample,
                           void *to, size_t bytes) {
  (void)type, (void)kind, (void)bytes;
  if (is_broken) memcpy(to, header, HEADER);
  memcpy((uint8_t *)to + (is_broken ? HEADER : 0), sample, body_bytes(sample));
  return true;
}

static uint32_t get_size(const struct ddsi_serdata *data) { return ((const struct serialized *)data)->bytes; }
static bool eqkey(const struct ddsi_serdata *a, const struct ddsi_serdata *b) { return (void)a, (void)b, true; }
static void free_data(struct ddsi_serdata *data) { free(data); }

static void to_ser(const struct ddsi_serdata *data, size_t from, size_t bytes, void *to) {
  memcpy(to, ((const struct serialized *)data)->data + from, bytes);
}

static struct ddsi_serdata *to_ser_ref(const struct ddsi_serdata *data, size_t from, size_t bytes,
                                       ddsrt_iovec_t *to) {
  to->iov_base = ((struct serialized *)data)->data + from;
  to->iov_len = bytes;
  return ddsi_serdata_ref(data);
}

static void to_ser_unref(struct ddsi_serdata *data, const ddsrt_iovec_t *to) {
  (void)to, ddsi_serdata_unref(data);
}

static bool to_sample(const struct ddsi_serdata *data, void *sample, void **at, void *end) {
  (void)at, (void)end;
  const struct serialized *it = (const struct serialized *)data;
  if (memcmp(it->data, header, HEADER - 1) != 0) return false;
  memcpy(sample, it->data + HEADER, sizeof(struct message));
  return true;
}

static struct ddsi_serdata *to_untyped(const struct ddsi_serdata *data) {
  struct serialized *made = make(data->type, SDK_KEY, 0);
  made->c.type = NULL;
  return &made->c;
}

static bool untyped_to_sample(const struct ddsi_sertype *type, const struct ddsi_serdata *data, void *sample,
                              void **at, void *end) {
  return (void)type, (void)data, (void)sample, (void)at, (void)end, true;
}

static size_t print(const struct ddsi_sertype *type, const struct ddsi_serdata *data, char *to, size_t bytes) {
  (void)type, (void)data;
  return (size_t)snprintf(to, bytes, "message");
}

static void get_keyhash(const struct ddsi_serdata *data, struct ddsi_keyhash *hash, bool md5) {
  (void)data, (void)md5;
  memset(hash, 0, sizeof *hash);
}

/* The test receives nothing over the network. */
static struct ddsi_serdata *from_ser(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                     const struct ddsi_rdata *fragments, size_t bytes) {
  (void)type, (void)kind, (void)fragments, (void)bytes;
  abort();
}

/* The test requests no loans. */
static struct ddsi_serdata *from_loaned_sample(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                               const char *sample, dds_loaned_sample_t *loan, bool cdr) {
  (void)type, (void)kind, (void)sample, (void)loan, (void)cdr;
  abort();
}

static const struct ddsi_serdata_ops data_operations = {
    .eqkey = eqkey,
    .get_size = get_size,
    .from_ser = from_ser,
    .from_sample = from_sample,
    .to_ser = to_ser,
    .to_ser_ref = to_ser_ref,
    .to_ser_unref = to_ser_unref,
    .to_sample = to_sample,
    .to_untyped = to_untyped,
    .untyped_to_sample = untyped_to_sample,
    .free = free_data,
    .print = print,
    .get_keyhash = get_keyhash,
    .from_loaned_sample = from_loaned_sample,
    .from_psmx = from_psmx,
};

static void free_type(struct ddsi_sertype *type) { ddsi_sertype_fini(type), free(type); }
static void zero_samples(const struct ddsi_sertype *type, void *samples, size_t count) {
  (void)type;
  memset(samples, 0, count * sizeof(struct message));
}
static bool equal(const struct ddsi_sertype *a, const struct ddsi_sertype *b) { return (void)a, (void)b, true; }
static uint32_t hash(const struct ddsi_sertype *type) { return (void)type, 0; }

static const struct ddsi_sertype_ops type_operations = {
    .version = ddsi_sertype_v0,
    .free = free_type,
    .zero_samples = zero_samples,
    .equal = equal,
    .hash = hash,
    .get_serialized_size = get_serialized_size,
    .serialize_into = serialize_into,
};

static struct message message_of(uint32_t number) {
  struct message message = {.bytes = number};
  // Each message ends with a different byte, also different from what a plug-in may have left behind it.
  for (uint32_t at = 0; at < number; ++at) message.data[at] = (uint8_t)(at + 37 * number);
  return message;
}

static void publish_all(dds_entity_t writer) {
  dds_publication_matched_status_t matched = {0};
  while (matched.current_count == 0) {
    CHECK(dds_get_publication_matched_status(writer, &matched));
    dds_sleepfor(DDS_MSECS(1));
  }
  for (uint32_t number = 0; number < MESSAGES; ++number) {
    const struct message message = message_of(number);
    CHECK(dds_write(writer, &message));
  }
  getchar();
}

static void take_all(dds_entity_t reader) {
  for (uint32_t number = 0; number < MESSAGES;) {
    struct message message;
    void *sample = &message;
    dds_sample_info_t info;
    if (CHECK(dds_take(reader, &sample, &info, 1, 1)) == 0) {
      dds_sleepfor(DDS_MSECS(1));
      continue;
    }
    const struct message wanted = message_of(number);
    if (!info.valid_data || memcmp(&message, &wanted, body_bytes(&wanted)) != 0) {
      printf("message %u is not whole\n", number);
      exit(1);
    }
    ++number;
  }
  printf("took all\n");
}

int main(int count, char **arguments) {
  if (count < 3) return fprintf(stderr, "see header.c\n"), 2;
  const bool is_publisher = !strcmp(arguments[1], "pub");
  is_broken = !strcmp(arguments[2], "broken");
  const dds_entity_t participant = CHECK(dds_create_participant(0, NULL, NULL));
  struct ddsi_sertype *type = calloc(1, sizeof *type);
  ddsi_sertype_init_flags(type, "Message", &type_operations, &data_operations,
                          DDSI_SERTYPE_FLAG_TOPICKIND_NO_KEY);
  const dds_entity_t topic = CHECK(dds_create_topic_sertype(participant, "header", &type, NULL, NULL, NULL));
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  if (count > 3) dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
  const dds_entity_t endpoint = CHECK(is_publisher ? dds_create_writer(participant, topic, qos, NULL)
                                                   : dds_create_reader(participant, topic, qos, NULL));
  if (!dds_is_shared_memory_available(endpoint)) return fprintf(stderr, "not shared\n"), 1;
  (is_publisher ? publish_all : take_all)(endpoint);
  CHECK(dds_delete(participant));
  return 0;
}
