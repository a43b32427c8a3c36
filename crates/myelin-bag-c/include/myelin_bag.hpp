// Recordings of Myelin's topics for C++17: the functions of myelin_bag.h with RAII. Header-only; link with
// libmyelin_bag. It needs no myelin.hpp.
//
//     myelin::BagReader bag("run.mcap");
//     for (const auto &topic : bag.topics()) std::cout << topic.name << ' ' << topic.messages << '\n';
//     auto messages = bag.messages({"imu"});
//     while (auto message = messages.next()) use(message->value<Imu>());
//
// OWNERSHIP  Objects close their handles; they can be moved, not copied. A message is valid until the next one.
// ERRORS     Everything that can fail throws a myelin::BagError.
// THREADS    As in myelin_bag.h.
#ifndef MYELIN_BAG_HPP
#define MYELIN_BAG_HPP

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "myelin_bag.h"

namespace myelin {

/// A recording that cannot be read, written or played. The text says what to do.
class BagError : public std::runtime_error {
public:
  explicit BagError(int code) : std::runtime_error(myelin_bag_error_message()), code_(code) {}
  BagError(int code, const std::string &text) : std::runtime_error(text), code_(code) {}
  /// A MYELIN_BAG_ERROR_*.
  int code() const noexcept { return code_; }

private:
  int code_;
};

namespace bag_detail {

inline bool check(int code) {
  if (code < 0) throw BagError(code);
  return code == MYELIN_BAG_OK;
}

/// A struct with its size, and zeros.
template <class T> T sized() {
  T it{};
  it.size = sizeof(T);
  return it;
}

template <class T, auto close> struct Closes {
  void operator()(T *handle) const noexcept { close(handle); }
};
inline myelin_bag_code close_recorder(myelin_recorder *handle) { return myelin_recorder_close(handle, nullptr); }

template <class T, auto close> using Handle = std::unique_ptr<T, Closes<T, close>>;

/// Texts as C takes them.
struct Texts {
  explicit Texts(const std::vector<std::string> &texts) {
    for (const auto &text : texts) pointers.push_back(text.c_str());
  }
  std::vector<const char *> pointers;
};

inline std::uint64_t ns(std::chrono::nanoseconds limit) {
  if (limit == std::chrono::nanoseconds::max()) return MYELIN_BAG_FOREVER;
  return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
}

} // namespace bag_detail

/// A topic of a recording; one with several types stands there several times.
struct BagTopic {
  std::string name, type_name, encoding, schema_name, schema_encoding, schema;
  /// Of plain data: the layout hash of its type. Otherwise 0.
  std::uint64_t type_hash = 0;
  std::uint64_t messages = 0;
};

/// A message. Its data are valid until the next one is taken.
class BagMessage {
public:
  explicit BagMessage(const myelin_bag_message &fields) : fields_(fields) {}
  /// The index of its topic in `BagReader::topics()`.
  std::size_t topic() const { return fields_.topic; }
  std::uint64_t sequence() const { return fields_.sequence; }
  /// In ns since 1970.
  std::uint64_t log_ns() const { return fields_.log_ns; }
  std::uint64_t publish_ns() const { return fields_.publish_ns; }
  /// The data as they are in the file.
  const std::uint8_t *data() const { return fields_.data; }
  std::size_t data_bytes() const { return fields_.data_bytes; }
  /// The sample, as it was published. It need not be aligned.
  const std::uint8_t *sample() const { return fields_.sample; }
  std::size_t sample_bytes() const { return fields_.sample_bytes; }

