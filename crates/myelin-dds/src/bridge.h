/* The functions that the Rust side calls (src/ffi.rs declares them in Rust), and those shared by the bridge's
 * files.
 *
 * Functions that return an entity or a count return one of CycloneDDS's negative codes on failure. */
#ifndef MYELIN_DDS_BRIDGE_H
#define MYELIN_DDS_BRIDGE_H

#include "dds/dds.h"

struct dds_rhc;
struct myelin_dds_endpoint;
struct myelin_dds_listener;
struct ddsi_domaingv;
struct myelin_dds_remote;
struct ddsi_sertype;
struct ddsi_serdata;
struct ddsi_tkmap;
struct ddsi_tkmap_instance;

/* Called once, by any thread, when CycloneDDS releases a written sample of so many bytes (head and
 * payload). */
typedef void (*myelin_dds_released)(void *context, size_t bytes);

/* cyclonedds.c: finds CycloneDDS. */

/* Loads this library, by its path or by the name under which the loader finds it; NULL, or the reason of
 * a failure. Call it before everything else, in one thread at a time. */
const char *myelin_dds_load(const char *library);

/* The file of the loaded library, without links. */
const char *myelin_dds_file(void);

/* Calls `heard` with each line that CycloneDDS would write to stderr, in any of its threads. */
void myelin_dds_log(void (*heard)(const char *text));

/* blob.c: a type whose samples are messages: the encapsulation header and the bytes after it. */

/* Called when CycloneDDS has been found. */
void myelin_dds_types_found(void);

/* A new type of this name; NULL if there is no memory. */
struct ddsi_sertype *myelin_dds_type(const char *name);

/* A sample of `head` and `payload`, padded to whole words, with the padding noted in the header
 * (DDS-XTYPES 1.3, 7.6.3.1.2); NULL if there is no memory. `released` may be NULL. The sample is a copy.
 * Only with `in_place`, if it is large and of whole words, it refers to the payload until
 * myelin_dds_write returns. In place is for writers that keep nothing and send within the call: best
 * effort, with a configuration that does not send in another thread. */
struct ddsi_serdata *myelin_dds_sample(const struct ddsi_sertype *type, const void *head,
                                       size_t head_bytes, const void *payload,
                                       size_t payload_bytes, uint8_t in_place,
                                       myelin_dds_released released, void *context);

/* Returns the caller's reference after the write. */
void myelin_dds_written(struct ddsi_serdata *sample);

/* The only instance of the type's samples, which the caller must release; NULL without memory. Without a
 * reference to it CycloneDDS would make it for each sample, and wake a thread to free it. The calling
 * thread is awake. */
struct ddsi_tkmap_instance *myelin_dds_hold_instance(const struct ddsi_sertype *type,
                                                     struct ddsi_tkmap *instances);

/* A sample's message without the padding, and its number in the writer's count (from 1). */
const void *myelin_dds_message(const struct ddsi_serdata *sample, size_t *bytes,
                               uint64_t *sequence);

/* inbox.c: a reader's history cache, in CycloneDDS's terms; here it passes samples on. */

/* Calls `listener.received`. Freed with the reader; NULL if there is no memory. */
struct dds_rhc *myelin_dds_inbox(const struct myelin_dds_listener *listener);
/* The same for a reader of discovered endpoints: calls `listener.appeared` and `listener.disappeared`. */
struct dds_rhc *myelin_dds_discovery_inbox(const struct myelin_dds_listener *listener);

/* acknowledge.c: acknowledgements of a writer's readers. Writers and readers are named by their guids;
 * `type` is that of the writer. */

/* The next written sample requests an acknowledgement from all readers. */
void myelin_dds_request_acknowledgements(const struct ddsi_sertype *type, const uint8_t writer[16]);
/* Sets the interval of the first heartbeats after a sample, for all writers of the domain of `type`. */
void myelin_dds_set_heartbeats(const struct ddsi_sertype *type, int64_t interval_ns);
/* Releases the samples kept for the reader that has acknowledged least, and stops waiting for it until it
 * answers again; sets `reader`. 1, or 0 if the writer waits for no reader. */
int32_t myelin_dds_pass_over(const struct ddsi_sertype *type, const uint8_t writer[16],
                             uint8_t reader[16]);
/* 1 if written samples are kept until this reader has acknowledged them. */
int32_t myelin_dds_is_waited_for(const struct ddsi_sertype *type, const uint8_t writer[16],
                                 const uint8_t reader[16]);
/* 1 if the participant of a writer is there. CycloneDDS deletes it when its certificate or its permissions run
 * out, and says nothing. */
int32_t myelin_dds_has_participant(const struct ddsi_sertype *type, const uint8_t writer[16]);
/* Sets `has_identity` and `is_admitted` of the participant of another process. False if `domain` has none with
 * this guid. */
bool myelin_dds_remote(const struct ddsi_domaingv *domain, struct myelin_dds_remote *remote);
/* Ends the messages for a participant's lease; `type` is one of its domain. */
void myelin_dds_end_lease_messages(const struct ddsi_sertype *type, const uint8_t participant[16]);

/* bridge.c: domains, endpoints, and their matches. */

struct myelin_dds_settings {
  const char *topic;
  const char *type;
  const char *const *partitions; /* none: the default partition */
  uint32_t partitions_count;
  const void *user_data;
  size_t user_data_bytes;
  uint8_t reliable;
  uint8_t transient_local;
  int32_t depth;        /* KEEP_LAST; 0: KEEP_ALL */
  int32_t history;      /* of a transient-local writer: samples for late readers */
  int64_t block_max_ns; /* of a reliable writer */
};

