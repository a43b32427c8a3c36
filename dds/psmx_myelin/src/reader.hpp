// What a DDS reader gets its samples by: taken from the library and stored in it by the delivering thread.
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

/// A sample of the library that CycloneDDS is lent.
struct ReaderLoan;
struct DropLoan {
  void operator()(ReaderLoan *loan) const;
};
using Lent = std::unique_ptr<ReaderLoan, DropLoan>;

struct Reader : dds_psmx_endpoint_t {
  /// Throws a std::runtime_error.
  Reader(Topic &topic, const dds_qos_t *qos);
  ~Reader();

  /// Hands it to the delivering thread, which stores in `reader` what comes.
  void start(dds_entity_t reader);
  /// By CycloneDDS: it is used no longer, and deletes itself, at once or when nothing is stored any more.
  void close();
  /// What is being stored is given up. Any thread.
  void end() { is_ending_.store(true, std::memory_order_relaxed); }

  const std::string &topic() const { return topic_.name; }
  myelin_subscriber *subscriber() const { return subscriber_; }

  // By the delivering thread alone.
  /// Takes what there is, as much as keeps nobody else waiting for long; whether that may not have been all.
  bool deliver();
  /// Takes and stores all that a writer has written that DDS has lost. False if some of it cannot be taken yet:
  /// then again after the next wait.
  bool depart(const std::shared_ptr<Departure> &departure);
  /// Whether there are samples of writers that DDS has not found yet.
  bool is_waiting() const { return waiting_ > 0; }
  /// Tries them again; whether some are left.
  bool retry();

 private:
  /// A writer, as DDS knows it.
  struct Source {
    bool is_matched = false;
    /// With which DDS has lost it, and how many of those that wait it had written before.
    std::shared_ptr<Departure> departure;
    size_t last = 0;
    /// When DDS was asked for it last, and when first in vain.
    uint64_t asked_ns = 0;
    uint64_t missed_ns = 0;
    /// In the order in which they came.
    std::deque<Lent> waiting;
  };

  /// The sample as CycloneDDS takes it; none, with the reason in the log, if it cannot be.
  Lent lend(myelin_sample &sample);
  void store_or_keep(const Guid &guid, Source &source, Lent lent);
  /// Stores what a writer has written that is matched; `lent` is kept if DDS does not know it any more.
  void store(Source &source, Lent &lent);
  /// Stores what a writer had written when DDS lost it.
  dds_return_t store_by(const Departure &writer, dds_loaned_sample_t *sample);
  void store_waiting(const Guid &guid, Source &source);
  void drop_first(Source &source);
  /// Whether DDS has had its time to find the writer.
  static bool is_given_up(const Source &source);
  /// Whether DDS has matched the reader with a writer: with all others it has nothing to do, because of a
  /// quality of service, or because it has not found them yet.
  bool is_matched(const Guid &guid, Source &source);
  void look_up_writers();
  void forget_gone_writers();
  /// Whether the reader's type takes a serialised sample with the CDR header in front.
  bool takes_header();
  dds_loaned_sample_t *with_private_copy(ReaderLoan &loan);
  void keep_private_copy(ReaderLoan &loan);
  void complain(const char *what);

  Topic &topic_;
  const std::string name_;
  const bool is_reliable_;
  /// It may be full, and then has to be tried again: as DDS does with what comes by the network.
  const bool is_bounded_;
  uint32_t held_max_ = 0;
  size_t waiting_max_ = 0;
  /// How many samples CycloneDDS holds of the library's memory; its loans may outlive the reader.
  std::shared_ptr<std::atomic<uint32_t>> held_ = std::make_shared<std::atomic<uint32_t>>(0);
  myelin_subscriber *subscriber_ = nullptr;
  dds_entity_t reader_ = 0;
  Guid guid_{};
  bool is_started_ = false;
  std::atomic<bool> is_ending_{false};

  std::map<Guid, Source> sources_;
  /// With more, those that are gone are forgotten.
  size_t sources_max_ = 64;
  size_t waiting_ = 0;
  std::set<Guid> matched_;
  std::vector<uint8_t> private_copy_;
  std::optional<bool> takes_header_;
  bool has_complained_ = false;
};

}  // namespace psmx_myelin
