/* The adaptor: one role of a round trip or of a stream over iceoryx 2.0, in the form of the kit's
 * table, by iceoryx's C binding.
 *
 * A topic is the service `myelin`, the run's name and `ping<n>` or `pong<n>`: what ping publishes
 * or pong answers. How each end knows that the others are there: see match().
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "iceoryx_binding_c/api.h"
#include "iceoryx_binding_c/chunk.h"
#include "iceoryx_binding_c/enums.h"
#include "iceoryx_binding_c/notification_info.h"
#include "iceoryx_binding_c/publisher.h"
#include "iceoryx_binding_c/runtime.h"
#include "iceoryx_binding_c/subscriber.h"
#include "iceoryx_binding_c/types.h"
#include "iceoryx_binding_c/wait_set.h"
#include "myelin_bench_kit.h"

enum {
  NAME_BYTES = 128,
  /* Longest name of a run: a process's name is a socket in /tmp, of at most 107 characters. */
  RUN_CHARACTERS_MAX = 72,
  /* Queue of a subscriber of round trips, where one message is under way. */
  ROUND_TRIP_DEPTH = 16,
  /* Polls between two looks at the clock: some µs. */
  POLLS_PER_LOOK = 64,
  /* Most notifications that a wait hands over: all there can be. */
  NOTIFICATIONS_MAX = 128
};

/* Between two questions whether somebody has come: iceoryx has no event for it. */
static const struct timespec ASK_AGAIN = {.tv_nsec = 50 * 1000};

struct publisher {
  iox_pub_storage_t storage;
  iox_pub_t port;
};

struct subscriber {
  iox_sub_storage_t storage;
  iox_sub_t port;
};

struct link {
  const char *run; /* During open only. */
  bool waits;      /* On a WaitSet; otherwise polls. */
  bool is_ping;
  size_t message_bytes;
  struct publisher *publishers; /* One a topic; NULL for pong of a stream. */
  uint32_t publisher_count;
  uint32_t selected;
  struct subscriber *subscribers; /* One a topic; NULL for ping of a stream. */
  uint32_t subscriber_count;
  struct subscriber here;   /* Tells the others that this end has all its ports. */
  struct publisher *others; /* One for each `here` of the other side. */
  uint32_t other_count;
  iox_ws_storage_t waitset_storage;
  iox_ws_t waitset;
  /* What the last wait has found: subscribers that have something, and which of them is next. */
  iox_notification_info_t notifications[NOTIFICATIONS_MAX];
  uint64_t notification_count;
  uint64_t notification_next;
  uint32_t poll_next;
  void *loan;
  iox_sub_t taken_from;
  const void *taken;
};

/* Set by myelin_iceoryx_configure for the open that follows. */
static int wants_waitset;

void myelin_iceoryx_configure(int waits)
{
  wants_waitset = waits;
}

static int fail(const char *what, const char *remedy)
{
  char text[256];
  (void)snprintf(text, sizeof text, "iceoryx: %s", what);
  myelin_bench_error(text, remedy);
  return -1;
}

static void close_publishers(struct publisher *publishers, uint32_t count)
{
  for (uint32_t index = 0; publishers != NULL && index < count; index++)
    if (publishers[index].port != NULL)
      iox_pub_deinit(publishers[index].port);
  free(publishers);
}

static void release(void *context)
{
  struct link *link = context;
  if (link->taken != NULL)
    iox_sub_release_chunk(link->taken_from, link->taken);
  link->taken = NULL;
}

static void close_link(void *context)
{
  struct link *link = context;
  if (link == NULL)
    return;
  release(link);
  if (link->loan != NULL)
    iox_pub_release_chunk(link->publishers[link->selected].port, link->loan);
  for (uint32_t index = 0; link->subscribers != NULL && index < link->subscriber_count; index++) {
    const iox_sub_t port = link->subscribers[index].port;
    if (port != NULL && link->waitset != NULL)
      iox_ws_detach_subscriber_state(link->waitset, port, SubscriberState_HAS_DATA);
    if (port != NULL)
      iox_sub_deinit(port);
  }
  if (link->waitset != NULL)
    iox_ws_deinit(link->waitset);
  free(link->subscribers);
  close_publishers(link->publishers, link->publisher_count);
  close_publishers(link->others, link->other_count);
  if (link->here.port != NULL)
    iox_sub_deinit(link->here.port);
  free(link);
}

static void create_publisher(const struct link *link, struct publisher *publisher,
                             const char *kind, uint32_t number, bool reliable)
{
  char name[NAME_BYTES];
  (void)snprintf(name, sizeof name, "%s%" PRIu32, kind, number);
  iox_pub_options_t options;
  iox_pub_options_init(&options);
  options.historyCapacity = 0;
  options.offerOnCreate = true;
  options.subscriberTooSlowPolicy = reliable ? ConsumerTooSlowPolicy_WAIT_FOR_CONSUMER
                                             : ConsumerTooSlowPolicy_DISCARD_OLDEST_DATA;
  publisher->port = iox_pub_init(&publisher->storage, "myelin", link->run, name, &options);
}

