/* A driver in C that offers everything except round trips by take (see echo_driver.c): function
 * calls, many subscribers, a system in one process, a daemon, cleaning, notes. A message is a
 * datagram to the abstract socket of its receiver. The kit's tests run it. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "myelin_bench_kit.h"

enum { MESSAGE_BYTES_MAX = 65536, SUBSCRIBERS_MAX = 8 };

/* A box that receives messages, and the function to call with them. */
struct box {
  int socket;
  size_t bytes;
  unsigned char *message;
  pthread_t caller;
  myelin_bench_call call;
  void *context;
  int must_end;
};

/* A link. Its own box comes first, so that a pointer to any end is a pointer to a box. */
struct post {
  struct box own;
  char run[64];
  int here; /* in one process a message is handed over at once */
  struct sockaddr_un to[SUBSCRIBERS_MAX];
  uint32_t to_count;
  struct box *boxes[SUBSCRIBERS_MAX];
};

struct subscriber {
  struct box own;
  struct post *post;
  uint32_t index;
};

static int fail(const char *what) {
  myelin_bench_error(what, NULL);
  return -1;
}

static struct sockaddr_un address(const char *run, const char *who, uint32_t index) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "post-%s-%s%u", run, who, index);
  return address;
}

static int open_box(struct box *box, const struct sockaddr_un *at) {
  box->message = malloc(MESSAGE_BYTES_MAX);
  box->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (!box->message || bind(box->socket, (const struct sockaddr *)at, sizeof *at)) return fail("bind");
  return 0;
}

static void close_box(struct box *box) {
  if (box->socket > 0) close(box->socket);
  free(box->message);
}

/* Sends an empty datagram, which take() skips, until there is a receiver. */
static int await(struct post *post, uint64_t until_ns) {
  for (uint32_t index = 0; index < post->to_count;) {
    const struct sockaddr *to = (const struct sockaddr *)&post->to[index];
    if (sendto(post->own.socket, NULL, 0, 0, to, sizeof post->to[index]) == 0)
      index++;
    else if (myelin_bench_now_ns() >= until_ns)
      return fail("nobody came");
    else
      poll(NULL, 0, 1);
  }
  return 0;
}

static int post_open(const struct myelin_bench_prepare *prepare, void **link) {
  const uint64_t until_ns = myelin_bench_now_ns() + prepare->match_timeout_ns;
  struct post *post = calloc(1, sizeof *post);
  if (!post) return -1;
  *link = post;
  snprintf(post->run, sizeof post->run, "%s", prepare->run);
  post->here = strcmp(prepare->system, "post.here") == 0;
  if (post->here) return 0;
  const char *me = prepare->is_ping ? "ping" : "pong";
  const struct sockaddr_un at = address(prepare->run, me, 100);
  int status = open_box(&post->own, &at);
  if (prepare->workload == MYELIN_BENCH_PUBLISH && prepare->is_ping)
    for (uint32_t index = 0; index < prepare->subscribers; index++)
      post->to[post->to_count++] = address(prepare->run, "pong", index);
  else if (prepare->workload != MYELIN_BENCH_PUBLISH)
    post->to[post->to_count++] = address(prepare->run, prepare->is_ping ? "pong" : "ping", 100);
  return status ? status : await(post, until_ns);
}

static int post_publish(void *link, const void *message, size_t bytes) {
  struct post *post = link;
  for (int index = 0; post->here && index < SUBSCRIBERS_MAX; index++)
    if (post->boxes[index] && post->boxes[index]->call)
      post->boxes[index]->call(post->boxes[index]->context, message, bytes);
  for (uint32_t index = 0; index < post->to_count; index++) {
    const struct sockaddr *to = (const struct sockaddr *)&post->to[index];
    const ssize_t sent =
        sendto(post->own.socket, message, bytes, MSG_DONTWAIT, to, sizeof post->to[index]);
    if (sent < 0 && errno != EAGAIN && errno != ECONNREFUSED) return fail("sendto");
  }
  return 0;
}

static int take_from(struct box *box, uint64_t until_ns) {
  for (;;) {
    const ssize_t came = recv(box->socket, box->message, MESSAGE_BYTES_MAX, MSG_DONTWAIT);
    if (came > 0) {
      box->bytes = (size_t)came;
      return 1;
    }
    if (came == 0) continue;
    const uint64_t now_ns = myelin_bench_now_ns();
    if (now_ns >= until_ns) return 0;
    const uint64_t left_ms = (until_ns - now_ns) / 1000000 + 1;
    struct pollfd waiting = {.fd = box->socket, .events = POLLIN};
    poll(&waiting, 1, left_ms < 100 ? (int)left_ms : 100);
    if (__atomic_load_n(&box->must_end, __ATOMIC_SEQ_CST)) return 0;
  }
}

static int post_take(void *end, uint64_t until_ns, const void **message, size_t *bytes) {
  struct box *box = end;
  const int came = take_from(box, until_ns);
  *message = box->message;
  *bytes = box->bytes;
  return came;
}

static void post_close(void *link) {
  struct post *post = link;
  close_box(&post->own);
  free(post);
}

