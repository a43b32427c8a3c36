/* Domains, endpoints, and their matches: CycloneDDS's calls in the form that the route to other hosts
 * needs. */
#include <fcntl.h>
#include <string.h>

#include "bridge.h"
#include "cyclonedds.h"

/* How many matches are looked at. */
enum { VISITED_MAX = 4096 };

int32_t myelin_dds_domain(uint32_t domain, const char *configuration)
{
  const dds_entity_t entity = ddsc.dds_create_domain(domain, configuration);
  return entity == DDS_RETCODE_PRECONDITION_NOT_MET ? 0 : entity;
}

int32_t myelin_dds_participant(uint32_t domain, const void *user_data, size_t user_data_bytes,
                               const struct myelin_dds_property *properties, size_t properties_count)
{
  dds_qos_t *qos = ddsc.dds_create_qos();
  if (user_data_bytes > 0)
    ddsc.dds_qset_userdata(qos, user_data, user_data_bytes);
  for (size_t index = 0; index < properties_count; index++)
    ddsc.dds_qset_prop(qos, properties[index].name, properties[index].value);
  const dds_entity_t participant = ddsc.dds_create_participant(domain, qos, NULL);
  ddsc.dds_delete_qos(qos);
  return participant;
}

static dds_qos_t *create_qos(const struct myelin_dds_settings *settings, bool is_writer)
{
  dds_qos_t *qos = ddsc.dds_create_qos();
  ddsc.dds_qset_reliability(qos,
                       settings->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                       settings->block_max_ns);
  ddsc.dds_qset_durability(
      qos, settings->transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  if (settings->depth > 0) {
    ddsc.dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, settings->depth);
  } else {
    ddsc.dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  }
  if (is_writer && settings->transient_local)
    ddsc.dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_LAST, settings->history,
                                DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  if (settings->partitions_count > 0)
    ddsc.dds_qset_partition(qos, settings->partitions_count, (const char **)settings->partitions);
  if (settings->user_data_bytes > 0)
    ddsc.dds_qset_userdata(qos, settings->user_data, settings->user_data_bytes);
  /* Within a process and its host there are shorter ways. */
  ddsc.dds_qset_ignorelocal(qos, DDS_IGNORELOCAL_PROCESS);
  return qos;
}

static dds_entity_t create_topic(int32_t participant, const struct myelin_dds_settings *settings,
                                 struct ddsi_sertype **type)
{
  *type = myelin_dds_type(settings->type);
  if (*type == NULL)
    return DDS_RETCODE_OUT_OF_RESOURCES;
  const dds_entity_t topic =
      ddsc.dds_create_topic_sertype(participant, settings->topic, type, NULL, NULL, NULL);
  if (topic < 0)
    ddsc.ddsi_sertype_unref(*type);
  return topic;
}

/* A topic of no use but its type: a type that is registered knows its domain. */
static dds_entity_t create_domain_topic(int32_t participant, const char *name,
                                        struct ddsi_sertype **type)
{
  const struct myelin_dds_settings settings = {.topic = name, .type = "myelin::Domain"};
  return create_topic(participant, &settings, type);
}

int32_t myelin_dds_announce_only(int32_t participant, const char *topic_name)
{
  uint8_t guid[16];
  struct ddsi_sertype *type;
  const int32_t code = myelin_dds_guid(participant, guid);
  const dds_entity_t topic = code < 0 ? code : create_domain_topic(participant, topic_name, &type);
  if (topic < 0)
    return topic;
  myelin_dds_end_lease_messages(type, guid);
  return ddsc.dds_delete(topic);
}

int32_t myelin_dds_sockets(int32_t participant, const char *topic_name, int32_t *sockets, int32_t sockets_max)
{
  struct ddsi_sertype *type;
  const dds_entity_t topic = create_domain_topic(participant, topic_name, &type);
  if (topic < 0)
    return topic;
  const struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  int32_t count = 0;
  for (uint32_t index = 0; index < domain->n_recv_threads && count < sockets_max; index++) {
    const struct recv_thread_arg *thread = &domain->recv_threads[index].arg;
    if (thread->mode != RTM_SINGLE)
      continue;
    const int socket = fcntl(ddsi_conn_handle(thread->u.single.conn), F_DUPFD_CLOEXEC, 0);
    if (socket >= 0)
      sockets[count++] = socket;
  }
  (void)ddsc.dds_delete(topic);
  return count;
}

