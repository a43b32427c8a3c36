/* Sixteen threads of a C program use the library at random: publish, take, wait, call, add, remove, change, close,
 * fork, signal. Nothing hangs or is left, and each subscriber has received or lost every sample published to it.
 *   MYELIN_TORTURE_SEED     the choices of each thread; their timing depends on the machine
 *   MYELIN_TORTURE_S        the duration
 *   MYELIN_TORTURE_WITHOUT  operations to leave out, separated by commas */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 16, TOPICS = 4, EACH_MAX = 3, ROUND = 200, KNOWN_MAX = 4096, HELD_MAX = 8, SLACK = 8,
       SETS = 4 };

/* The samples received by a subscriber: by publisher, the next sequence. */
struct ledger {
  pthread_mutex_t lock;
  struct known {
    uint64_t publisher, next;
  } known[KNOWN_MAX];
  size_t count;
  uint64_t received;
};

struct subscribed {
  myelin_subscriber *subscriber;
  myelin_callback *callback; /* or this */
  struct ledger *ledger;
};

struct actor {
  unsigned number;
  uint64_t random;
  pthread_t thread;
  _Atomic(const char *) doing;
  myelin_topic *topics[TOPICS];
  myelin_publisher *publishers[EACH_MAX];
  struct subscribed subscribed[EACH_MAX], called[EACH_MAX];
  struct myelin_sample held[HELD_MAX];
  myelin_server *server;
  myelin_client *client;
};

static myelin_node *node;
static struct actor actors[THREADS];
/* Sets that one thread waits in while others change and close them. */
static _Atomic(myelin_wait_set *) sets[SETS];
static pthread_barrier_t barrier;
static _Atomic uint64_t done;
static _Atomic int stops;
static struct known published[THREADS * EACH_MAX];
static uint64_t seed;

#define SAY_AND(end, ...)                                                   \
  do {                                                                      \
    fprintf(stderr, __VA_ARGS__);                                           \
    fprintf(stderr, ", MYELIN_TORTURE_SEED=%llu\n", (unsigned long long)seed); \
    end;                                                                    \
  } while (0)