  /// A copy of the value of plain data. Throws if it has another size.
  template <class T> T value() const {
    static_assert(std::is_trivially_copyable_v<T>, "plain data");
    if (fields_.sample_bytes != sizeof(T)) wrong_size(sizeof(T));
    T value;
    std::memcpy(&value, fields_.sample, sizeof(T));
    return value;
  }
  /// A copy of the elements of a slice, behind a header of so many bytes. Throws if they do not fit.
  template <class T> std::vector<T> elements(std::size_t header_bytes = 0) const {
    static_assert(std::is_trivially_copyable_v<T>, "plain data");
    if (fields_.sample_bytes < header_bytes || (fields_.sample_bytes - header_bytes) % sizeof(T) != 0)
      wrong_size(sizeof(T));
    std::vector<T> elements((fields_.sample_bytes - header_bytes) / sizeof(T));
    if (!elements.empty())
      std::memcpy(elements.data(), fields_.sample + header_bytes, elements.size() * sizeof(T));
    return elements;
  }

private:
  [[noreturn]] void wrong_size(std::size_t bytes) const {
    throw BagError(MYELIN_BAG_ERROR_SETTING, "a sample of " + std::to_string(fields_.sample_bytes) +
                                                 " B is not a type of " + std::to_string(bytes) + " B");
  }
  myelin_bag_message fields_;
};

/// Messages of a recording, by time.
class BagMessages {
public:
  explicit BagMessages(myelin_bag_messages *handle) : handle_(handle) {}
  /// The next message; nothing at the end. Throws for a part that cannot be read; the messages behind it
  /// follow.
  std::optional<BagMessage> next() {
    auto message = bag_detail::sized<myelin_bag_message>();
    if (!bag_detail::check(myelin_bag_messages_next(handle_.get(), &message))) return std::nullopt;
    return BagMessage(message);
  }

private:
  bag_detail::Handle<myelin_bag_messages, myelin_bag_messages_close> handle_;
};

/// Which messages are read.
struct BagSelection {
  /// In ns since 1970: not before, and before; 0: no end.
  std::uint64_t start_ns = 0, end_ns = 0;
  /// Whether the times of publication count, and not those of the record.
  bool by_publish_time = false;
};

/// Reads a recording. A broken one is read as far as possible.
class BagReader {
public:
  explicit BagReader(const std::string &path) {
    myelin_bag_reader *reader = nullptr;
    bag_detail::check(myelin_bag_reader_open(path.c_str(), &reader));
    handle_.reset(reader);
  }

  std::vector<BagTopic> topics() const {
    std::vector<BagTopic> topics;
    auto it = bag_detail::sized<myelin_bag_topic>();
    while (bag_detail::check(myelin_bag_reader_topic_at(handle_.get(), topics.size(), &it))) {
      BagTopic topic;
      topic.name = it.name, topic.type_name = it.type_name, topic.encoding = it.encoding;
      topic.schema_name = it.schema_name, topic.schema_encoding = it.schema_encoding;
      if (it.schema) topic.schema.assign(reinterpret_cast<const char *>(it.schema), it.schema_bytes);
      topic.type_hash = it.type_hash, topic.messages = it.messages;
      topics.push_back(std::move(topic));
    }
    return topics;
  }

  /// What cannot be read of a broken file, a sentence each.
  std::vector<std::string> problems() const {
    std::vector<std::string> problems;
    const char *text = nullptr;
    while (bag_detail::check(myelin_bag_reader_problem_at(handle_.get(), problems.size(), &text)))
      problems.emplace_back(text);
    return problems;
  }

  /// The times of the first and the last message, in ns since 1970.
  std::pair<std::uint64_t, std::uint64_t> times() const {
    std::uint64_t begin = 0, end = 0;
    bag_detail::check(myelin_bag_reader_times(handle_.get(), &begin, &end));
    return {begin, end};
  }

