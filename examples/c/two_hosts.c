/* A robot's pose, on its own host and on others: the same two programs, a node that is opened to the
 * network. Both need CycloneDDS.
 *
 * cc two_hosts.c -lmyelin -o two_hosts; in one terminal `./two_hosts subscribe`, in another
 * `./two_hosts publish`. Both end by themselves. */
#include <myelin.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

enum { POSES = 10 };
struct pose {
  double x, y, heading;
};
static const struct myelin_field pose_fields[] = {
    MYELIN_FIELD(struct pose, x), MYELIN_FIELD(struct pose, y), MYELIN_FIELD(struct pose, heading)};
static const struct myelin_struct pose = MYELIN_STRUCT_OF(struct pose, "Pose", pose_fields);
static const struct myelin_payload of_pose = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&pose, 0));
static const struct myelin_topic_options reliable = {
    .size = sizeof reliable, .reliability = MYELIN_RELIABLE, .reliable_ns = 10000000000u};

static int publish(myelin_node *node) {
  myelin_topic *topic;
  myelin_publisher *publisher;
  if (myelin_topic_open(node, "pose", &of_pose, &reliable, &topic) ||
      myelin_publisher_open(topic, NULL, &publisher))
    return failed();
  if (myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `two_hosts subscribe` within 30 s\n");
    return 0;
  }
  for (int step = 0; step < POSES; step++) {
    struct pose at = {step, step / 2.0, 0.25};
    if (myelin_publisher_publish_copy(publisher, &at, sizeof at, NULL)) return failed();
    usleep(20000);
  }
  printf("published %d poses\n", POSES);
  myelin_publisher_close(publisher);
  myelin_topic_close(topic);
  return 0;
}

static int subscribe(myelin_node *node) {
  myelin_topic *topic;
  myelin_subscriber *subscriber;
  if (myelin_topic_open(node, "pose", &of_pose, &reliable, &topic) ||
      myelin_subscriber_open(topic, NULL, &subscriber))
    return failed();
  for (int each = 0; each < POSES; each++) {
    struct myelin_sample sample = MYELIN_INIT(myelin_sample);
    int code = myelin_subscriber_receive(subscriber, LIMIT_NS, &sample);
    if (code < 0) return failed();
    if (code == MYELIN_NOTHING) {
      printf("nothing came for 30 s; start `two_hosts publish`\n");
      return 0;
    }
    const struct pose *at = sample.data;
    printf("at %g m, %g m, heading %g rad\n", at->x, at->y, at->heading);
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
    fprintf(stderr, "usage: two_hosts publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  struct myelin_node_options options = MYELIN_INIT(myelin_node_options);
  options.network = 1;
  if (myelin_node_open(publishes ? "robot" : "map", &options, &node)) return failed();
  char reason[256];
  myelin_network network;
  if (myelin_node_network(node, reason, sizeof reason, &network)) return failed();
  if (network == MYELIN_NETWORK_WAITING) fprintf(stderr, "alone for now: %s\n", reason);
  int status = publishes ? publish(node) : subscribe(node);
  myelin_node_close(node);
  return status;
}
