/* A type of CycloneDDS 0.10 whose samples are messages, byte for byte: what a writer is given is
 * sent, what a reader takes is what came. CycloneDDS's own types serialise from and to C structs;
 * this one has neither, so a sample is copied once when it is written, or not at all if it need not be
 * kept, and once when it has arrived: its fragments into one block, or where the reader wants them.
 *
 * Types have no key: all samples of a topic are of one instance. */
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "cyclonedds.h"

enum { HEADER_BYTES = 4, OPTIONS_AT = 3, PADDING_MASK = 3 };

struct blob_type {
  struct ddsi_sertype base;
  const struct myelin_dds_listener *listener; /* of its one reader; NULL of writers */
};

struct blob {
  struct ddsi_serdata base;
  myelin_dds_released released; /* NULL for none */
  void *context;
  uint64_t sequence; /* of one that came from another process */
  uint64_t kept;     /* what the reader calls it that keeps its payload; 0 for none */
  size_t bytes;      /* of the message */
  size_t padded;     /* the same in whole words, as it is sent */
  /* What the message is after its head, in memory of somebody else's; NULL if all of it is here, or if
   * the reader keeps it. */
  const unsigned char *payload;
  size_t payload_bytes;
  unsigned char message[]; /* or its head alone */
};

/* Of smaller ones a copy costs less than to ask. */
enum { KEPT_BYTES_MIN = 16 << 10 };

static const struct blob *blob_of(const struct ddsi_serdata *base)
{
  return (const struct blob *)base;
}

static struct blob *blob_new(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                             size_t bytes, size_t payload_bytes)
{
  const size_t padded = (bytes + 3) & ~(size_t)3;
  if (padded < bytes || padded > UINT32_MAX)
    return NULL;
  struct blob *blob = malloc(sizeof *blob + padded - payload_bytes);
  if (blob == NULL)
    return NULL;
  ddsc.ddsi_serdata_init(&blob->base, type, kind);
  blob->base.hash = type->serdata_basehash; /* no key: one instance */
  blob->released = NULL;
  blob->context = NULL;
  blob->sequence = 0;
  blob->kept = 0;
  blob->bytes = bytes;
  blob->padded = padded;
  blob->payload = NULL;
  blob->payload_bytes = payload_bytes;
  return blob;
}

static bool blob_eqkey(const struct ddsi_serdata *one, const struct ddsi_serdata *other)
{
  (void)one;
  (void)other;
  return true;
}

static uint32_t blob_size(const struct ddsi_serdata *base)
{
  return (uint32_t)blob_of(base)->padded;
}

static void blob_free(struct ddsi_serdata *base)
{
  struct blob *blob = (struct blob *)base;
  if (blob->released != NULL)
    blob->released(blob->context, blob->bytes);
  free(blob);
}

/* Bytes of padding at the end of a message. */
static size_t padding_of(const unsigned char *message, size_t bytes)
{
  const size_t padding = message[OPTIONS_AT] & PADDING_MASK;
  return bytes % 4 == 0 && padding <= bytes - HEADER_BYTES ? padding : 0;
}

/* Takes the padding off. The options are ours to change: who takes the message sees them as they
 * were before the padding was told. */
static struct ddsi_serdata *blob_arrived(struct blob *blob)
{
  blob->bytes -= padding_of(blob->message, blob->bytes);
  blob->message[OPTIONS_AT] &= (unsigned char)~PADDING_MASK;
  return &blob->base;
}

/* The bytes from `begin` to `end` of a message; false if there is a gap. Fragments come in order and
 * may overlap. */
static bool gather(const struct nn_rdata *fragment, size_t begin, size_t end, unsigned char *to)
{
  for (size_t at = begin; at < end; fragment = fragment->nextfrag) {
    if (fragment == NULL || fragment->min > at)
      return false;
    if (fragment->maxp1 <= at)
      continue;
    const unsigned char *part =
        NN_RMSG_PAYLOADOFF(fragment->rmsg, NN_RDATA_PAYLOAD_OFF(fragment));
    const size_t length = (fragment->maxp1 < end ? fragment->maxp1 : end) - at;
    memcpy(to, part + (at - fragment->min), length);
    to += length;
    at += length;
  }
  return true;
}

int32_t myelin_dds_gather(const struct myelin_dds_arrived *arrived, size_t begin, size_t bytes,
                          void *to)
{
  return begin <= arrived->bytes && bytes <= arrived->bytes - begin &&
         gather(arrived->fragments, begin, begin + bytes, to);
}

