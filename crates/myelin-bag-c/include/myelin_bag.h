/* Recordings of Myelin's topics: read, written and played. C11; link with libmyelin_bag. C++: myelin_bag.hpp.
 * The guide is docs/reference/c.md.
 *
 * It is a library of its own, which needs no libmyelin: a program that does not record has nothing of it.
 * A recorder and a player have a node of their own; handles of libmyelin mean nothing here.
 *
 * ERRORS    Functions return a myelin_bag_code: MYELIN_BAG_OK, MYELIN_BAG_NOTHING (there is nothing more, or
 *           nothing in time), or a negative one; then myelin_bag_error_message() says what to do.
 * HANDLES   Pointers to opaque types. NULL is an error; a closed one must not be used. Close each handle that
 *           you open.
 * STRUCTS   Structs begin with `size` and may grow at their end in later versions. Set it by
 *           MYELIN_BAG_INIT(name); members that you do not set are 0, which is the default.
 * THREADS   One thread at a time uses a reader, its messages, and a recorder or player that is closed or waited
 *           for; any thread may call the other functions of recorders and players.
 * TEXT      UTF-8, ended by a zero. The library copies the text that it gets.
 * TIMES     In files: nanoseconds since 1970. Durations are nanoseconds; MYELIN_BAG_FOREVER is no limit.
 * FORK      Handles are for the process that opened them, and not for a child of fork.
 *
 * Made by cbindgen from crates/myelin-bag-c; do not edit. */


#ifndef MYELIN_BAG_H
#define MYELIN_BAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No time limit. */
#define MYELIN_BAG_FOREVER UINT64_MAX

/* Begins a struct: struct myelin_bag_message message = MYELIN_BAG_INIT(myelin_bag_message); */
#ifdef __cplusplus
#define MYELIN_BAG_INIT(name) {sizeof(struct name)}
#else
#define MYELIN_BAG_INIT(name) {.size = sizeof(struct name)}
#endif


// The result of a function: 0 (`MYELIN_BAG_OK`), 1 (`MYELIN_BAG_NOTHING`), or a negative code.
enum myelin_bag_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  MYELIN_BAG_OK = 0,
  // There is nothing more, or nothing came within the limit.
  MYELIN_BAG_NOTHING = 1,
  // A name, an option or another argument is not valid; the message names it.
  MYELIN_BAG_ERROR_SETTING = -1,
  // The file system refuses.
  MYELIN_BAG_ERROR_FILE = -2,
  // What is in the file cannot be read.
  MYELIN_BAG_ERROR_CONTENT = -3,
  // A node, topic or publisher cannot be opened, or fails.
  MYELIN_BAG_ERROR_TOPIC = -4,
  // A mistake in the library; please report it.
  MYELIN_BAG_ERROR_BUG = -5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_bag_code myelin_bag_code;
#else
typedef int32_t myelin_bag_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A time of messages.
enum myelin_bag_time
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // When they were recorded, by which files are indexed.
  MYELIN_BAG_LOG = 0,
  // When they were published.
  MYELIN_BAG_PUBLISH = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum myelin_bag_time myelin_bag_time;
#else
typedef int32_t myelin_bag_time;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Messages of a recording, one after the other.
typedef struct myelin_bag_messages myelin_bag_messages;

// A recording that is read.
typedef struct myelin_bag_reader myelin_bag_reader;

// Publishes a recording, at the times at which it was published.
typedef struct myelin_player myelin_player;

// Records topics, from when it is opened until it is closed.
typedef struct myelin_recorder myelin_recorder;

