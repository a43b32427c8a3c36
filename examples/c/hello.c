/* Greetings from one program to another: bytes of any length.
 *
 * cc hello.c -lmyelin -o hello; in one terminal `./hello subscribe`, in another `./hello publish`. */
#include <myelin.h>
#include <stdio.h>
#include <string.h>

enum { GREETINGS = 5 };
#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

static int publish(myelin_topic *topic) {
  myelin_publisher *publisher;
  if (myelin_publisher_open(topic, NULL, &publisher)) return failed();
  if (myelin_publisher_wait_for_match(publisher, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `hello subscribe` within 30 s\n");
    return 0;
  }
  for (int number = 1; number <= GREETINGS; number++) {
    char text[32];
    int bytes = snprintf(text, sizeof text, "hello, number %d", number);
    if (myelin_publisher_publish_copy(publisher, text, bytes, NULL)) return failed();
  }
  printf("published %d greetings\n", GREETINGS);
  myelin_publisher_close(publisher);
  return 0;
}

static int subscribe(myelin_topic *topic) {
  myelin_subscriber *subscriber;
  if (myelin_subscriber_open(topic, NULL, &subscriber)) return failed();
  for (int each = 0; each < GREETINGS; each++) {
    struct myelin_sample greeting = MYELIN_INIT(myelin_sample);
    int code = myelin_subscriber_receive(subscriber, LIMIT_NS, &greeting);
    if (code < 0) return failed();
    if (code == MYELIN_NOTHING) {
      printf("nothing came for 30 s; start `hello publish`\n");
      return 0;
    }
    printf("%llu: %.*s\n", (unsigned long long)greeting.sequence, (int)greeting.bytes,
           (const char *)greeting.data);
    myelin_sample_release(&greeting);
  }
  myelin_subscriber_close(subscriber);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int publishes = !strcmp(role, "publish");
  if (!publishes && strcmp(role, "subscribe")) {
    fprintf(stderr, "usage: hello publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  myelin_topic *topic;
  if (myelin_node_open(publishes ? "hello-publisher" : "hello-subscriber", NULL, &node) ||
      myelin_topic_open(node, "hello", NULL, NULL, &topic))
    return failed();
  int status = publishes ? publish(topic) : subscribe(topic);
  myelin_topic_close(topic);
  myelin_node_close(node);
  return status;
}
