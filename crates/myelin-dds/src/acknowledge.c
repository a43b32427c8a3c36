/* What CycloneDDS has no calls for: acknowledgements of a writer's readers, messages that everybody acknowledges,
 * and participants that are not admitted.
 *
 * CycloneDDS 0.10 asks for acknowledgements when a writer's unacknowledged bytes pass half of its
 * watermark, or when it has been silent for a heartbeat's interval; it counts no samples. A publisher
 * that counts them would fill its window, fall silent, and wait for that interval. So the owner of the
 * window decides when to ask.
 *
 * For a reader that does not answer, the writer keeps all samples in memory. CycloneDDS has a state for
 * readers that it does not wait for: their acknowledged number is the largest possible one. It puts
 * readers that are about to go into this state, and takes a reader that answers out of it
 * (handle_AckNack). Here the publisher decides to put a reader into it.
 *
 * A participant announces itself, and sends reliable messages besides, which keep up its lease and that of its
 * writers with automatic liveliness. Myelin's writers have no such lease. Each message is acknowledged by every
 * other participant, so that their number grows with the square of the participants.
 *
 * Heartbeats follow one interval for all writers of a domain, and those of discovery are readers and writers by
 * hundreds: at the interval that data need, every announcement would be acknowledged by every participant at
 * once, and sent again while it is under way. So the interval is longer while endpoints come.
 *
 * DDS has no message for a refusal. A participant that is refused stays known by what it announces of itself, with
 * its identity, and has no match with ours.
 *
 * The rest follows CycloneDDS's own code: the writer is looked up by its guid while the thread is
 * awake, so that it cannot be freed, and changed under its lock. */
#include <string.h>

#include "bridge.h"
#include "cyclonedds.h"

/* Longer than any heartbeat's interval, whenever the host has started. */
#define LONG_AGO (-(INT64_MAX / 2))

/* Converts a guid to CycloneDDS's byte order. */
static ddsi_guid_t guid_of(const uint8_t bytes[16])
{
  ddsi_guid_t guid;
  memcpy(&guid, bytes, sizeof guid);
  for (size_t word = 0; word < 3; word++)
    guid.prefix.u[word] = ddsrt_fromBE4u(guid.prefix.u[word]);
  guid.entityid.u = ddsrt_fromBE4u(guid.entityid.u);
  return guid;
}

static void guid_to(const ddsi_guid_t *guid, uint8_t bytes[16])
{
  ddsi_guid_t swapped = *guid;
  for (size_t word = 0; word < 3; word++)
    swapped.prefix.u[word] = ddsrt_toBE4u(swapped.prefix.u[word]);
  swapped.entityid.u = ddsrt_toBE4u(swapped.entityid.u);
  memcpy(bytes, &swapped, sizeof swapped);
}

/* The writer, locked; NULL if it has gone. */
static struct ddsi_writer *lock_writer(const struct ddsi_sertype *type, const uint8_t writer[16])
{
  const struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  const ddsi_guid_t guid = guid_of(writer);
  thread_state_awake(ddsc.lookup_thread_state_real(), domain);
  struct ddsi_writer *found = ddsc.entidx_lookup_writer_guid(domain->entity_index, &guid);
  if (found == NULL)
    thread_state_asleep(ddsc.lookup_thread_state_real());
  else
    ddsc.ddsrt_mutex_lock(&found->e.lock);
  return found;
}

static void unlock_writer(struct ddsi_writer *writer)
{
  ddsc.ddsrt_mutex_unlock(&writer->e.lock);
  thread_state_asleep(ddsc.lookup_thread_state_real());
}

/* The number that all readers have acknowledged, as in ddsi_writer_max_drop_seq, which is not exported. */
static seqno_t acknowledged(const struct ddsi_writer *writer)
{
  if (ddsc.ddsrt_avl_is_empty(&writer->readers))
    return writer->seq;
  const struct ddsi_wr_prd_match *root =
      ddsc.ddsrt_avl_root_non_empty(ddsc.ddsi_wr_readers_treedef, &writer->readers);
  return root->min_seq == MAX_SEQ_NUMBER ? writer->seq : root->min_seq;
}

/* The writer does not wait for best-effort readers, nor for those that did not answer. */
static bool is_waited_for(const struct ddsi_wr_prd_match *match)
{
  return match->is_reliable && match->seq != MAX_SEQ_NUMBER;
}

void myelin_dds_request_acknowledgements(const struct ddsi_sertype *type, const uint8_t writer[16])
{
  struct ddsi_writer *found = lock_writer(type, writer);
  if (found == NULL)
    return;
  /* A sample after a long silence carries a heartbeat that requests an answer. */
  found->hbcontrol.t_of_last_write.v = LONG_AGO;
  unlock_writer(found);
}

