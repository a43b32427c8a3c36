/* A driver to copy from: two processes that exchange packets through a UNIX socket. The socket has an
 * abstract name, so that nothing stays behind. Blocks while it waits. docs/how-to/drivers.md shows how
 * to build and to try it; the kit's tests run it. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "myelin_bench_kit.h"

/* One side's end of the connection, which carries both directions. */
struct end {
  int fd;
  size_t bytes_max;
  unsigned char message[];
};

static int failed(const char *what) {
  char text[128];
  snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
  myelin_bench_error(text, NULL);
  return -1;
}

/* Ping calls until pong listens, or the time is over. */
static int call(int fd, const struct sockaddr_un *name, socklen_t length, uint64_t until_ns) {
  while (connect(fd, (const struct sockaddr *)name, length)) {
    if (errno != ECONNREFUSED || myelin_bench_now_ns() > until_ns) return failed("connect to pong");
    poll(NULL, 0, 1);
  }
  return fd;
}

/* Pong waits for one call. */
static int answer(int fd, const struct sockaddr_un *name, socklen_t length, uint64_t limit_ns) {
  struct pollfd caller = {.fd = fd, .events = POLLIN};
  if (bind(fd, (const struct sockaddr *)name, length) || listen(fd, 1)) return failed("listen");
  if (poll(&caller, 1, (int)(limit_ns / 1000000)) == 0) errno = ETIMEDOUT;
  int accepted = caller.revents ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
  return accepted < 0 ? failed("wait for ping") : accepted;
}

/* Returns when both sides are connected. */
static int socket_open(const struct myelin_bench_prepare *prepare, void **link) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  /* `run` is unique on this host. */
  snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "socket-driver-%s", prepare->run);
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1));
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket");
  uint64_t limit_ns = prepare->match_timeout_ns;
  int connected = prepare->is_ping ? call(fd, &name, length, myelin_bench_now_ns() + limit_ns)
                                   : answer(fd, &name, length, limit_ns);
  if (connected != fd) close(fd);
  struct end *end = connected < 0 ? NULL : malloc(sizeof *end + prepare->message_bytes);
  if (!end) return -1;
  end->fd = connected;
  end->bytes_max = prepare->message_bytes;
  *link = end;
  return 0;
}

static int socket_publish(void *link, const void *message, size_t bytes) {
  struct end *end = link;
  return send(end->fd, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : failed("send");
}

/* Without this function take would have to wait. */
static int socket_wait(void *link, uint64_t until_ns) {
  struct end *end = link;
  uint64_t now_ns = myelin_bench_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
  struct timespec left = {(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
  struct pollfd packet = {.fd = end->fd, .events = POLLIN};
  int ready = ppoll(&packet, 1, &left, NULL);
  return ready < 0 ? failed("wait for a packet") : ready;
}

static int socket_take(void *link, uint64_t until_ns, const void **message, size_t *bytes) {
  struct end *end = link;
  (void)until_ns;
  ssize_t received = recv(end->fd, end->message, end->bytes_max, MSG_DONTWAIT);
  if (received < 0 && errno == EAGAIN) return 0;
  if (received == 0) errno = ECONNRESET; /* the other process has ended */
  if (received <= 0) return failed("receive");
  *message = end->message;
  *bytes = (size_t)received;
  return 1;
}

static void socket_close(void *link) {
  struct end *end = link;
  close(end->fd);
  free(end);
}

/* One entry for each way to configure the middleware. */
static const struct myelin_bench_system systems[] = {{
    MYELIN_BENCH_SIZE(system),
    .name = "socket.seqpacket",
    .about = "packets through a UNIX socket, copied in and out; sleeps",
    .wait = MYELIN_BENCH_WAIT_BLOCK,
    .transport = MYELIN_BENCH_TRANSPORT_KERNEL,
    .workloads = MYELIN_BENCH_ROUNDTRIP,
    .payload_bytes_max = 65536,
}};

static const struct myelin_bench_link functions = {
    MYELIN_BENCH_SIZE(link),
    .open = socket_open,
    .publish = socket_publish,
    .wait = socket_wait,
    .take = socket_take,
    .close = socket_close,
};

static const struct myelin_bench_driver driver = {
    .abi = MYELIN_BENCH_ABI,
    MYELIN_BENCH_SIZE(driver),
    .systems = systems,
    .system_count = 1,
    .link = &functions,
};

int main(void) { return myelin_bench_main(&driver); }
