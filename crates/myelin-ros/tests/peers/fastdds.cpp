/* The other side of the tests: a DDS program with Fast DDS, whose types are written by hand as its
 * generator would for types.idl. How it is called: usage(). It ends when its standard input
 * does. */
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#include "fastdds_versions.hpp"
#include "pattern.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;
using rtps::IPLocator;
using rtps::Locator_t;
using rtps::SerializedPayload_t;

namespace {

/* The types. `visit` hands each field to a function, in order: one listing for both ways. */

struct Header {
  std::int32_t sec = 0;
  std::uint32_t nanosec = 0;
  std::string frame_id;
  template <typename F> void visit(F &f) { f(sec), f(nanosec), f(frame_id); }
};

struct String {
  static constexpr const char *NAME = "std_msgs::msg::dds_::String_";
  std::string data;
  template <typename F> void visit(F &f) { f(data); }
};

struct Image {
  static constexpr const char *NAME = "sensor_msgs::msg::dds_::Image_";
  Header header;
  std::uint32_t height = 0, width = 0;
  std::string encoding;
  std::uint8_t is_bigendian = 0;
  std::uint32_t step = 0;
  std::vector<std::uint8_t> data;
  template <typename F> void visit(F &f)
  {
    header.visit(f), f(height), f(width), f(encoding), f(is_bigendian), f(step), f(data);
  }
};

struct PointField {
  std::string name;
  std::uint32_t offset = 0;
  std::uint8_t datatype = 0;
  std::uint32_t count = 0;
  template <typename F> void visit(F &f) { f(name), f(offset), f(datatype), f(count); }
};

struct PointCloud2 {
  static constexpr const char *NAME = "sensor_msgs::msg::dds_::PointCloud2_";
  Header header;
  std::uint32_t height = 0, width = 0;
  std::vector<PointField> fields;
  bool is_bigendian = false;
  std::uint32_t point_step = 0, row_step = 0;
  std::vector<std::uint8_t> data;
  bool is_dense = false;
  template <typename F> void visit(F &f)
  {
    header.visit(f), f(height), f(width), f.structs(fields), f(is_bigendian), f(point_step);
    f(row_step), f(data), f(is_dense);
  }
};

struct Imu {
  static constexpr const char *NAME = "sensor_msgs::msg::dds_::Imu_";
  Header header;
  std::array<double, 4> orientation{};
  std::array<double, 9> orientation_covariance{};
  std::array<double, 3> angular_velocity{};
  std::array<double, 9> angular_velocity_covariance{};
  std::array<double, 3> linear_acceleration{};
  std::array<double, 9> linear_acceleration_covariance{};
  template <typename F> void visit(F &f)
  {
    header.visit(f), f(orientation), f(orientation_covariance), f(angular_velocity);
    f(angular_velocity_covariance), f(linear_acceleration), f(linear_acceleration_covariance);
  }
};

struct Pose {
  static constexpr const char *NAME = "robot::Pose";
  std::uint64_t stamp_ns = 0;
  std::array<double, 3> position{};
  std::int32_t quality = 0;
  std::uint32_t number = 0;
  template <typename F> void visit(F &f) { f(stamp_ns), f(position), f(quality), f(number); }
};

struct Path {
  static constexpr const char *NAME = "robot::Path";
  std::string name;
  std::vector<double> distances;
  std::vector<Pose> poses;
  template <typename F> void visit(F &f) { f(name), f(distances), f.structs(poses); }
};

struct Poses {
  static constexpr const char *NAME = "robot::Poses";
  std::vector<Pose> poses;
  template <typename F> void visit(F &f) { f.structs(poses); }
};

/* The argument of `visit`. */

struct Writer {
  Cdr &cdr;
  template <typename T> void operator()(T &field) { cdr << field; }
  template <typename T> void structs(std::vector<T> &elements)
  {
    cdr << static_cast<std::uint32_t>(elements.size());
    for (T &element : elements)
      element.visit(*this);
  }
};

struct Reader {
  Cdr &cdr;
  template <typename T> void operator()(T &field) { cdr >> field; }
  template <typename T> void structs(std::vector<T> &elements)
  {
    std::uint32_t count = 0;
    cdr >> count;
    elements.resize(count);
    for (T &element : elements)
      element.visit(*this);
  }
};

/* Message `n`. */

Header header(std::uint32_t n)
{
  return {seconds_of(n), n, std::string(FRAME, frame_length(n))};
}

std::vector<std::uint8_t> octets(std::uint32_t n, std::size_t bytes)
{
  std::vector<std::uint8_t> made(bytes);
  for (std::size_t i = 0; i < bytes; i++)
    made[i] = octet_at(n, i);
  return made;
}

template <std::size_t N> std::array<double, N> reals(std::uint32_t n, std::uint32_t from)
{
  std::array<double, N> made;
  for (std::uint32_t i = 0; i < N; i++)
    made[i] = real_at(n, from + i);
  return made;
}

void make(String &message, std::uint32_t n)
{
  message.data = "message " + std::to_string(n);
}

void make(Image &message, std::uint32_t n)
{
  message.header = header(n);
  message.height = IMAGE_HEIGHT;
  message.width = IMAGE_WIDTH;
  message.encoding = "rgb8";
  message.step = IMAGE_WIDTH * 3;
  message.data = octets(n, static_cast<std::size_t>(IMAGE_HEIGHT) * IMAGE_WIDTH * 3);
}

void make(PointCloud2 &message, std::uint32_t n)
{
  message.header = header(n);
  message.height = 1;
  message.width = POINTS;
  message.fields = {{"x", 0, 7, 1}, {"y", 4, 7, 1}, {"z", 8, 7, 1}, {"intensity", 12, 2, 1}};
  message.point_step = POINT_STEP;
  message.row_step = POINT_STEP * POINTS;
  message.data = octets(n, static_cast<std::size_t>(POINT_STEP) * POINTS);
  message.is_dense = n % 2 == 0;
}

void make(Imu &message, std::uint32_t n)
{
  message.header = header(n);
  message.orientation = reals<4>(n, 0);
  message.orientation_covariance = reals<9>(n, 10);
  message.angular_velocity = reals<3>(n, 20);
  message.angular_velocity_covariance = reals<9>(n, 30);
  message.linear_acceleration = reals<3>(n, 40);
  message.linear_acceleration_covariance = reals<9>(n, 50);
}

void make(Pose &message, std::uint32_t n)
{
  message = {10000000000u * static_cast<std::uint64_t>(n) + 1, reals<3>(n, 0),
             -static_cast<std::int32_t>(n), n};
}

void make(Path &message, std::uint32_t n)
{
  message.name = "message " + std::to_string(n);
  for (std::uint32_t i = 0; i < n % 5; i++)
    message.distances.push_back(real_at(n, i));
  message.poses.resize(n % 4);
  for (std::uint32_t i = 0; i < n % 4; i++)
    make(message.poses[i], n + i);
}

void make(Poses &message, std::uint32_t n)
{
  message.poses.resize(1 + n % 4);
  for (std::uint32_t i = 0; i < message.poses.size(); i++)
    make(message.poses[i], n + i);
}

/* The `n` of a message. */

std::uint32_t number_of_text(const std::string &text)
{
  unsigned n = UINT32_MAX;
  (void)std::sscanf(text.c_str(), "message %u", &n);
  return n;
}

std::uint32_t number_of(const String &message) { return number_of_text(message.data); }
std::uint32_t number_of(const Path &message) { return number_of_text(message.name); }
std::uint32_t number_of(const Pose &message) { return message.number; }
std::uint32_t number_of(const Poses &message)
{
  return message.poses.empty() ? UINT32_MAX : message.poses[0].number;
}

template <typename T> std::uint32_t number_of(const T &message) { return message.header.nanosec; }

template <typename T> std::size_t serialise(T &message, FastBuffer &buffer)
{
  Cdr stream(buffer, Cdr::DEFAULT_ENDIAN, cdr::DDS_CDR);
  stream.serialize_encapsulation();
  Writer writer{stream};
  message.visit(writer);
  return cdr::length(stream);
}

/* Fast CDR leaves padding as it was: so first a buffer of its own for the size, then zeros. */
template <typename T> std::vector<char> bytes_of(T &message)
{
  FastBuffer growing;
  std::vector<char> bytes(serialise(message, growing));
  FastBuffer buffer(bytes.data(), bytes.size());
  (void)serialise(message, buffer);
  return bytes;
}

/* A type as Fast DDS wants it. */
template <typename T> class Type : public TopicDataType {
public:
  explicit Type(bool truncated) : truncated_(truncated)
  {
    /* To begin with: the histories allocate as they need. */
    constexpr std::uint32_t BYTES = 1024;
#if FASTDDS_VERSION_MAJOR >= 3
    set_name(T::NAME);
    max_serialized_type_size = BYTES;
#else
    setName(T::NAME);
    m_typeSize = BYTES;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
#endif
  }

#if FASTDDS_VERSION_MAJOR >= 3
  bool serialize(const void *data, SerializedPayload_t &payload, DataRepresentationId_t) override
  {
    return write(data, payload);
  }

  bool deserialize(SerializedPayload_t &payload, void *data) override
  {
    return read(payload, data);
  }

  std::uint32_t calculate_serialized_size(const void *data, DataRepresentationId_t) override
  {
    return size(data);
  }

  void *create_data() override { return new T(); }
  void delete_data(void *data) override { delete static_cast<T *>(data); }
  bool compute_key(SerializedPayload_t &, rtps::InstanceHandle_t &, bool) override { return false; }
  bool compute_key(const void *, rtps::InstanceHandle_t &, bool) override { return false; }
#else
  bool serialize(void *data, SerializedPayload_t *payload) override
  {
    return write(data, *payload);
  }

  bool deserialize(SerializedPayload_t *payload, void *data) override
  {
    return read(*payload, data);
  }

  std::function<std::uint32_t()> getSerializedSizeProvider(void *data) override
  {
    return [data] { return size(data); };
  }

  void *createData() override { return new T(); }
  void deleteData(void *data) override { delete static_cast<T *>(data); }
  bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
#endif

private:
  static std::uint32_t size(const void *data)
  {
    return static_cast<std::uint32_t>(bytes(data).size());
  }

  /* `visit` is the same for reading and writing, so it takes no constant message. */
  static std::vector<char> bytes(const void *data)
  {
    return bytes_of(*static_cast<T *>(const_cast<void *>(data)));
  }

  bool write(const void *data, SerializedPayload_t &payload) const
  {
    const std::vector<char> written = bytes(data);
    if (payload.max_size < written.size())
      return false;
    std::memcpy(payload.data, written.data(), written.size());
    payload.encapsulation = CDR_LE;
    /* Truncated: what a faulty program may send. */
    payload.length = static_cast<std::uint32_t>(truncated_ ? written.size() / 2 : written.size());
    return true;
  }

  static bool read(SerializedPayload_t &payload, void *data)
  {
    try {
      FastBuffer buffer(reinterpret_cast<char *>(payload.data), payload.length);
      Cdr stream(buffer, Cdr::DEFAULT_ENDIAN, cdr::DDS_CDR);
      stream.read_encapsulation();
      Reader reader{stream};
      static_cast<T *>(data)->visit(reader);
      return true;
    } catch (const eprosima::fastcdr::exception::Exception &error) {
      std::cerr << "not a " << T::NAME << ": " << error.what() << std::endl;
      return false;
    }
  }

  bool truncated_;
};

constexpr std::uint32_t HEARTBEAT_NS = 10000000;

struct Options {
  std::uint32_t domain;
  std::string topic;
  std::uint32_t count;
  bool publishes, best_effort, late, truncated;
};

void check(bool is_well, const char *what)
{
  if (!is_well) {
    std::cerr << what << " failed" << std::endl;
    std::exit(1);
  }
}

/* Words of an environment variable, separated by spaces. */
std::vector<std::string> words_of(const char *variable)
{
  const char *text = std::getenv(variable);
  std::istringstream stream(text == nullptr ? "" : text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

/* UDP alone: what is killed leaves nothing in /dev/shm. PEER_ADDRESS: the interface's address;
 * PEER_PEERS: the hosts to look for without multicast. */
DomainParticipantQos participant_qos()
{
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  udp->interfaceWhiteList = words_of("PEER_ADDRESS");
  /* An image has many fragments, which come faster than they are read. */
  udp->receiveBufferSize = 1 << 20;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  for (const std::string &address : words_of("PEER_PEERS")) {
    Locator_t locator;
    check(IPLocator::setIPv4(locator, address), "PEER_PEERS");
    qos.wire_protocol().builtin.initialPeersList.push_back(locator);
  }
  return qos;
}

/* ROS 2's default: reliable, volatile, KEEP_LAST 10; memory as rmw_fastrtps takes it. */
template <typename Qos> void set(Qos &qos, const Options &options)
{
  qos.reliability().kind =
      options.best_effort ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
  qos.durability().kind =
      options.late ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  qos.history().kind = KEEP_LAST_HISTORY_QOS;
  qos.history().depth = 10;
  qos.endpoint().history_memory_policy =
      rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off();
}

void say(const std::string &what, std::uint32_t n)
{
  std::cout << what << " " << n << std::endl;
}

/* Waits until an entity has met another one. */
class Matches : public DataWriterListener, public DataReaderListener {
public:
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &status) override
  {
    set(status.current_count);
  }

  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &status) override
  {
    set(status.current_count);
  }

  void wait()
  {
    std::unique_lock<std::mutex> guard(lock_);
    change_.wait(guard, [this] { return matched_ > 0; });
    say("matched", 1);
  }

private:
  void set(int matched)
  {
    std::lock_guard<std::mutex> guard(lock_);
    matched_ = matched;
    change_.notify_all();
  }

  std::mutex lock_;
  std::condition_variable change_;
  int matched_ = 0;
};

template <typename T> void write(DataWriter *writer, std::uint32_t n)
{
  T message;
  make(message, n);
#if FASTDDS_VERSION_MAJOR >= 3
  check(writer->write(&message) == codes::RETCODE_OK, "write");
#else
  check(writer->write(&message), "write");
#endif
}

template <typename T>
void publish(DomainParticipant *participant, Topic *topic, const Options &options)
{
  Matches matches;
  DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
  set(qos, options);
  qos.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE;
  /* By default three seconds, until the first of which a volatile reader of CycloneDDS may lose
   * samples: the test would have to wait for it. */
#if FASTDDS_VERSION_MAJOR >= 3
  qos.reliable_writer_qos().times.heartbeat_period = {0, HEARTBEAT_NS};
#else
  qos.reliable_writer_qos().times.heartbeatPeriod = {0, HEARTBEAT_NS};
#endif
  auto *publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  const auto mask = StatusMask::publication_matched();
  auto *writer = publisher->create_datawriter(topic, qos, &matches, mask);
  check(writer != nullptr, "writer");
  if (!options.late)
    matches.wait();
  if (!options.late && !options.best_effort)
    while (!is_told())
      write<T>(writer, PREAMBLE);
  for (std::uint32_t n = 0; n < options.count; n++) {
    write<T>(writer, n);
    if (options.best_effort)
      std::this_thread::sleep_for(std::chrono::milliseconds(PERIOD_MS));
  }
  if (!options.late)
    check(writer->wait_for_acknowledgments({60, 0}) == codes::RETCODE_OK, "acknowledgement");
  say("published", options.count);
  while (std::getchar() != EOF)
    ;
  (void)writer->set_listener(nullptr);
}

template <typename T>
void subscribe(DomainParticipant *participant, Topic *topic, const Options &options)
{
  Matches matches;
  DataReaderQos qos = DATAREADER_QOS_DEFAULT;
  set(qos, options);
  auto *subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  const auto mask = StatusMask::subscription_matched();
  auto *reader = subscriber->create_datareader(topic, qos, &matches, mask);
  check(reader != nullptr, "reader");
  matches.wait();
  for (std::uint32_t taken = 0; taken < options.count;) {
    (void)reader->wait_for_unread_message(c_TimeInfinite);
    T message;
    SampleInfo info;
    while (taken < options.count &&
           reader->take_next_sample(&message, &info) == codes::RETCODE_OK) {
      if (!info.valid_data)
        continue;
      T wanted;
      make(wanted, number_of(message));
      say(bytes_of(message) == bytes_of(wanted) ? "got" : "wrong", number_of(message));
      taken++;
      message = T();
    }
  }
  while (std::getchar() != EOF)
    ;
  (void)reader->set_listener(nullptr);
}

template <typename T> int run(const Options &options)
{
  auto *factory = DomainParticipantFactory::get_instance();
  auto *participant = factory->create_participant(options.domain, participant_qos());
  check(participant != nullptr, "participant");
  TypeSupport type(new Type<T>(options.truncated));
  check(type.register_type(participant) == codes::RETCODE_OK, "type");
  auto *topic = participant->create_topic(options.topic, type.get_type_name(), TOPIC_QOS_DEFAULT);
  check(topic != nullptr, "topic");
  if (options.publishes)
    publish<T>(participant, topic, options);
  else
    subscribe<T>(participant, topic, options);
  (void)participant->delete_contained_entities();
  (void)factory->delete_participant(participant);
  return 0;
}

template <typename T> int write_bytes(std::uint32_t n)
{
  T message;
  make(message, n);
  const std::vector<char> bytes = bytes_of(message);
  std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  return std::cout ? 0 : 1;
}

/* Calls `act` with a value of the type called `name`. */
template <typename F> int with_type(const std::string &name, F act)
{
  if (name == "String")
    return act(String());
  if (name == "Image")
    return act(Image());
  if (name == "PointCloud2")
    return act(PointCloud2());
  if (name == "Imu")
    return act(Imu());
  if (name == "Pose")
    return act(Pose());
  if (name == "Path")
    return act(Path());
  if (name == "Poses")
    return act(Poses());
  std::cerr << "no type " << name << std::endl;
  return 2;
}

int usage(const char *program)
{
  std::cerr << "usage: " << program << " pub|sub DOMAIN TYPE TOPIC COUNT [best-effort]\n"
            << "           [transient-local] [truncated]\n"
            << "       " << program << " bytes TYPE N     the serialised message\n";
  return 2;
}

} // namespace

int main(int count, char **words)
{
  const std::vector<std::string> given(words + 1, words + count);
  const auto is_given = [&](const char *word) {
    for (const std::string &one : given)
      if (one == word)
        return true;
    return false;
  };
  if (given.size() == 3 && given[0] == "bytes") {
    const auto n = static_cast<std::uint32_t>(std::stoul(given[2]));
    return with_type(given[1], [&](auto type) { return write_bytes<decltype(type)>(n); });
  }
  if (given.size() < 5 || (given[0] != "pub" && given[0] != "sub"))
    return usage(words[0]);
  const Options options = {static_cast<std::uint32_t>(std::stoul(given[1])),
                           given[3],
                           static_cast<std::uint32_t>(std::stoul(given[4])),
                           given[0] == "pub",
                           is_given("best-effort"),
                           is_given("transient-local"),
                           is_given("truncated")};
  return with_type(given[2], [&](auto type) { return run<decltype(type)>(options); });
}
