/* A camera: images whose size is known only at run time, written straight into shared memory and read
 * there, in a callback. Nothing is copied.
 *
 * cc image.c -lmyelin -pthread -o image; in one terminal `./image subscribe`, in another
 * `./image publish`. Both end by themselves. */
#include <myelin.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

enum { FRAMES = 10 };
static const struct myelin_topic_options reliable = {
    .size = sizeof reliable, .reliability = MYELIN_RELIABLE, .reliable_ns = 10000000000u};

static int publish(myelin_node *node) {
  myelin_topic *topic;
  myelin_publisher *publisher;
  if (myelin_topic_open(node, "image", NULL, &reliable, &topic) ||
      myelin_publisher_open(topic, NULL, &publisher))
    return failed();
  if (myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `image subscribe` within 30 s\n");
    return 0;
  }
  for (int frame = 0; frame < FRAMES; frame++) {
    size_t bytes = frame % 2 == 0 ? 320 * 240 * 3 : 1440 * 1080 * 3;
    struct myelin_loan image = MYELIN_INIT(myelin_loan);
    if (myelin_publisher_loan(publisher, bytes, &image)) return failed();
    memset(image.data, frame, bytes); /* the exposure */
    if (myelin_publisher_publish(publisher, &image, NULL)) return failed();
  }
  printf("published %d images\n", FRAMES);
  myelin_publisher_close(publisher);
  myelin_topic_close(topic);
  return 0;
}

static void show(const struct myelin_sample *image, void *finished) {
  const unsigned char *pixels = image->data;
  unsigned long long sum = 0, number = image->sequence;
  for (size_t each = 0; each < image->bytes; each++) sum += pixels[each];
  printf("image %llu: %zu B, brightness %llu\n", number, image->bytes, sum / image->bytes);
  if (number + 1 == FRAMES) sem_post(finished);
}

static int subscribe(myelin_node *node) {
  myelin_topic *topic;
  myelin_subscriber *subscriber;
  myelin_callback *callback;
  sem_t finished;
  sem_init(&finished, 0, 0);
  if (myelin_topic_open(node, "image", NULL, &reliable, &topic) ||
      myelin_subscriber_open(topic, NULL, &subscriber) ||
      myelin_subscriber_on_sample(subscriber, show, &finished, NULL, &callback))
    return failed();
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  if (sem_timedwait(&finished, &until))
    printf("not all images came within 60 s; start `image publish`\n");
  myelin_callback_close(callback);
  myelin_topic_close(topic);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int publishes = !strcmp(role, "publish");
  if (!publishes && strcmp(role, "subscribe")) {
    fprintf(stderr, "usage: image publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  if (myelin_node_open(publishes ? "camera" : "viewer", NULL, &node)) return failed();
  int status = publishes ? publish(node) : subscribe(node);
  myelin_node_close(node);
  return status;
}