// What is played, and how. Patterns have `*` and `?`. Places are ns from the begin of the recording.
typedef struct myelin_player_options {
  // sizeof(struct myelin_player_options): MYELIN_BAG_INIT(myelin_player_options).
  size_t size;
  // Names or patterns of topics; none: all.
  const char *const *topics;
  size_t topic_count;
  // Names or patterns of topics that are left out.
  const char *const *exclude;
  size_t exclude_count;
  // Pairs of a name in the recording and a name under which it is published, one after the other.
  const char *const *rename;
  size_t rename_count;
  // How many times as fast as it was recorded; 0: 1.
  double rate;
  // Where it begins.
  uint64_t start_ns;
  // Where it ends; 0: at the end.
  uint64_t end_ns;
  // How many times a second the time is published on `/clock`; 0: it is not.
  double clock_hz;
  // The name of its node; NULL: player.
  const char *node;
  // The folder of sockets; NULL: MYELIN_RUNTIME_DIR, or the default.
  const char *runtime_dir;
  // The domain plus 1; 0: MYELIN_DOMAIN, or 0.
  uint32_t domain_plus_1;
  // Whether it begins again at the end.
  bool repeat;
  // Whether it waits for reliable subscribers, however slow they are.
  bool wait_for_slow;
  // Whether the times of the record count, and not those of publication.
  bool by_log_time;
} myelin_player_options;

// How far a player is.
typedef struct myelin_player_status_fields {
  // MYELIN_BAG_INIT(myelin_player_status_fields).
  size_t size;
  // Where it is, where it begins and where it ends, in ns since 1970.
  uint64_t position_ns;
  uint64_t begin_ns;
  uint64_t end_ns;
  double rate;
  // Messages that it has published.
  uint64_t messages;
  bool is_paused;
} myelin_player_status_fields;

// What was published.
typedef struct myelin_played {
  // sizeof(struct myelin_played): MYELIN_BAG_INIT(myelin_played).
  size_t size;
  uint64_t messages;
  uint64_t bytes;
  uint64_t duration_ns;
  // How late messages were published.
  uint64_t lateness_p50_ns;
  uint64_t lateness_p99_ns;
  uint64_t lateness_max_ns;
  // By how much it took longer than planned, because this host could not keep up.
  uint64_t delayed_ns;
  // How many times a reliable subscriber was late and was not waited for.
  uint64_t passed_over;
  // Messages that are no samples of their type, and were left out.
  uint64_t unfit;
  // Parts of the files that cannot be read, and were left out.
  uint64_t unreadable;
  // How many times it began again.
  uint64_t repeats;
} myelin_played;

// A topic of a recording; one with several types stands there several times. Texts are valid until
// the reader is closed.
typedef struct myelin_bag_topic {
  // sizeof(struct myelin_bag_topic): MYELIN_BAG_INIT(myelin_bag_topic).
  size_t size;
  const char *name;
  const char *type_name;
  // Of plain data: the layout hash of its type, as in myelin_payload_hash(). Otherwise 0.
  uint64_t type_hash;
  // How many messages it has.
  uint64_t messages;
  // How its messages are encoded, such as `cdr`.
  const char *encoding;
  // The schema of its messages.
  const char *schema_name;
  const char *schema_encoding;
  const uint8_t *schema;
  size_t schema_bytes;
} myelin_bag_topic;

// Which messages are read.
typedef struct myelin_bag_selection {
  // sizeof(struct myelin_bag_selection): MYELIN_BAG_INIT(myelin_bag_selection).
  size_t size;
  // Names or patterns of topics; none: all.
  const char *const *topics;
  size_t topic_count;
  // Not before this time, in ns since 1970.
  uint64_t start_ns;
  // Before this time; 0: no end.
  uint64_t end_ns;
  // enum myelin_bag_time: the time that is meant, and the order.
  int32_t by;
} myelin_bag_selection;

// A message. Its pointers are valid until the next call with these messages.
typedef struct myelin_bag_message {
  // sizeof(struct myelin_bag_message): MYELIN_BAG_INIT(myelin_bag_message).
  size_t size;
  // The index of its topic.
  size_t topic;
  // Its number in its topic, which wraps at 32 bits.
  uint64_t sequence;
  // When it was recorded and published, in ns since 1970.
  uint64_t log_ns;
  uint64_t publish_ns;
  // The data, as they are in the file.
  const uint8_t *data;
  size_t data_bytes;
  // The sample, as its publisher published it: of plain data the memory of the struct. It need not
  // be aligned: copy it by memcpy.
  const uint8_t *sample;
  size_t sample_bytes;
} myelin_bag_message;

