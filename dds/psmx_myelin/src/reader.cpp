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
  /// The counter of its reader, if the loan is counted there.
  std::shared_ptr<std::atomic<uint32_t>> held;
  /// The address of the payload while `sample_ptr` points to a private copy.
  void *lent_ptr = nullptr;
  /// The payload, if it is no longer in the sample.
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

/// Up to this size the library copies a sample out of the ring. Larger samples are held in shared memory.
constexpr size_t inline_bytes = 104;
/// Samples that a program may keep beyond its reader's history.
constexpr uint32_t held_beyond_depth = 64;
constexpr uint32_t held_max = 256;
/// Samples that are kept of a reliable writer while DDS has not found it yet. Beyond this the oldest is dropped. For
/// large samples the limit is `held_max`.
constexpr size_t waiting_max = 4096;
constexpr uint32_t large_bytes = 4096;
/// Processes that publish a topic.
constexpr uint32_t publishers_max = 4096;
/// Samples that are taken for one reader before the others get their turn.
constexpr int batch_max = 64;
/// How long DDS may take to find a writer whose samples are here already. After this time the samples are dropped, and
/// DDS is asked about the writer at longer intervals.
constexpr uint64_t discovery_limit_ns = 10'000'000'000;
constexpr uint64_t unmatched_interval_ns = 1'000'000'000;
/// Longest wait for the samples of a writer that DDS has lost. It is shorter than the time that DDS may take to find a
/// writer.
constexpr uint64_t departure_limit_ns = discovery_limit_ns / 2;
/// How long to try again if a reader refuses a sample. The reader may be full, or the sample itself may be wrong.
constexpr uint64_t refusal_limit_ns = 10'000'000'000;
constexpr std::chrono::milliseconds refusal_interval{1};

void free_loan(dds_loaned_sample_t *loan) { delete static_cast<ReaderLoan *>(loan); }

dds_return_t on_data_available(dds_psmx_endpoint_t *endpoint, dds_entity_t reader) {
  return guarded(DDS_RETCODE_ERROR, [&] {
    static_cast<Reader *>(endpoint)->start(reader);
    return DDS_RETCODE_OK;
  });
}

/// The interface requires this function, but CycloneDDS does not call it.
dds_loaned_sample_t *take(dds_psmx_endpoint_t *) { return nullptr; }

bool has_limits(const dds_qos_t *qos) {
  int32_t samples = DDS_LENGTH_UNLIMITED, instances = samples, samples_per_instance = samples;
  dds_qget_resource_limits(qos, &samples, &instances, &samples_per_instance);
  return std::max({samples, instances, samples_per_instance}) != DDS_LENGTH_UNLIMITED;
}

/// If CycloneDDS no longer knows the writer, it makes the publication handle from the second half of the GUID. This
/// puts the writer's former handle there.
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
      is_reliable_(psmx_myelin::is_reliable(qos)),
      is_bounded_(is_reliable_ && has_limits(qos)),
      held_max_(held_max_of(topic, qos)) {
  ops.take = take;
  ops.on_data_available = on_data_available;
  const myelin_topic_options settings = topic.options(qos, DDS_PSMX_ENDPOINT_TYPE_READER);
  waiting_max_ = !is_reliable_ ? settings.depth : topic.bytes > large_bytes ? held_max : waiting_max;
  myelin_topic *opened = topic.open(qos, settings);
  myelin_subscriber_options options = MYELIN_INIT(myelin_subscriber_options);
  options.held_max = held_max_;
  options.publishers_max = publishers_max;
  // CycloneDDS itself gives samples to readers of the same process.
  options.ignore_own_node = true;
  const myelin_code code = myelin_subscriber_open(opened, &options, &subscriber_);
  const std::string why = code == MYELIN_OK ? "" : myelin_error_message();
  myelin_topic_close(opened);
  if (code != MYELIN_OK) throw std::runtime_error(why);
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
    throw std::runtime_error("CycloneDDS does not know the reader");
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
      PSMX_WARNING("topic %s: %llu samples were lost, because a reader was stopped for too long",
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
  // Read it once: a peer may change its memory at any time.
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
    complain("samples were dropped, because their type has another form; build both programs with the same IDL");
    return nullptr;
  }

  const auto *data = static_cast<const uint8_t *>(sample.data);
  if (sample.bytes > inline_bytes) {
    // The last hold stays free: it is needed to take the next sample, even if that is then copied.
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
  // A sample in a new segment arrives after the library has mapped the segment.
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
  // CycloneDDS corrects serialised samples in place before it copies them (a bool that is neither 0 nor 1). The
  // library's memory is read-only.
  if (!is_serialized(loan.own_metadata.sample_state) || *takes_header_) return &loan;
  if (!loan.lent_ptr) loan.lent_ptr = loan.sample_ptr;
  const auto *data = static_cast<const uint8_t *>(loan.lent_ptr);
  private_copy_.assign(data, data + loan.own_metadata.sample_size);
  loan.sample_ptr = private_copy_.data();
  return &loan;
}

void Reader::keep_private_copy(ReaderLoan &loan) {
  // A custom type (`ddsi_sertype`) may keep the loan, which then needs the copy.
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
    // CycloneDDS returns this error also if the sample exceeds the reader's limits.
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
  // DDS's garbage collector notifies the reader of the loss. It does not run while this thread is awake.
  ddsi_thread_state *const thread = ddsi_lookup_thread_state();
  ddsi_thread_state_awake(thread, writer.domain);
  // If the reader has been notified already, only this sample can unregister what it registers.
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
  if (is_given_up(source) && now_ns - source.checked_ns < unmatched_interval_ns) return false;
  source.checked_ns = now_ns;
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
  // Ask the type: in rmw_cyclonedds up to 4.2.1 it takes a sample unchanged (issue 585), and others put the header from
  // the metadata in front.
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
  if (!has_complained_) PSMX_ERROR("topic %s: %s", topic_.name.c_str(), what);
  has_complained_ = true;
}

}  // namespace psmx_myelin
