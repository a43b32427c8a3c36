/* `storm publisher|subscriber|client|server`: goes on until it is killed, and ends by itself if it finds a
 * fault. The test kills.rs starts it. */
#include <unistd.h>

#include "check.h"

enum { HEAD = 16, HELD = 8, BYTES_MAX = 50000 };

static size_t bytes_of(uint64_t number) {
  return HEAD + (number % 4 ? number * 7919 % BYTES_MAX : number % 80);
}

static void fill(void *data, size_t bytes, uint64_t number) {
  uint64_t head[] = {number, getpid()};
  memset(data, (int)(number & 0xff), bytes);
  memcpy(data, head, HEAD);
}

/* The number of a whole payload. */
static uint64_t check(const void *data, size_t bytes) {
  uint64_t number;
  memcpy(&number, data, sizeof number);
  CHECK(bytes == bytes_of(number));
  for (size_t at = HEAD; at < bytes; at++) CHECK(((const unsigned char *)data)[at] == (number & 0xff));
  return number;
}

static void publish(myelin_topic *topic) {
  myelin_publisher *publisher;
  OK(myelin_publisher_open(topic, NULL, &publisher));
  for (uint64_t number = 0;; number++) {
    struct myelin_loan loan = MYELIN_INIT(myelin_loan);
    struct myelin_published published = MYELIN_INIT(myelin_published);
    OK(myelin_publisher_loan(publisher, bytes_of(number), &loan));
    if (number % 10 == 0) {
      OK(myelin_publisher_discard(publisher, &loan));
      OK(myelin_publisher_loan(publisher, bytes_of(number), &loan));
    }
    fill(loan.data, loan.bytes, number);
    OK(myelin_publisher_publish(publisher, &loan, &published));
    CHECK(published.sequence == number);
    usleep(100);
  }
}

static void subscribe(myelin_topic *topic) {
  myelin_subscriber *subscriber;
  struct myelin_sample held[HELD] = {{0}};
  OK(myelin_subscriber_open(topic, NULL, &subscriber));
  for (size_t at = 0;; at = (at + 1) % HELD) {
    struct myelin_sample *sample = &held[at];
    if (sample->data) {
      CHECK(check(sample->data, sample->bytes) == sample->sequence);
      OK(myelin_sample_release(sample));
    }
    sample->size = sizeof *sample;
    if (myelin_subscriber_receive(subscriber, WATCHDOG_NS, sample) == MYELIN_NOTHING) continue;
    CHECK(check(sample->data, sample->bytes) == sample->sequence);
  }
}

static void call(myelin_node *node) {
  myelin_client *client;
  unsigned char request[HEAD + BYTES_MAX];
  OK(myelin_client_open(node, "survivor", NULL, NULL, &client));
  for (uint64_t number = 0;; number++) {
    struct myelin_reply reply = MYELIN_INIT(myelin_reply);
    fill(request, bytes_of(number), number);
    OK(myelin_client_call(client, request, bytes_of(number), WATCHDOG_NS, &reply));
    CHECK(check(reply.data, reply.bytes) == number);
    OK(myelin_reply_release(&reply));
  }
}

static void serve(myelin_node *node) {
  myelin_server *server;
  OK(myelin_server_open(node, "victim", NULL, NULL, &server));
  for (;;) {
    struct myelin_request request = MYELIN_INIT(myelin_request);
    struct myelin_loan loan = MYELIN_INIT(myelin_loan);
    if (myelin_server_receive(server, WATCHDOG_NS, &request) == MYELIN_NOTHING) continue;
    uint64_t number = check(request.data, request.bytes);
    OK(myelin_request_loan(&request, request.bytes, &loan));
    fill(loan.data, loan.bytes, number);
    OK(myelin_request_send(&request, &loan));
    OK(myelin_request_release(&request));
  }
}

int main(int argc, char **argv) {
  myelin_node *node;
  myelin_topic *topic;
  CHECK(argc == 2);
  OK(myelin_node_open("victim", NULL, &node));
  OK(myelin_topic_open(node, "storm", NULL, NULL, &topic));
  switch (argv[1][0]) {
  case 'p': publish(topic); break;
  case 's': argv[1][1] == 'u' ? subscribe(topic) : serve(node); break;
  case 'c': call(node); break;
  }
  return 2;
}
