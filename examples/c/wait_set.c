/* One thread that waits for two topics, a timer and the end of another thread's work.
 *
 * cc wait_set.c -lmyelin -pthread -lm -o wait_set; in one terminal `./wait_set subscribe`, in another
 * `./wait_set publish`. Both end by themselves. */
#include <myelin.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_NS 30000000000u

static int failed(void) {
  fprintf(stderr, "%s\n", myelin_error_message());
  return 1;
}

enum { STEPS = 10 };
enum { WHEELS, GOALS, TICK, PLANNED };
static const struct myelin_payload two = MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE(MYELIN_F64, 2));
static const struct myelin_topic_options deep = {.size = sizeof deep, .depth = STEPS};

static int publish(myelin_node *node) {
  myelin_topic *wheels_topic, *goals_topic;
  myelin_publisher *wheels, *goals;
  if (myelin_topic_open(node, "wheels", &two, &deep, &wheels_topic) ||
      myelin_topic_open(node, "goals", &two, NULL, &goals_topic) ||
      myelin_publisher_open(wheels_topic, NULL, &wheels) ||
      myelin_publisher_open(goals_topic, NULL, &goals))
    return failed();
  if (myelin_publisher_wait_for_match(wheels, 1, LIMIT_NS) == MYELIN_NOTHING ||
      myelin_publisher_wait_for_match(goals, 1, LIMIT_NS) == MYELIN_NOTHING) {
    printf("nobody is there; start `wait_set subscribe` within 30 s\n");
    return 0;
  }
  for (int step = 0; step < STEPS; step++) {
    double at[2] = {step, step + 0.5};
    if (myelin_publisher_publish_copy(wheels, at, sizeof at, NULL)) return failed();
  }
  double goal[2] = {3.0, 4.0};
  if (myelin_publisher_publish_copy(goals, goal, sizeof goal, NULL)) return failed();
  printf("published %d steps and a goal\n", STEPS);
  myelin_publisher_close(wheels);
  myelin_publisher_close(goals);
  myelin_topic_close(wheels_topic);
  myelin_topic_close(goals_topic);
  return 0;
}

struct plan {
  struct myelin_sample goal;
  myelin_guard_condition *planned;
};

static void *plan(void *of) {
  struct plan *plan = of;
  const double *goal = plan->goal.data;
  printf("%g m to the goal\n", hypot(goal[0], goal[1]));
  myelin_sample_release(&plan->goal);
  myelin_guard_condition_trigger(plan->planned);
  return NULL;
}

static int subscribe(myelin_node *node) {
  myelin_topic *wheels_topic, *goals_topic;
  myelin_subscriber *wheels, *goals;
  myelin_wait_set *set;
  struct plan the_plan = {.goal = MYELIN_INIT(myelin_sample)};
  if (myelin_topic_open(node, "wheels", &two, &deep, &wheels_topic) ||
      myelin_topic_open(node, "goals", &two, NULL, &goals_topic) ||
      myelin_subscriber_open(wheels_topic, NULL, &wheels) ||
      myelin_subscriber_open(goals_topic, NULL, &goals) || myelin_wait_set_open(node, &set) ||
      myelin_wait_set_add(set, wheels, WHEELS) || myelin_wait_set_add(set, goals, GOALS) ||
      myelin_wait_set_timer(set, LIMIT_NS, TICK) ||
      myelin_wait_set_guard_condition(set, PLANNED, &the_plan.planned))
    return failed();
  int steps = 0, is_planned = 0, is_late = 0;
  pthread_t planner;
  while ((steps < STEPS || !is_planned) && !is_late) {
    uint64_t ready[4];
    size_t count;
    if (myelin_wait_set_wait(set, MYELIN_FOREVER, ready, 4, &count) < 0) return failed();
    for (size_t each = 0; each < count; each++) {
      struct myelin_sample sample = MYELIN_INIT(myelin_sample);
      switch (ready[each]) {
      case WHEELS:
        while (myelin_subscriber_take(wheels, &sample) == MYELIN_OK) {
          const double *at = sample.data;
          printf("wheels at %g m, %g m\n", at[0], at[1]);
          myelin_sample_release(&sample);
          steps++;
        }
        break;
      case GOALS:
        if (myelin_subscriber_take(goals, &the_plan.goal) == MYELIN_OK)
          pthread_create(&planner, NULL, plan, &the_plan);
        break;
      case PLANNED:
        pthread_join(planner, NULL);
        is_planned = 1;
        break;
      case TICK:
        printf("not all came within 30 s; start `wait_set publish`\n");
        is_late = 1;
        break;
      }
    }
  }
  myelin_guard_condition_close(the_plan.planned);
  myelin_wait_set_close(set);
  myelin_subscriber_close(wheels);
  myelin_subscriber_close(goals);
  myelin_topic_close(wheels_topic);
  myelin_topic_close(goals_topic);
  return 0;
}

int main(int argc, char **argv) {
  const char *role = argc > 1 ? argv[1] : "";
  int publishes = !strcmp(role, "publish");
  if (!publishes && strcmp(role, "subscribe")) {
    fprintf(stderr, "usage: wait_set publish|subscribe\n");
    return 2;
  }
  myelin_node *node;
  if (myelin_node_open(publishes ? "base" : "navigator", NULL, &node)) return failed();
  int status = publishes ? publish(node) : subscribe(node);
  myelin_node_close(node);
  return status;
}
