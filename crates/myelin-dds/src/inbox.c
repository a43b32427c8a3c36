/* A reader's history cache without a history: samples are passed on at once, in the receiving thread.
 *
 * CycloneDDS's own cache keeps samples by instance, looks for the reader's listener and waits for its turn.
 * The listener then asks for the sample and, without success, for the next. Here there is one instance, and the
 * listener gets the sample itself. */
#include <stdlib.h>

#include "bridge.h"
#include "cyclonedds.h"

struct inbox {
  struct dds_rhc base;
  const struct myelin_dds_listener *listener;
  struct ddsi_tkmap *instances;
  struct ddsi_tkmap_instance *instance; /* NULL until it has a reader */
};

static bool inbox_store(struct ddsi_rhc *restrict base,
                        const struct ddsi_writer_info *restrict writer,
                        struct ddsi_serdata *restrict sample,
                        struct ddsi_tkmap_instance *restrict instance)
{
  (void)instance;
  const struct inbox *inbox = (const struct inbox *)base;
  if (sample->kind != SDK_DATA)
    return true; /* it says that a writer has gone */
#ifdef DDS_HAS_LIFESPAN
  if (writer->lifespan_exp.v != DDS_NEVER &&
      ddsc.ddsrt_time_monotonic().v >= writer->lifespan_exp.v)
    return true;
#endif
  struct myelin_dds_received received = {.sample = ddsc.ddsi_serdata_ref(sample),
                                         .writer = writer->iid};
  received.message = myelin_dds_message(sample, &received.bytes, &received.sequence);
  return inbox->listener->received(inbox->listener->context, &received) != 0;
}

/* Discovery tells of each endpoint in a sample: CycloneDDS's own cache would keep them all, with all their
 * settings, and look through all for those that are new. */
static bool inbox_store_endpoint(struct ddsi_rhc *restrict base,
                                 const struct ddsi_writer_info *restrict writer,
                                 struct ddsi_serdata *restrict sample,
                                 struct ddsi_tkmap_instance *restrict instance)
{
  (void)writer;
  (void)instance;
  const struct myelin_dds_listener *listener = ((const struct inbox *)base)->listener;
  dds_builtintopic_endpoint_t data = {.topic_name = NULL};
  if (!ddsc.ddsi_serdata_to_sample(sample, &data, NULL, NULL))
    return true;
  const bool is_there = sample->kind == SDK_DATA;
  myelin_dds_visit_endpoint(&data, 0, is_there ? listener->appeared : listener->disappeared,
                            listener->context);
  ddsc.dds_free(data.topic_name);
  ddsc.dds_free(data.type_name);
  ddsc.dds_delete_qos(data.qos);
  return true;
}

static void inbox_unregister_writer(struct ddsi_rhc *restrict base,
                                    const struct ddsi_writer_info *restrict writer)
{
  (void)base;
  (void)writer;
}

static void inbox_relinquish_ownership(struct ddsi_rhc *restrict base, const uint64_t writer)
{
  (void)base;
  (void)writer;
}

static void inbox_set_qos(struct ddsi_rhc *base, const struct dds_qos *qos)
{
  (void)base;
  (void)qos;
}

static void inbox_free(struct ddsi_rhc *base)
{
  struct inbox *inbox = (struct inbox *)base;
  if (inbox->instance != NULL)
    ddsc.ddsi_tkmap_instance_unref(inbox->instances, inbox->instance);
  free(inbox);
}

/* There is nothing to read, take or wait for: the functions that the bridge calls never call these. */
static int32_t inbox_read(struct dds_rhc *base, bool lock, void **samples, dds_sample_info_t *infos,
                          uint32_t samples_max, uint32_t mask, dds_instance_handle_t instance,
                          struct dds_readcond *condition)
{
  (void)base;
  (void)lock;
  (void)samples;
  (void)infos;
  (void)samples_max;
  (void)mask;
  (void)instance;
  (void)condition;
  return 0;
}

static int32_t inbox_read_serialised(struct dds_rhc *base, bool lock, struct ddsi_serdata **samples,
                                     dds_sample_info_t *infos, uint32_t samples_max,
                                     uint32_t sample_states, uint32_t view_states,
                                     uint32_t instance_states, dds_instance_handle_t instance)
{
  (void)base;
  (void)lock;
  (void)samples;
  (void)infos;
  (void)samples_max;
  (void)sample_states;
  (void)view_states;
  (void)instance_states;
  (void)instance;
  return 0;
}

static bool inbox_add_condition(struct dds_rhc *base, struct dds_readcond *condition)
{
  (void)base;
  (void)condition;
  return false;
}

static void inbox_remove_condition(struct dds_rhc *base, struct dds_readcond *condition)
{
  (void)base;
  (void)condition;
}

static uint32_t inbox_lock_samples(struct dds_rhc *base)
{
  (void)base;
  return 0;
}

static dds_return_t inbox_associate(struct dds_rhc *base, struct dds_reader *reader,
                                    const struct ddsi_sertype *type, struct ddsi_tkmap *instances)
{
  (void)reader;
  struct inbox *inbox = (struct inbox *)base;
  inbox->instances = instances;
  inbox->instance = myelin_dds_hold_instance(type, instances);
  return DDS_RETCODE_OK;
}

/* Each endpoint is an instance, which CycloneDDS has while the endpoint is there. */
static dds_return_t inbox_associate_discovery(struct dds_rhc *base, struct dds_reader *reader,
                                              const struct ddsi_sertype *type,
                                              struct ddsi_tkmap *instances)
{
  (void)base;
  (void)reader;
  (void)type;
  (void)instances;
  return DDS_RETCODE_OK;
}

#define INBOX_OPS(STORE, ASSOCIATE)                                  \
  {.rhc_ops = {.store = (STORE),                                     \
               .unregister_wr = inbox_unregister_writer,             \
               .relinquish_ownership = inbox_relinquish_ownership,   \
               .set_qos = inbox_set_qos,                             \
               .free = inbox_free},                                  \
   .read = inbox_read,                                               \
   .take = inbox_read,                                               \
   .readcdr = inbox_read_serialised,                                 \
   .takecdr = inbox_read_serialised,                                 \
   .add_readcondition = inbox_add_condition,                         \
   .remove_readcondition = inbox_remove_condition,                   \
   .lock_samples = inbox_lock_samples,                               \
   .associate = (ASSOCIATE)}

static const struct dds_rhc_ops inbox_ops = INBOX_OPS(inbox_store, inbox_associate);
static const struct dds_rhc_ops discovery_ops =
    INBOX_OPS(inbox_store_endpoint, inbox_associate_discovery);

static struct dds_rhc *create_inbox(const struct dds_rhc_ops *ops,
                                    const struct myelin_dds_listener *listener)
{
  struct inbox *inbox = calloc(1, sizeof *inbox);
  if (inbox == NULL)
    return NULL;
  inbox->base.common.ops = ops;
  inbox->listener = listener;
  return &inbox->base;
}

struct dds_rhc *myelin_dds_inbox(const struct myelin_dds_listener *listener)
{
  return create_inbox(&inbox_ops, listener);
}

struct dds_rhc *myelin_dds_discovery_inbox(const struct myelin_dds_listener *listener)
{
  return create_inbox(&discovery_ops, listener);
}