// What is recorded, and how. Without topics and types, all topics are. Patterns have `*` and `?`.
typedef struct myelin_recorder_options {
  // sizeof(struct myelin_recorder_options): MYELIN_BAG_INIT(myelin_recorder_options).
  size_t size;
  // Names or patterns of topics.
  const char *const *topics;
  size_t topic_count;
  // Names or patterns of types.
  const char *const *types;
  size_t type_count;
  // Names or patterns of topics that are left out.
  const char *const *exclude;
  size_t exclude_count;
  // Topics whose reliable publishers wait for the recorder.
  const char *const *reliable;
  size_t reliable_count;
  // The name of its node; NULL: recorder.
  const char *node;
  // The folder of sockets; NULL: MYELIN_RUNTIME_DIR, or the default.
  const char *runtime_dir;
  // The domain plus 1; 0: MYELIN_DOMAIN, or 0.
  uint32_t domain_plus_1;
  // Whether the topics of ROS 2's services are recorded, too.
  bool services;
  // Whether its oldest files are removed to keep space free.
  bool delete_oldest;
  // Ends after so many messages; 0: no limit.
  uint64_t messages_max;
  // How many bytes of samples may wait to be written; 0: 256 MiB.
  uint64_t buffer_bytes;
  // A file of so many bytes, or of messages of so long a time, is followed by another; 0: no limit.
  uint64_t split_bytes;
  uint64_t split_time_ns;
  // So many bytes of the disk stay free.
  uint64_t keep_free_bytes;
} myelin_recorder_options;

// How a recording goes, or how it went.
typedef struct myelin_recorder_status_fields {
  // MYELIN_BAG_INIT(myelin_recorder_status_fields).
  size_t size;
  // How long it has run.
  uint64_t elapsed_ns;
  // Its messages, and the bytes of their samples.
  uint64_t messages;
  uint64_t bytes;
  // Messages that were left out because of a limit of their topic's rate.
  uint64_t skipped;
  // Messages that are not in the recording: their publisher overwrote them before they were taken,
  // the recorder had no room for them, they could not be written.
  uint64_t lost_publisher_ring;
  uint64_t lost_recorder;
  uint64_t lost_disk;
  // Bytes of samples that are not written yet.
  uint64_t buffered_bytes;
  // The bytes of its files.
  uint64_t file_bytes;
  // How many topics it has found.
  size_t topics;
  // Whether it ends or has ended, also by itself: it has as many messages as were wanted, or the
  // disk is full.
  bool is_ending;
} myelin_recorder_status_fields;

// A topic that is recorded. Texts are valid until the next call of `myelin_recorder_topic_at`.
typedef struct myelin_recorded_topic {
  // sizeof(struct myelin_recorded_topic): MYELIN_BAG_INIT(myelin_recorded_topic).
  size_t size;
  const char *name;
  const char *type_name;
  // How many are there now.
  uint64_t publishers;
  // In the recording.
  uint64_t messages;
  uint64_t bytes;
  // As in `myelin_recorder_status_fields`.
  uint64_t lost_publisher_ring;
  uint64_t lost_recorder;
  uint64_t lost_disk;
} myelin_recorded_topic;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the last function of this thread that failed says, until the next one fails: a sentence
// with the remedy.
const char *myelin_bag_error_message(void);

// Opens a recording, a file or a folder of files, and its publishers. Nothing is published before
// `myelin_player_play`. Options may be NULL.
myelin_bag_code myelin_player_open(const char *path,
                                   const struct myelin_player_options *options,
                                   struct myelin_player **player);

// Starts to play, or goes on if it is paused. Returns at once.
myelin_bag_code myelin_player_play(struct myelin_player *player);

// Stands still, until `myelin_player_play`; before it, it stands still at the begin.
myelin_bag_code myelin_player_pause(struct myelin_player *player);

// Pauses, and publishes the next message.
myelin_bag_code myelin_player_step(struct myelin_player *player);

