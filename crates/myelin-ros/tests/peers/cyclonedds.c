/* The other side of the tests: a DDS program with CycloneDDS and the types of types.idl. How it is
 * called: usage(). It ends when its standard input does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dds/dds.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "dds/ddsi/ddsi_sertype.h"

#include "pattern.h"
#include "types.h"

typedef builtin_interfaces_msg_dds__Time_ Time;
typedef std_msgs_msg_dds__Header_ Header;
typedef std_msgs_msg_dds__String_ String;
typedef sensor_msgs_msg_dds__Image_ Image;
typedef sensor_msgs_msg_dds__PointField_ PointField;
typedef sensor_msgs_msg_dds__PointCloud2_ PointCloud2;
typedef sensor_msgs_msg_dds__Imu_ Imu;
typedef robot_Pose Pose;
typedef robot_Path Path;
typedef robot_Poses Poses;

/* Message `n` of a type, and the `n` of a message. */
typedef void *(*make_fn)(uint32_t n);
typedef uint32_t (*number_fn)(const void *message);

static void die(const char *what, dds_return_t code)
{
  fprintf(stderr, "%s: %s\n", what, code < 0 ? dds_strretcode(-code) : "failed");
  exit(1);
}

static dds_entity_t checked(const char *what, dds_return_t code)
{
  if (code < 0)
    die(what, code);
  return code;
}

static char *text(uint32_t n)
{
  char *made = dds_alloc(TEXT_BYTES);
  snprintf(made, TEXT_BYTES, "message %u", n);
  return made;
}

static uint32_t number_of_text(const char *made)
{
  unsigned n = UINT32_MAX;
  (void)sscanf(made, "message %u", &n);
  return n;
}

static Header header(uint32_t n)
{
  Header made = {{seconds_of(n), n}, dds_string_dup("")};
  dds_free(made.frame_id);
  made.frame_id = dds_alloc(sizeof(FRAME));
  memcpy(made.frame_id, FRAME, frame_length(n));
  made.frame_id[frame_length(n)] = 0;
  return made;
}

static dds_sequence_octet octets(uint32_t n, size_t bytes)
{
  dds_sequence_octet made = {(uint32_t)bytes, (uint32_t)bytes, dds_alloc(bytes), true};
  for (size_t i = 0; i < bytes; i++)
    made._buffer[i] = octet_at(n, i);
  return made;
}

static void reals(double *to, uint32_t count, uint32_t n, uint32_t from)
{
  for (uint32_t i = 0; i < count; i++)
    to[i] = real_at(n, from + i);
}

static void *make_string(uint32_t n)
{
  String *made = dds_alloc(sizeof(*made));
  made->data = text(n);
  return made;
}

static uint32_t string_number(const void *message)
{
  return number_of_text(((const String *)message)->data);
}

static void *make_image(uint32_t n)
{
  Image *made = dds_alloc(sizeof(*made));
  made->header = header(n);
  made->height = IMAGE_HEIGHT;
  made->width = IMAGE_WIDTH;
  made->encoding = dds_string_dup("rgb8");
  made->is_bigendian = 0;
  made->step = IMAGE_WIDTH * 3;
  made->data = octets(n, (size_t)IMAGE_HEIGHT * IMAGE_WIDTH * 3);
  return made;
}

static uint32_t image_number(const void *message)
{
  return ((const Image *)message)->header.stamp.nanosec;
}

static void *make_cloud(uint32_t n)
{
  static const PointField fields[] = {
      {"x", 0, 7, 1}, {"y", 4, 7, 1}, {"z", 8, 7, 1}, {"intensity", 12, 2, 1}};
  enum { FIELDS = sizeof(fields) / sizeof(*fields) };
  PointCloud2 *made = dds_alloc(sizeof(*made));
  made->header = header(n);
  made->height = 1;
  made->width = POINTS;
  made->fields._maximum = made->fields._length = FIELDS;
  made->fields._buffer = dds_alloc(sizeof(fields));
  made->fields._release = true;
  for (size_t i = 0; i < FIELDS; i++) {
    made->fields._buffer[i] = fields[i];
    made->fields._buffer[i].name = dds_string_dup(fields[i].name);
  }
  made->is_bigendian = false;
  made->point_step = POINT_STEP;
  made->row_step = POINT_STEP * POINTS;
  made->data = octets(n, (size_t)POINT_STEP * POINTS);
  made->is_dense = n % 2 == 0;
  return made;
}

static uint32_t cloud_number(const void *message)
{
  return ((const PointCloud2 *)message)->header.stamp.nanosec;
}

static void *make_imu(uint32_t n)
{
  Imu *made = dds_alloc(sizeof(*made));
  made->header = header(n);
  reals(&made->orientation.x, 4, n, 0);
  reals(made->orientation_covariance, 9, n, 10);
  reals(&made->angular_velocity.x, 3, n, 20);
  reals(made->angular_velocity_covariance, 9, n, 30);
  reals(&made->linear_acceleration.x, 3, n, 40);
  reals(made->linear_acceleration_covariance, 9, n, 50);
  return made;
}

