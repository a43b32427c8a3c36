// A sample of the library, released when it is dropped.
#pragma once

#include <utility>

#include "support.hpp"

namespace rmw_myelin {

class Sample {
 public:
  Sample() = default;
  ~Sample() { release(); }
  Sample(Sample &&other) noexcept
      : sample_(std::exchange(other.sample_, empty())), received_ns(other.received_ns) {}
  Sample &operator=(Sample &&other) noexcept {
    if (this != &other) {
      release();
      sample_ = std::exchange(other.sample_, empty());
      received_ns = other.received_ns;
    }
    return *this;
  }

  /// To be written by a take.
  myelin_sample *out() {
    release();
    return &sample_;
  }
  const uint8_t *data() const { return static_cast<const uint8_t *>(sample_.data); }
  size_t bytes() const { return sample_.bytes; }
  const myelin_sample *operator->() const { return &sample_; }

 private:
  static myelin_sample empty() { return MYELIN_INIT(myelin_sample); }
  void release() {
    if (sample_.data != nullptr) myelin_sample_release(&sample_);
  }

  myelin_sample sample_ = empty();

 public:
  /// When it was taken out of the library, by the wall clock.
  int64_t received_ns = 0;
};

/// When a sample was published, by the wall clock: the library's stamps are of the monotonic one.
inline int64_t source_ns(const Sample &sample) {
  if (sample->published_ns == 0) return sample.received_ns;
  return wall_ns() - static_cast<int64_t>(myelin_now() - sample->published_ns);
}

}  // namespace rmw_myelin