#define EXPECT(condition)                                                                                    \
  do {                                                                                                       \
    if (!(condition)) SAY_AND(abort(), "%s:%d: %s (%s)", __FILE__, __LINE__, #condition, myelin_error_message()); \
  } while (0)
#define EXPECT_OK(call) EXPECT((call) == MYELIN_OK)

static size_t below(struct actor *actor, size_t limit) {
  actor->random = actor->random * 6364136223846793005u + 1442695040888963407u;
  return (actor->random >> 33) % limit;
}

static size_t some_bytes(struct actor *actor) {
  static const size_t bytes[] = {1, 8, 100, 105, 4000, 40000};
  return bytes[below(actor, sizeof bytes / sizeof *bytes)];
}

/* Samples between two received ones of a publisher are lost, and reported as lost. */
static void enter(struct ledger *ledger, const struct myelin_sample *sample) {
  const unsigned char *data = sample->data;
  for (size_t at = 0; at < sample->bytes; at++) EXPECT(data[at] == (unsigned char)sample->bytes);
  pthread_mutex_lock(&ledger->lock);
  size_t at = 0;
  while (at < ledger->count && ledger->known[at].publisher != sample->publisher) at++;
  EXPECT(at < KNOWN_MAX);
  if (at == ledger->count)
    ledger->known[ledger->count++].publisher = sample->publisher;
  else
    EXPECT(ledger->known[at].next + sample->lost_before == sample->sequence);
  ledger->known[at].next = sample->sequence + 1;
  ledger->received++;
  pthread_mutex_unlock(&ledger->lock);
}

/* Whether all that each publisher has published was received or lost. */
static int is_complete(struct ledger *ledger) {
  int complete = 1;
  pthread_mutex_lock(&ledger->lock);
  for (size_t at = 0; at < ledger->count; at++)
    for (size_t each = 0; each < THREADS * EACH_MAX; each++)
      if (published[each].publisher == ledger->known[at].publisher)
        complete &= published[each].next == ledger->known[at].next;
  pthread_mutex_unlock(&ledger->lock);
  return complete;
}

static struct ledger *new_ledger(void) {
  struct ledger *ledger = calloc(1, sizeof *ledger);
  pthread_mutex_init(&ledger->lock, NULL);
  return ledger;
}

static void free_ledger(void *ledger) { free(ledger); }

static void publish(struct actor *actor) {
  static char bytes[THREADS][40000];
  myelin_publisher *publisher = actor->publishers[below(actor, EACH_MAX)];
  size_t count = some_bytes(actor);
  if (publisher == NULL) return;
  memset(bytes[actor->number], (int)count, count);
  EXPECT_OK(myelin_publisher_publish_copy(publisher, bytes[actor->number], count, NULL));
}

static void publish_loan(struct actor *actor) {
  myelin_publisher *publisher = actor->publishers[below(actor, EACH_MAX)];
  size_t count = some_bytes(actor);
  if (publisher == NULL) return;
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  EXPECT_OK(myelin_publisher_loan(publisher, count, &loan));
  memset(loan.data, (int)count, count);
  if (below(actor, 8) == 0)
    EXPECT_OK(myelin_publisher_discard(publisher, &loan));
  else
    EXPECT_OK(myelin_publisher_publish(publisher, &loan, NULL));
}

static void release(struct actor *actor) {
  for (size_t at = 0; at < HELD_MAX; at++)
    if (actor->held[at].data != NULL) EXPECT_OK(myelin_sample_release(&actor->held[at]));
}

static void take(struct actor *actor) {
  struct subscribed *from = &actor->subscribed[below(actor, EACH_MAX)];
  size_t most = below(actor, 32);
  for (size_t count = 0; from->subscriber != NULL && count < most; count++) {
    struct myelin_sample sample = MYELIN_INIT(myelin_sample);
    enum myelin_code code = count == 0 ? myelin_subscriber_receive(from->subscriber, below(actor, 200000), &sample)
                                       : myelin_subscriber_take(from->subscriber, &sample);
    if (code == MYELIN_ERROR_TOO_MANY) release(actor);
    if (code != MYELIN_OK) {
      EXPECT(code == MYELIN_NOTHING || code == MYELIN_ERROR_TOO_MANY);
      return;
    }
    enter(from->ledger, &sample);
    struct myelin_sample *held = &actor->held[below(actor, HELD_MAX)];
    if (held->data == NULL && below(actor, 4) == 0) {
      *held = (struct myelin_sample)MYELIN_INIT(myelin_sample);
      EXPECT_OK(myelin_sample_clone(&sample, held));
    }
    EXPECT_OK(myelin_sample_release(&sample));
  }
}

static void wait_set(struct actor *actor) {
  myelin_wait_set *set;
  myelin_guard_condition *guard;
  uint64_t keys[8];
  size_t count;
  enum myelin_code code = myelin_wait_set_open(node, &set);
  if (code == MYELIN_ERROR_TOO_MANY) return; /* others have them all */
  EXPECT_OK(code);
  for (size_t at = 0; at < EACH_MAX; at++)
    if (actor->subscribed[at].subscriber != NULL)
      EXPECT_OK(myelin_wait_set_add(set, actor->subscribed[at].subscriber, at));
  EXPECT_OK(myelin_wait_set_guard_condition(set, 9, &guard));
  if (below(actor, 2) == 0) EXPECT_OK(myelin_guard_condition_trigger(guard));
  EXPECT(myelin_wait_set_wait(set, below(actor, 500000), keys, 8, &count) >= 0);
  if (below(actor, 2) == 0) {
    EXPECT_OK(myelin_guard_condition_close(guard));
    EXPECT_OK(myelin_wait_set_close(set));
  } else {
    EXPECT_OK(myelin_wait_set_close(set));
    EXPECT_OK(myelin_guard_condition_close(guard));
  }
}

static void add_publisher(struct actor *actor) {
  myelin_publisher **place = &actor->publishers[below(actor, EACH_MAX)];
  if (*place == NULL) EXPECT_OK(myelin_publisher_open(actor->topics[below(actor, TOPICS)], NULL, place));
}

static void subscribe(struct actor *actor, struct subscribed *to) {
  struct myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.publishers_max = 256;
  options.held_max = 64;
  to->ledger = new_ledger();
  EXPECT_OK(myelin_subscriber_open(actor->topics[below(actor, TOPICS)], &options, &to->subscriber));
}

static void add_subscriber(struct actor *actor) {
  struct subscribed *place = &actor->subscribed[below(actor, EACH_MAX)];
  if (place->subscriber == NULL) subscribe(actor, place);
}

static void called_with(const struct myelin_sample *sample, void *ledger) { enter(ledger, sample); }

static void add_callback(struct actor *actor) {
  struct subscribed *place = &actor->called[below(actor, EACH_MAX)];
  if (place->callback != NULL) return;
  subscribe(actor, place);
  EXPECT_OK(myelin_subscriber_on_sample(place->subscriber, called_with, place->ledger, free_ledger, &place->callback));
}

static void remove_publisher(struct actor *actor) {
  myelin_publisher **place = &actor->publishers[below(actor, EACH_MAX)];
  if (*place != NULL) EXPECT_OK(myelin_publisher_close(*place));
  *place = NULL;
}

static void remove_subscriber(struct actor *actor) {
  struct subscribed *place = &actor->subscribed[below(actor, EACH_MAX)];
  if (place->subscriber == NULL) return;
  EXPECT_OK(myelin_subscriber_close(place->subscriber));
  free_ledger(place->ledger);
  memset(place, 0, sizeof *place);
}

static void remove_callback(struct actor *actor) {
  struct subscribed *place = &actor->called[below(actor, EACH_MAX)];
  if (place->callback != NULL) EXPECT_OK(myelin_callback_close(place->callback));
  memset(place, 0, sizeof *place);
}

static void name_service(char name[32], size_t number) { snprintf(name, 32, "service%zu", number); }

static void serve(struct actor *actor) {
  char name[32];
  name_service(name, actor->number);
  if (actor->server == NULL) EXPECT_OK(myelin_server_open(node, name, NULL, NULL, &actor->server));
  struct myelin_request request = MYELIN_INIT(myelin_request);
  while (myelin_server_receive(actor->server, 0, &request) == MYELIN_OK) {
    if (below(actor, 8) > 0) EXPECT_OK(myelin_request_reply(&request, request.data, request.bytes));
    EXPECT_OK(myelin_request_release(&request));
  }
}

static void call(struct actor *actor) {
  char name[32];
  struct myelin_reply reply = MYELIN_INIT(myelin_reply);
  name_service(name, below(actor, THREADS));
  if (actor->client == NULL) EXPECT_OK(myelin_client_open(node, name, NULL, NULL, &actor->client));
  enum myelin_code code = myelin_client_call(actor->client, name, sizeof name, below(actor, 2000000), &reply);
  if (code == MYELIN_OK) {
    EXPECT(reply.bytes == sizeof name && memcmp(reply.data, name, sizeof name) == 0);
    EXPECT_OK(myelin_reply_release(&reply));
  } else {
    EXPECT((code <= MYELIN_ERROR_NO_SERVER && code >= MYELIN_ERROR_REPLY_TIMEOUT) || code == MYELIN_ERROR_TOO_MANY);
  }
}

static void close_all(struct actor *actor) {
  release(actor);
  if (actor->client != NULL) EXPECT_OK(myelin_client_close(actor->client));
  if (actor->server != NULL) EXPECT_OK(myelin_server_close(actor->server));
  actor->client = NULL;
  actor->server = NULL;
  for (size_t at = 0; at < EACH_MAX; at++) {
    if (actor->publishers[at] != NULL) EXPECT_OK(myelin_publisher_close(actor->publishers[at]));
    actor->publishers[at] = NULL;
    if (actor->called[at].callback != NULL) EXPECT_OK(myelin_callback_close(actor->called[at].callback));
    memset(&actor->called[at], 0, sizeof actor->called[at]);
    if (actor->subscribed[at].subscriber == NULL) continue;
    EXPECT_OK(myelin_subscriber_close(actor->subscribed[at].subscriber));
    free_ledger(actor->subscribed[at].ledger);
    memset(&actor->subscribed[at], 0, sizeof actor->subscribed[at]);
  }
}

static void nonsense(struct actor *actor) {
  struct myelin_loan loan = MYELIN_INIT(myelin_loan);
  EXPECT(myelin_publisher_publish(actor->publishers[0], &loan, NULL) < 0);
  EXPECT(myelin_subscriber_close((myelin_subscriber *)actor->publishers[0]) == MYELIN_ERROR_HANDLE);
  EXPECT(strlen(myelin_error_message()) > 0);
}

static _Atomic(myelin_wait_set *) *some_set(struct actor *actor) {
  _Atomic(myelin_wait_set *) *place = &sets[below(actor, SETS)];
  myelin_wait_set *none = NULL, *made;
  if (*place != NULL) return place;
  EXPECT_OK(myelin_wait_set_open(node, &made));
  if (!atomic_compare_exchange_strong(place, &none, made)) EXPECT_OK(myelin_wait_set_close(made));
  return place;
}

/* Or another thread has closed it. */
static int is_ok_or_closed(enum myelin_code code) {
  EXPECT(code == MYELIN_OK || code == MYELIN_ERROR_CLOSED || code == MYELIN_ERROR_HANDLE);
  return code == MYELIN_OK;
}

static void wait_in_a_shared_set(struct actor *actor) {
  uint64_t keys[8];
  size_t count = 0;
  enum myelin_code code = myelin_wait_set_wait(*some_set(actor), below(actor, 2000000), keys, 8, &count);
  EXPECT(code != MYELIN_OK || (count > 0 && count <= 8));
  if (code != MYELIN_NOTHING && code != MYELIN_ERROR_BUSY) is_ok_or_closed(code);
}

static void change_set(struct actor *actor) {
  _Atomic(myelin_wait_set *) *place = some_set(actor);
  myelin_wait_set *set = *place;
  const uint64_t key = below(actor, 1000);
  struct subscribed from;
  struct myelin_publisher *publisher = actor->publishers[below(actor, EACH_MAX)];
  myelin_guard_condition *guard;
  enum myelin_code code;
  int descriptor;
  switch (below(actor, 8)) {
    case 0:
      is_ok_or_closed(myelin_wait_set_timer(set, 50000, key));
      break;
    case 1:
      if (!is_ok_or_closed(myelin_wait_set_guard_condition(set, key, &guard))) break;
      if (publisher != NULL) EXPECT_OK(myelin_publisher_on_event(publisher, guard));
      EXPECT_OK(myelin_node_on_graph_change(node, guard));
      EXPECT_OK(myelin_guard_condition_trigger(guard));
      EXPECT_OK(myelin_guard_condition_close(guard));
      break;
    case 2:
      is_ok_or_closed(myelin_wait_set_set_wait(set, below(actor, 2) == 0 ? MYELIN_WAIT_BLOCK : MYELIN_WAIT_ADAPTIVE));
      break;
    case 3:
      if (is_ok_or_closed(myelin_wait_set_descriptor(set, &descriptor))) EXPECT(close(descriptor) == 0);
      break;
    case 4:
      set = atomic_exchange(place, NULL);
      if (set != NULL) EXPECT_OK(myelin_wait_set_close(set));
      break;
    default:
      subscribe(actor, &from);
      is_ok_or_closed(myelin_wait_set_add(set, from.subscriber, key));
      code = below(actor, 2) == 0 ? myelin_wait_set_remove(set, key) : MYELIN_NOTHING;
      if (code != MYELIN_NOTHING) is_ok_or_closed(code); /* others remove theirs by the same key */
      EXPECT_OK(myelin_subscriber_close(from.subscriber));
      free_ledger(from.ledger);
  }
}

static void send_signal(struct actor *actor) { pthread_kill(actors[below(actor, THREADS)].thread, SIGUSR1); }

static void fork_child(struct actor *actor) {
  pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    alarm(WATCHDOG_NS / 1000000000);
    for (size_t at = 0; at < EACH_MAX; at++)
      if (actor->publishers[at] != NULL)
        wrong |= myelin_publisher_publish_copy(actor->publishers[at], "x", 1, NULL) != MYELIN_ERROR_FORKED;
    for (size_t at = 0; at < SETS; at++)
      if (sets[at] != NULL) wrong |= myelin_wait_set_timer(sets[at], 50000, 1) != MYELIN_ERROR_FORKED;
    close_all(actor);
    _exit(wrong);
  }
  int status = -1;
  while (waitpid(child, &status, 0) != child) continue;
  EXPECT(status == 0);
}

