// A DDS reader's connection to the library. The delivering thread takes its samples and stores them in CycloneDDS.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "departure.hpp"
#include "frame.hpp"
#include "topic.hpp"

namespace psmx_myelin {

/// A sample of the library that is lent to CycloneDDS.
struct ReaderLoan;
struct DropLoan {
  void operator()(ReaderLoan *loan) const;
};
using Lent = std::unique_ptr<ReaderLoan, DropLoan>;

struct Reader : dds_psmx_endpoint_t {
  /// Throws a std::runtime_error.
  Reader(Topic &topic, const dds_qos_t *qos);
  ~Reader();

  /// Hands the object over to the delivering thread, which stores its samples in `reader`.
  void start(dds_entity_t reader);
  /// CycloneDDS has stopped using the object. It deletes itself, at the latest after the sample that is being stored.
  void close();
  /// Gives up storing the current sample. Any thread may call it.
  void end() { is_ending_.store(true, std::memory_order_relaxed); }

  const std::string &topic() const { return topic_.name; }
  myelin_subscriber *subscriber() const { return subscriber_; }

  // For the delivering thread only.
  /// Takes and stores a batch of samples, so that other readers do not wait long. Returns whether there may be more.
  bool deliver();
  /// Takes and stores all samples of a writer that DDS has lost. Returns false if some of them cannot be taken yet:
  /// then call it again after the next wait.
  bool depart(const std::shared_ptr<Departure> &departure);
  /// Whether it keeps samples of writers that DDS has not found yet.
  bool is_waiting() const { return waiting_ > 0; }
  /// Tries to store them again. Returns whether some are left.
  bool retry();

 private:
  /// A writer, as DDS knows it.
  struct Source {
    bool is_matched = false;
    /// Set when DDS loses the writer. `last` counts the samples in `waiting` that it had written before.
    std::shared_ptr<Departure> departure;
    size_t last = 0;
    /// Time of the last lookup of the writer in DDS, and of the first one without success.
    uint64_t checked_ns = 0;
    uint64_t missed_ns = 0;
    /// In the order of arrival.
    std::deque<Lent> waiting;
  };

  /// Converts a sample to a loan of CycloneDDS. Returns NULL and logs the reason if it does not fit the reader's type.
  Lent lend(myelin_sample &sample);
  void store_or_keep(const Guid &guid, Source &source, Lent lent);
  /// Stores a sample of a matched writer. Keeps `lent` if DDS does not know the writer any more.
  void store(Source &source, Lent &lent);
  /// Stores a sample of a writer that DDS has lost.
  dds_return_t store_by(const Departure &writer, dds_loaned_sample_t *sample);
  void store_waiting(const Guid &guid, Source &source);
  void drop_first(Source &source);
  /// Whether DDS has had enough time to find the writer.
  static bool is_given_up(const Source &source);
  /// Whether DDS has matched this reader with the writer. It has not if their quality of service is incompatible, or if
  /// it has not found the writer yet.
  bool is_matched(const Guid &guid, Source &source);
  void look_up_writers();
  void forget_gone_writers();
  /// Whether the reader's type expects the CDR header in front of a serialised sample.
  bool takes_header();
  dds_loaned_sample_t *with_private_copy(ReaderLoan &loan);
  void keep_private_copy(ReaderLoan &loan);
  void complain(const char *what);

  Topic &topic_;
  const bool is_reliable_;
  /// The reader has resource limits and may be full. Then the thread tries again, as DDS does with samples from the
  /// network.
  const bool is_bounded_;
  uint32_t held_max_ = 0;
  size_t waiting_max_ = 0;
  /// Number of samples in the library's memory that CycloneDDS holds. A loan may outlive the reader.
  std::shared_ptr<std::atomic<uint32_t>> held_ = std::make_shared<std::atomic<uint32_t>>(0);
  myelin_subscriber *subscriber_ = nullptr;
  dds_entity_t reader_ = 0;
  Guid guid_{};
  bool is_started_ = false;
  std::atomic<bool> is_ending_{false};

  std::map<Guid, Source> sources_;
  /// Beyond this number, writers that have gone are removed.
  size_t sources_max_ = 64;
  size_t waiting_ = 0;
  std::set<Guid> matched_;
  std::vector<uint8_t> private_copy_;
  std::optional<bool> takes_header_;
  bool has_complained_ = false;
};

}  // namespace psmx_myelin
