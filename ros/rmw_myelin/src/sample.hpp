// A sample of the library. The destructor releases it.
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

  /// A take writes here.
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
  /// Time of the take, by the wall clock.
  int64_t received_ns = 0;
};

/// Time of publication by the wall clock. The library's time stamps are of the monotonic clock.
inline int64_t source_ns(const Sample &sample) {
  if (sample->published_ns == 0) return sample.received_ns;
  return wall_ns() - static_cast<int64_t>(myelin_now() - sample->published_ns);
}

}  // namespace rmw_myelin
