/* A subscriber as one of several descriptors in an epoll loop, here beside a timer.
 *
 * cc epoll.c -lmyelin -o epoll; in one terminal `./epoll subscribe`, in another
 * `./epoll publish`. Both end by themselves. */
#include <myelin.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

enum { SAMPLES = 10 };
static const struct myelin_payload speed = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE(MYELIN_F64, 2));

static int publish(myelin_node *node) {
  myelin_topic *topic;
  myelin_publisher *publisher;
  if (myelin_topic_open(node, "odometry", &speed, NULL, &topic) ||
      myelin_publisher_open(topic, NULL, &publisher))
    return failed();
  if (myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `epoll subscribe` within 30 s\n");
    return 0;
  }
  for (int step = 0; step < SAMPLES; step++) {
    double sample[2] = {step, 0.5};
    if (myelin_publisher_publish_copy(publisher, sample, sizeof sample, NULL)) return failed();
    usleep(20000);
  }
  printf("published %d samples\n", SAMPLES);
  myelin_publisher_close(publisher);
  myelin_topic_close(topic);
  return 0;
}

static int subscribe(myelin_node *node) {
  struct myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.descriptor = true;
  myelin_topic *topic;
  myelin_subscriber *odometry;
  int odometry_fd;
  if (myelin_topic_open(node, "odometry", &speed, NULL, &topic) ||
      myelin_subscriber_open(topic, &options, &odometry) ||
      myelin_subscriber_descriptor(odometry, &odometry_fd))
    return failed();
  int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec once = {.it_value = {.tv_sec = 30}};
  timerfd_settime(timer_fd, 0, &once, NULL);
  int loop_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_ctl(loop_fd, EPOLL_CTL_ADD, odometry_fd,
            &(struct epoll_event){.events = EPOLLIN, .data.fd = odometry_fd});
  epoll_ctl(loop_fd, EPOLL_CTL_ADD, timer_fd,
            &(struct epoll_event){.events = EPOLLIN, .data.fd = timer_fd});
  int taken = 0;
  /* First take the samples that have come already, then wait; take until nothing is left before waiting again. */
  while (taken < SAMPLES) {
    struct myelin_sample sample = MYELIN_INIT(myelin_sample);
    int code;
    while ((code = myelin_subscriber_take(odometry, &sample)) == MYELIN_OK) {
      const double *at = sample.data;
      printf("at %g m, %g m/s\n", at[0], at[1]);
      myelin_sample_release(&sample);
      taken++;
    }
    if (code < 0) return failed();
    if (taken < SAMPLES) {
      struct epoll_event event;
      if (epoll_wait(loop_fd, &event, 1, -1) == 1 && event.data.fd == timer_fd) {
        printf("not all came within 30 s; start `epoll publish`\n");
        break;
      }
    }
  }
  close(loop_fd);
  close(timer_fd);
  myelin_subscriber_close(odometry);
  myelin_topic_close(topic);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int publishes = !strcmp(role, "publish");
  if (!publishes && strcmp(role, "subscribe")) {
    fprintf(stderr, "usage: epoll publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  if (myelin_node_open(publishes ? "odometer" : "display", NULL, &node)) return failed();
  int status = publishes ? publish(node) : subscribe(node);
  myelin_node_close(node);
  return status;
}
