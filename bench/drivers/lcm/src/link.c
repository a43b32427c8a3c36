/* The adaptor: one role of a round trip or of a stream over LCM's UDP multicast, as the functions
 * of the kit's table.
 *
 * Topic n is the channel `<run>_ping<n>`; pong answers on `<run>_pong0`. A ping that only publishes
 * has a data object of LCM without receiving socket and thread. The ends find each other through
 * another object, see match().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <lcm/lcm.h>

#include "loopback.h"
#include "myelin_bench_kit.h"

/* LCM's default group. */
#define GROUP "239.255.76.67"

enum {
  /* LCM's limit is 63, including `_ping` and a number. */
  RUN_CHARACTERS_MAX = 48,
  CHANNEL_BYTES = 64,
  URL_BYTES = 128,
  /* LCM's default port; the domain is added to it. */
  PORT = 7667,
  /* Interval of calls. An end that hears a call answers at once. */
  CALL_EVERY_MS = 10,
  /* The last call says that all have been heard. It is repeated because it may be lost. */
  LAST_CALLS = 3,
  /* Among many ends more calls are lost, so each end stays until no call has come for this long. */
  LINGER_MS = 300
};

/* What an end reports while the ends look for each other; both are processes of one host. */
struct hello {
  uint32_t is_ping;
  uint32_t index;
  uint64_t heard; /* ends of the other side: bit n for index n */
};

struct matching {
  lcm_t *lcm;
  char channel[CHANNEL_BYTES];
  struct hello mine;
  uint64_t expected; /* bits of all ends of the other side */
  uint64_t heard_by; /* ends that have heard this one */
  bool news;
};

struct link {
  lcm_t *lcm;
  int ready_fd; /* readable if there is a message; -1 for ping of a stream */
  bool is_ready;
  char (*channels)[CHANNEL_BYTES]; /* the channels that this end publishes to, by topic */
  uint32_t selected;
  size_t message_bytes;  /* of the largest message */
  size_t received_bytes; /* of the last one */
  void *received;
  bool has_received;
  bool is_foreign; /* a message of another size has arrived */
};

static void close_link(void *context)
{
  struct link *link = context;
  if (link == NULL)
    return;
  if (link->lcm != NULL)
    lcm_destroy(link->lcm);
  free(link->channels);
  free(link->received);
  free(link);
}

/* The largest receive buffer that the kernel allows; 0 if it does not say. */
static unsigned long receive_buffer_max(void)
{
  unsigned long bytes = 0;
  FILE *file = fopen("/proc/sys/net/core/rmem_max", "r");
  if (file == NULL)
    return 0;
  if (fscanf(file, "%lu", &bytes) != 1)
    bytes = 0;
  (void)fclose(file);
  return bytes;
}

/* An LCM object whose packets stay on this host (ttl=0) and on its loopback interface. */
static lcm_t *create_lcm(uint32_t domain)
{
  char url[URL_BYTES];
  (void)snprintf(url, sizeof url, "udpm://" GROUP ":%u?ttl=0&recv_buf_size=%lu",
                 PORT + domain, receive_buffer_max());
  const unsigned before = myelin_lcm_joined_on_loopback();
  lcm_t *lcm = lcm_create(url);
  if (lcm == NULL) {
    (void)myelin_bench_fail("see this run's log; if it has no route: ip route add " GROUP " dev lo",
                            "LCM: it could not be created");
    return NULL;
  }
  if (myelin_lcm_joined_on_loopback() == before) {
    (void)myelin_bench_fail(NULL, "LCM: its sockets are not on the loopback interface");
    lcm_destroy(lcm);
    return NULL;
  }
  return lcm;
}

/* Copies the message, which is only valid during this call. A decoder of lcm-gen makes a copy, too.
 */
static void on_message(const lcm_recv_buf_t *buffer, const char *channel, void *context)
{
  struct link *link = context;
  (void)channel;
  if (buffer->data_size > link->message_bytes) {
    link->is_foreign = true;
    return;
  }
  memcpy(link->received, buffer->data, buffer->data_size);
  link->received_bytes = buffer->data_size;
  link->has_received = true;
}