/* Each is for itself, and does nothing where it has nothing to do it with: add one here, and that is all. */
static struct operation {
  const char *name;
  size_t likely;
  void (*act)(struct actor *actor);
} operations[] = {
    {"publish", 60, publish},
    {"publish_loan", 30, publish_loan},
    {"take", 60, take},
    {"release", 6, release},
    {"wait_set", 8, wait_set},
    {"shared_set", 12, wait_in_a_shared_set},
    {"change_set", 12, change_set},
    {"add_publisher", 8, add_publisher},
    {"add_subscriber", 8, add_subscriber},
    {"add_callback", 4, add_callback},
    {"remove_publisher", 3, remove_publisher},
    {"remove_subscriber", 3, remove_subscriber},
    {"remove_callback", 2, remove_callback},
    {"serve", 10, serve},
    {"call", 4, call},
    {"close_all", 1, close_all},
    {"nonsense", 4, nonsense},
    {"signal", 4, send_signal},
    {"fork", 1, fork_child},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static const struct operation *choose(struct actor *actor) {
  size_t likely = 0;
  for (size_t at = 0; at < OPERATIONS; at++) likely += operations[at].likely;
  size_t choice = below(actor, likely);
  const struct operation *chosen = operations;
  while (choice >= chosen->likely) choice -= chosen++->likely;
  return chosen;
}

/* Some operations, then the books. */
static void act_for_a_round(struct actor *actor) {
  for (size_t count = 0; count < ROUND; count++) {
    const struct operation *chosen = choose(actor);
    actor->doing = chosen->name;
    chosen->act(actor);
    done++;
  }
  actor->doing = "at the end of a round";
  pthread_barrier_wait(&barrier);
  /* All threads stand still. No subscriber has lost the last sample of a publisher. */
  for (size_t at = 0; at < EACH_MAX; at++) {
    struct known *known = &published[actor->number * EACH_MAX + at];
    memset(known, 0, sizeof *known);
    if (actor->publishers[at] == NULL) continue;
    struct myelin_published result = MYELIN_INIT(myelin_published);
    EXPECT_OK(myelin_publisher_endpoint(actor->publishers[at], &known->publisher));
    EXPECT_OK(myelin_publisher_publish_copy(actor->publishers[at], "\1", 1, &result));
    known->next = result.sequence + 1;
  }
  pthread_barrier_wait(&barrier);
  release(actor);
  for (size_t at = 0; at < EACH_MAX; at++) {
    struct subscribed *from = &actor->subscribed[at];
    struct myelin_sample sample = MYELIN_INIT(myelin_sample);
    while (from->subscriber != NULL && myelin_subscriber_take(from->subscriber, &sample) == MYELIN_OK) {
      enter(from->ledger, &sample);
      EXPECT_OK(myelin_sample_release(&sample));
    }
    if (from->subscriber != NULL) EXPECT(is_complete(from->ledger));
    /* A thread of its own calls while another thread calls functions of the topic. */
    const uint64_t begun = myelin_now();
    while (actor->called[at].callback != NULL && !is_complete(actor->called[at].ledger))
      EXPECT(myelin_now() - begun < WATCHDOG_NS && usleep(1000) <= 0);
  }
  pthread_barrier_wait(&barrier);
  close_all(actor);
  for (size_t at = 0; actor->number == 0 && at < SETS; at++) {
    if (sets[at] != NULL) EXPECT_OK(myelin_wait_set_close(sets[at]));
    sets[at] = NULL;
  }
  pthread_barrier_wait(&barrier);
}

static size_t entries(const char *folder) {
  DIR *opened = opendir(folder);
  size_t count = 0;
  while (readdir(opened) != NULL) count++;
  closedir(opened);
  return count;
}

static void *act(void *of) {
  struct actor *actor = of;
  size_t rounds = 0, descriptors = 0, threads = 0;
  const char *seconds = getenv("MYELIN_TORTURE_S");
  const uint64_t until = myelin_now() + (seconds != NULL ? strtoull(seconds, NULL, 10) : 1) * 1000000000u;
  for (;;) {
    act_for_a_round(actor);
    if (actor->number == 0) {
      if (rounds++ == 0) {
        descriptors = entries("/proc/self/fd");
        threads = entries("/proc/self/task");
      }
      /* The node's thread closes its ends of connections after the program has closed an endpoint; a leak stays. */
      const uint64_t begun = myelin_now();
      while (entries("/proc/self/fd") > descriptors + SLACK || entries("/proc/self/task") > threads + SLACK)
        EXPECT(myelin_now() - begun < WATCHDOG_NS && usleep(1000) <= 0);
      stops = rounds > 1 && myelin_now() > until;
    }
    pthread_barrier_wait(&barrier); /* all read what this one has decided */
    if (stops) break;
  }
  if (actor->number == 0) fprintf(stderr, "%zu rounds\n", rounds);
  return NULL;
}

static void *watch(void *none) {
  uint64_t seen = 0, since = myelin_now();
  for (;; usleep(500000)) {
    if (done != seen) {
      seen = done;
      since = myelin_now();
    } else if (myelin_now() - since > WATCHDOG_NS) {
      for (size_t at = 0; at < THREADS; at++) fprintf(stderr, "thread %zu: %s\n", at, actors[at].doing);
      SAY_AND(abort(), "all stand still");
    }
  }
  return none;
}

static void ignore(int signal) { (void)signal; }

int main(void) {
  const char *given = getenv("MYELIN_TORTURE_SEED"), *without = getenv("MYELIN_TORTURE_WITHOUT");
  seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)getpid();
  SAY_AND((void)0, "torture");
  for (size_t at = 0; without != NULL && at < OPERATIONS; at++)
    if (strstr(without, operations[at].name) != NULL) operations[at].likely = 0;
  const struct sigaction action = {.sa_handler = ignore}; /* system calls are interrupted */
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
  OK(myelin_node_open("torture", NULL, &node));
  for (unsigned number = 0; number < THREADS; number++) {
    struct actor *actor = &actors[number];
    actor->number = number;
    actor->random = (seed + number * 0x9e3779b97f4a7c15u) | 1;
    for (size_t topic = 0; topic < TOPICS; topic++) {
      char name[32];
      struct myelin_topic_options options = MYELIN_INIT(myelin_topic_options);
      options.depth = 16;
      if (topic == 0) options.reliability = MYELIN_RELIABLE;
      if (topic == 0) options.reliable_ns = 2000000;
      snprintf(name, sizeof name, "topic%zu", topic);
      OK(myelin_topic_open(node, name, NULL, &options, &actor->topics[topic]));
    }
  }
  pthread_t watching;
  CHECK(pthread_create(&watching, NULL, watch, NULL) == 0);
  for (size_t at = 0; at < THREADS; at++) actors[at].thread = pthread_self();
  for (size_t at = 0; at < THREADS; at++) CHECK(pthread_create(&actors[at].thread, NULL, act, &actors[at]) == 0);
  for (size_t at = 0; at < THREADS; at++) CHECK(pthread_join(actors[at].thread, NULL) == 0);
  for (size_t at = 0; at < THREADS; at++)
    for (size_t topic = 0; topic < TOPICS; topic++) OK(myelin_topic_close(actors[at].topics[topic]));
  OK(myelin_node_close(node));
  puts("all threads");
  return 0;
}