/* Who has sent it: the header of the packet says which process, in the order of bytes that CycloneDDS
 * keeps guids in; of a packet that is somehow otherwise it is a writer that nobody knows. */
static void writer_of(const struct nn_rdata *fragment, const Data_DataFrag_common_t *header,
                      uint8_t writer[16])
{
  Header_t packet;
  memcpy(&packet, NN_RMSG_PAYLOAD(fragment->rmsg), sizeof packet);
  const ddsi_guid_t guid = {.prefix = packet.guid_prefix, .entityid = header->writerId};
  myelin_dds_guid_to(&guid, writer);
}

/* A message whose payload the reader has taken into memory of its own; NULL if it has not. */
static struct blob *blob_kept(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                              const struct nn_rdata *fragment,
                              const Data_DataFrag_common_t *header, size_t bytes)
{
  const struct myelin_dds_listener *listener = ((const struct blob_type *)type)->listener;
  if (listener == NULL || bytes < KEPT_BYTES_MIN || kind != SDK_DATA)
    return NULL;
  struct myelin_dds_arrived arrived = {.fragments = fragment};
  if (!gather(fragment, 0, sizeof arrived.front, arrived.front))
    return NULL;
  arrived.bytes = bytes - padding_of(arrived.front, bytes);
  arrived.front[OPTIONS_AT] &= (unsigned char)~PADDING_MASK;
  writer_of(fragment, header, arrived.writer);
  const uint64_t kept = listener->arrived(listener->context, &arrived);
  struct blob *blob = kept == 0 ? NULL : blob_new(type, kind, bytes, bytes);
  if (blob != NULL) {
    blob->kept = kept;
    blob->bytes = arrived.bytes;
  }
  return blob;
}

static struct ddsi_serdata *blob_from_fragments(const struct ddsi_sertype *type,
                                                enum ddsi_serdata_kind kind,
                                                const struct nn_rdata *fragment, size_t bytes)
{
  if (bytes < HEADER_BYTES || fragment == NULL)
    return NULL;
  /* The headers of a sample and of a fragment begin alike, already in our byte order. */
  Data_DataFrag_common_t header;
  memcpy(&header, NN_RMSG_PAYLOADOFF(fragment->rmsg, NN_RDATA_SUBMSG_OFF(fragment)),
         sizeof header);
  struct blob *blob = blob_kept(type, kind, fragment, &header, bytes);
  const bool is_kept = blob != NULL;
  if (!is_kept)
    blob = blob_new(type, kind, bytes, 0);
  if (blob == NULL)
    return NULL;
  blob->sequence = (uint64_t)fromSN(header.writerSN);
  if (is_kept)
    return &blob->base;
  if (!gather(fragment, 0, bytes, blob->message)) {
    free(blob);
    return NULL;
  }
  return blob_arrived(blob);
}

static struct ddsi_serdata *blob_from_parts(const struct ddsi_sertype *type,
                                            enum ddsi_serdata_kind kind,
                                            ddsrt_msg_iovlen_t count, const ddsrt_iovec_t *parts,
                                            size_t bytes)
{
  if (bytes < HEADER_BYTES)
    return NULL;
  struct blob *blob = blob_new(type, kind, bytes, 0);
  if (blob == NULL)
    return NULL;
  size_t at = 0;
  for (ddsrt_msg_iovlen_t part = 0; part < count && at < bytes; part++) {
    const size_t length = parts[part].iov_len < bytes - at ? parts[part].iov_len : bytes - at;
    memcpy(blob->message + at, parts[part].iov_base, length);
    at += length;
  }
  if (at < bytes) {
    free(blob);
    return NULL;
  }
  return blob_arrived(blob);
}

/* A key there is none of: 4 bytes of header. */
static struct blob *blob_key(const struct ddsi_sertype *type)
{
  struct blob *blob = blob_new(type, SDK_KEY, HEADER_BYTES, 0);
  if (blob != NULL)
    memcpy(blob->message, (const unsigned char[HEADER_BYTES]){0, 1, 0, 0}, HEADER_BYTES);
  return blob;
}

static struct ddsi_serdata *blob_from_keyhash(const struct ddsi_sertype *type,
                                              const struct ddsi_keyhash *keyhash)
{
  (void)keyhash;
  struct blob *blob = blob_key(type);
  return blob == NULL ? NULL : &blob->base;
}

