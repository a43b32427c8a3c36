#include "endpoints.hpp"

#include <fstream>
#include <set>
#include <sstream>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#include "octets.hpp"
#include "versions.hpp"

namespace myelin {

using namespace eprosima::fastdds::dds;

namespace {

/* Of participant, writers and readers in the XML. */
const char *const PROFILE = "myelin";

/* How long the other side may take for what was written last. */
constexpr std::int32_t ACKNOWLEDGED_WITHIN_S = 10;

template <typename T> T *made(T *entity, const std::string &what)
{
  if (entity == nullptr)
    throw Failure("could not create the " + what, "its own message is in this run's log");
  return entity;
}

/* Topic `number` of a direction; one alone has no number. */
std::string topic_name(const myelin_bench_prepare &prepare, bool from_ping, std::uint32_t number)
{
  const std::string name = std::string(from_ping ? "ping_" : "pong_") + prepare.run;
  return prepare.topics > 1 ? name + "_" + std::to_string(number) : name;
}

/* What the maps of this process tell of Fast DDS's memory: the segments of its transport, and of
 * data sharing those that are not the participant's own. */
struct Mapped {
  std::set<std::string> transport;
  std::set<std::string> others;
};

Mapped mapped_segments(const std::string &own_prefix)
{
  const std::string folder = "/dev/shm/";
  const std::string sharing = "fast_datasharing_";
  const std::string transport = FASTDDS_SEGMENT;
  Mapped mapped;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find(folder);
    if (at == std::string::npos)
      continue;
    const std::string name = line.substr(at + folder.size());
    if (name.compare(0, transport.size(), transport) == 0)
      mapped.transport.insert(name);
    else if (name.compare(0, sharing.size(), sharing) == 0 &&
             name.find(own_prefix) == std::string::npos)
      mapped.others.insert(name);
  }
  return mapped;
}

} // namespace

Endpoints::Endpoints(const myelin_bench_prepare &prepare)
    : inbox(prepare.topics), writer_listener_(matches_),
      others_(static_cast<std::int32_t>(prepare.others))
{
  try {
    create(prepare);
  } catch (...) {
    destroy();
    throw;
  }
}

Endpoints::~Endpoints()
{
  destroy();
}

void Endpoints::create(const myelin_bench_prepare &prepare)
{
  auto *factory = DomainParticipantFactory::get_instance();
  participant_ =
      made(factory->create_participant_with_profile(prepare.domain, PROFILE), "participant");
  TypeSupport type(new Octets(static_cast<std::uint32_t>(prepare.message_bytes)));
  if (type.register_type(participant_) != codes::RETCODE_OK)
    throw Failure("could not register the type");
  const auto topic = [&](bool from_ping, std::uint32_t number) {
    const std::string name = topic_name(prepare, from_ping, number);
    return made(participant_->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT),
                "topic " + name);
  };
  /* First what receives: whoever finds our writer finds our reader too. */
  if (prepare.subscribes) {
    auto *subscriber = made(participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "subscriber");
    StatusMask mask = StatusMask::subscription_matched();
    if (prepare.topics > 1)
      mask << StatusMask::data_available();
    for (std::uint32_t number = 0; number < prepare.topics; number++) {
      reader_listeners_.push_back(std::make_unique<ReaderListener>(matches_, inbox, number));
      auto *reader = subscriber->create_datareader_with_profile(
          topic(!prepare.is_ping, number), PROFILE, reader_listeners_.back().get(), mask);
      readers.push_back(made(reader, "reader"));
    }
  }
  if (prepare.publishes) {
    auto *publisher = made(participant_->create_publisher(PUBLISHER_QOS_DEFAULT), "publisher");
    for (std::uint32_t number = 0; number < prepare.topics; number++) {
      auto *writer = publisher->create_datawriter_with_profile(
          topic(prepare.is_ping, number), PROFILE, &writer_listener_,
          StatusMask::publication_matched());
      writers.push_back(made(writer, "writer"));
    }
  }
}

void Endpoints::destroy() noexcept
{
  if (participant_ == nullptr)
    return;
  try {
    /* No call may come once the listeners are going. */
    (void)participant_->delete_contained_entities();
    (void)DomainParticipantFactory::get_instance()->delete_participant(participant_);
  } catch (...) {
  }
  participant_ = nullptr;
}

void Endpoints::wait_until_matched(Instant until)
{
  /* Endpoints before these have had their counterparts; each is looked at only as often as it is
   * the first that has not. */
  std::size_t writer = 0;
  std::size_t reader = 0;
  for (;;) {
    const std::uint64_t seen = matches_.count();
    for (; writer < writers.size(); writer++) {
      PublicationMatchedStatus status;
      (void)writers[writer]->get_publication_matched_status(status);
      if (status.current_count < others_)
        break;
    }
    for (; reader < readers.size(); reader++) {
      SubscriptionMatchedStatus status;
      (void)readers[reader]->get_subscription_matched_status(status);
      if (status.current_count < others_)
        break;
    }
    const bool is_read = writer == writers.size();
    const bool is_written = reader == readers.size();
    if (is_read && is_written)
      return;
    if (!matches_.wait_beyond(seen, until)) {
      const char *what = "timeout: no other side in either direction";
      if (is_written)
        what = "timeout: too few readers of this side";
      else if (is_read)
        what = "timeout: too few writers for this side";
      throw Failure(what, "see the other side's log; match_timeout_ms sets the limit");
    }
  }
}

void Endpoints::prove(const Transport &transport) const
{
  std::ostringstream own_prefix;
  own_prefix << participant_->guid().guidPrefix;
  const Mapped mapped = mapped_segments(own_prefix.str());
  const std::string remedy = "needs a /dev/shm that is writable and has room for the segments";
  if (!transport.shared_memory && !(mapped.transport.empty() && mapped.others.empty()))
    throw Failure("uses shared memory although it is switched off");
  if (transport.shared_memory && mapped.transport.empty())
    throw Failure("does not use the shared memory transport", remedy);
  if (!transport.data_sharing && !mapped.others.empty())
    throw Failure("uses data sharing although it is switched off");
  if (!transport.data_sharing)
    return;
  /* A writer has mapped each matched reader's notification, a reader each matched writer's pool. */
  const std::size_t counterparts =
      (writers.size() + readers.size()) * static_cast<std::size_t>(others_);
  if (mapped.others.size() < counterparts)
    throw Failure("shares data with " + std::to_string(mapped.others.size()) + " of " +
                      std::to_string(counterparts) + " matched endpoints",
                  remedy);
}

void Endpoints::wait_for_acknowledgments()
{
  for (DataWriter *writer : writers)
    (void)writer->wait_for_acknowledgments({ACKNOWLEDGED_WITHIN_S, 0});
}

} // namespace myelin
