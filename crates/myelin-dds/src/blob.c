/* A type of CycloneDDS 0.10 whose samples are messages, byte for byte: a writer sends the bytes that it
 * gets, and a reader takes the bytes that have come. CycloneDDS's own types serialise from and to C
 * structs. This type has no structs, so a sample is copied once when it is written and once when it has
 * arrived (its fragments into one block). A large sample that need not be kept is sent from its place.
 *
 * Types have no key: all samples of a topic belong to one instance. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "cyclonedds.h"

enum { HEADER_BYTES = 4, OPTIONS_AT = 3, PADDING_MASK = 3 };

/* More than a datagram carries: a sent part that begins in the head ends within so many bytes. */
enum { FRONT_BYTES = 1 << 16 };
/* Of a smaller sample, most would be copied nevertheless. */
enum { IN_PLACE_MIN = 2 * FRONT_BYTES };

struct blob {
  struct ddsi_serdata base;
  myelin_dds_released released; /* NULL for none */
  void *context;
  uint64_t sequence; /* for a sample from another process */
  size_t bytes;      /* of the message */
  size_t padded;     /* of the message in whole words, as it is sent */
  /* For a sample sent from its place: the payload, which the writing program owns, and how many bytes there
   * are in front of it. NULL for all others. */
  const unsigned char *payload;
  size_t head_bytes;
  unsigned char message[]; /* or its first FRONT_BYTES */
};

static const struct blob *blob_of(const struct ddsi_serdata *base)
{
  return (const struct blob *)base;
}

/* A sample with room for so many bytes of the message. */
static struct blob *blob_with_room(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                   size_t bytes, size_t room)
{
  const size_t padded = (bytes + 3) & ~(size_t)3;
  if (padded < bytes || padded > UINT32_MAX)
    return NULL;
  struct blob *blob = malloc(sizeof *blob + room);
  if (blob == NULL)
    return NULL;
  ddsc.ddsi_serdata_init(&blob->base, type, kind);
  blob->base.hash = type->serdata_basehash; /* no key: one instance */
  blob->released = NULL;
  blob->context = NULL;
  blob->sequence = 0;
  blob->bytes = bytes;
  blob->padded = padded;
  blob->payload = NULL;
  blob->head_bytes = 0;
  return blob;
}