/* There are no samples but messages, see myelin_dds_sample. */
static struct ddsi_serdata *blob_from_sample(const struct ddsi_sertype *type,
                                             enum ddsi_serdata_kind kind, const void *sample)
{
  (void)kind;
  (void)sample;
  struct blob *blob = blob_key(type);
  return blob == NULL ? NULL : &blob->base;
}

/* Of what is written; a message whose payload its reader keeps is sent to nobody. */
static void blob_to_bytes(const struct ddsi_serdata *base, size_t offset, size_t bytes,
                          void *buffer)
{
  const struct blob *blob = blob_of(base);
  assert(blob->kept == 0);
  const size_t here = blob->padded - blob->payload_bytes;
  const size_t before = offset >= here ? 0 : bytes < here - offset ? bytes : here - offset;
  memcpy(buffer, blob->message + offset, before);
  if (before < bytes)
    memcpy((unsigned char *)buffer + before, blob->payload + (offset + before - here),
           bytes - before);
}

/* A part of a message that is nowhere in one piece (its head and what follows) is copied. */
static struct ddsi_serdata *blob_lend(const struct ddsi_serdata *base, size_t offset,
                                      size_t bytes, ddsrt_iovec_t *part)
{
  const struct blob *blob = blob_of(base);
  assert(blob->kept == 0);
  const size_t here = blob->padded - blob->payload_bytes;
  part->iov_len = (ddsrt_iov_len_t)bytes;
  if (blob->payload == NULL) {
    part->iov_base = (void *)(blob->message + offset);
  } else if (offset >= here) {
    part->iov_base = (void *)(blob->payload + (offset - here));
  } else {
    part->iov_base = malloc(bytes);
    if (part->iov_base == NULL)
      abort(); /* as CycloneDDS itself when there is no memory: it asks for no answer */
    blob_to_bytes(base, offset, bytes, part->iov_base);
  }
  return ddsc.ddsi_serdata_ref(base);
}

static void blob_return(struct ddsi_serdata *base, const ddsrt_iovec_t *part)
{
  const struct blob *blob = blob_of(base);
  const unsigned char *lent = part->iov_base;
  if (blob->payload != NULL &&
      (lent < blob->payload || lent >= blob->payload + blob->payload_bytes))
    free(part->iov_base);
  ddsc.ddsi_serdata_unref(base);
}

static bool blob_to_sample(const struct ddsi_serdata *base, void *sample, void **buffer,
                           void *limit)
{
  (void)base;
  (void)sample;
  (void)buffer;
  (void)limit;
  return false;
}

static bool blob_key_to_sample(const struct ddsi_sertype *type, const struct ddsi_serdata *base,
                               void *sample, void **buffer, void *limit)
{
  (void)type;
  return blob_to_sample(base, sample, buffer, limit);
}

static struct ddsi_serdata *blob_to_key(const struct ddsi_serdata *base)
{
  struct blob *blob = blob_key(base->type);
  if (blob == NULL)
    return NULL;
  blob->base.type = NULL; /* it outlives the type */
  return &blob->base;
}

static size_t blob_print(const struct ddsi_sertype *type, const struct ddsi_serdata *base,
                         char *text, size_t size)
{
  (void)type;
  (void)base;
  if (size > 0)
    text[0] = '\0';
  return 0;
}

static void blob_keyhash(const struct ddsi_serdata *base, struct ddsi_keyhash *keyhash,
                         bool force_md5)
{
  (void)base;
  (void)force_md5;
  memset(keyhash, 0, sizeof *keyhash);
}

static const struct ddsi_serdata_ops blob_ops = {.eqkey = blob_eqkey,
                                                 .get_size = blob_size,
                                                 .from_ser = blob_from_fragments,
                                                 .from_ser_iov = blob_from_parts,
                                                 .from_keyhash = blob_from_keyhash,
                                                 .from_sample = blob_from_sample,
                                                 .to_ser = blob_to_bytes,
                                                 .to_ser_ref = blob_lend,
                                                 .to_ser_unref = blob_return,
                                                 .to_sample = blob_to_sample,
                                                 .to_untyped = blob_to_key,
                                                 .untyped_to_sample = blob_key_to_sample,
                                                 .free = blob_free,
                                                 .print = blob_print,
                                                 .get_keyhash = blob_keyhash};

static void type_free(struct ddsi_sertype *type)
{
  ddsc.ddsi_sertype_fini(type);
  free(type);
}