static void create_subscriber(const struct link *link, struct subscriber *subscriber,
                              const char *kind, uint32_t number, uint32_t depth, bool reliable)
{
  char name[NAME_BYTES];
  (void)snprintf(name, sizeof name, "%s%" PRIu32, kind, number);
  iox_sub_options_t options;
  iox_sub_options_init(&options);
  options.queueCapacity = depth;
  options.historyRequest = 0;
  options.subscribeOnCreate = true;
  options.queueFullPolicy =
      reliable ? QueueFullPolicy_BLOCK_PRODUCER : QueueFullPolicy_DISCARD_OLDEST_DATA;
  subscriber->port = iox_sub_init(&subscriber->storage, "myelin", link->run, name, &options);
}

/* The ports of all topics; first what receives: whoever finds our publisher finds both. */
static int create_topics(struct link *link, const struct myelin_bench_prepare *prepare)
{
  const char *out = prepare->is_ping ? "ping" : "pong";
  const char *in = prepare->is_ping ? "pong" : "ping";
  const uint32_t depth = prepare->one_way ? prepare->depth : ROUND_TRIP_DEPTH;
  const bool reliable = prepare->one_way && prepare->reliable;
  if (!prepare->one_way || !prepare->is_ping)
    link->subscriber_count = prepare->topics;
  if (!prepare->one_way || prepare->is_ping)
    link->publisher_count = prepare->topics;
  link->subscribers = calloc(link->subscriber_count + 1, sizeof *link->subscribers);
  link->publishers = calloc(link->publisher_count + 1, sizeof *link->publishers);
  if (link->subscribers == NULL || link->publishers == NULL)
    return fail("out of memory", NULL);
  for (uint32_t topic = 0; topic < link->subscriber_count; topic++)
    create_subscriber(link, &link->subscribers[topic], in, topic, depth, reliable);
  for (uint32_t topic = 0; topic < link->publisher_count; topic++)
    create_publisher(link, &link->publishers[topic], out, topic, reliable);
  return 0;
}

static int create_waitset(struct link *link)
{
  if (!link->waits || link->subscriber_count == 0)
    return 0;
  link->waitset = iox_ws_init(&link->waitset_storage);
  for (uint32_t index = 0; index < link->subscriber_count; index++) {
    const enum iox_WaitSetResult result =
        iox_ws_attach_subscriber_state(link->waitset, link->subscribers[index].port,
                                       SubscriberState_HAS_DATA, index, NULL);
    if (result != WaitSetResult_SUCCESS)
      return fail("attaching a subscriber to the WaitSet", "fewer topics");
  }
  return 0;
}

/* Who is there. iceoryx tells a publisher whether it has subscribers, but not how many, and a
 * subscriber nothing at all (as there may be several publishers, it counts as subscribed before
 * there is one). So each end, once it has all its ports, makes one subscriber more, of a topic of
 * its own (`here-<role><index>`), and for each end of the other side a publisher of that one's.
 * RouDi connects a port with all there are before it answers the process that has asked for it: a
 * publisher that has got its subscriber says that the other's ports are connected, too. No message
 * travels for it. */
static int match(struct link *link, const struct myelin_bench_prepare *prepare, uint64_t until_ns)
{
  const char *mine = prepare->is_ping ? "here-ping" : "here-pong";
  const char *theirs = prepare->is_ping ? "here-pong" : "here-ping";
  const uint32_t count = prepare->one_way ? (prepare->is_ping ? prepare->subscribers
                                                              : prepare->publishers)
                                          : 1;
  link->others = calloc(count + 1, sizeof *link->others);
  if (link->others == NULL)
    return fail("out of memory", NULL);
  link->other_count = count;
  create_subscriber(link, &link->here, mine, prepare->one_way ? prepare->index : 0, 1, false);
  for (uint32_t index = 0; index < count; index++)
    create_publisher(link, &link->others[index], theirs, index, false);
  for (uint32_t found = 0;;) {
    while (found < count && iox_pub_has_subscribers(link->others[found].port))
      found++;
    if (found == count)
      return 0;
    if (myelin_bench_now_ns() >= until_ns) {
      char text[NAME_BYTES];
      (void)snprintf(text, sizeof text, "timeout: %s%" PRIu32 " did not come",
                     prepare->is_ping ? "pong" : "ping", found);
      return fail(text, "see the other side's log; match_timeout_ms sets the limit");
    }
    (void)nanosleep(&ASK_AGAIN, NULL);
  }
}

/* Whether each of our publishers has a subscriber: what match() concludes, seen at its source. */
static int check_topics(const struct link *link)
{
  for (uint32_t topic = 0; topic < link->publisher_count; topic++)
    if (!iox_pub_has_subscribers(link->publishers[topic].port))
      return fail("RouDi has not connected a topic whose ends are both there",
                  "see roudi.log in the run's folder");
  return 0;
}