void myelin_dds_set_heartbeats(const struct ddsi_sertype *type, int64_t interval_ns)
{
  struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  /* CycloneDDS reads it for each heartbeat, and nothing else depends on it. */
  __atomic_store_n(&domain->config.const_hb_intv_sched, interval_ns, __ATOMIC_RELAXED);
}

int32_t myelin_dds_pass_over(const struct ddsi_sertype *type, const uint8_t writer[16],
                             uint8_t reader[16])
{
  struct ddsi_writer *found = lock_writer(type, writer);
  if (found == NULL)
    return 0;
  struct ddsi_wr_prd_match *least = NULL;
  ddsrt_avl_iter_t iterator;
  for (struct ddsi_wr_prd_match *match =
           ddsc.ddsrt_avl_iter_first(ddsc.ddsi_wr_readers_treedef, &found->readers, &iterator);
       match != NULL; match = ddsc.ddsrt_avl_iter_next(&iterator))
    if (is_waited_for(match) && (least == NULL || match->seq < least->seq))
      least = match;
  if (least == NULL) {
    unlock_writer(found);
    return 0;
  }
  guid_to(&least->prd_guid, reader);
  least->seq = MAX_SEQ_NUMBER;
  least->has_replied_to_hb = 0; /* CycloneDDS then goes on asking it */
  ddsc.ddsrt_avl_augment_update(ddsc.ddsi_wr_readers_treedef, least);
  /* As ddsi_remove_acked_messages, which is not exported. */
  struct whc_state state;
  struct whc_node *freed = NULL;
  (void)whc_remove_acked_messages(found->whc, acknowledged(found), &state, &freed);
  ddsc.ddsrt_cond_broadcast(&found->throttle_cond);
  ddsc.ddsrt_mutex_unlock(&found->e.lock);
  whc_free_deferred_free_list(found->whc, freed);
  thread_state_asleep(ddsc.lookup_thread_state_real());
  return 1;
}

int32_t myelin_dds_is_waited_for(const struct ddsi_sertype *type, const uint8_t writer[16],
                                 const uint8_t reader[16])
{
  struct ddsi_writer *found = lock_writer(type, writer);
  if (found == NULL)
    return 0;
  const ddsi_guid_t guid = guid_of(reader);
  const struct ddsi_wr_prd_match *match =
      ddsc.ddsrt_avl_lookup(ddsc.ddsi_wr_readers_treedef, &found->readers, &guid);
  const bool waited_for = match != NULL && is_waited_for(match);
  unlock_writer(found);
  return waited_for;
}

void myelin_dds_end_lease_messages(const struct ddsi_sertype *type, const uint8_t participant[16])
{
  const struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  const ddsi_guid_t guid = guid_of(participant);
  thread_state_awake(ddsc.lookup_thread_state_real(), domain);
  struct ddsi_participant *found = ddsc.entidx_lookup_participant_guid(domain->entity_index, &guid);
  if (found != NULL) {
    ddsc.ddsrt_mutex_lock(&found->e.lock);
    /* Its announcement has the lease already, and is repeated at its own interval. The next message is due
     * after the shortest lease, and this one is the only one. */
    found->lease_duration = DDS_INFINITY;
    ddsc.ddsrt_mutex_unlock(&found->e.lock);
  }
  thread_state_asleep(ddsc.lookup_thread_state_real());
}

int32_t myelin_dds_has_participant(const struct ddsi_sertype *type, const uint8_t writer[16])
{
  const struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  ddsi_guid_t guid = guid_of(writer);
  guid.entityid.u = NN_ENTITYID_PARTICIPANT;
  thread_state_awake(ddsc.lookup_thread_state_real(), domain);
  const bool is_there = ddsc.entidx_lookup_participant_guid(domain->entity_index, &guid) != NULL;
  thread_state_asleep(ddsc.lookup_thread_state_real());
  return is_there;
}

bool myelin_dds_remote(const struct ddsi_domaingv *domain, struct myelin_dds_remote *remote)
{
  const ddsi_guid_t guid = guid_of(remote->guid);
  thread_state_awake(ddsc.lookup_thread_state_real(), domain);
  struct ddsi_proxy_participant *found =
      ddsc.entidx_lookup_proxy_participant_guid(domain->entity_index, &guid);
  if (found != NULL) {
    ddsc.ddsrt_mutex_lock(&found->e.lock);
    remote->has_identity = (found->plist->present & PP_IDENTITY_TOKEN) != 0;
#ifdef DDS_HAS_SECURITY
    if (found->sec_attr != NULL) {
      ddsc.ddsrt_mutex_lock(&found->sec_attr->lock);
      remote->is_admitted = !ddsc.ddsrt_avl_is_empty(&found->sec_attr->participants);
      ddsc.ddsrt_mutex_unlock(&found->sec_attr->lock);
    }
#endif
    ddsc.ddsrt_mutex_unlock(&found->e.lock);
  }
  thread_state_asleep(ddsc.lookup_thread_state_real());
  return found != NULL;
}
