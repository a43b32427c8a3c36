/* One role's participant with its writers and readers, matched with the other side's. */
#ifndef MYELIN_FASTDDS_ENDPOINTS_HPP
#define MYELIN_FASTDDS_ENDPOINTS_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>

#include "listeners.hpp"
#include "myelin_bench_link.hpp"

namespace myelin {

using myelin_bench::Failure;

/* Which transport the profiles name. */
struct Transport {
  bool shared_memory;
  bool data_sharing;
};

class Endpoints {
public:
  /* Makes everything by the profiles named `myelin`, which have been loaded. */
  explicit Endpoints(const myelin_bench_prepare &prepare);
  ~Endpoints();
  Endpoints(const Endpoints &) = delete;
  Endpoints &operator=(const Endpoints &) = delete;

  /* Returns when each writer has `prepare.subscribers` readers and each reader
   * `prepare.publishers` writers (of a round trip one). */
  void wait_until_matched(Instant until);

  /* Throws unless the memory that this process has mapped is that of `transport`. */
  void prove(const Transport &transport) const;

  /* Waits until whoever reads what the writers have written has it. */
  void wait_for_acknowledgments();

  std::vector<eprosima::fastdds::dds::DataWriter *> writers;
  std::vector<eprosima::fastdds::dds::DataReader *> readers;
  Inbox inbox; /* fed only if there are several readers */

private:
  void create(const myelin_bench_prepare &prepare);
  void destroy() noexcept;

  Events matches_;
  WriterListener writer_listener_;
  std::vector<std::unique_ptr<ReaderListener>> reader_listeners_;
  eprosima::fastdds::dds::DomainParticipant *participant_ = nullptr;
  std::int32_t others_; /* readers of each writer, writers of each reader */
};

} // namespace myelin

#endif