  /// The messages of these topics, or of all. They stay valid without the reader.
  BagMessages messages(const std::vector<std::string> &topics = {}, const BagSelection &selection = {}) const {
    bag_detail::Texts names(topics);
    auto wanted = bag_detail::sized<myelin_bag_selection>();
    wanted.topics = names.pointers.data(), wanted.topic_count = names.pointers.size();
    wanted.start_ns = selection.start_ns, wanted.end_ns = selection.end_ns;
    wanted.by = selection.by_publish_time ? MYELIN_BAG_PUBLISH : MYELIN_BAG_LOG;
    myelin_bag_messages *messages = nullptr;
    bag_detail::check(myelin_bag_reader_messages(handle_.get(), &wanted, &messages));
    return BagMessages(messages);
  }

private:
  bag_detail::Handle<myelin_bag_reader, myelin_bag_reader_close> handle_;
};

/// What is recorded, and how. Patterns have `*` and `?`. 0 and empty are the defaults of myelin_bag.h.
struct RecorderOptions {
  std::vector<std::string> topics, types, exclude, reliable;
  std::string node, runtime_dir;
  std::optional<std::uint32_t> domain;
  bool services = false, delete_oldest = false;
  std::uint64_t messages_max = 0, buffer_bytes = 0, split_bytes = 0, keep_free_bytes = 0;
  std::chrono::nanoseconds split_time{0};
};

using RecorderStatus = myelin_recorder_status_fields;

/// A topic that is recorded.
struct RecordedTopic {
  std::string name, type_name;
  std::uint64_t publishers = 0, messages = 0, bytes = 0;
  std::uint64_t lost_publisher_ring = 0, lost_recorder = 0, lost_disk = 0;
};

/// Records topics, from when it is made until it is closed or destroyed.
class Recorder {
public:
  explicit Recorder(const std::string &path, const RecorderOptions &options = {}) {
    bag_detail::Texts topics(options.topics), types(options.types), exclude(options.exclude),
        reliable(options.reliable);
    auto it = bag_detail::sized<myelin_recorder_options>();
    it.topics = topics.pointers.data(), it.topic_count = topics.pointers.size();
    it.types = types.pointers.data(), it.type_count = types.pointers.size();
    it.exclude = exclude.pointers.data(), it.exclude_count = exclude.pointers.size();
    it.reliable = reliable.pointers.data(), it.reliable_count = reliable.pointers.size();
    it.node = options.node.empty() ? nullptr : options.node.c_str();
    it.runtime_dir = options.runtime_dir.empty() ? nullptr : options.runtime_dir.c_str();
    it.domain_plus_1 = options.domain ? *options.domain + 1 : 0;
    it.services = options.services, it.delete_oldest = options.delete_oldest;
    it.messages_max = options.messages_max, it.buffer_bytes = options.buffer_bytes;
    it.split_bytes = options.split_bytes, it.keep_free_bytes = options.keep_free_bytes;
    it.split_time_ns = bag_detail::ns(options.split_time);
    myelin_recorder *recorder = nullptr;
    bag_detail::check(myelin_recorder_open(path.c_str(), &it, &recorder));
    handle_.reset(recorder);
  }

  RecorderStatus status() const {
    auto status = bag_detail::sized<myelin_recorder_status_fields>();
    bag_detail::check(myelin_recorder_status(handle_.get(), &status));
    return status;
  }

  std::vector<RecordedTopic> topics() const {
    std::vector<RecordedTopic> topics;
    auto it = bag_detail::sized<myelin_recorded_topic>();
    while (bag_detail::check(myelin_recorder_topic_at(handle_.get(), topics.size(), &it)))
      topics.push_back({it.name, it.type_name, it.publishers, it.messages, it.bytes, it.lost_publisher_ring,
                        it.lost_recorder, it.lost_disk});
    return topics;
  }

  /// Ends the recording without waiting.
  void end() { bag_detail::check(myelin_recorder_end(handle_.get())); }

