/* A sensor: a struct, checked on both sides. The same fields in Rust make the same layout hash.
 *
 * cc typed.c -lmyelin -o typed; in one terminal `./typed subscribe`, in another
 * `./typed publish`. Both end by themselves. */
#include <myelin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

struct imu {
  uint64_t stamp_ns;
  double acceleration[3];
  float temperature;
  uint8_t _pad[4]; /* There must be no padding: opening the topic says so, and where. */
};
static const struct myelin_field imu_fields[] = {
    MYELIN_FIELD(struct imu, stamp_ns),
    MYELIN_FIELD(struct imu, acceleration),
    MYELIN_FIELD(struct imu, temperature),
    MYELIN_FIELD(struct imu, _pad),
};
static const struct myelin_struct imu = MYELIN_STRUCT_OF(struct imu, "Imu", imu_fields);
static const struct myelin_payload payload = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&imu, 0));

enum { SAMPLES = 5 };

static int publish(myelin_node *node) {
  myelin_topic *topic;
  myelin_publisher *publisher;
  if (myelin_topic_open(node, "imu", &payload, NULL, &topic) ||
      myelin_publisher_open(topic, NULL, &publisher))
    return failed();
  if (myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `typed subscribe` within 30 s\n");
    return 0;
  }
  for (uint64_t number = 0; number < SAMPLES; number++) {
    struct imu sample = {number * 10000000, {0.0, 0.0, 9.81}, 21.5f, {0}};
    if (myelin_publisher_publish_copy(publisher, &sample, sizeof sample, NULL)) return failed();
  }
  printf("published %d samples\n", SAMPLES);
  myelin_publisher_close(publisher);
  myelin_topic_close(topic);
  return 0;
}

static int subscribe(myelin_node *node) {
  myelin_topic *topic;
  myelin_subscriber *subscriber;
  if (myelin_topic_open(node, "imu", &payload, NULL, &topic) ||
      myelin_subscriber_open(topic, NULL, &subscriber))
    return failed();
  for (int each = 0; each < SAMPLES; each++) {
    struct myelin_sample sample = MYELIN_INIT(myelin_sample);
    int code = myelin_subscriber_receive(subscriber, LIMIT_NS, &sample);
    if (code < 0) return failed();
    if (code == MYELIN_NOTHING) break;
    const struct imu *it = sample.data;
    printf("%llu ns: [%.1f, %.1f, %.2f] m/s², %.1f °C\n", (unsigned long long)it->stamp_ns,
           it->acceleration[0], it->acceleration[1], it->acceleration[2], it->temperature);
    myelin_sample_release(&sample);
  }
  myelin_subscriber_close(subscriber);
  myelin_topic_close(topic);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int publishes = !strcmp(role, "publish");
  if (!publishes && strcmp(role, "subscribe")) {
    fprintf(stderr, "usage: typed publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  if (myelin_node_open(publishes ? "imu-driver" : "filter", NULL, &node)) return failed();
  int status = publishes ? publish(node) : subscribe(node);
  myelin_node_close(node);
  return status;
}
