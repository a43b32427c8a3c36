// Myelin for C++17: what myelin.h has, with types, RAII and results. Header-only; link with libmyelin.
//
//     struct Imu { std::uint64_t stamp_ns; double acceleration[3]; };
//     MYELIN_STRUCT(Imu, stamp_ns, acceleration)
//
//     auto node = myelin::Node::open("imu-driver").value();          // throws myelin::Error
//     auto publisher = node.topic<Imu>("imu").publisher();           // or a Result to be looked at
//     if (!publisher) return std::cerr << publisher.error().what() << '\n', 1;
//     publisher->publish_copy({1, {0, 0, 9.81}}).value();
//
// OWNERSHIP  Node, Publisher, Subscriber, Sample, Loan, ... close or release what they own, and can be moved,
//            not copied. A loan, a reply loan and a pending call belong to the publisher, request or client
//            that they came from: what outlives it is an error MYELIN_ERROR_HANDLE, never more.
// ERRORS     A Result<T> has a value or an Error; value() throws the Error. Nothing else here throws, except
//            what the program's own functions throw where they are not callbacks. A callback that throws is
//            caught: the next sample is delivered, and Callback::thrown() says what it was.
// THREADS    As in myelin.h: a Publisher, Subscriber, Client, Server, WaitSet is used by one thread at a time.
#ifndef MYELIN_HPP
#define MYELIN_HPP

#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "myelin.h"

namespace myelin {

/// No limit of time.
constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/// What a call failed with: a code, and a sentence that says what to do.
class Error : public std::runtime_error {
public:
  Error(int code, const char *message) : std::runtime_error(message), code_(code) {}
  /// A MYELIN_ERROR_*.
  int code() const noexcept { return code_; }

private:
  int code_;
};

/// A value or an Error. With exceptions: `value()`. Without: `if (result) ... *result; else ... error()`.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const noexcept { return value_.has_value(); }
  bool has_value() const noexcept { return value_.has_value(); }
  /// The value, or throws the error.
  T &value() & { return check(), *value_; }
  T &&value() && { return check(), std::move(*value_); }
  T &operator*() noexcept { return *value_; }
  T *operator->() noexcept { return &*value_; }
  /// Of a result without a value.
  const Error &error() const { return *error_; }

private:
  void check() const {
    if (!value_) throw Error(*error_);
  }
  std::optional<T> value_;
  std::optional<Error> error_;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const noexcept { return !error_; }
  bool has_value() const noexcept { return !error_; }
  void value() const {
    if (error_) throw Error(*error_);
  }
  const Error &error() const { return *error_; }

private:
  std::optional<Error> error_;
};

/// As many elements as each sample has: Topic<Slice<Point>>, in Rust Topic<[Point]>.
template <class T> struct Slice {};
/// A header, and as many elements as each sample has: in Rust Topic<(H, [T])>.
template <class H, class T> struct HeaderSlice {};
/// Bytes of any number: text, serialised messages.
using Bytes = Slice<unsigned char>;

/// Elements that lie one after the other; std::span where there is one.
#if __cplusplus >= 202002L
template <class T> using Span = std::span<T>;
#else
template <class T> class Span {
public:
  Span() = default;
  Span(T *data, std::size_t size) : data_(data), size_(size) {}
  template <class U, std::size_t N> Span(U (&array)[N]) : data_(array), size_(N) {}
  template <class C, class = decltype(static_cast<T *>(std::declval<C &>().data()))>
  Span(C &&container) : data_(container.data()), size_(container.size()) {}
  T *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T &operator[](std::size_t index) const { return data_[index]; }
  T &front() const { return data_[0]; }
  T &back() const { return data_[size_ - 1]; }
  T *begin() const noexcept { return data_; }
  T *end() const noexcept { return data_ + size_; }

private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};
#endif

namespace detail {

inline Error error(int code) { return Error(code, myelin_error_message()); }

template <class S> S sized() {
  S made{};
  made.size = sizeof(S);
  return made;
}

inline std::uint64_t ns(std::chrono::nanoseconds limit) {
  if (limit == forever) return MYELIN_FOREVER;
  return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
}

/// What MYELIN_STRUCT specialises.
template <class T> struct Describe { static constexpr bool is_described = false; };

template <class T> struct Unarray { using type = T; };
template <class T, std::size_t N> struct Unarray<T[N]> : Unarray<T> {};

template <class T> constexpr std::int32_t kind() {
  static_assert(!std::is_pointer_v<T> && !std::is_enum_v<T>,
                "a pointer means nothing to another process, and not every number is of an enum: use the "
                "integer");
  if constexpr (std::is_same_v<T, bool>) return MYELIN_BOOL;
  else if constexpr (std::is_same_v<T, float>) return MYELIN_F32;
  else if constexpr (std::is_same_v<T, double>) return MYELIN_F64;
  else if constexpr (std::is_same_v<T, char>) return MYELIN_U8;
  else if constexpr (std::is_integral_v<T>) {
    constexpr int at = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return (std::is_signed_v<T> ? MYELIN_I8 : MYELIN_U8) + at;
  } else {
    static_assert(Describe<T>::is_described,
                  "a topic carries numbers, arrays, and structs with MYELIN_STRUCT(T, field, ...)");
    return MYELIN_STRUCT_KIND;
  }
}

/// Of a C array its lengths; of a std::array too, by its one element in memory.
template <class T> myelin_type type_of() {
  using Element = typename Unarray<T>::type;
  static_assert(std::is_standard_layout_v<Element> && std::is_trivially_copyable_v<Element>,
                "a topic carries what is standard layout and trivially copyable: its bytes alone");
  myelin_type type{};
  type.kind = kind<Element>();
  if constexpr (Describe<Element>::is_described) type.structure = Describe<Element>::structure();
  static_assert(std::rank_v<T> <= 4, "an array has four dimensions at most");
  lengths<T>(type.lengths);
  return type;
}

} // namespace detail
} // namespace myelin
#endif