static struct blob *blob_new(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                             size_t bytes)
{
  return blob_with_room(type, kind, bytes, (bytes + 3) & ~(size_t)3);
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

/* Removes the padding. We may change the options: the receiver of the message sees them as they were before
 * the padding was noted there. */
static struct ddsi_serdata *blob_arrived(struct blob *blob)
{
  const size_t padding = blob->message[OPTIONS_AT] & PADDING_MASK;
  blob->message[OPTIONS_AT] &= (unsigned char)~PADDING_MASK;
  if (blob->bytes % 4 == 0 && padding <= blob->bytes - HEADER_BYTES)
    blob->bytes -= padding;
  return &blob->base;
}

static struct ddsi_serdata *blob_from_fragments(const struct ddsi_sertype *type,
                                                enum ddsi_serdata_kind kind,
                                                const struct nn_rdata *fragment, size_t bytes)
{
  if (bytes < HEADER_BYTES || fragment == NULL)
    return NULL;
  struct blob *blob = blob_new(type, kind, bytes);
  if (blob == NULL)
    return NULL;
  /* The headers of a sample and of a fragment begin in the same way, already in our byte order. */
  Data_DataFrag_common_t header;
  memcpy(&header, NN_RMSG_PAYLOADOFF(fragment->rmsg, NN_RDATA_SUBMSG_OFF(fragment)),
         sizeof header);
  blob->sequence = (uint64_t)fromSN(header.writerSN);
  /* Fragments come in order and may overlap. */
  size_t at = 0;
  for (; fragment != NULL; fragment = fragment->nextfrag) {
    if (fragment->min > at || fragment->maxp1 > bytes) {
      free(blob);
      return NULL;
    }
    if (fragment->maxp1 <= at)
      continue;
    const unsigned char *part =
        NN_RMSG_PAYLOADOFF(fragment->rmsg, NN_RDATA_PAYLOAD_OFF(fragment));
    memcpy(blob->message + at, part + (at - fragment->min), fragment->maxp1 - at);
    at = fragment->maxp1;
  }
  if (at < bytes) {
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
  struct blob *blob = blob_new(type, kind, bytes);
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

/* There is no key: 4 bytes of header. */
static struct blob *blob_key(const struct ddsi_sertype *type)
{
  struct blob *blob = blob_new(type, SDK_KEY, HEADER_BYTES);
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

/* All samples are messages, see myelin_dds_sample. */
static struct ddsi_serdata *blob_from_sample(const struct ddsi_sertype *type,
                                             enum ddsi_serdata_kind kind, const void *sample)
{
  (void)kind;
  (void)sample;
  struct blob *blob = blob_key(type);
  return blob == NULL ? NULL : &blob->base;
}

/* The bytes to send, from `offset` on, as far as they lie in one piece. */
static const unsigned char *blob_at(const struct blob *blob, size_t offset)
{
  if (blob->payload == NULL || offset < blob->head_bytes)
    return blob->message + offset;
  return blob->payload + (offset - blob->head_bytes);
}

static void blob_to_bytes(const struct ddsi_serdata *base, size_t offset, size_t bytes,
                          void *buffer)
{
  const struct blob *blob = blob_of(base);
  size_t head = 0;
  if (blob->payload != NULL && offset < blob->head_bytes)
    head = bytes < blob->head_bytes - offset ? bytes : blob->head_bytes - offset;
  memcpy(buffer, blob_at(blob, offset), head);
  memcpy((unsigned char *)buffer + head, blob_at(blob, offset + head), bytes - head);
}

static struct ddsi_serdata *blob_lend(const struct ddsi_serdata *base, size_t offset,
                                      size_t bytes, ddsrt_iovec_t *part)
{
  const struct blob *blob = blob_of(base);
  assert(blob->payload == NULL || offset >= blob->head_bytes || bytes <= FRONT_BYTES - offset);
  part->iov_base = (void *)blob_at(blob, offset);
  part->iov_len = (ddsrt_iov_len_t)bytes;
  return ddsc.ddsi_serdata_ref(base);
}

static void blob_return(struct ddsi_serdata *base, const ddsrt_iovec_t *part)
{
  (void)part;
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
  blob->base.type = NULL; /* the sample outlives the type */
  return &blob->base;
}

struct ddsi_tkmap_instance *myelin_dds_hold_instance(const struct ddsi_sertype *type,
                                                     struct ddsi_tkmap *instances)
{
  struct blob *blob = blob_key(type);
  if (blob == NULL)
    return NULL;
  struct ddsi_tkmap_instance *instance =
      ddsc.ddsi_tkmap_lookup_instance_ref(instances, &blob->base);
  ddsc.ddsi_serdata_unref(&blob->base);
  return instance;
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

/* All samples are messages: the functions that the bridge calls never call these three. */
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

/* Called only for types with the same name and these operations: they are equal. */
static bool type_equal(const struct ddsi_sertype *one, const struct ddsi_sertype *other)
{
  (void)one;
  (void)other;
  return true;
}

static uint32_t type_hash(const struct ddsi_sertype *type)
{
  (void)type;
  return 0; /* added to the hash of the name */
}

/* CycloneDDS's function for the version of the operations. */
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

struct ddsi_sertype *myelin_dds_type(const char *name)
{
  struct ddsi_sertype *type = calloc(1, sizeof *type);
  if (type != NULL)
    ddsc.ddsi_sertype_init_flags(type, name, &type_ops, &blob_ops,
                                 DDSI_SERTYPE_FLAG_TOPICKIND_NO_KEY);
  return type;
}

struct ddsi_serdata *myelin_dds_sample(const struct ddsi_sertype *type, const void *head,
                                       size_t head_bytes, const void *payload,
                                       size_t payload_bytes, uint8_t in_place,
                                       myelin_dds_released released, void *context)
{
  const size_t bytes = head_bytes + payload_bytes;
  if (bytes < HEADER_BYTES)
    return NULL;
  /* The padding would be behind the payload, where the memory is not ours. */
  const bool lies = in_place && bytes % 4 == 0 && head_bytes < FRONT_BYTES && bytes >= IN_PLACE_MIN;
  struct blob *blob = lies ? blob_with_room(type, SDK_DATA, bytes, FRONT_BYTES)
                           : blob_new(type, SDK_DATA, bytes);
  if (blob == NULL)
    return NULL;
  blob->released = released;
  blob->context = context;
  memcpy(blob->message, head, head_bytes);
  memcpy(blob->message + head_bytes, payload, lies ? FRONT_BYTES - head_bytes : payload_bytes);
  if (lies) {
    blob->payload = payload;
    blob->head_bytes = head_bytes;
    return &blob->base;
  }
  memset(blob->message + blob->bytes, 0, blob->padded - blob->bytes);
  if (blob->padded != blob->bytes) { /* otherwise the message notes its own padding, if any */
    blob->message[OPTIONS_AT] &= (unsigned char)~PADDING_MASK;
    blob->message[OPTIONS_AT] |= (unsigned char)(blob->padded - blob->bytes);
  }
  return &blob->base;
}

void myelin_dds_written(struct ddsi_serdata *sample)
{
  /* A best-effort writer sends within the call and keeps nothing: the caller owns the payload again. */
  assert(blob_of(sample)->payload == NULL || ddsrt_atomic_ld32(&sample->refc) == 1);
  ddsc.ddsi_serdata_unref(sample);
}

const void *myelin_dds_message(const struct ddsi_serdata *sample, size_t *bytes,
                               uint64_t *sequence)
{
  const struct blob *blob = blob_of(sample);
  *bytes = blob->bytes;
  *sequence = blob->sequence;
  return blob->message;
}