static void on_writer_matched(dds_entity_t writer, dds_publication_matched_status_t status,
                              void *argument)
{
  const struct myelin_dds_listener *listener = argument;
  listener->matched(listener->context, writer, status.current_count);
}

static void on_reader_matched(dds_entity_t reader, dds_subscription_matched_status_t status,
                              void *argument)
{
  const struct myelin_dds_listener *listener = argument;
  listener->matched(listener->context, reader, status.current_count);
}

static void on_writer_incompatible(dds_entity_t writer,
                                   dds_offered_incompatible_qos_status_t status, void *argument)
{
  const struct myelin_dds_listener *listener = argument;
  listener->incompatible(listener->context, writer, status.last_policy_id);
}

static void on_reader_incompatible(dds_entity_t reader,
                                   dds_requested_incompatible_qos_status_t status, void *argument)
{
  const struct myelin_dds_listener *listener = argument;
  listener->incompatible(listener->context, reader, status.last_policy_id);
}

/* Takes ownership of `calls`, and of `inbox`, which is NULL for a writer. */
static dds_entity_t create_endpoint(int32_t participant, struct dds_rhc *inbox,
                                    const struct myelin_dds_settings *settings,
                                    dds_listener_t *calls, struct ddsi_sertype **type)
{
  const dds_entity_t topic = create_topic(participant, settings, type);
  dds_entity_t endpoint = topic;
  if (topic >= 0) {
    dds_qos_t *qos = create_qos(settings, inbox == NULL);
    endpoint = inbox == NULL
                   ? ddsc.dds_create_writer(participant, topic, qos, calls)
                   : ddsc.dds_create_reader_rhc(participant, topic, qos, calls, inbox);
    ddsc.dds_delete_qos(qos);
    (void)ddsc.dds_delete(topic); /* the endpoint keeps it */
  }
  ddsc.dds_delete_listener(calls);
  if (endpoint < 0 && inbox != NULL)
    dds_rhc_free(inbox);
  return endpoint;
}

/* The instances of the type's domain; this thread is awake from now on. */
static struct ddsi_tkmap *awake_with_instances(const struct ddsi_sertype *type)
{
  const struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  thread_state_awake(ddsc.lookup_thread_state_real(), domain);
  return domain->m_tkmap;
}

int32_t myelin_dds_writer(int32_t participant, const struct myelin_dds_settings *settings,
                          const struct myelin_dds_listener *listener,
                          const struct ddsi_sertype **type,
                          struct ddsi_tkmap_instance **instance)
{
  struct ddsi_sertype *made = NULL;
  dds_listener_t *calls = ddsc.dds_create_listener((void *)listener);
  ddsc.dds_lset_publication_matched(calls, on_writer_matched);
  ddsc.dds_lset_offered_incompatible_qos(calls, on_writer_incompatible);
  const dds_entity_t writer = create_endpoint(participant, NULL, settings, calls, &made);
  *type = made;
  *instance = NULL;
  if (writer >= 0) {
    *instance = myelin_dds_hold_instance(made, awake_with_instances(made));
    thread_state_asleep(ddsc.lookup_thread_state_real());
  }
  return writer;
}

void myelin_dds_drop_instance(const struct ddsi_sertype *type,
                              struct ddsi_tkmap_instance *instance)
{
  if (instance == NULL)
    return;
  ddsc.ddsi_tkmap_instance_unref(awake_with_instances(type), instance);
  thread_state_asleep(ddsc.lookup_thread_state_real());
}

int32_t myelin_dds_reader(int32_t participant, const struct myelin_dds_settings *settings,
                          const struct myelin_dds_listener *listener)
{
  struct dds_rhc *inbox = myelin_dds_inbox(listener);
  if (inbox == NULL)
    return DDS_RETCODE_OUT_OF_RESOURCES;
  struct ddsi_sertype *type;
  dds_listener_t *calls = ddsc.dds_create_listener((void *)listener);
  ddsc.dds_lset_subscription_matched(calls, on_reader_matched);
  ddsc.dds_lset_requested_incompatible_qos(calls, on_reader_incompatible);
  return create_endpoint(participant, inbox, settings, calls, &type);
}

int32_t myelin_dds_discovery(int32_t participant, uint8_t writers,
                             const struct myelin_dds_listener *listener)
{
  struct dds_rhc *inbox = myelin_dds_discovery_inbox(listener);
  if (inbox == NULL)
    return DDS_RETCODE_OUT_OF_RESOURCES;
  const dds_entity_t topic =
      writers ? DDS_BUILTIN_TOPIC_DCPSPUBLICATION : DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION;
  const dds_entity_t reader = ddsc.dds_create_reader_rhc(participant, topic, NULL, NULL, inbox);
  if (reader < 0)
    dds_rhc_free(inbox);
  return reader;
}

