#include "reader.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "dds/ddsi/ddsi_protocol.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "dds/ddsi/ddsi_sertype.h"
#include "dds/ddsi/ddsi_thread.h"
#include "support.hpp"

namespace psmx_myelin {

struct ReaderLoan : dds_loaned_sample_t {
  dds_psmx_metadata_t own_metadata;
  myelin_sample sample = MYELIN_INIT(myelin_sample);
  /// Of its reader, if it is counted there.
  std::shared_ptr<std::atomic<uint32_t>> held;
  /// Where the payload is while CycloneDDS has a copy of it.
  void *lent_ptr = nullptr;
  /// The payload, if it is not in the sample.
  std::vector<uint8_t> copy;

  ~ReaderLoan() { release(); }
  void release() {
    if (sample.data != nullptr) myelin_sample_release(&sample);
    if (held) held->fetch_sub(1, std::memory_order_relaxed);
    held.reset();
  }
};

void DropLoan::operator()(ReaderLoan *loan) const { dds_loaned_sample_unref(loan); }

namespace {

/// Samples up to this size the library copies out; larger ones are held.
constexpr size_t inline_bytes = 104;
/// For what a program keeps of the samples that it took, beside its reader's history.
constexpr uint32_t held_beyond_depth = 64;
constexpr uint32_t held_max = 256;
/// Of a reliable writer that DDS has not found yet: with one more the oldest goes. Of large ones no more than
/// are held.
constexpr size_t waiting_max = 4096;
constexpr uint32_t large_bytes = 4096;
/// Processes that publish a topic.
constexpr uint32_t publishers_max = 4096;
/// Samples taken for one reader before the others have their turn.
constexpr int batch_max = 64;
/// How long DDS may take to find a writer whose samples are here already. Those of writers that do not
/// match are dropped then, and asked for at longer intervals.
constexpr uint64_t discovery_limit_ns = 10'000'000'000;
constexpr uint64_t unmatched_interval_ns = 1'000'000'000;
/// What a writer that DDS has lost had written is waited for so long: less than DDS may take to find one.
constexpr uint64_t departure_limit_ns = discovery_limit_ns / 2;
/// A reader whose limits are reached is tried again for so long, as it may be the sample that is refused.
constexpr uint64_t refusal_limit_ns = 10'000'000'000;
constexpr std::chrono::milliseconds refusal_interval{1};

void free_loan(dds_loaned_sample_t *loan) { delete static_cast<ReaderLoan *>(loan); }

dds_return_t on_data_available(dds_psmx_endpoint_t *endpoint, dds_entity_t reader) {
  return guarded(DDS_RETCODE_ERROR, [&] {
    static_cast<Reader *>(endpoint)->start(reader);
    return DDS_RETCODE_OK;
  });
}

/// Has to be there; CycloneDDS does not call it.
dds_loaned_sample_t *take(dds_psmx_endpoint_t *) { return nullptr; }

bool has_limits(const dds_qos_t *qos) {
  int32_t samples = DDS_LENGTH_UNLIMITED, instances = samples, samples_per_instance = samples;
  dds_qget_resource_limits(qos, &samples, &instances, &samples_per_instance);
  return std::max({samples, instances, samples_per_instance}) != DDS_LENGTH_UNLIMITED;
}

/// Of a writer that DDS does not know any more, CycloneDDS makes the publication handle of the second half of
/// its GUID: so that is to be the handle it had.
void set_handle(dds_guid_t &guid, dds_instance_handle_t handle) {
  const uint32_t halves[2] = {static_cast<uint32_t>(handle >> 32), static_cast<uint32_t>(handle)};
  static_assert(sizeof guid.v == 2 * sizeof halves);
  std::memcpy(guid.v + sizeof halves, halves, sizeof halves);
}

uint32_t held_max_of(const Topic &topic, const dds_qos_t *qos) {
  int32_t depth = 1;
  dds_qget_history(qos, nullptr, &depth);
  if (keeps_all(qos) || topic.has_key()) return held_max;
  return std::min(static_cast<uint32_t>(std::max(depth, 1)) + held_beyond_depth, held_max);
}

}  // namespace

Reader::Reader(Topic &topic, const dds_qos_t *qos)
    : dds_psmx_endpoint_t{},
      topic_(topic),
      name_(topic.library_name(qos)),
      is_reliable_(psmx_myelin::is_reliable(qos)),
      is_bounded_(is_reliable_ && has_limits(qos)),
      held_max_(held_max_of(topic, qos)) {
  ops.take = take;
  ops.on_data_available = on_data_available;
  const myelin_topic_options settings = topic.options(qos, DDS_PSMX_ENDPOINT_TYPE_READER);
  waiting_max_ = !is_reliable_ ? settings.depth : topic.bytes > large_bytes ? held_max : waiting_max;
  myelin_topic *opened = topic.open(name_, settings);
  myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.held_max = held_max_;
  options.publishers_max = publishers_max;
  // To those CycloneDDS gives samples itself.
  options.ignore_own_node = true;
  const myelin_code code = myelin_subscriber_open(opened, &options, &subscriber_);
  const std::string why = code == MYELIN_OK ? "" : myelin_error_message();
  myelin_topic_close(opened);
  if (code != MYELIN_OK) throw std::runtime_error(why);
  uint64_t id = 0;
  myelin_subscriber_endpoint(subscriber_, &id);
  topic.settle(name_, id, false, [this](size_t partners, uint64_t limit_ns) {
    return myelin_subscriber_wait_for_match(subscriber_, partners, limit_ns);
  });
}

Reader::~Reader() {
  sources_.clear();
  myelin_subscriber_close(subscriber_);
}

void Reader::start(dds_entity_t reader) {
  reader_ = reader;
  dds_guid_t guid;
  const ddsi_sertype *type = nullptr;
  if (dds_get_guid(reader, &guid) != DDS_RETCODE_OK || dds_get_entity_sertype(reader, &type) != DDS_RETCODE_OK) {
    throw std::runtime_error("a reader is not known to CycloneDDS");
  }
  std::memcpy(guid_.data(), guid.v, guid_.size());
  auto *domain = static_cast<ddsi_domaingv *>(ddsrt_atomic_ldvoidp(&type->gv));
  watch_departures(domain, *topic_.instance.delivery);
  is_started_ = true;
  topic_.instance.delivery->add(std::unique_ptr<Reader>(this));
}

void Reader::close() {
  if (is_started_) topic_.instance.delivery->remove(*this);
  else delete this;
}

bool Reader::deliver() {
  for (int count = 0; count < batch_max && !is_ending_.load(std::memory_order_relaxed); ++count) {
    myelin_sample sample = MYELIN_INIT(myelin_sample);
    const myelin_code code = myelin_subscriber_take(subscriber_, &sample);
    if (code < 0) complain(myelin_error_message());
    if (code != MYELIN_OK) return false;
    if (sample.lost_before > 0 && is_reliable_) {
      SAY_WARNING("topic %s: %llu samples were lost by a reader that was stopped for too long",
                  topic_.name.c_str(), static_cast<unsigned long long>(sample.lost_before));
    }
    Lent lent = lend(sample);
    if (lent == nullptr) continue;
    Guid guid;
    std::memcpy(guid.data(), lent->own_metadata.guid.v, guid.size());
    const auto found = sources_.try_emplace(guid);
    store_or_keep(guid, found.first->second, std::move(lent));
    if (found.second && sources_.size() > sources_max_) forget_gone_writers();
  }
  return !is_ending_.load(std::memory_order_relaxed);
}

Lent Reader::lend(myelin_sample &sample) {
  auto made = std::make_unique<ReaderLoan>();
  made->sample = sample;
  FrameHeader header;
  const size_t rest = sample.bytes - sizeof header;
  if (sample.bytes < sizeof header) return complain("a sample without a header was dropped"), nullptr;
  // Read once: a peer may change what lies in its memory.
  std::memcpy(&header, sample.data, sizeof header);
  made->own_metadata = metadata_of(header, topic_.instance.id);
  dds_psmx_metadata_t &metadata = made->own_metadata;
  const size_t inside = header.has_header_inside ? cdr_header_bytes : 0;
  const bool raw = is_raw(metadata.sample_state);
  bool fits = metadata.sample_size + inside <= rest;
  if (raw) {
    const bool is_whole = topic_.bytes == 0 || metadata.sample_size == topic_.bytes;
    fits &= topic_.is_memcpy_safe() && metadata.cdr_identifier == DDSI_RTPS_SAMPLE_NATIVE && is_whole;
  } else {
    const uint32_t padding = ntohs(metadata.cdr_options) & 3;
    fits &= is_serialized(metadata.sample_state) && metadata.cdr_identifier != DDSI_RTPS_SAMPLE_NATIVE &&
            padding <= metadata.sample_size;
  }
  if (!fits) {
    complain("samples of another form of the type were dropped; build both programs with the same IDL");
    return nullptr;
  }

  const auto *data = static_cast<const uint8_t *>(sample.data);
  if (sample.bytes > inline_bytes) {
    // The last hold there is must not be kept: with it samples are taken, and copied.
    if (held_->load(std::memory_order_relaxed) + 1 >= held_max_) {
      made->copy.assign(data, data + sample.bytes);
      made->release();
      data = made->copy.data();
    } else {
      held_->fetch_add(1, std::memory_order_relaxed);
      made->held = held_;
    }
  }
  data += sizeof header;
  if (!raw) {
    data += inside;
    if (takes_header()) {
      data -= cdr_header_bytes;
      metadata.sample_size += cdr_header_bytes;
    }
  }
  made->ops.free = free_loan;
  made->loan_origin = {DDS_LOAN_ORIGIN_KIND_PSMX, this};
  made->metadata = &metadata;
  made->sample_ptr = const_cast<uint8_t *>(data);
  ddsrt_atomic_st32(&made->refc, 1);
  return Lent(made.release());
}

void Reader::store_or_keep(const Guid &guid, Source &source, Lent lent) {
  if (source.waiting.empty() && is_matched(guid, source)) store(source, lent);
  if (lent == nullptr) return;
  if (is_given_up(source)) return;
  if (source.waiting.size() >= waiting_max_) drop_first(source);
  source.waiting.push_back(std::move(lent));
  ++waiting_;
}

void Reader::drop_first(Source &source) {
  source.waiting.pop_front();
  --waiting_;
  if (source.last > 0) --source.last;
}

bool Reader::depart(const std::shared_ptr<Departure> &departure) {
  const auto &readers = departure->readers;
  if (std::find(readers.begin(), readers.end(), guid_) == readers.end()) return true;
  while (deliver() && departure->is_held.load()) continue;
  // A sample in new memory comes once the library has mapped that.
  const bool has_unread = myelin_subscriber_has_unread(subscriber_) == MYELIN_OK;
  if (has_unread && myelin_now() - departure->since_ns < departure_limit_ns) return false;
  const auto found = sources_.find(departure->writer);
  if (found == sources_.end()) return true;
  Source &source = found->second;
  source.is_matched = false;
  source.missed_ns = 0;
  source.departure = departure;
  source.last = source.waiting.size();
  store_waiting(departure->writer, source);
  return true;
}

bool Reader::is_given_up(const Source &source) {
  return source.missed_ns != 0 && myelin_now() - source.missed_ns > discovery_limit_ns;
}

bool Reader::retry() {
  for (auto &[guid, source] : sources_) {
    if (!source.waiting.empty()) store_waiting(guid, source);
  }
  return waiting_ > 0;
}

void Reader::store_waiting(const Guid &guid, Source &source) {
  while (!source.waiting.empty() && (source.last > 0 || is_matched(guid, source))) {
    Lent &next = source.waiting.front();
    store(source, next);
    if (next != nullptr) return;
    drop_first(source);
  }
  if (is_given_up(source)) {
    waiting_ -= source.waiting.size();
    source.waiting.clear();
    source.last = 0;
  }
}

dds_loaned_sample_t *Reader::with_private_copy(ReaderLoan &loan) {
  // CycloneDDS corrects serialised samples where they lie before it copies them (a bool that is neither 0
  // nor 1), and the library's memory is read-only.
  if (!is_serialized(loan.own_metadata.sample_state) || *takes_header_) return &loan;
  if (!loan.lent_ptr) loan.lent_ptr = loan.sample_ptr;
  const auto *data = static_cast<const uint8_t *>(loan.lent_ptr);
  private_copy_.assign(data, data + loan.own_metadata.sample_size);
  loan.sample_ptr = private_copy_.data();
  return &loan;
}

void Reader::keep_private_copy(ReaderLoan &loan) {
  // A type of a language of its own may keep what it is lent.
  if (loan.sample_ptr == private_copy_.data() && ddsrt_atomic_ld32(&loan.refc) > 1) {
    loan.copy = std::move(private_copy_);
  }
}

void Reader::store(Source &source, Lent &lent) {
  uint64_t refused_ns = 0;
  for (;;) {
    dds_loaned_sample_t *sample = with_private_copy(*lent);
    const dds_return_t result = source.last > 0 ? store_by(*source.departure, sample)
                                                : dds_reader_store_loaned_sample(reader_, sample);
    keep_private_copy(*lent);
    if (result == DDS_RETCODE_NOT_FOUND) {
      source.is_matched = false;
      source.missed_ns = 0;
      return;
    }
    // Among others that is what it returns for one more than the reader's limits allow.
    if (result != DDS_RETCODE_ERROR || !is_bounded_ || is_ending_.load(std::memory_order_relaxed)) break;
    const uint64_t now_ns = myelin_now();
    if (refused_ns == 0) refused_ns = now_ns;
    const bool may_be_bad = is_serialized(lent->own_metadata.sample_state);
    if (may_be_bad && now_ns - refused_ns > refusal_limit_ns) break;
    std::this_thread::sleep_for(refusal_interval);
  }
  lent = nullptr;
}

dds_return_t Reader::store_by(const Departure &writer, dds_loaned_sample_t *sample) {
  set_handle(sample->metadata->guid, writer.handle);
  // While this thread is awake DDS's garbage collector, which tells the reader, does not run.
  ddsi_thread_state *const thread = ddsi_lookup_thread_state();
  ddsi_thread_state_awake(thread, writer.domain);
  // If the reader has been told, nobody else unregisters what the sample registers.
  if (!writer.is_held.load()) sample->metadata->statusinfo |= DDSI_STATUSINFO_UNREGISTER;
  const dds_return_t result = dds_reader_store_loaned_sample_wr_metadata(
      reader_, sample, writer.ownership_strength, writer.autodispose, writer.lifespan);
  ddsi_thread_state_asleep(thread);
  return result;
}

bool Reader::is_matched(const Guid &guid, Source &source) {
  if (source.is_matched) return true;
  const uint64_t now_ns = myelin_now();
  if (source.missed_ns == 0) source.missed_ns = now_ns;
  if (is_given_up(source) && now_ns - source.asked_ns < unmatched_interval_ns) return false;
  source.asked_ns = now_ns;
  look_up_writers();
  source.is_matched = matched_.count(guid) > 0;
  return source.is_matched;
}

void Reader::look_up_writers() {
  std::vector<dds_instance_handle_t> handles(16);
  for (;;) {
    const dds_return_t count = dds_get_matched_publications(reader_, handles.data(), handles.size());
    const bool is_all = count <= static_cast<dds_return_t>(handles.size());
    handles.resize(static_cast<size_t>(std::max(count, 0)));
    if (is_all) break;
  }
  matched_.clear();
  for (const dds_instance_handle_t handle : handles) {
    dds_builtintopic_endpoint_t *writer = dds_get_matched_publication_data(reader_, handle);
    if (writer == nullptr) continue;
    Guid guid;
    std::memcpy(guid.data(), writer->key.v, guid.size());
    matched_.insert(guid);
    dds_builtintopic_free_endpoint(writer);
  }
}

void Reader::forget_gone_writers() {
  look_up_writers();
  for (auto at = sources_.begin(); at != sources_.end();) {
    const bool is_there = matched_.count(at->first) > 0;
    at = is_there || !at->second.waiting.empty() ? std::next(at) : sources_.erase(at);
  }
  sources_max_ = std::max<size_t>(64, 2 * sources_.size());
}

bool Reader::takes_header() {
  if (takes_header_) return *takes_header_;
  // The type is asked: rmw_cyclonedds up to 4.2.1 takes a sample as it is (issue 585), others put the header
  // of the metadata in front.
  uint8_t probe[2 * cdr_header_bytes] = {0, 1};
  dds_psmx_metadata_t metadata{};
  metadata.sample_state = DDS_LOANED_SAMPLE_STATE_SERIALIZED_DATA;
  metadata.sample_size = sizeof probe;
  std::memcpy(&metadata.cdr_identifier, probe, sizeof metadata.cdr_identifier);
  dds_loaned_sample_t loan{};
  loan.ops.free = [](dds_loaned_sample_t *) {};
  loan.loan_origin = {DDS_LOAN_ORIGIN_KIND_PSMX, this};
  loan.metadata = &metadata;
  loan.sample_ptr = probe;
  ddsrt_atomic_st32(&loan.refc, 1);
  const ddsi_sertype *type = nullptr;
  takes_header_ = false;
  if (dds_get_entity_sertype(reader_, &type) == DDS_RETCODE_OK) {
    if (ddsi_serdata *made = ddsi_serdata_from_psmx(type, &loan)) {
      takes_header_ = ddsi_serdata_size(made) == sizeof probe;
      ddsi_serdata_unref(made);
    }
  }
  return *takes_header_;
}

void Reader::complain(const char *what) {
  if (!has_complained_) SAY_ERROR("topic %s: %s", topic_.name.c_str(), what);
  has_complained_ = true;
}

}  // namespace psmx_myelin
