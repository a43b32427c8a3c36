/* Does what the lines of its input say, and answers each with a line: `publish N` samples of `imu`, or `update`
 * the watcher and print what it sees of that topic. tests/graph_watcher.rs starts two of it. */
#include <inttypes.h>
#include <math.h>

#include "check.h"

static myelin_node *node;
static myelin_publisher *publisher;
static myelin_graph_watcher *watcher;
static uint64_t counted_ns;

static void publish(int samples) {
  if (!publisher) {
    myelin_topic *topic;
    OK(myelin_topic_open(node, "imu", NULL, NULL, &topic));
    OK(myelin_publisher_open(topic, NULL, &publisher));
    OK(myelin_topic_close(topic));
  }
  for (int sample = 0; sample < samples; sample++)
    OK(myelin_publisher_publish_copy(publisher, &sample, sizeof sample, NULL));
  printf("published\n");
}

static void update(uint64_t limit_ns) {
  myelin_graph *graph;
  OK(myelin_graph_watcher_update(watcher, limit_ns, &graph));
  struct myelin_graph_time time = MYELIN_INIT(myelin_graph_time);
  OK(myelin_graph_time_of(graph, &time));
  CHECK(time.at_ns <= myelin_now() && time.since_ns < time.at_ns);
  struct myelin_graph_node of_node = MYELIN_INIT(myelin_graph_node);
  int silent = 0, stopped = 0;
  for (size_t each = 0; myelin_graph_node_at(graph, each, &of_node) == MYELIN_OK; each++) {
    silent += of_node.is_silent, stopped += of_node.is_stopped;
    CHECK(of_node.memory_bytes > 0 && of_node.threads > 0 && !(of_node.cpu_percent < 0));
  }
  struct myelin_graph_endpoint endpoint = MYELIN_INIT(myelin_graph_endpoint);
  myelin_graph_change change;
  int found = 0, gone = 0;
  for (size_t each = 0; myelin_graph_change_at(graph, each, &change, &endpoint) == MYELIN_OK; each++) {
    CHECK(strcmp(endpoint.topic, "imu") == 0);
    found += change == MYELIN_GRAPH_FOUND, gone += change == MYELIN_GRAPH_GONE;
  }
  struct myelin_graph_topic topic = MYELIN_INIT(myelin_graph_topic);
  if (myelin_graph_topic_at(graph, 0, &topic) == MYELIN_OK) {
    CHECK(strcmp(topic.name, "imu") == 0 && topic.memory_bytes > 0);
    CHECK(myelin_graph_topic_at(graph, 1, &topic) == MYELIN_NOTHING);
  }
  printf("publishers %zu subscribers %zu refused %zu silent %d stopped %d found %d gone %d", topic.publishers,
         topic.subscribers, topic.refused, silent, stopped, found, gone);
  for (size_t each = 0; each < topic.publishers; each++) {
    OK(myelin_graph_endpoint_at(graph, topic.first_endpoint + each, &endpoint));
    CHECK(endpoint.is_publisher);
    struct myelin_graph_counters counters = MYELIN_INIT(myelin_graph_counters);
    OK(myelin_graph_counters_at(graph, topic.first_endpoint + each, &counters));
    printf(" published %" PRIu64, counters.published);
    if (!isnan(endpoint.rate_hz)) printf(" since %.0f", endpoint.rate_hz * (double)(endpoint.counted_ns - counted_ns) / 1e9);
    counted_ns = endpoint.counted_ns;
    for (size_t of = 0; of < endpoint.matches; of++) {
      struct myelin_graph_match match = MYELIN_INIT(myelin_graph_match);
      OK(myelin_graph_match_at(graph, endpoint.first_match + of, &match));
      CHECK(match.endpoint == endpoint.endpoint);
      if (match.state == MYELIN_MATCH_REFUSED && match.setting == MYELIN_SETTING_RELIABILITY)
        printf(" offered %s", match.offered);
    }
  }
  printf("\n");
  OK(myelin_graph_close(graph));
}

int main(void) {
  char word[16];
  int number;
  OK(myelin_node_open("watcher", NULL, &node));
  OK(myelin_graph_watcher_open(node, "im?", &watcher));
  while (scanf("%15s %d", word, &number) == 2) {
    if (strcmp(word, "publish") == 0) publish(number);
    if (strcmp(word, "update") == 0) update((uint64_t)number * 1000000);
    fflush(stdout);
  }
  OK(myelin_graph_watcher_close(watcher));
  FAILS(myelin_graph_watcher_close(watcher), MYELIN_ERROR_HANDLE, "closed");
  OK(myelin_node_close(node));
  return 0;
}
