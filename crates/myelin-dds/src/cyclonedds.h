/* The functions of CycloneDDS that are called. Nothing is linked with CycloneDDS: a program that never opens a
 * node to the network does not have it in memory, and runs where it is not installed. myelin_dds_load finds it.
 *
 * Other parts that are used are inline in CycloneDDS's headers, and so are the layouts of its structures: the
 * loaded library must have the version that this was compiled for. */
#ifndef MYELIN_DDS_CYCLONEDDS_H
#define MYELIN_DDS_CYCLONEDDS_H

#include "dds/dds.h"
#include "dds/ddsc/dds_rhc.h"
/* Before the others, which do not include what they need. */
#include "dds/ddsi/ddsi_entity.h"
#include "dds/ddsi/ddsi_domaingv.h"
#include "dds/ddsi/q_hbcontrol.h"

#include "dds/ddsi/ddsi_endpoint.h"
#include "dds/ddsi/ddsi_entity_index.h"
#include "dds/ddsi/ddsi_entity_match.h"
#include "dds/ddsi/ddsi_participant.h"
#include "dds/ddsi/ddsi_plist.h"
#include "dds/ddsi/ddsi_proxy_participant.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "dds/ddsi/ddsi_sertype.h"
#include "dds/ddsi/ddsi_tkmap.h"
#include "dds/ddsi/ddsi_tran.h"
#include "dds/ddsi/q_misc.h"
#include "dds/ddsi/q_protocol.h"
#include "dds/ddsi/q_radmin.h"
#include "dds/ddsi/q_rtps.h"
#include "dds/ddsi/q_thread.h"
#include "dds/ddsi/q_whc.h"
/* It includes the headers of iceoryx, another package, of which nothing is used. */
#define DDS_SHM__TRANSPORT_H
#include "dds/ddsi/ddsi_security_omg.h"
#include "dds/ddsrt/avl.h"
#include "dds/ddsrt/endian.h"

#define DDSC_NAMES(NAME)                   \
  NAME(dds_alloc)                          \
  NAME(dds_builtintopic_free_endpoint)     \
  NAME(dds_create_domain)                  \
  NAME(dds_create_listener)                \
  NAME(dds_create_participant)             \
  NAME(dds_create_qos)                     \
  NAME(dds_create_reader)                  \
  NAME(dds_create_reader_rhc)              \
  NAME(dds_create_topic_sertype)           \
  NAME(dds_create_writer)                  \
  NAME(dds_delete)                         \
  NAME(dds_delete_listener)                \
  NAME(dds_delete_qos)                     \
  NAME(dds_free)                           \
  NAME(dds_get_guid)                       \
  NAME(dds_get_matched_publication_data)   \
  NAME(dds_get_matched_publications)       \
  NAME(dds_get_matched_subscription_data)  \
  NAME(dds_get_matched_subscriptions)      \
  NAME(dds_lset_data_available)            \
  NAME(dds_lset_offered_incompatible_qos)  \
  NAME(dds_lset_publication_matched)       \
  NAME(dds_lset_requested_incompatible_qos)\
  NAME(dds_lset_subscription_matched)      \
  NAME(dds_qget_deadline)                  \
  NAME(dds_qget_durability)                \
  NAME(dds_qget_lifespan)                  \
  NAME(dds_qget_liveliness)                \
  NAME(dds_qget_prop)                      \
  NAME(dds_qget_reliability)               \
  NAME(dds_qget_userdata)                  \
  NAME(dds_qset_durability)                \
  NAME(dds_qset_durability_service)        \
  NAME(dds_qset_history)                   \
  NAME(dds_qset_ignorelocal)               \
  NAME(dds_qset_partition)                 \
  NAME(dds_qset_prop)                      \
  NAME(dds_qset_reliability)               \
  NAME(dds_qset_resource_limits)           \
  NAME(dds_qset_userdata)                  \
  NAME(dds_read_mask)                      \
  NAME(dds_return_loan)                    \
  NAME(dds_set_log_sink)                   \
  NAME(dds_set_qos)                        \
  NAME(dds_strretcode)                     \
  NAME(dds_take_mask)                      \
  NAME(dds_wait_for_acks)                  \
  NAME(dds_writecdr)                       \
  NAME(ddsi_serdata_init)                  \
  NAME(ddsi_serdata_ref)                   \
  NAME(ddsi_serdata_to_sample)             \
  NAME(ddsi_serdata_unref)                 \
  NAME(ddsi_sertype_fini)                  \
  NAME(ddsi_sertype_init_flags)            \
  NAME(ddsi_sertype_unref)                 \
  NAME(ddsi_sertype_v0)                    \
  NAME(ddsi_tkmap_instance_unref)          \
  NAME(ddsi_tkmap_lookup_instance_ref)     \
  NAME(ddsi_wr_readers_treedef)            \
  NAME(ddsrt_avl_augment_update)           \
  NAME(ddsrt_avl_is_empty)                 \
  NAME(ddsrt_avl_iter_first)               \
  NAME(ddsrt_avl_iter_next)                \
  NAME(ddsrt_avl_lookup)                   \
  NAME(ddsrt_avl_root_non_empty)           \
  NAME(ddsrt_cond_broadcast)               \
  NAME(ddsrt_mutex_lock)                   \
  NAME(ddsrt_mutex_unlock)                 \
  NAME(ddsrt_time_monotonic)               \
  NAME(entidx_lookup_participant_guid)     \
  NAME(entidx_lookup_proxy_participant_guid)\
  NAME(entidx_lookup_writer_guid)          \
  NAME(lookup_thread_state_real)

/* Filled by myelin_dds_load, before anything else of the bridge is called. */
extern struct ddsc {
#define DDSC_POINTER(name) __typeof__(name) *name;
  DDSC_NAMES(DDSC_POINTER)
#undef DDSC_POINTER
} ddsc;

#endif /* MYELIN_DDS_CYCLONEDDS_H */
