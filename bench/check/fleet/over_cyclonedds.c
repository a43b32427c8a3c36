/* One process of a fleet over CycloneDDS with its default configuration; see ../fleet.py.
 *
 *   over_cyclonedds robot NUMBER TOPICS       TOPICS publishers
 *   over_cyclonedds operator ROBOTS TOPICS    a subscriber of each topic of each robot
 *
 * The operator prints how many pairs have matched, whenever that changes. Both end with their input. */
#include <dds/dds.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Roundtrip.h"

static dds_entity_t made(dds_entity_t entity, const char *what)
{
  if (entity < 0) {
    (void)fprintf(stderr, "%s: %s\n", what, dds_strretcode(-entity));
    exit(1);
  }
  return entity;
}

/* Whether the input has ended, after at most so many ms. */
static int ended(int limit_ms)
{
  char byte;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, limit_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(int argc, char **argv)
{
  if (argc != 4)
    return 2;
  const int is_operator = strcmp(argv[1], "operator") == 0;
  const int number = atoi(argv[2]), topics = atoi(argv[3]);
  const int first = is_operator ? 0 : number, last = is_operator ? number - 1 : number;
  const dds_entity_t participant =
      made(dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL), "participant");
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
  const int count = (last - first + 1) * topics;
  dds_entity_t *ends = calloc((size_t)count, sizeof *ends);
  for (int at = 0; at < count; at++) {
    char name[64];
    (void)snprintf(name, sizeof name, "robot%d_topic%d", first + at / topics, at % topics);
    const dds_entity_t topic = made(
        dds_create_topic(participant, &Roundtrip_Message64_desc, name, NULL, NULL), "topic");
    ends[at] = made(is_operator ? dds_create_reader(participant, topic, qos, NULL)
                                : dds_create_writer(participant, topic, qos, NULL),
                    "endpoint");
  }
  (void)printf("ready\n");
  (void)fflush(stdout);
  for (int matched = -1; !ended(is_operator ? 10 : 1000);) {
    int now = 0;
    for (int at = 0; is_operator && at < count; at++) {
      dds_subscription_matched_status_t status;
      if (dds_get_subscription_matched_status(ends[at], &status) == 0)
        now += (int)status.current_count;
    }
    if (is_operator && now != matched) {
      (void)printf("matched %d\n", matched = now);
      (void)fflush(stdout);
    }
  }
  return 0;
}
