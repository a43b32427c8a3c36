/* What Fast DDS calls back: that somebody was matched, and, where there are several topics, which
 * of them has something to take. The callbacks hold locks of Fast DDS, so they only take note.
 */
#ifndef MYELIN_FASTDDS_LISTENERS_HPP
#define MYELIN_FASTDDS_LISTENERS_HPP

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>

namespace myelin {

using Instant = std::chrono::steady_clock::time_point;

/* Counts what has happened, and lets one thread wait for more. */
class Events {
public:
  void note()
  {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      count_++;
    }
    changed_.notify_one();
  }

  std::uint64_t count()
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    return count_;
  }

  /* Waits until the count is no longer `seen`; false if it still is at `until`. */
  bool wait_beyond(std::uint64_t seen, Instant until)
  {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_until(lock, until, [&] { return count_ != seen; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ = 0;
};

class WriterListener : public eprosima::fastdds::dds::DataWriterListener {
public:
  explicit WriterListener(Events &matches) : matches_(matches) {}

  void on_publication_matched(eprosima::fastdds::dds::DataWriter *,
                              const eprosima::fastdds::dds::PublicationMatchedStatus &) override
  {
    matches_.note();
  }

private:
  Events &matches_;
};

/* The readers that have something to take, each at most once, in the order in which they got it. */
class Inbox {
public:
  explicit Inbox(std::size_t readers) : ring_(readers), waiting_(readers, false) {}

  void push(std::uint32_t reader)
  {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (waiting_[reader])
        return;
      waiting_[reader] = true;
      ring_[(first_ + length_) % ring_.size()] = reader;
      length_++;
    }
    filled_.notify_one();
  }

  /* Whether there is one, which `reader` then is: it is no longer in the queue. */
  bool pop(std::uint32_t &reader)
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (length_ == 0)
      return false;
    reader = ring_[first_];
    waiting_[reader] = false;
    first_ = (first_ + 1) % ring_.size();
    length_--;
    return true;
  }

  bool wait_until(Instant until)
  {
    std::unique_lock<std::mutex> lock(mutex_);
    return filled_.wait_until(lock, until, [&] { return length_ > 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<std::uint32_t> ring_;
  std::vector<bool> waiting_;
  std::size_t first_ = 0;
  std::size_t length_ = 0;
};

/* Of the reader with this number. */
class ReaderListener : public eprosima::fastdds::dds::DataReaderListener {
public:
  ReaderListener(Events &matches, Inbox &inbox, std::uint32_t number)
      : matches_(matches), inbox_(inbox), number_(number)
  {
  }

  void on_subscription_matched(eprosima::fastdds::dds::DataReader *,
                               const eprosima::fastdds::dds::SubscriptionMatchedStatus &) override
  {
    matches_.note();
  }

  void on_data_available(eprosima::fastdds::dds::DataReader *) override { inbox_.push(number_); }

private:
  Events &matches_;
  Inbox &inbox_;
  std::uint32_t number_;
};

} // namespace myelin

#endif