/* A received sample. */
struct myelin_dds_received {
  struct ddsi_serdata *sample; /* to be released */
  const void *message;
  size_t bytes;
  uint64_t sequence;
  uint64_t writer; /* handle */
};

/* Called by CycloneDDS's threads, until the entity is deleted. */
struct myelin_dds_listener {
  void *context;
  /* For a reader: called with each sample, of which it becomes the owner. 0 if the sample must be kept
   * back, which only a reliable reader may return: CycloneDDS then stops receiving, and repeats the call
   * some time later. */
  uint8_t (*received)(void *context, const struct myelin_dds_received *received);
  /* For a discovery: an endpoint has come or changed; or gone, and only its guid is known. */
  void (*appeared)(void *context, const struct myelin_dds_endpoint *endpoint);
  void (*disappeared)(void *context, const struct myelin_dds_endpoint *endpoint);
  /* For a reader of participants: one has come, has changed, or has gone. */
  void (*changed)(void *context);
  void (*matched)(void *context, int32_t endpoint, uint32_t count);
  void (*incompatible)(void *context, int32_t endpoint, uint32_t policy);
};

/* An endpoint somewhere; the pointers are valid for the call. */
struct myelin_dds_endpoint {
  uint64_t handle; /* 0 if it was only discovered */
  const uint8_t *guid; /* 16 bytes */
  const char *topic;
  const char *type;
  const void *user_data;
  size_t user_data_bytes;
  int8_t reliable;        /* -1: not known */
  int8_t transient_local; /* -1: not known */
  int8_t by_topic;        /* alive only while its program says so for itself; -1: not known */
  int64_t deadline_ns;    /* DDS_INFINITY: none, or not known; here and below */
  int64_t lifespan_ns;
  int64_t lease_ns; /* of its liveliness */
};

typedef void (*myelin_dds_visit)(void *context, const struct myelin_dds_endpoint *endpoint);

/* A participant, as it announces itself before it has proved anything. A text is NULL if it is not there; the
 * pointers are valid for the call. */
struct myelin_dds_remote {
  const uint8_t *guid; /* 16 bytes */
  const char *host;    /* the name of its host */
  const char *process; /* the name of its process */
  const char *pid;
  const char *addresses; /* of its host */
  const void *user_data;
  size_t user_data_bytes;
  uint8_t has_identity; /* it has DDS Security */
  uint8_t is_admitted;  /* here, after a handshake that has checked its identity and its permissions */
};

typedef void (*myelin_dds_visit_remote)(void *context, const struct myelin_dds_remote *remote);

/* Returns 0 if other code has opened the domain in this process. */
int32_t myelin_dds_domain(uint32_t domain, const char *configuration);
/* A property of a participant, which stays on this side. */
struct myelin_dds_property {
  const char *name;
  const char *value;
};

int32_t myelin_dds_participant(uint32_t domain, const void *user_data, size_t user_data_bytes,
                               const struct myelin_dds_property *properties, size_t properties_count);
/* The participant keeps its lease up by its announcements alone, and not by messages that every other
 * participant acknowledges. Here and below, `topic` is any topic that the participant may have. */
int32_t myelin_dds_announce_only(int32_t participant, const char *topic);
/* Descriptors, owned by the caller, of the sockets for which only one thread of the domain waits. */
int32_t myelin_dds_sockets(int32_t participant, const char *topic, int32_t *sockets, int32_t sockets_max);
/* `type` is set to the type of the writer's samples, which lives as long as the writer, and `instance` to their
 * instance, which must be dropped before the writer is deleted. */
int32_t myelin_dds_writer(int32_t participant, const struct myelin_dds_settings *settings,
                          const struct myelin_dds_listener *listener,
                          const struct ddsi_sertype **type,
                          struct ddsi_tkmap_instance **instance);
void myelin_dds_drop_instance(const struct ddsi_sertype *type,
                              struct ddsi_tkmap_instance *instance);
int32_t myelin_dds_reader(int32_t participant, const struct myelin_dds_settings *settings,
                          const struct myelin_dds_listener *listener);
/* A reader of all discovered writers (or readers); it reports those that are there already within the call. */
int32_t myelin_dds_discovery(int32_t participant, uint8_t writers,
                             const struct myelin_dds_listener *listener);
int32_t myelin_dds_write(int32_t writer, struct ddsi_serdata *sample);
void myelin_dds_release(struct ddsi_serdata *sample);

/* Takes another reference to a sample, to be released as well. */
void myelin_dds_hold(struct ddsi_serdata *sample);
int32_t myelin_dds_guid(int32_t endpoint, uint8_t guid[16]);
int32_t myelin_dds_visit_matched(int32_t endpoint, uint8_t is_writer, myelin_dds_visit visit,
                                 void *context);
/* Calls `visit` with what CycloneDDS knows of an endpoint. */
void myelin_dds_visit_endpoint(const dds_builtintopic_endpoint_t *data, uint64_t handle,
                               myelin_dds_visit visit, void *context);
/* A reader of all participants; it reports changes by `listener.changed`. */
int32_t myelin_dds_participants(int32_t participant, const struct myelin_dds_listener *listener);
/* Visits the participants of other processes. `topic` is any topic that the own participant may have. */
int32_t myelin_dds_visit_participants(int32_t participant, int32_t participants, const char *topic,
                                      myelin_dds_visit_remote visit, void *context);
/* An endpoint or a participant announces other user data from now on. */
int32_t myelin_dds_set_user_data(int32_t entity, const void *user_data, size_t user_data_bytes);
int32_t myelin_dds_wait_for_acks(int32_t writer, int64_t limit_ns);
int32_t myelin_dds_delete(int32_t entity);
const char *myelin_dds_text(int32_t code);

#endif /* MYELIN_DDS_BRIDGE_H */