static int post_subscribe(void *link, uint32_t index, void **subscriber) {
  struct post *post = link;
  struct subscriber *one = calloc(1, sizeof *one);
  if (!one || index >= SUBSCRIBERS_MAX) return -1;
  one->post = post;
  one->index = index;
  post->boxes[index] = &one->own;
  *subscriber = one;
  const struct sockaddr_un at = address(post->run, "pong", index);
  return post->here ? 0 : open_box(&one->own, &at);
}

static void post_unsubscribe(void *subscriber) {
  struct subscriber *one = subscriber;
  one->post->boxes[one->index] = NULL;
  close_box(&one->own);
  free(one);
}

static void *call_with_each(void *argument) {
  struct box *box = argument;
  while (!__atomic_load_n(&box->must_end, __ATOMIC_SEQ_CST))
    if (take_from(box, myelin_bench_now_ns() + 100000000))
      box->call(box->context, box->message, box->bytes);
  return NULL;
}

static int post_listen(void *end, myelin_bench_call call, void *context) {
  struct box *box = end;
  box->call = call;
  box->context = context;
  if (box->socket == 0) return 0; /* in one process: called within publish */
  return pthread_create(&box->caller, NULL, call_with_each, box) ? fail("no thread") : 0;
}

static void post_unlisten(void *end) {
  struct box *box = end;
  __atomic_store_n(&box->must_end, 1, __ATOMIC_SEQ_CST);
  if (box->socket != 0) pthread_join(box->caller, NULL);
  box->call = NULL;
}

static const char *post_notes(const struct myelin_bench_prepare *prepare) {
  static char text[64];
  snprintf(text, sizeof text, "a note on %s\nand another", prepare->system);
  return text;
}

static const char *post_notes_at_end(void) { return "it is over"; }

static void post_probe(struct myelin_bench_system *system) {
  system->version = "as probed";
  if (strcmp(system->name, "post.absent") == 0) system->missing = "not here: fetch it";
}

/* A daemon that does nothing; its driver reports how it ended. */
static int start_daemon(const struct myelin_bench_prepare *prepare, void **daemon) {
  (void)prepare;
  pid_t *pid = malloc(sizeof *pid);
  if (!pid) return -1;
  *pid = fork();
  if (*pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  *daemon = pid;
  return *pid < 0 ? fail("fork") : 0;
}

static size_t daemon_pids(void *daemon, uint32_t *pids, size_t pids_max) {
  if (pids_max > 0) pids[0] = (uint32_t)*(pid_t *)daemon;
  return 1;
}

static int check_daemon(void *daemon) {
  return waitpid(*(pid_t *)daemon, NULL, WNOHANG) == 0 ? 0 : fail("the daemon has ended");
}

static int stop_daemon(void *daemon) {
  kill(*(pid_t *)daemon, SIGKILL);
  waitpid(*(pid_t *)daemon, NULL, 0);
  free(daemon);
  return 0;
}

static int clean(void) { return puts("cleaned") < 0 || fflush(stdout) ? fail("stdout") : 0; }

#define SYSTEM(named, waits, kinds, in_one) \
  { \
    MYELIN_BENCH_SIZE(system), .name = (named), .about = "datagrams between abstract sockets", \
    .wait = (waits), .payload_bytes_max = 60000, .workloads = (kinds), .one_process = (in_one), \
    .transport = (in_one) ? MYELIN_BENCH_TRANSPORT_PROCESS : MYELIN_BENCH_TRANSPORT_KERNEL, \
    .daemon = !(in_one), \
  }

static const struct myelin_bench_system systems[] = {
    SYSTEM("post.take", MYELIN_BENCH_WAIT_BLOCK, MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_PUBLISH, 0),
    SYSTEM("post.call", MYELIN_BENCH_WAIT_CALLBACK, MYELIN_BENCH_ROUNDTRIP | MYELIN_BENCH_STREAM, 0),
    SYSTEM("post.here", MYELIN_BENCH_WAIT_CALLBACK, MYELIN_BENCH_STREAM | MYELIN_BENCH_PUBLISH, 1),
    SYSTEM("post.absent", MYELIN_BENCH_WAIT_BLOCK, 0, 0),
};

static const struct myelin_bench_link functions = {
    MYELIN_BENCH_SIZE(link),
    .open = post_open,
    .publish = post_publish,
    .take = post_take,
    .close = post_close,
    .subscribe = post_subscribe,
    .unsubscribe = post_unsubscribe,
    .listen = post_listen,
    .unlisten = post_unlisten,
};

static const struct myelin_bench_driver driver = {
    .abi = MYELIN_BENCH_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = sizeof systems / sizeof systems[0],
    .link = &functions,
    .probe = post_probe,
    .notes = post_notes,
    .notes_at_end = post_notes_at_end,
    .start_daemon = start_daemon,
    .daemon_pids = daemon_pids,
    .check_daemon = check_daemon,
    .stop_daemon = stop_daemon,
    .clean = clean,
};

int main(void) { return myelin_bench_main(&driver); }
