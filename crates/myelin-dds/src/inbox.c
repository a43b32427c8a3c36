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

static const struct dds_rhc_ops inbox_ops = {
    .rhc_ops = {.store = inbox_store,
                .unregister_wr = inbox_unregister_writer,
                .relinquish_ownership = inbox_relinquish_ownership,
                .set_qos = inbox_set_qos,
                .free = inbox_free},
    .read = inbox_read,
    .take = inbox_read,
    .readcdr = inbox_read_serialised,
    .takecdr = inbox_read_serialised,
    .add_readcondition = inbox_add_condition,
    .remove_readcondition = inbox_remove_condition,
    .lock_samples = inbox_lock_samples,
    .associate = inbox_associate};

struct dds_rhc *myelin_dds_inbox(const struct myelin_dds_listener *listener)
{
  struct inbox *inbox = calloc(1, sizeof *inbox);
  if (inbox == NULL)
    return NULL;
  inbox->base.common.ops = &inbox_ops;
  inbox->listener = listener;
  return &inbox->base;
}