int32_t myelin_dds_write(int32_t writer, struct ddsi_serdata *sample)
{
  /* The call takes a reference, whether it succeeds or not. */
  const dds_return_t code = ddsc.dds_writecdr(writer, ddsc.ddsi_serdata_ref(sample));
  myelin_dds_written(sample);
  return code;
}

void myelin_dds_hold(struct ddsi_serdata *sample)
{
  ddsc.ddsi_serdata_ref(sample);
}

void myelin_dds_release(struct ddsi_serdata *sample)
{
  ddsc.ddsi_serdata_unref(sample);
}

int32_t myelin_dds_guid(int32_t endpoint, uint8_t guid[16])
{
  dds_guid_t found;
  const dds_return_t code = ddsc.dds_get_guid(endpoint, &found);
  if (code == DDS_RETCODE_OK)
    memcpy(guid, found.v, sizeof found.v);
  return code;
}

int32_t myelin_dds_set_user_data(int32_t entity, const void *user_data, size_t user_data_bytes)
{
  dds_qos_t *qos = ddsc.dds_create_qos();
  ddsc.dds_qset_userdata(qos, user_data, user_data_bytes);
  const dds_return_t code = ddsc.dds_set_qos(entity, qos);
  ddsc.dds_delete_qos(qos);
  return code;
}

void myelin_dds_visit_endpoint(const dds_builtintopic_endpoint_t *data, uint64_t handle,
                               myelin_dds_visit visit, void *context)
{
  void *user_data = NULL;
  size_t user_data_bytes = 0;
  int8_t reliable = -1, transient_local = -1, by_topic = -1;
  dds_duration_t deadline_ns = DDS_INFINITY, lifespan_ns = DDS_INFINITY, lease_ns = DDS_INFINITY;
  if (data->qos != NULL) {
    (void)ddsc.dds_qget_userdata(data->qos, &user_data, &user_data_bytes);
    dds_reliability_kind_t reliability;
    if (ddsc.dds_qget_reliability(data->qos, &reliability, NULL))
      reliable = reliability == DDS_RELIABILITY_RELIABLE;
    dds_durability_kind_t durability;
    if (ddsc.dds_qget_durability(data->qos, &durability))
      transient_local = durability != DDS_DURABILITY_VOLATILE;
    dds_liveliness_kind_t liveliness;
    if (ddsc.dds_qget_liveliness(data->qos, &liveliness, &lease_ns))
      by_topic = liveliness == DDS_LIVELINESS_MANUAL_BY_TOPIC;
    (void)ddsc.dds_qget_deadline(data->qos, &deadline_ns);
    (void)ddsc.dds_qget_lifespan(data->qos, &lifespan_ns);
  }
  const struct myelin_dds_endpoint endpoint = {.handle = handle,
                                               .guid = data->key.v,
                                               .topic = data->topic_name,
                                               .type = data->type_name,
                                               .user_data = user_data,
                                               .user_data_bytes = user_data_bytes,
                                               .reliable = reliable,
                                               .transient_local = transient_local,
                                               .by_topic = by_topic,
                                               .deadline_ns = deadline_ns,
                                               .lifespan_ns = lifespan_ns,
                                               .lease_ns = lease_ns};
  visit(context, &endpoint);
  ddsc.dds_free(user_data);
}

int32_t myelin_dds_visit_matched(int32_t endpoint, uint8_t is_writer, myelin_dds_visit visit,
                                 void *context)
{
  dds_instance_handle_t *handles = ddsc.dds_alloc(VISITED_MAX * sizeof *handles);
  dds_return_t count =
      is_writer ? ddsc.dds_get_matched_subscriptions(endpoint, handles, VISITED_MAX)
                : ddsc.dds_get_matched_publications(endpoint, handles, VISITED_MAX);
  if (count > VISITED_MAX)
    count = VISITED_MAX;
  for (dds_return_t index = 0; index < count; index++) {
    dds_builtintopic_endpoint_t *data =
        is_writer ? ddsc.dds_get_matched_subscription_data(endpoint, handles[index])
                  : ddsc.dds_get_matched_publication_data(endpoint, handles[index]);
    if (data == NULL)
      continue; /* it has just gone */
    myelin_dds_visit_endpoint(data, handles[index], visit, context);
    ddsc.dds_builtintopic_free_endpoint(data);
  }
  ddsc.dds_free(handles);
  return count;
}

