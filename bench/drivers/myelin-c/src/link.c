/* The adaptor: one role of a round trip or of a stream, in C, as the functions of the kit's table.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myelin.h>

#include "myelin_bench_kit.h"

struct link {
  myelin_publisher *publisher;   /* NULL for pong of a stream */
  myelin_subscriber *subscriber; /* NULL for ping of a stream */
  bool polls;
  struct myelin_loan loan;
  struct myelin_sample sample;
};

/* The library's messages already say what to do. */
static int fail(void)
{
  myelin_bench_error(myelin_error_message(), NULL);
  return -1;
}

static void close_link(void *context)
{
  struct link *link = context;
  if (link->publisher != NULL)
    (void)myelin_publisher_close(link->publisher);
  if (link->subscriber != NULL)
    (void)myelin_subscriber_close(link->subscriber);
  free(link);
}

static int open_topic(myelin_node *node, const struct myelin_bench_prepare *prepare,
                      const char *direction, myelin_topic **topic)
{
  char name[256];
  struct myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
  if (prepare->one_way) {
    options.depth = prepare->depth;
    options.reliability = prepare->reliable ? MYELIN_RELIABLE_OR_FAIL : MYELIN_BEST_EFFORT;
    options.reliable_ns = prepare->match_timeout_ns;
  }
  (void)snprintf(name, sizeof name, "bench/%s/%s", prepare->run, direction);
  return myelin_topic_open(node, name, NULL, &options, topic);
}

static int open_publisher(struct link *link, myelin_node *node,
                          const struct myelin_bench_prepare *prepare)
{
  myelin_topic *topic;
  if (open_topic(node, prepare, prepare->is_ping ? "ping" : "pong", &topic) != MYELIN_OK)
    return fail();
  const int made = myelin_publisher_open(topic, NULL, &link->publisher);
  (void)myelin_topic_close(topic);
  return made == MYELIN_OK ? 0 : fail();
}

static int open_subscriber(struct link *link, myelin_node *node,
                           const struct myelin_bench_prepare *prepare)
{
  myelin_topic *topic;
  struct myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  link->polls = strstr(prepare->system, ".shm-poll") != NULL;
  options.wait = link->polls ? MYELIN_WAIT_POLL : MYELIN_WAIT_BLOCK;
  options.publishers_max = prepare->publishers > 16 ? prepare->publishers : 0;
  if (open_topic(node, prepare, prepare->is_ping ? "pong" : "ping", &topic) != MYELIN_OK)
    return fail();
  const int made = myelin_subscriber_open(topic, &options, &link->subscriber);
  (void)myelin_topic_close(topic);
  return made == MYELIN_OK ? 0 : fail();
}

static int open_ends(struct link *link, const struct myelin_bench_prepare *prepare)
{
  char name[128];
  myelin_node *node;
  struct myelin_node_options options = MYELIN_INIT(myelin_node_options);
  options.has_domain = true;
  options.domain = prepare->domain;
  options.network = -1;
  (void)snprintf(name, sizeof name, "bench-%s", prepare->run);
  if (myelin_node_open(name, &options, &node) != MYELIN_OK)
    return fail();
  int status = 0;
  if (prepare->publishes)
    status = open_publisher(link, node, prepare);
  if (status == 0 && prepare->subscribes)
    status = open_subscriber(link, node, prepare);
  (void)myelin_node_close(node); /* Its publishers and subscribers continue to work. */
  return status;
}

static int match(struct link *link, const struct myelin_bench_prepare *prepare)
{
  const uint64_t limit_ns = prepare->match_timeout_ns;
  int matched = MYELIN_OK;
  if (link->publisher != NULL)
    matched = myelin_publisher_wait_for_match(link->publisher, prepare->others, limit_ns);
  if (matched == MYELIN_OK && link->subscriber != NULL)
    matched = myelin_subscriber_wait_for_match(link->subscriber, prepare->others, limit_ns);
  if (matched == MYELIN_NOTHING)
    myelin_bench_error("the other role was not found in time", "see its log in the results folder");
  return matched < 0 ? fail() : -matched;
}

static int open_link(const struct myelin_bench_prepare *prepare, void **context)
{
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL)
    return myelin_bench_fail(NULL, "out of memory");
  link->loan = (struct myelin_loan)MYELIN_INIT(myelin_loan);
  link->sample = (struct myelin_sample)MYELIN_INIT(myelin_sample);
  int status = open_ends(link, prepare);
  if (status == 0)
    status = match(link, prepare);
  if (status != 0) {
    close_link(link);
    return status;
  }
  *context = link;
  return 0;
}

static int loan(void *context, size_t bytes, void **memory)
{
  struct link *link = context;
  if (myelin_publisher_loan(link->publisher, bytes, &link->loan) != MYELIN_OK)
    return fail();
  *memory = link->loan.data;
  return 0;
}

static int publish_loan(void *context)
{
  struct link *link = context;
  return myelin_publisher_publish(link->publisher, &link->loan, NULL) == MYELIN_OK ? 0 : fail();
}

static int publish(void *context, const void *message, size_t bytes)
{
  struct link *link = context;
  if (myelin_publisher_publish_copy(link->publisher, message, bytes, NULL) != MYELIN_OK)
    return fail();
  return 0;
}

/* As in user code, one call waits and takes. A polling end is awake anyway, and the kit calls again
 * until until_ns. So it reads no clock, like the driver in Rust. */
static int receive(void *context, uint64_t until_ns, const void **message, size_t *bytes)
{
  struct link *link = context;
  const uint64_t left_ns = link->polls ? 1000000 : myelin_bench_left_ns(until_ns);
  const int code = myelin_subscriber_receive(link->subscriber, left_ns, &link->sample);
  if (code != MYELIN_OK)
    return code < 0 ? fail() : 0;
  *message = link->sample.data;
  *bytes = link->sample.bytes;
  return 1;
}

static void release(void *context)
{
  struct link *link = context;
  (void)myelin_sample_release(&link->sample);
}

const struct myelin_bench_link myelin_driver_link = {MYELIN_BENCH_SIZE(link),
                                                     .open = open_link,
                                                     .loan = loan,
                                                     .publish_loan = publish_loan,
                                                     .publish = publish,
                                                     .take = receive,
                                                     .release = release,
                                                     .close = close_link};