static int open_link(const struct myelin_bench_prepare *prepare, void **context)
{
  const uint64_t until_ns = myelin_bench_now_ns() + prepare->match_timeout_ns;
  if (strlen(prepare->run) > RUN_CHARACTERS_MAX)
    return fail("the run's name is too long", "at most 72 characters");
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL)
    return fail("out of memory", NULL);
  link->run = prepare->run;
  link->waits = wants_waitset != 0;
  link->is_ping = prepare->is_ping != 0;
  link->message_bytes = (size_t)prepare->message_bytes;
  char name[NAME_BYTES];
  /* This beginning is what myelin-bench-roudi cleans up after. */
  (void)snprintf(name, sizeof name, "iceoryx_rt_%s_%s%" PRIu32, prepare->run,
                 prepare->is_ping ? "ping" : "pong", prepare->index);
  iox_runtime_init(name);
  int status = create_topics(link, prepare);
  if (status == 0)
    status = create_waitset(link);
  if (status == 0)
    status = match(link, prepare, until_ns);
  if (status == 0)
    status = check_topics(link);
  link->run = NULL;
  if (status != 0) {
    close_link(link);
    return status;
  }
  *context = link;
  return 0;
}

static void select_topic(void *context, uint32_t topic)
{
  struct link *link = context;
  link->selected = topic;
}

static int loan(void *context, size_t bytes, void **memory)
{
  struct link *link = context;
  if (bytes != link->message_bytes)
    return fail("a message of another size than prepared", NULL);
  const enum iox_AllocationResult result =
      iox_pub_loan_chunk(link->publishers[link->selected].port, &link->loan, (uint32_t)bytes);
  if (result != AllocationResult_SUCCESS) {
    link->loan = NULL;
    return fail(result == AllocationResult_RUNNING_OUT_OF_CHUNKS ? "no chunk left to loan"
                                                                 : "no memory to loan",
                "more chunks in the message's pool (options.iceoryx.pools)");
  }
  *memory = link->loan;
  return 0;
}

static int publish_loan(void *context)
{
  struct link *link = context;
  iox_pub_publish_chunk(link->publishers[link->selected].port, link->loan);
  link->loan = NULL;
  return 0;
}

static int publish(void *context, const void *message, size_t bytes)
{
  void *memory = NULL;
  const int status = loan(context, bytes, &memory);
  if (status != 0)
    return status;
  memcpy(memory, message, bytes);
  return publish_loan(context);
}

static int wait_on_waitset(struct link *link, uint64_t until_ns)
{
  const uint64_t now_ns = myelin_bench_now_ns();
  const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                .tv_nsec = (long)(left_ns % 1000000000u)};
  uint64_t missed = 0;
  link->notification_next = 0;
  link->notification_count = iox_ws_timed_wait(link->waitset, left, link->notifications,
                                               NOTIFICATIONS_MAX, &missed);
  return link->notification_count > 0;
}

static int poll_subscribers(struct link *link, uint64_t until_ns)
{
  uint32_t index = link->poll_next < link->subscriber_count ? link->poll_next : 0;
  for (uint32_t polls = 0;; polls++) {
    if (iox_sub_has_chunks(link->subscribers[index].port)) {
      link->poll_next = index;
      return 1;
    }
    if (++index == link->subscriber_count)
      index = 0;
    if (polls % POLLS_PER_LOOK == POLLS_PER_LOOK - 1 && myelin_bench_now_ns() >= until_ns)
      return 0;
  }
}

static int wait_for_chunk(void *context, uint64_t until_ns)
{
  struct link *link = context;
  if (!link->waits)
    return poll_subscribers(link, until_ns);
  /* Each subscriber that the last wait has named still has what it was named for. */
  return link->notification_next < link->notification_count || wait_on_waitset(link, until_ns);
}

/* The subscriber whose turn it is, NULL if none has been found to have something. */
static iox_sub_t next_subscriber(struct link *link)
{
  if (!link->waits)
    return link->poll_next < link->subscriber_count ? link->subscribers[link->poll_next++].port
                                                    : NULL;
  if (link->notification_next >= link->notification_count)
    return NULL;
  iox_notification_info_t found = link->notifications[link->notification_next++];
  return iox_notification_info_get_subscriber_origin(found);
}

static int take(void *context, uint64_t until_ns, const void **message, size_t *bytes)
{
  struct link *link = context;
  (void)until_ns;
  link->taken_from = next_subscriber(link);
  if (link->taken_from == NULL)
    return 0;
  const enum iox_ChunkReceiveResult result = iox_sub_take_chunk(link->taken_from, &link->taken);
  if (result == ChunkReceiveResult_SUCCESS) {
    *message = link->taken;
    *bytes = link->message_bytes;
    return 1;
  }
  link->taken = NULL;
  return result == ChunkReceiveResult_NO_CHUNK_AVAILABLE ? 0 : fail("taking a chunk", NULL);
}

const struct myelin_bench_link myelin_iceoryx_link = {.open = open_link,
                                                      .loan = loan,
                                                      .publish_loan = publish_loan,
                                                      .publish = publish,
                                                      .wait = wait_for_chunk,
                                                      .take = take,
                                                      .release = release,
                                                      .close = close_link,
                                                      .select = select_topic};