static void on_participants(dds_entity_t participants, void *argument)
{
  (void)participants;
  const struct myelin_dds_listener *listener = argument;
  listener->changed(listener->context);
}

int32_t myelin_dds_participants(int32_t participant, const struct myelin_dds_listener *listener)
{
  dds_listener_t *calls = ddsc.dds_create_listener((void *)listener);
  ddsc.dds_lset_data_available(calls, on_participants);
  const dds_entity_t reader =
      ddsc.dds_create_reader(participant, DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, NULL, calls);
  ddsc.dds_delete_listener(calls);
  return reader;
}

/* Takes the participants that have gone: CycloneDDS would keep them for ever. */
static void drop_gone(dds_entity_t participants, void **samples, dds_sample_info_t *infos)
{
  dds_return_t count;
  do {
    samples[0] = NULL;
    count = ddsc.dds_take_mask(participants, samples, infos, VISITED_MAX, VISITED_MAX,
                               DDS_ANY_SAMPLE_STATE | DDS_ANY_VIEW_STATE |
                                   DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE |
                                   DDS_NOT_ALIVE_NO_WRITERS_INSTANCE_STATE);
    if (count > 0)
      (void)ddsc.dds_return_loan(participants, samples, count);
  } while (count == VISITED_MAX);
}

static void visit_participant(const struct ddsi_domaingv *domain,
                              const dds_builtintopic_participant_t *data,
                              myelin_dds_visit_remote visit, void *context)
{
  struct myelin_dds_remote remote = {.guid = data->key.v};
  if (!myelin_dds_remote(domain, &remote))
    return; /* it is one of this process, or has just gone */
  static const char *const names[] = {"__Hostname", "__ProcessName", "__Pid", "__NetworkAddresses"};
  char *values[4] = {NULL};
  void *user_data = NULL;
  if (data->qos != NULL)
    (void)ddsc.dds_qget_userdata(data->qos, &user_data, &remote.user_data_bytes);
  remote.user_data = user_data;
  for (size_t index = 0; data->qos != NULL && index < 4; index++)
    (void)ddsc.dds_qget_prop(data->qos, names[index], &values[index]);
  remote.host = values[0];
  remote.process = values[1];
  remote.pid = values[2];
  remote.addresses = values[3];
  visit(context, &remote);
  for (size_t index = 0; index < 4; index++)
    ddsc.dds_free(values[index]);
  ddsc.dds_free(user_data);
}

int32_t myelin_dds_visit_participants(int32_t participant, int32_t participants, const char *topic_name,
                                      myelin_dds_visit_remote visit, void *context)
{
  struct ddsi_sertype *type;
  const dds_entity_t topic = create_domain_topic(participant, topic_name, &type);
  if (topic < 0)
    return topic;
  const struct ddsi_domaingv *domain = ddsrt_atomic_ldvoidp(&type->gv);
  /* Always the same number: CycloneDDS keeps the memory that it lends, and fills in pointers to all of it. */
  void **samples = ddsc.dds_alloc(VISITED_MAX * sizeof *samples);
  dds_sample_info_t *infos = ddsc.dds_alloc(VISITED_MAX * sizeof *infos);
  drop_gone(participants, samples, infos);
  samples[0] = NULL; /* lent by CycloneDDS */
  const dds_return_t count =
      ddsc.dds_read_mask(participants, samples, infos, VISITED_MAX, VISITED_MAX,
                         DDS_ANY_SAMPLE_STATE | DDS_ANY_VIEW_STATE | DDS_ALIVE_INSTANCE_STATE);
  for (dds_return_t index = 0; index < count; index++)
    if (infos[index].valid_data)
      visit_participant(domain, samples[index], visit, context);
  if (count > 0)
    (void)ddsc.dds_return_loan(participants, samples, count);
  ddsc.dds_free(infos);
  ddsc.dds_free(samples);
  (void)ddsc.dds_delete(topic);
  return count;
}

int32_t myelin_dds_wait_for_acks(int32_t writer, int64_t limit_ns)
{
  return ddsc.dds_wait_for_acks(writer, limit_ns);
}

int32_t myelin_dds_delete(int32_t entity)
{
  return ddsc.dds_delete(entity);
}

const char *myelin_dds_text(int32_t code)
{
  return ddsc.dds_strretcode(code);
}