// Goes to a place, in ns from the begin of what is played; it is paused or plays as before.
myelin_bag_code myelin_player_seek(struct myelin_player *player, uint64_t to_ns);

// Plays so many times as fast as it was recorded.
myelin_bag_code myelin_player_set_rate(struct myelin_player *player, double rate);

// How far it is.
myelin_bag_code myelin_player_status(struct myelin_player *player,
                                     struct myelin_player_status_fields *status);

// Waits for the end; MYELIN_BAG_NOTHING if the limit is over. What was published may be NULL.
// `myelin_player_play` plays it once more.
myelin_bag_code myelin_player_wait(struct myelin_player *player,
                                   uint64_t limit_ns,
                                   struct myelin_played *played);

// Waits until a topic, or with NULL all topics together, have so many subscribers;
// MYELIN_BAG_NOTHING if the limit is over. Call it before `myelin_player_play`.
myelin_bag_code myelin_player_wait_for_subscribers(struct myelin_player *player,
                                                   const char *topic,
                                                   size_t count,
                                                   uint64_t limit_ns);

// Ends it and its publishers, and closes the handle.
myelin_bag_code myelin_player_close(struct myelin_player *player);

// Opens a file. A broken one is read as far as possible: see `myelin_bag_reader_problem_at`.
myelin_bag_code myelin_bag_reader_open(const char *path, struct myelin_bag_reader **reader);

// The topic with this number, from 0 on; MYELIN_BAG_NOTHING after the last.
myelin_bag_code myelin_bag_reader_topic_at(struct myelin_bag_reader *reader,
                                           size_t index,
                                           struct myelin_bag_topic *topic);

// The times of the first and the last message, in ns since 1970; 0 without messages.
myelin_bag_code myelin_bag_reader_times(struct myelin_bag_reader *reader,
                                        uint64_t *begin_ns,
                                        uint64_t *end_ns);

// What cannot be read of a broken file: the sentence with this number, from 0 on, valid until the
// reader is closed. MYELIN_BAG_NOTHING after the last.
myelin_bag_code myelin_bag_reader_problem_at(struct myelin_bag_reader *reader,
                                             size_t index,
                                             const char **problem);

// Messages by time; with NULL all of them. Close them; they stay valid without the reader.
myelin_bag_code myelin_bag_reader_messages(struct myelin_bag_reader *reader,
                                           const struct myelin_bag_selection *selection,
                                           struct myelin_bag_messages **messages);

// The next message; MYELIN_BAG_NOTHING at the end. MYELIN_BAG_ERROR_CONTENT says that a part cannot
// be read; the messages behind it follow.
myelin_bag_code myelin_bag_messages_next(struct myelin_bag_messages *messages,
                                         struct myelin_bag_message *message);

// Closes messages.
myelin_bag_code myelin_bag_messages_close(struct myelin_bag_messages *messages);

// Closes a file.
myelin_bag_code myelin_bag_reader_close(struct myelin_bag_reader *reader);

// Starts to record to a file, which must not exist. On return it has subscribed to the topics that
// are there; those that come later are recorded from when they are found. Options may be NULL.
myelin_bag_code myelin_recorder_open(const char *path,
                                     const struct myelin_recorder_options *options,
                                     struct myelin_recorder **recorder);

// How it goes.
myelin_bag_code myelin_recorder_status(struct myelin_recorder *recorder,
                                       struct myelin_recorder_status_fields *status);

// The topic with this number, from 0 on, in the order in which they were found; MYELIN_BAG_NOTHING
// after the last.
myelin_bag_code myelin_recorder_topic_at(struct myelin_recorder *recorder,
                                         size_t index,
                                         struct myelin_recorded_topic *topic);

// Ends the recording without waiting. `myelin_recorder_close` waits.
myelin_bag_code myelin_recorder_end(struct myelin_recorder *recorder);

// Ends the recording: takes what was published before, waits until all is written, and closes the
// handle. The status may be NULL.
myelin_bag_code myelin_recorder_close(struct myelin_recorder *recorder,
                                      struct myelin_recorder_status_fields *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MYELIN_BAG_H */