static int subscribe(struct link *link, const struct myelin_bench_prepare *prepare)
{
  const unsigned before = myelin_lcm_joined_on_loopback();
  link->received = calloc(1, link->message_bytes);
  if (link->received == NULL)
    return myelin_bench_fail(NULL, "LCM: out of memory");
  for (uint32_t topic = 0; topic < prepare->topics; topic++) {
    char channel[CHANNEL_BYTES];
    (void)snprintf(channel, sizeof channel, "%s_%s%" PRIu32, prepare->run,
                   prepare->is_ping ? "pong" : "ping", topic);
    lcm_subscription_t *subscription = lcm_subscribe(link->lcm, channel, on_message, link);
    if (subscription == NULL)
      return myelin_bench_fail("its own message is in this run's log", "LCM: subscribing");
    if (prepare->one_way)
      (void)lcm_subscription_set_queue_capacity(subscription, (int)prepare->depth);
  }
  if (myelin_lcm_joined_on_loopback() == before)
    return myelin_bench_fail(NULL, "LCM: its receiving socket is not on the loopback interface");
  link->ready_fd = lcm_get_fileno(link->lcm);
  return 0;
}

static int name_channels(struct link *link, const struct myelin_bench_prepare *prepare)
{
  link->channels = calloc(prepare->topics, sizeof *link->channels);
  if (link->channels == NULL)
    return myelin_bench_fail(NULL, "LCM: out of memory");
  for (uint32_t topic = 0; topic < prepare->topics; topic++)
    (void)snprintf(link->channels[topic], CHANNEL_BYTES, "%s_%s%" PRIu32, prepare->run,
                   prepare->is_ping ? "ping" : "pong", topic);
  return 0;
}

static void on_hello(const lcm_recv_buf_t *buffer, const char *channel, void *context)
{
  struct matching *matching = context;
  struct hello hello;
  (void)channel;
  if (buffer->data_size != sizeof hello)
    return;
  memcpy(&hello, buffer->data, sizeof hello);
  if (hello.is_ping == matching->mine.is_ping || hello.index >= 64)
    return;
  const uint64_t bit = (uint64_t)1 << hello.index & matching->expected;
  const uint64_t me = (uint64_t)1 << matching->mine.index;
  const uint64_t heard_by = hello.heard & me ? bit : 0;
  /* Answered until it has heard the answer. */
  matching->news |= bit != 0 && heard_by == 0;
  matching->mine.heard |= bit;
  matching->heard_by |= heard_by;
}

static int say_hello(struct matching *matching)
{
  const int status =
      lcm_publish(matching->lcm, matching->channel, &matching->mine, sizeof matching->mine);
  return status == 0 ? 0 : myelin_bench_fail(strerror(errno), "LCM: publishing");
}

static int timed_out(const struct matching *matching)
{
  const uint64_t missing = matching->expected & ~(matching->mine.heard & matching->heard_by);
  unsigned index = 0;
  while ((missing >> index & 1) == 0)
    index++;
  return myelin_bench_fail(
      "see the other side's log; match_timeout_ms sets the limit", "LCM: timeout: %s%u %s",
      matching->mine.is_ping ? "pong" : "ping", index,
      matching->mine.heard >> index & 1 ? "does not hear this side" : "did not connect");
}

/* Calls until each end of the other side has been heard, and has reported that it hears this end.
 */
static int call(struct matching *matching, uint64_t until_ns)
{
  struct pollfd ready = {.fd = lcm_get_fileno(matching->lcm), .events = POLLIN};
  int status = say_hello(matching);
  while (status == 0 && (matching->mine.heard & matching->heard_by) != matching->expected) {
    if (myelin_bench_now_ns() >= until_ns)
      return timed_out(matching);
    matching->news = poll(&ready, 1, CALL_EVERY_MS) == 0;
    if ((ready.revents & POLLIN) != 0 && lcm_handle(matching->lcm) != 0)
      return myelin_bench_fail(NULL, "LCM: handling a message");
    if (matching->news)
      status = say_hello(matching);
  }
  for (int calls = 0; status == 0 && calls < LAST_CALLS; calls++)
    status = say_hello(matching);
  return status;
}

/* Answers ends that have not heard this one yet, until there are none. */
static int linger(struct matching *matching, uint64_t until_ns)
{
  struct pollfd ready = {.fd = lcm_get_fileno(matching->lcm), .events = POLLIN};
  const uint64_t linger_ns = (uint64_t)LINGER_MS * 1000000;
  uint64_t asked_ns = myelin_bench_now_ns();
  int status = 0;
  for (uint64_t now_ns = asked_ns; status == 0 && now_ns - asked_ns < linger_ns && now_ns < until_ns;
       now_ns = myelin_bench_now_ns()) {
    matching->news = false;
    if (poll(&ready, 1, CALL_EVERY_MS) <= 0)
      continue;
    if (lcm_handle(matching->lcm) != 0)
      return myelin_bench_fail(NULL, "LCM: handling a message");
    if (matching->news) {
      asked_ns = now_ns;
      status = say_hello(matching);
    }
  }
  return status;
}

/* LCM has no discovery: its publishers know no subscribers. So each end, once it has subscribed to
 * its topics, calls over a channel of the run that carries no data, until all ends of the other
 * side have answered. The object for this is destroyed before anything is measured. */