static uint32_t imu_number(const void *message)
{
  return ((const Imu *)message)->header.stamp.nanosec;
}

static Pose pose(uint32_t n)
{
  Pose made = {10000000000u * (uint64_t)n + 1, {0}, -(int32_t)n, n};
  reals(made.position, 3, n, 0);
  return made;
}

static void *make_pose(uint32_t n)
{
  Pose *made = dds_alloc(sizeof(*made));
  *made = pose(n);
  return made;
}

static uint32_t pose_number(const void *message)
{
  return ((const Pose *)message)->number;
}

static dds_sequence_robot_Pose poses(uint32_t n, uint32_t count)
{
  const size_t bytes = (count + 1) * sizeof(Pose);
  dds_sequence_robot_Pose made = {count, count, dds_alloc(bytes), true};
  for (uint32_t i = 0; i < count; i++)
    made._buffer[i] = pose(n + i);
  return made;
}

static void *make_poses(uint32_t n)
{
  Poses *made = dds_alloc(sizeof(*made));
  made->elements = poses(n, 1 + n % 4);
  return made;
}

static uint32_t poses_number(const void *message)
{
  const Poses *made = message;
  return made->elements._length > 0 ? made->elements._buffer[0].number : UINT32_MAX;
}

static void *make_path(uint32_t n)
{
  Path *made = dds_alloc(sizeof(*made));
  const uint32_t distances = n % 5;
  made->name = text(n);
  made->distances._maximum = made->distances._length = distances;
  made->distances._buffer = dds_alloc((distances + 1) * sizeof(double));
  made->distances._release = true;
  reals(made->distances._buffer, distances, n, 0);
  made->poses = poses(n, n % 4);
  return made;
}

static uint32_t path_number(const void *message)
{
  return number_of_text(((const Path *)message)->name);
}

static const struct kind {
  const char *name;
  const dds_topic_descriptor_t *type;
  make_fn make;
  number_fn number;
} kinds[] = {
    {"String", &std_msgs_msg_dds__String__desc, make_string, string_number},
    {"Image", &sensor_msgs_msg_dds__Image__desc, make_image, image_number},
    {"PointCloud2", &sensor_msgs_msg_dds__PointCloud2__desc, make_cloud, cloud_number},
    {"Imu", &sensor_msgs_msg_dds__Imu__desc, make_imu, imu_number},
    {"Pose", &robot_Pose_desc, make_pose, pose_number},
    {"Path", &robot_Path_desc, make_path, path_number},
    {"Poses", &robot_Poses_desc, make_poses, poses_number},
};

static const struct kind *kind_of(const char *name)
{
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (strcmp(kinds[i].name, name) == 0)
      return &kinds[i];
  fprintf(stderr, "no type %s\n", name);
  exit(2);
}

struct options {
  uint32_t count;
  int best_effort, late;
};

static void say(const char *what, uint32_t n)
{
  printf("%s %u\n", what, n);
  fflush(stdout);
}

/* What CycloneDDS makes of a type's samples: asked of a sample that it has written to itself. */
static const struct ddsi_sertype *serialised_type(dds_entity_t participant, const struct kind *kind)
{
  char name[TEXT_BYTES];
  snprintf(name, sizeof(name), "mirror_%d", (int)getpid());
  const dds_entity_t topic =
      checked("mirror", dds_create_topic(participant, kind->type, name, NULL, NULL));
  const dds_entity_t reader = checked("mirror", dds_create_reader(participant, topic, NULL, NULL));
  const dds_entity_t writer = checked("mirror", dds_create_writer(participant, topic, NULL, NULL));
  void *sample = kind->make(0);
  struct ddsi_serdata *serialised = NULL;
  dds_sample_info_t info;
  checked("mirror", dds_write(writer, sample));
  if (checked("mirror", dds_takecdr(reader, &serialised, 1, &info, DDS_ANY_STATE)) != 1)
    die("mirror", 0);
  const struct ddsi_sertype *type = serialised->type;
  dds_sample_free(sample, kind->type, DDS_FREE_ALL);
  return type; /* the serialised sample keeps it */
}

/* Its bytes with their header, and how many. */
static unsigned char *bytes_of(const struct ddsi_sertype *type, const void *sample, size_t *bytes)
{
  struct ddsi_serdata *serialised = ddsi_serdata_from_sample(type, SDK_DATA, sample);
  if (serialised == NULL)
    die("serialise", 0);
  *bytes = ddsi_serdata_size(serialised);
  unsigned char *made = malloc(*bytes);
  if (made == NULL)
    die("malloc", 0);
  ddsi_serdata_to_ser(serialised, 0, *bytes, made);
  ddsi_serdata_unref(serialised);
  return made;
}

static int is_message(const struct ddsi_sertype *type, const struct kind *kind, const void *taken,
                      uint32_t n)
{
  void *wanted = kind->make(n);
  size_t taken_bytes, wanted_bytes;
  unsigned char *ours = bytes_of(type, wanted, &wanted_bytes);
  unsigned char *theirs = bytes_of(type, taken, &taken_bytes);
  const int same = taken_bytes == wanted_bytes && memcmp(ours, theirs, wanted_bytes) == 0;
  free(ours);
  free(theirs);
  dds_sample_free(wanted, kind->type, DDS_FREE_ALL);
  return same;
}