  /// Ends the recording, and waits until all is written.
  RecorderStatus close() {
    auto status = bag_detail::sized<myelin_recorder_status_fields>();
    bag_detail::check(myelin_recorder_close(handle_.release(), &status));
    return status;
  }

private:
  bag_detail::Handle<myelin_recorder, bag_detail::close_recorder> handle_;
};

/// What is played, and how. Patterns have `*` and `?`. Places are times from the begin of the recording.
struct PlayerOptions {
  std::vector<std::string> topics, exclude;
  /// Pairs of a name in the recording and a name under which it is published.
  std::vector<std::pair<std::string, std::string>> rename;
  double rate = 1, clock_hz = 0;
  std::chrono::nanoseconds start{0}, end{0};
  std::string node, runtime_dir;
  std::optional<std::uint32_t> domain;
  bool repeat = false, wait_for_slow = false, by_log_time = false;
};

using PlayerStatus = myelin_player_status_fields;
using Played = myelin_played;

/// Publishes a recording.
class Player {
public:
  explicit Player(const std::string &path, const PlayerOptions &options = {}) {
    bag_detail::Texts topics(options.topics), exclude(options.exclude);
    std::vector<const char *> rename;
    for (const auto &[from, to] : options.rename) rename.push_back(from.c_str()), rename.push_back(to.c_str());
    auto it = bag_detail::sized<myelin_player_options>();
    it.topics = topics.pointers.data(), it.topic_count = topics.pointers.size();
    it.exclude = exclude.pointers.data(), it.exclude_count = exclude.pointers.size();
    it.rename = rename.data(), it.rename_count = rename.size();
    it.rate = options.rate, it.clock_hz = options.clock_hz;
    it.start_ns = bag_detail::ns(options.start), it.end_ns = bag_detail::ns(options.end);
    it.node = options.node.empty() ? nullptr : options.node.c_str();
    it.runtime_dir = options.runtime_dir.empty() ? nullptr : options.runtime_dir.c_str();
    it.domain_plus_1 = options.domain ? *options.domain + 1 : 0;
    it.repeat = options.repeat, it.wait_for_slow = options.wait_for_slow, it.by_log_time = options.by_log_time;
    myelin_player *player = nullptr;
    bag_detail::check(myelin_player_open(path.c_str(), &it, &player));
    handle_.reset(player);
  }

  /// Starts to play, or goes on if it is paused. Returns at once.
  void play() { bag_detail::check(myelin_player_play(handle_.get())); }
  /// Stands still, until `play`; before it, it stands still at the begin.
  void pause() { bag_detail::check(myelin_player_pause(handle_.get())); }
  /// Pauses, and publishes the next message.
  void step() { bag_detail::check(myelin_player_step(handle_.get())); }
  /// Goes to a place, from the begin of what is played.
  void seek(std::chrono::nanoseconds to) { bag_detail::check(myelin_player_seek(handle_.get(), bag_detail::ns(to))); }
  void set_rate(double rate) { bag_detail::check(myelin_player_set_rate(handle_.get(), rate)); }

  PlayerStatus status() const {
    auto status = bag_detail::sized<myelin_player_status_fields>();
    bag_detail::check(myelin_player_status(handle_.get(), &status));
    return status;
  }

  /// Waits for the end; nothing if the limit is over. `play` plays it once more.
  std::optional<Played> wait(std::chrono::nanoseconds limit = std::chrono::nanoseconds::max()) {
    auto played = bag_detail::sized<myelin_played>();
    if (!bag_detail::check(myelin_player_wait(handle_.get(), bag_detail::ns(limit), &played))) return std::nullopt;
    return played;
  }

  /// Waits until all topics together have so many subscribers, or one topic has. False if the limit is over.
  bool wait_for_subscribers(std::size_t count = 1,
                            std::chrono::nanoseconds limit = std::chrono::nanoseconds::max(),
                            const std::string &topic = "") {
    const char *name = topic.empty() ? nullptr : topic.c_str();
    return bag_detail::check(
        myelin_player_wait_for_subscribers(handle_.get(), name, count, bag_detail::ns(limit)));
  }

private:
  bag_detail::Handle<myelin_player, myelin_player_close> handle_;
};

} // namespace myelin

#endif