static int match(const struct myelin_bench_prepare *prepare)
{
  const uint64_t until_ns = prepare->match_until_ns;
  const uint32_t count = prepare->others;
  struct matching matching = {.mine = {.is_ping = prepare->is_ping != 0,
                                       .index = prepare->index}};
  if (count > 64 || matching.mine.index >= 64)
    return myelin_bench_fail(NULL, "LCM: more than 64 processes of a role");
  matching.expected = count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
  (void)snprintf(matching.channel, sizeof matching.channel, "%s_here", prepare->run);
  matching.lcm = create_lcm(prepare->domain);
  if (matching.lcm == NULL)
    return -1;
  int status = 0;
  if (lcm_subscribe(matching.lcm, matching.channel, on_hello, &matching) == NULL)
    status = myelin_bench_fail("its own message is in this run's log", "LCM: subscribing");
  if (status == 0)
    status = call(&matching, until_ns);
  if (status == 0 && prepare->publishers + prepare->subscribers > 2)
    status = linger(&matching, until_ns);
  lcm_destroy(matching.lcm);
  return status;
}

static int open_link(const struct myelin_bench_prepare *prepare, void **context)
{
  if (strlen(prepare->run) > RUN_CHARACTERS_MAX)
    return myelin_bench_fail("at most 48 characters", "LCM: the run's name is too long for a channel");
  struct link *link = calloc(1, sizeof *link);
  if (link == NULL)
    return myelin_bench_fail(NULL, "LCM: out of memory");
  link->ready_fd = -1;
  link->message_bytes = (size_t)prepare->message_bytes;
  link->lcm = create_lcm(prepare->domain);
  int status = link->lcm == NULL ? -1 : name_channels(link, prepare);
  if (status == 0 && prepare->subscribes)
    status = subscribe(link, prepare);
  if (status == 0)
    status = match(prepare);
  if (status != 0) {
    close_link(link);
    return status;
  }
  *context = link;
  return 0;
}

static void select_topic(void *context, uint32_t topic)
{
  struct link *link = context;
  link->selected = topic;
}

static int publish(void *context, const void *message, size_t bytes)
{
  struct link *link = context;
  const char *channel = link->channels[link->selected];
  const int status = lcm_publish(link->lcm, channel, message, (unsigned)bytes);
  return status == 0 ? 0 : myelin_bench_fail(strerror(errno), "LCM: publishing");
}

/* Like lcm_handle_timeout before it handles a message, but with nanoseconds. */
static int wait_for_message(void *context, uint64_t until_ns)
{
  struct link *link = context;
  const uint64_t left_ns = myelin_bench_left_ns(until_ns);
  const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                .tv_nsec = (long)(left_ns % 1000000000u)};
  struct pollfd ready = {.fd = link->ready_fd, .events = POLLIN};
  const int found = ppoll(&ready, 1, &left, NULL);
  if (found < 0 && errno != EINTR)
    return myelin_bench_fail(strerror(errno), "LCM: waiting");
  link->is_ready = found > 0;
  return link->is_ready;
}

static int take(void *context, uint64_t until_ns, const void **message, size_t *bytes)
{
  struct link *link = context;
  (void)until_ns;
  if (!link->is_ready) /* lcm_handle would wait */
    return 0;
  link->is_ready = false;
  link->has_received = false;
  if (lcm_handle(link->lcm) != 0)
    return myelin_bench_fail("its own message is in this run's log", "LCM: handling a message");
  if (link->is_foreign)
    return myelin_bench_fail(NULL, "LCM: a message that is larger than prepared");
  *message = link->received;
  *bytes = link->received_bytes;
  return link->has_received;
}

/* LCM refuses to start on a host without a route to its group, even if it would not use the route.
 */
void myelin_lcm_probe(struct myelin_bench_system *system)
{
  const struct sockaddr_in group = {.sin_family = AF_INET,
                                    .sin_port = htons(PORT), /* any port */
                                    .sin_addr.s_addr = inet_addr(GROUP)};
  const int asking = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (asking < 0)
    return;
  if (connect(asking, (const struct sockaddr *)&group, sizeof group) != 0 && errno == ENETUNREACH)
    system->missing = "no route for multicast: ip route add " GROUP
                      " dev lo (as root, until the next start)";
  (void)close(asking);
}

const struct myelin_bench_link myelin_lcm_link = {MYELIN_BENCH_SIZE(link),
                                                  .open = open_link,
                                                  .publish = publish,
                                                  .wait = wait_for_message,
                                                  .take = take,
                                                  .close = close_link,
                                                  .select = select_topic};
