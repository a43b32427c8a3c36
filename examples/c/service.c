/* A service: one program asks for a path, another one plans it and replies with as many points as it
 * takes.
 *
 * cc service.c -lmyelin -lm -o service; in one terminal `./service call`, in another
 * `./service serve`. Both end by themselves. */
#include <myelin.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

struct goal {
  double x, y; /* from the origin to there */
  double step; /* between two points, in m */
};
static const struct myelin_field goal_fields[] = {
    MYELIN_FIELD(struct goal, x), MYELIN_FIELD(struct goal, y), MYELIN_FIELD(struct goal, step)};
static const struct myelin_struct goal = MYELIN_STRUCT_OF(struct goal, "Goal", goal_fields);
static const struct myelin_payload of_goal = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&goal, 0));
static const struct myelin_payload of_path = MYELIN_PAYLOAD(MYELIN_SLICE, MYELIN_TYPE(MYELIN_F64, 2));

static int serve(myelin_node *node) {
  myelin_server *server;
  if (myelin_server_open(node, "plan", &of_goal, &of_path, &server)) return failed();
  int plans = 0, code;
  struct myelin_request request = MYELIN_INIT(myelin_request);
  /* Until no client is left. */
  while ((code = myelin_server_receive(server, plans ? 1000000000u : LIMIT_NS, &request)) ==
         MYELIN_OK) {
    const struct goal *to = request.data;
    size_t points = (size_t)ceil(hypot(to->x, to->y) / to->step) + 1;
    struct myelin_loan path = MYELIN_INIT(myelin_loan);
    /* In shared memory, where the client reads it. */
    if (myelin_request_loan(&request, points * sizeof(double[2]), &path)) return failed();
    double(*point)[2] = path.data;
    for (size_t at = 0; at < points; at++) {
      double part = (double)at / (double)(points - 1);
      point[at][0] = to->x * part;
      point[at][1] = to->y * part;
    }
    if (myelin_request_send(&request, &path)) return failed();
    myelin_request_release(&request);
    plans++;
  }
  if (code < 0) return failed();
  printf("planned %d paths\n", plans);
  myelin_server_close(server);
  return 0;
}

static int call(myelin_node *node) {
  myelin_client *client;
  if (myelin_client_open(node, "plan", &of_goal, &of_path, &client)) return failed();
  for (int leg = 1; leg <= 5; leg++) {
    struct goal to = {3.0 * leg, 4.0 * leg, 1.0 / 1024.0};
    struct myelin_reply path = MYELIN_INIT(myelin_reply);
    /* The server may start within this time; if it dies, the call ends at once. */
    if (myelin_client_call(client, &to, sizeof to, LIMIT_NS, &path)) return failed();
    size_t points = path.bytes / sizeof(double[2]);
    const double(*point)[2] = path.data;
    printf("%zu points to %g m, %g m\n", points, point[points - 1][0], point[points - 1][1]);
    myelin_reply_release(&path);
  }
  myelin_client_close(client);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int serves = !strcmp(role, "serve");
  if (!serves && strcmp(role, "call")) {
    fprintf(stderr, "usage: service serve|call\n");
    return 2;
  }
  myelin_node *node;
  if (myelin_node_open(serves ? "planner" : "robot", NULL, &node)) return failed();
  int status = serves ? serve(node) : call(node);
  myelin_node_close(node);
  return status;
}
