/* A queue of jobs; none may be lost. It is reliable, so the publisher waits for a slow worker.
 *
 * cc queue.c -lmyelin -o queue; in one terminal `./queue subscribe`, in another
 * `./queue publish`. Both end by themselves. */
#include <myelin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

enum { JOBS = 100000 };

/* Both sides must be reliable; each chooses how long the queue is and how long to wait. */
static const struct myelin_topic_options jobs = {.size = sizeof jobs,
                                                 .depth = 64,
                                                 .reliability = MYELIN_RELIABLE_OR_FAIL,
                                                 .reliable_ns = 10000000000u};
static const struct myelin_payload job_type = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE(MYELIN_U64, 0));

static int publish(myelin_node *node) {
  myelin_topic *topic;
  myelin_publisher *publisher;
  if (myelin_topic_open(node, "jobs", &job_type, &jobs, &topic) ||
      myelin_publisher_open(topic, NULL, &publisher))
    return failed();
  if (myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `queue subscribe` within 30 s\n");
    return 0;
  }
  for (uint64_t job = 0; job < JOBS; job++) /* waits while the worker is 64 jobs behind */
    if (myelin_publisher_publish_copy(publisher, &job, sizeof job, NULL)) return failed();
  printf("published %d jobs\n", JOBS);
  myelin_publisher_close(publisher);
  myelin_topic_close(topic);
  return 0;
}

static int subscribe(myelin_node *node) {
  myelin_topic *topic;
  myelin_subscriber *subscriber;
  if (myelin_topic_open(node, "jobs", &job_type, &jobs, &topic) ||
      myelin_subscriber_open(topic, NULL, &subscriber))
    return failed();
  unsigned long long sum = 0;
  for (int done = 0; done < JOBS; done++) {
    struct myelin_sample job = MYELIN_INIT(myelin_sample);
    int code = myelin_subscriber_receive(subscriber, LIMIT_NS, &job);
    if (code < 0) return failed();
    if (code == MYELIN_NOTHING) {
      printf("nothing came for 30 s after %d jobs\n", done);
      return 0;
    }
    sum += *(const uint64_t *)job.data;
    myelin_sample_release(&job);
  }
  uint64_t lost;
  if (myelin_subscriber_lost(subscriber, &lost)) return failed();
  printf("did %d jobs, lost %llu, sum %llu\n", JOBS, (unsigned long long)lost, sum);
  struct myelin_event event = MYELIN_INIT(myelin_event);
  while (myelin_subscriber_event(subscriber, &event) == MYELIN_OK)
    if (event.kind == MYELIN_EVENT_UNMATCHED && event.died)
      printf("the planner, process %u, has died\n", event.pid);
  myelin_subscriber_close(subscriber);
  myelin_topic_close(topic);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int publishes = !strcmp(role, "publish");
  if (!publishes && strcmp(role, "subscribe")) {
    fprintf(stderr, "usage: queue publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  if (myelin_node_open(publishes ? "planner" : "worker", NULL, &node)) return failed();
  int status = publishes ? publish(node) : subscribe(node);
  myelin_node_close(node);
  return status;
}
