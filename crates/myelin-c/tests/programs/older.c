/* Compiled as with an older header, whose structs end earlier, and with a newer one, whose structs go on:
 * neither has the library touch a byte that the program does not know, and what is not there is 0. */
#include "check.h"

/* The structs as they might have been. */
struct older_sample { size_t size; uint64_t id; const void *data; size_t bytes; };
struct older_options { size_t size; uint32_t depth; int32_t reliability; };
struct older_published { size_t size; uint64_t sequence; };
struct older_event { size_t size; myelin_event_kind kind; uint32_t pid; uint64_t endpoint, number; const char *text; };
struct newer_published { struct myelin_published known; uint64_t later; };
struct newer_options { struct myelin_topic_options known; uint64_t later; };

/* Behind each a byte pattern that has to stay. */
#define GUARDED(type) struct { struct type it; unsigned char after[64]; }
#define BEGIN(guarded) \
  (memset(&guarded, 0x5a, sizeof guarded), memset(&guarded.it, 0, sizeof guarded.it), \
   guarded.it.size = sizeof guarded.it)
#define IS_KEPT(guarded) \
  do for (size_t at = 0; at < sizeof guarded.after; at++) CHECK(guarded.after[at] == 0x5a); while (0)

int main(void) {
  GUARDED(older_options) options;
  GUARDED(older_sample) sample;
  GUARDED(older_published) published;
  GUARDED(older_event) event;
  BEGIN(options); BEGIN(sample); BEGIN(published); BEGIN(event);
  options.it.depth = 2; /* what follows it in memory is no history of 0x5a5a5a5a */
  myelin_node *node;
  myelin_topic *topic;
  myelin_publisher *publisher;
  myelin_subscriber *subscriber;
  OK(myelin_node_open("older", NULL, &node));
  OK(myelin_topic_open(node, "older", NULL, (struct myelin_topic_options *)&options.it, &topic));
  OK(myelin_publisher_open(topic, NULL, &publisher));
  OK(myelin_subscriber_open(topic, NULL, &subscriber));
  OK(myelin_publisher_wait_for_match(publisher, 1, WATCHDOG_NS));
  for (int each = 0; each < 3; each++)
    OK(myelin_publisher_publish_copy(publisher, "older", 5,
                                     (struct myelin_published *)&published.it));
  CHECK(published.it.sequence == 2);
  OK(myelin_subscriber_take(subscriber, (struct myelin_sample *)&sample.it));
  CHECK(sample.it.bytes == 5 && memcmp(sample.it.data, "older", 5) == 0);
  OK(myelin_sample_release((struct myelin_sample *)&sample.it));
  struct newer_published more = {.known = {.size = sizeof more}, .later = 1};
  OK(myelin_publisher_publish_copy(publisher, "newer", 5, &more.known));
  CHECK(more.known.size == sizeof more && more.known.sequence == 3 && more.later == 0);
  uint64_t lost;
  OK(myelin_subscriber_lost(subscriber, &lost));
  CHECK(lost == 1); /* a depth of 2 */
  OK(myelin_subscriber_event(subscriber, (struct myelin_event *)&event.it));
  CHECK(event.it.kind == MYELIN_EVENT_MATCHED);
  IS_KEPT(options); IS_KEPT(sample); IS_KEPT(published); IS_KEPT(event);
  OK(myelin_topic_close(topic));

  struct newer_options newer = {.known = {.size = sizeof newer, .depth = 2}};
  OK(myelin_topic_open(node, "newer", NULL, &newer.known, &topic));
  newer.later = 1;
  FAILS(myelin_topic_open(node, "newer", NULL, &newer.known, &topic), MYELIN_ERROR_SETTING,
        "newer library");
  OK(myelin_node_close(node));
  printf("older and newer\n");
  return 0;
}