static void wait_for(dds_entity_t entity, uint32_t status, dds_entity_t participant)
{
  checked("status mask", dds_set_status_mask(entity, status));
  const dds_entity_t set = checked("wait set", dds_create_waitset(participant));
  checked("attach", dds_waitset_attach(set, entity, entity));
  dds_attach_t fired;
  checked("wait", dds_waitset_wait(set, &fired, 1, DDS_INFINITY));
  checked("delete", dds_delete(set));
}

static void write_message(dds_entity_t writer, const struct kind *kind, uint32_t n)
{
  void *sample = kind->make(n);
  checked("write", dds_write(writer, sample));
  dds_sample_free(sample, kind->type, DDS_FREE_ALL);
}

static void publish(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos,
                    const struct kind *kind, const struct options *options)
{
  const dds_entity_t writer = checked("writer", dds_create_writer(participant, topic, qos, NULL));
  if (!options->late) {
    wait_for(writer, DDS_PUBLICATION_MATCHED_STATUS, participant);
    say("matched", 1);
  }
  if (!options->late && !options->best_effort)
    while (!is_told())
      write_message(writer, kind, PREAMBLE);
  for (uint32_t n = 0; n < options->count; n++) {
    write_message(writer, kind, n);
    if (options->best_effort)
      dds_sleepfor(DDS_MSECS(PERIOD_MS));
  }
  if (!options->late)
    checked("acknowledgements", dds_wait_for_acks(writer, DDS_SECS(60)));
  say("published", options->count);
}

static void subscribe(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos,
                      const struct kind *kind, uint32_t count)
{
  const struct ddsi_sertype *type = serialised_type(participant, kind);
  const dds_entity_t reader = checked("reader", dds_create_reader(participant, topic, qos, NULL));
  wait_for(reader, DDS_SUBSCRIPTION_MATCHED_STATUS, participant);
  say("matched", 1);
  for (uint32_t taken = 0; taken < count;) {
    wait_for(reader, DDS_DATA_AVAILABLE_STATUS, participant);
    void *sample = NULL;
    dds_sample_info_t info;
    while (taken < count && checked("take", dds_take(reader, &sample, &info, 1, 1)) == 1) {
      if (info.valid_data) {
        const uint32_t n = kind->number(sample);
        say(is_message(type, kind, sample, n) ? "got" : "wrong", n);
        taken++;
      }
      checked("return", dds_return_loan(reader, &sample, 1));
      sample = NULL;
    }
  }
}

static int usage(const char *program)
{
  fprintf(stderr,
          "usage: %s pub|sub DOMAIN TYPE TOPIC COUNT [best-effort] [transient-local]\n"
          "       %s bytes TYPE N     the serialised message, to standard output\n",
          program, program);
  return 2;
}

static int write_bytes(const struct kind *kind, uint32_t n)
{
  const dds_entity_t participant =
      checked("participant", dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL));
  void *sample = kind->make(n);
  size_t bytes;
  unsigned char *made = bytes_of(serialised_type(participant, kind), sample, &bytes);
  return fwrite(made, 1, bytes, stdout) == bytes && fflush(stdout) == 0 ? 0 : 1;
}

int main(int count, char **words)
{
  if (count == 4 && strcmp(words[1], "bytes") == 0)
    return write_bytes(kind_of(words[2]), (uint32_t)atoi(words[3]));
  if (count < 6)
    return usage(words[0]);
  struct options options = {(uint32_t)atoi(words[5]), 0, 0};
  for (int i = 6; i < count; i++) {
    options.best_effort |= strcmp(words[i], "best-effort") == 0;
    options.late |= strcmp(words[i], "transient-local") == 0;
  }
  const struct kind *kind = kind_of(words[3]);
  const dds_entity_t participant =
      checked("participant", dds_create_participant((dds_domainid_t)atoi(words[2]), NULL, NULL));
  const dds_entity_t topic =
      checked("topic", dds_create_topic(participant, kind->type, words[4], NULL, NULL));

  /* ROS 2's default: reliable, volatile, KEEP_LAST 10. */
  dds_qos_t *qos = dds_create_qos();
  const dds_reliability_kind_t reliability =
      options.best_effort ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE;
  dds_qset_reliability(qos, reliability, DDS_INFINITY);
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 10);
  dds_qset_durability(qos, options.late ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  /* This policy decides what late joiners get, as in rmw_cyclonedds. */
  dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_LAST, 10, DDS_LENGTH_UNLIMITED,
                              DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  if (strcmp(words[1], "pub") == 0)
    publish(participant, topic, qos, kind, &options);
  else if (strcmp(words[1], "sub") == 0)
    subscribe(participant, topic, qos, kind, options.count);
  else
    return usage(words[0]);
  dds_delete_qos(qos);
  while (getchar() != EOF)
    ;
  checked("delete", dds_delete(participant));
  return 0;
}
