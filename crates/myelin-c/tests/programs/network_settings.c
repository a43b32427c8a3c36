/* Publishes large samples to another host, until their subscriber has gone: network_settings BULK_LANE
 * DATAGRAM_BYTES. */
#include "check.h"

enum { LARGE_BYTES = 64 << 10 };

int main(int argc, char **argv) {
  CHECK(argc == 3);
  struct myelin_node_options options = MYELIN_INIT(myelin_node_options);
  options.network = 1;
  options.bulk_lane = atoi(argv[1]);
  options.datagram_bytes = strtoull(argv[2], NULL, 10);
  struct myelin_topic_options reliable = MYELIN_INIT(myelin_topic_options);
  reliable.reliability = MYELIN_RELIABLE;
  reliable.reliable_ns = WATCHDOG_NS;
  myelin_node *node;
  myelin_topic *topic;
  myelin_publisher *publisher;
  OK(myelin_node_open("publisher", &options, &node));
  OK(myelin_topic_open(node, "large", NULL, &reliable, &topic));
  OK(myelin_publisher_open(topic, NULL, &publisher));
  OK(myelin_publisher_wait_for_match(publisher, 1, WATCHDOG_NS));
  static const char sample[LARGE_BYTES];
  size_t matched = 1;
  while (matched > 0) {
    OK(myelin_publisher_publish_copy(publisher, sample, sizeof sample, NULL));
    OK(myelin_publisher_matched(publisher, &matched));
  }
  OK(myelin_publisher_close(publisher));
  OK(myelin_topic_close(topic));
  OK(myelin_node_close(node));
  return 0;
}