/* No samples but messages: these three are never called by what the bridge calls. */
static void type_zero(const struct ddsi_sertype *type, void *samples, size_t count)
{
  (void)type;
  (void)samples;
  (void)count;
}

static void type_realloc(void **pointers, const struct ddsi_sertype *type, void *old,
                         size_t old_count, size_t count)
{
  (void)type;
  (void)old;
  (void)old_count;
  for (size_t index = 0; index < count; index++)
    pointers[index] = NULL;
}

static void type_free_samples(const struct ddsi_sertype *type, void **pointers, size_t count,
                              dds_free_op_t operation)
{
  (void)type;
  (void)pointers;
  (void)count;
  (void)operation;
}

/* Called for types of one name and these operations alone. */
static bool type_equal(const struct ddsi_sertype *one, const struct ddsi_sertype *other)
{
  return ((const struct blob_type *)one)->listener == ((const struct blob_type *)other)->listener;
}

static uint32_t type_hash(const struct ddsi_sertype *type)
{
  (void)type;
  return 0; /* beside the hash of the name */
}

/* Its version is a function of CycloneDDS's. */
static struct ddsi_sertype_ops type_ops = {.free = type_free,
                                           .zero_samples = type_zero,
                                           .realloc_samples = type_realloc,
                                           .free_samples = type_free_samples,
                                           .equal = type_equal,
                                           .hash = type_hash};

void myelin_dds_types_found(void)
{
  type_ops.version = ddsc.ddsi_sertype_v0;
}

struct ddsi_sertype *myelin_dds_type(const char *name, const struct myelin_dds_listener *listener)
{
  struct blob_type *type = calloc(1, sizeof *type);
  if (type == NULL)
    return NULL;
  ddsc.ddsi_sertype_init_flags(&type->base, name, &type_ops, &blob_ops,
                               DDSI_SERTYPE_FLAG_TOPICKIND_NO_KEY);
  type->listener = listener;
  return &type->base;
}

struct ddsi_serdata *myelin_dds_sample(const struct ddsi_sertype *type, const void *head,
                                       size_t head_bytes, const void *payload,
                                       size_t payload_bytes, myelin_dds_released released,
                                       void *context)
{
  if (head_bytes + payload_bytes < HEADER_BYTES)
    return NULL;
  struct blob *blob = blob_new(type, SDK_DATA, head_bytes + payload_bytes, 0);
  if (blob == NULL)
    return NULL;
  blob->released = released;
  blob->context = context;
  memcpy(blob->message, head, head_bytes);
  memcpy(blob->message + head_bytes, payload, payload_bytes);
  memset(blob->message + blob->bytes, 0, blob->padded - blob->bytes);
  if (blob->padded != blob->bytes) { /* else a message tells of padding of its own, if any */
    blob->message[OPTIONS_AT] &= (unsigned char)~PADDING_MASK;
    blob->message[OPTIONS_AT] |= (unsigned char)(blob->padded - blob->bytes);
  }
  return &blob->base;
}

int32_t myelin_dds_write_in_place(int32_t writer, const struct ddsi_sertype *type,
                                  const void *head, size_t head_bytes, const void *payload,
                                  size_t payload_bytes)
{
  const size_t bytes = head_bytes + payload_bytes;
  if (bytes < HEADER_BYTES || bytes % 4 != 0)
    return DDS_RETCODE_BAD_PARAMETER;
  struct blob *blob = blob_new(type, SDK_DATA, bytes, payload_bytes);
  if (blob == NULL)
    return DDS_RETCODE_OUT_OF_RESOURCES;
  memcpy(blob->message, head, head_bytes);
  blob->payload = payload;
  struct ddsi_serdata *sample = ddsc.ddsi_serdata_ref(&blob->base);
  const dds_return_t code = ddsc.dds_writecdr(writer, sample);
  /* A best-effort writer sends within the call, and keeps nothing. If something else had it still, its
   * memory would not be the caller's to give back. */
  while (ddsrt_atomic_ld32(&sample->refc) > 1)
    (void)sched_yield();
  ddsc.ddsi_serdata_unref(sample);
  return code;
}

void myelin_dds_message(const struct ddsi_serdata *sample, struct myelin_dds_taken *taken)
{
  const struct blob *blob = blob_of(sample);
  taken->message = blob->message;
  taken->bytes = blob->bytes;
  taken->sequence = blob->sequence;
  taken->kept = blob->kept;
}
