// Myelin for C++17: the functions of myelin.h with types, RAII and results. Header-only; link with libmyelin.
//
//     struct Imu { std::uint64_t stamp_ns; double acceleration[3]; };
//     MYELIN_STRUCT(Imu, stamp_ns, acceleration)
//
//     auto node = myelin::Node::open("imu-driver").value();          // throws myelin::Error
//     auto publisher = node.topic<Imu>("imu").publisher();           // or a Result to be looked at
//     if (!publisher) return std::cerr << publisher.error().what() << '\n', 1;
//     publisher->publish_copy({1, {0, 0, 9.81}}).value();
//
// LATER      A Node, Publisher, Subscriber, Client, Server, WaitSet, GuardCondition or Callback made without arguments is
//            empty: a class can have one as a member and open it later, `publisher_ = topic.publisher().value()`.
//            Until then its calls fail with MYELIN_ERROR_HANDLE, and get() is null.
// OWNERSHIP  Node, Publisher, Subscriber, Sample, Loan, ... close or release their handles, and can be moved,
//            not copied. A loan, a reply loan and a pending call belong to the publisher, request or client
//            that they came from: if one outlives it, its calls fail with MYELIN_ERROR_HANDLE, nothing worse.
// ERRORS     A Result<T> has a value or an Error; value() throws the Error. Nothing else here throws, except
//            functions of the program that are not callbacks. An exception of a callback is caught: the next
//            sample is delivered, the exception is reported once, in the same way as Myelin's own warnings, and
//            Callback::thrown() returns its text.
// THREADS    As in myelin.h: one thread at a time uses a Publisher, Subscriber, Client or Server; in a WaitSet one
//            thread waits, and any thread changes it.
#ifndef MYELIN_HPP
#define MYELIN_HPP

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "myelin.h"

namespace myelin {

/// CLOCK_MONOTONIC in nanoseconds, the clock of all stamps.
inline std::uint64_t now() { return myelin_now(); }

/// No time limit.
constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/// The error of a call: a code, and a sentence that says what to do.
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
  Result(T value) : value_(std::move(value)), has_value_(true) {}
  Result(Error error) : error_(std::move(error)), has_value_(false) {}
  /// A value that is made in place; without arguments, its numbers are not initialised.
  explicit Result(std::in_place_t) : has_value_(true) { new (&value_) T; }
  template <class... A>
  explicit Result(std::in_place_t, A &&...arguments)
      : value_(std::forward<A>(arguments)...), has_value_(true) {}
  Result(Result &&other) noexcept : has_value_(other.has_value_) {
    if (has_value_) new (&value_) T(std::move(other.value_));
    else new (&error_) Error(std::move(other.error_));
  }
  Result &operator=(Result &&other) noexcept {
    if (this != &other) {
      this->~Result();
      new (this) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (has_value_) value_.~T();
    else error_.~Error();
  }

  explicit operator bool() const noexcept { return has_value_; }
  bool has_value() const noexcept { return has_value_; }
  /// The value, or throws the error.
  T &value() & { return check(), value_; }
  T value() && { return check(), std::move(value_); }
  T &operator*() noexcept { return value_; }
  T *operator->() noexcept { return &value_; }
  /// The error of a result without a value.
  const Error &error() const { return error_; }

private:
  void check() const {
    if (!has_value_) throw Error(error_);
  }
  union {
    T value_;
    Error error_;
  };
  bool has_value_;
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

/// A slice whose length each sample chooses: Topic<Slice<Point>>, in Rust Topic<[Point]>.
template <class T> struct Slice {};
/// A header, and a slice whose length each sample chooses: in Rust Topic<(H, [T])>.
template <class H, class T> struct HeaderSlice {};
/// Any number of bytes: text, serialised messages.
using Bytes = Slice<unsigned char>;

/// Contiguous elements; std::span if it exists.
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

/// A struct that the library fills: only its size is written before, and that it is empty.
struct Unfilled {
  template <class S> static void begin(S &made) { made.size = sizeof(S), made.data = nullptr; }
};

/// Separate, so that the rest is inlined into its callers.
template <class R> __attribute__((cold, noinline)) void fail(R &result, int code) { result = error(code); }

/// A struct that a call fills in its final place: copying it right after it was written in parts
/// would wait for the parts.
template <class S, class F> inline Result<S> filled(F fill) {
  Result<S> made(std::in_place);
  made->size = sizeof(S);
  if (int code = fill(&*made)) fail(made, code);
  return made;
}

/// A number from a call; 0 if the handle is not valid.
template <class N, class H> N counted(H *handle, myelin_code (*count)(H *, N *)) {
  N number = 0;
  count(handle, &number);
  return number;
}

inline std::uint64_t ns(std::chrono::nanoseconds limit) {
  return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count()); // 292 years mean for ever
}

/// Whether each number is more than the previous one.
constexpr bool ascend(std::initializer_list<std::size_t> offsets) {
  std::size_t least = 0;
  for (std::size_t offset : offsets) {
    if (offset < least) return false;
    least = offset + 1;
  }
  return true;
}

/// MYELIN_STRUCT specialises it.
template <class T> struct Describe { static constexpr bool is_described = false; };

/// A C array or std::array, and its elements.
template <class T> struct Array { using Element = T; static constexpr std::size_t rank = 0; };
template <class T, std::size_t N> struct Array<T[N]> {
  using Inner = T;
  using Element = typename Array<T>::Element;
  static constexpr std::size_t rank = 1 + Array<T>::rank, length = N;
};
template <class T, std::size_t N> struct Array<std::array<T, N>> : Array<T[N]> {};

template <class T> void lengths(std::size_t *to) {
  if constexpr (Array<T>::rank > 0) {
    static_assert(Array<T>::rank <= 4 && Array<T>::length > 0, "one to four dimensions, none of 0");
    *to = Array<T>::length;
    lengths<typename Array<T>::Inner>(to + 1);
  }
}

template <class T> constexpr std::int32_t kind() {
  static_assert(!std::is_pointer_v<T> && !std::is_reference_v<T> && !std::is_enum_v<T>,
                "a pointer means nothing to another process, and not every number is of an enum: take "
                "an integer");
  if constexpr (std::is_same_v<T, bool>) return MYELIN_BOOL;
  else if constexpr (std::is_same_v<T, float>) return MYELIN_F32;
  else if constexpr (std::is_same_v<T, double>) return MYELIN_F64;
  else if constexpr (std::is_same_v<T, char>) return MYELIN_U8;
  else if constexpr (std::is_integral_v<T>) {
    constexpr int at = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return (std::is_signed_v<T> ? MYELIN_I8 : MYELIN_U8) + at;
  } else {
    static_assert(Describe<T>::is_described,
                  "a topic carries numbers, arrays, and structs with MYELIN_STRUCT(T, fields...)");
    return MYELIN_STRUCT;
  }
}

template <class T> myelin_type type_of() {
  using Element = typename Array<T>::Element;
  static_assert(std::is_standard_layout_v<T> && std::is_trivially_copyable_v<T>,
                "a topic carries what is standard layout and trivially copyable");
  myelin_type type{};
  type.kind = kind<Element>();
  if constexpr (Describe<Element>::is_described) type.structure = Describe<Element>::structure();
  lengths<T>(type.lengths);
  return type;
}

/// The name without its namespaces.
inline const char *short_name(const char *name) {
  const char *colon = std::strrchr(name, ':');
  return colon ? colon + 1 : name;
}

/// A topic's type for the C API.
template <class T> struct Payload {
  static myelin_payload describe() {
    auto payload = sized<myelin_payload>();
    payload.form = MYELIN_VALUE;
    payload.type = type_of<T>();
    return payload;
  }
};
template <class T> struct Payload<Slice<T>> {
  static myelin_payload describe() {
    auto payload = Payload<T>::describe();
    payload.form = MYELIN_SLICE;
    return payload;
  }
};
template <class H, class T> struct Payload<HeaderSlice<H, T>> {
  static constexpr std::size_t offset = (sizeof(H) + alignof(T) - 1) / alignof(T) * alignof(T);
  static myelin_payload describe() {
    auto payload = Payload<T>::describe();
    payload.form = MYELIN_HEADER_SLICE;
    payload.header = type_of<H>();
    return payload;
  }
};

/// The view of samples, loans, requests and replies of a topic's type. `Of` has `data()` and
/// `bytes()`.
template <class T, class Of, bool is_const> class View {
  using Value = std::conditional_t<is_const, const T, T>;

public:
  Value &operator*() const { return *static_cast<Value *>(raw().data); }
  Value *operator->() const { return static_cast<Value *>(raw().data); }

private:
  const auto &raw() const { return static_cast<const Of *>(this)->raw(); }
};
template <class T, class Of, bool is_const> class View<Slice<T>, Of, is_const> {
  using Value = std::conditional_t<is_const, const T, T>;

public:
  Value *data() const { return static_cast<Value *>(static_cast<const Of *>(this)->raw().data); }
  std::size_t size() const { return static_cast<const Of *>(this)->raw().bytes / sizeof(T); }
  bool empty() const { return size() == 0; }
  Value &operator[](std::size_t index) const { return data()[index]; }
  Value *begin() const { return data(); }
  Value *end() const { return data() + size(); }
  Span<Value> operator*() const { return {data(), size()}; }
};
template <class H, class T, class Of, bool is_const> class View<HeaderSlice<H, T>, Of, is_const> {
  using Header = std::conditional_t<is_const, const H, H>;
  using Value = std::conditional_t<is_const, const T, T>;
  using Byte = std::conditional_t<is_const, const char, char>;
  static constexpr std::size_t offset = Payload<HeaderSlice<H, T>>::offset;

public:
  Header &header() const { return *static_cast<Header *>(raw().data); }
  Span<Value> slice() const {
    void *data = const_cast<char *>(static_cast<Byte *>(raw().data) + offset);
    return {static_cast<Value *>(data), (raw().bytes - offset) / sizeof(T)};
  }

private:
  const auto &raw() const { return static_cast<const Of *>(this)->raw(); }
};

/// False, but not before a template is used: for static_assert.
template <class...> constexpr bool never = false;

/// A payload that is copied: a value, or any container of such elements.
template <class T> struct Copied {
  using Argument = const T &;
  Copied(const T &value) : data(&value), bytes(sizeof(T)) {}
  const void *data;
  std::size_t bytes;
};
template <class T> struct Copied<Slice<T>> {
  using Argument = const Copied &;
  template <class C, class = decltype(std::declval<const C &>().size())>
  Copied(const C &elements) : data(elements.data()), bytes(elements.size() * sizeof(T)) {
    using Its = std::remove_cv_t<std::remove_reference_t<decltype(*elements.data())>>;
    static_assert(std::is_same_v<Its, T> || (sizeof(Its) == 1 && sizeof(T) == 1), "other elements");
  }
  const void *data;
  std::size_t bytes;
};
template <class H, class T> struct Copied<HeaderSlice<H, T>> {
  using Argument = const Copied &;
  template <class C> Copied(const C &) {
    static_assert(never<C>, "a header and a slice do not lie together to be copied: write them into a loan, "
                            "loan(length), by header() and slice()");
  }
  const void *data = nullptr;
  std::size_t bytes = 0;
};
/// The argument of a function that copies: for a value the value itself, so that it can be written
/// in braces.
template <class T> using Copy = typename Copied<T>::Argument;

/// The bytes of a payload with so many elements.
template <class T> struct Size {
  template <class... Length> static std::size_t of(Length...) {
    static_assert(sizeof...(Length) == 0, "a value has no length: no argument; a Slice has one");
    return sizeof(T);
  }
};
template <class T> struct Size<Slice<T>> {
  template <class... Length> static std::size_t of(Length... length) {
    static_assert(sizeof...(Length) == 1, "a slice has a length: say how many elements, as in loan(100)");
    return (static_cast<std::size_t>(length) + ... + 0) * sizeof(T);
  }
};
template <class H, class T> struct Size<HeaderSlice<H, T>> {
  template <class... Length> static std::size_t of(Length... length) {
    return Payload<HeaderSlice<H, T>>::offset + Size<Slice<T>>::of(length...);
  }
};

/// A handle that is closed with its owner.
template <class H, myelin_code (*close)(H *)> class Handle {
public:
  explicit Handle(H *handle = nullptr) : handle_(handle) {}
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_) close(handle_);
  }
  H *get() const { return handle_; }
  /// Gives the handle to another owner.
  H *release() { return std::exchange(handle_, nullptr); }

private:
  H *handle_;
};

/// A struct of the C API that is released with its owner.
template <class S, myelin_code (*release)(S *)> class Held {
public:
  explicit Held(S held) : held_(held) {}
  explicit Held(Unfilled) { Unfilled::begin(held_); }
  Held(Held &&other) noexcept : held_(other.held_) { other.held_.data = nullptr; }
  Held &operator=(Held &&other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Held() {
    if (held_.data) release(&held_);
  }
  const S &get() const { return held_; }
  S &get() { return held_; }

private:
  S held_;
};

/// A function of the program, which may throw; the exception must not leave it.
template <class F> struct Called {
  Called(F its, const char *set_by) : function(std::move(its)), name(set_by) {}
  F function;
  const char *name; // where it was set
  bool is_reported = false;
  std::shared_ptr<std::pair<std::mutex, std::optional<std::string>>> thrown =
      std::make_shared<std::pair<std::mutex, std::optional<std::string>>>();

  template <class... A> void operator()(A &&...arguments) noexcept {
    try {
      function(std::forward<A>(arguments)...);
    } catch (const std::exception &exception) {
      keep(exception.what());
    } catch (...) {
      keep("something that is no std::exception");
    }
  }
  void keep(const char *what) noexcept try {
    if (!std::exchange(is_reported, true)) myelin_report_exception(name, what);
    std::lock_guard lock(thrown->first);
    thrown->second = what;
  } catch (...) { // no memory for the message
  }
  static void release(void *context) { delete static_cast<Called *>(context); }
};

} // namespace detail

/// An event of an endpoint's matches; `kind` is a MYELIN_EVENT_*.
struct Event {
  int kind;
  std::uint64_t endpoint;
  std::uint32_t pid;
  std::uint64_t number;
  std::string text;
  bool died;
  /// A MYELIN_SETTING_*, and what is offered and requested.
  int setting;
  std::string offered, requested;
};

namespace detail {
template <class H> Result<std::vector<Event>> events(H *handle, myelin_code (*next)(H *, myelin_event *)) {
  std::vector<Event> all;
  auto event = sized<myelin_event>();
  int code;
  while ((code = next(handle, &event)) == MYELIN_OK)
    all.push_back({event.kind, event.endpoint, event.pid, event.number, event.text ? event.text : "",
                   event.died, event.setting, event.offered ? event.offered : "",
                   event.requested ? event.requested : ""});
  if (code < 0) return error(code);
  return all;
}
inline Result<void> done(int code) {
  if (code < 0) return error(code);
  return {};
}
inline Result<bool> in_time(int code) {
  if (code < 0) return error(code);
  return code == MYELIN_OK;
}
} // namespace detail

/// Options as in myelin.h, with their size set and everything else 0.
template <class O> struct Options : O {
  Options() : O{} { this->size = sizeof(O); }
};
using NodeOptions = Options<myelin_node_options>;
using PublisherOptions = Options<myelin_publisher_options>;
using SubscriberOptions = Options<myelin_subscriber_options>;

/// Ends a wait of its set. Any thread may trigger it, and a signal handler.
class GuardCondition {
public:
  GuardCondition() = default;
  explicit GuardCondition(myelin_guard_condition *handle) : handle_(handle) {}
  void trigger() const { myelin_guard_condition_trigger(get()); }
  myelin_guard_condition *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_guard_condition, myelin_guard_condition_close> handle_;
};

/// A sample where its publisher wrote it: `*sample`, `sample->field`; for a slice `sample[i]`,
/// `size()`, iterators; for a header with a slice `header()`, `slice()`. Any thread may hold and
/// release it.
template <class T> class Sample : public detail::View<T, Sample<T>, true> {
public:
  explicit Sample(myelin_sample sample) : held_(sample) {}
  explicit Sample(detail::Unfilled unfilled) : held_(unfilled) {}
  std::uint64_t sequence() const { return raw().sequence; }
  std::uint64_t lost_before() const { return raw().lost_before; }
  /// By myelin_now(); 0 if its publisher adds no timestamps.
  std::uint64_t published_ns() const { return raw().published_ns; }
  std::uint64_t publisher() const { return raw().publisher; }
  /// Makes another reference to the same sample: a callback keeps its sample this way.
  Result<Sample> clone() const {
    auto clone = detail::sized<myelin_sample>();
    if (int code = myelin_sample_clone(&raw(), &clone)) return detail::error(code);
    return Sample(clone);
  }
  const myelin_sample &raw() const { return held_.get(); }

private:
  template <class> friend class Subscriber;
  detail::Held<myelin_sample, myelin_sample_release> held_;
};

/// Memory for one sample: write all of it, then `std::move(loan).publish()`. If it is dropped, it
/// is discarded.
template <class T> class Loan : public detail::View<T, Loan<T>, false> {
public:
  Loan(myelin_publisher *publisher, detail::Unfilled) : publisher_(publisher) {
    detail::Unfilled::begin(loan_);
  }
  Loan(Loan &&other) noexcept
      : publisher_(other.publisher_), loan_(std::exchange(other.loan_, myelin_loan{})) {}
  Loan &operator=(Loan &&other) noexcept {
    std::swap(publisher_, other.publisher_);
    std::swap(loan_, other.loan_);
    return *this;
  }
  ~Loan() {
    if (loan_.data) myelin_publisher_discard(publisher_, &loan_);
  }
  Result<myelin_published> publish() && {
    auto published = detail::filled<myelin_published>([&](myelin_published *to) {
      return myelin_publisher_publish(publisher_, &loan_, to);
    });
    loan_.data = nullptr;
    return published;
  }
  template <class Never = void> void publish() const & {
    static_assert(detail::never<Never>, "publishing uses the loan up: std::move(loan).publish()");
  }
  const myelin_loan &raw() const { return loan_; }

private:
  template <class> friend class Publisher;
  myelin_publisher *publisher_;
  myelin_loan loan_;
};

/// Publishes samples of a topic. One thread at a time.
template <class T> class Publisher {
public:
  Publisher() = default;
  explicit Publisher(myelin_publisher *handle) : handle_(handle) {}
  /// Publishes a copy; for a slice, of any container of such elements.
  Result<myelin_published> publish_copy(detail::Copy<T> payload) {
    const detail::Copied<T> copied(payload);
    return detail::filled<myelin_published>([&](myelin_published *to) {
      return myelin_publisher_publish_copy(get(), copied.data, copied.bytes, to);
    });
  }
  /// Memory for a sample; for a slice with so many elements.
  template <class... Length> Result<Loan<T>> loan(Length... length) {
    Result<Loan<T>> loan(std::in_place, get(), detail::Unfilled());
    if (int code = myelin_publisher_loan(get(), detail::Size<T>::of(length...), &loan->loan_))
      detail::fail(loan, code);
    return loan;
  }
  Result<bool> wait_for_match(std::size_t subscribers, std::chrono::nanoseconds limit) {
    return detail::in_time(myelin_publisher_wait_for_match(get(), subscribers, detail::ns(limit)));
  }
  /// Allocates memory for `count` samples, for a slice with so many elements, so that the first
  /// loans need not.
  template <class... Length> Result<void> reserve(std::uint32_t count, Length... length) {
    return detail::done(myelin_publisher_reserve(get(), count, detail::Size<T>::of(length...)));
  }
  std::size_t matched() const { return detail::counted(get(), myelin_publisher_matched); }
  Result<void> assert_liveliness() { return detail::done(myelin_publisher_assert_liveliness(get())); }
  Result<std::vector<Event>> events() { return detail::events(get(), myelin_publisher_event); }
  /// Triggers the guard condition whenever there is an event to take.
  Result<void> on_event(const GuardCondition &guard) {
    return detail::done(myelin_publisher_on_event(get(), guard.get()));
  }
  /// Its endpoint id, as in events, samples and graphs.
  std::uint64_t endpoint() const { return detail::counted(get(), myelin_publisher_endpoint); }
  /// Waits until other hosts have acknowledged all samples published for them.
  Result<bool> wait_for_acknowledgements(std::chrono::nanoseconds limit) {
    return detail::in_time(myelin_publisher_wait_for_acknowledgements(get(), detail::ns(limit)));
  }
  /// For functions that only the C API has.
  myelin_publisher *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_publisher, myelin_publisher_close> handle_;
};

/// A function that Myelin calls. Dropping it ends the calls and waits for a running one.
class Callback {
public:
  using Thrown = std::shared_ptr<std::pair<std::mutex, std::optional<std::string>>>;
  Callback() = default;
  Callback(myelin_callback *handle, Thrown exception) : handle_(handle), thrown_(std::move(exception)) {}
  std::uint64_t calls() const { return detail::counted(get(), myelin_callback_calls); }
  std::uint64_t lost() const { return detail::counted(get(), myelin_callback_lost); }
  /// The latest error of a take, once.
  Result<void> error() const { return detail::done(myelin_callback_error(get())); }
  /// The last exception that the function threw, once.
  std::optional<std::string> thrown() const {
    if (!thrown_) return std::nullopt;
    std::lock_guard lock(thrown_->first);
    return std::exchange(thrown_->second, std::nullopt);
  }
  myelin_callback *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_callback, myelin_callback_close> handle_;
  Thrown thrown_;
};

/// Takes samples of a topic. One thread at a time uses it; any thread may interrupt it.
template <class T> class Subscriber {
public:
  Subscriber() = default;
  explicit Subscriber(myelin_subscriber *handle) : handle_(handle) {}
  /// The next sample, if there is one.
  Result<std::optional<Sample<T>>> take() {
    return filled([&](myelin_sample *sample) { return myelin_subscriber_take(get(), sample); });
  }
  /// The next sample; waits for it.
  Result<std::optional<Sample<T>>> receive(std::chrono::nanoseconds limit) {
    return filled([&](myelin_sample *sample) {
      return myelin_subscriber_receive(get(), detail::ns(limit), sample);
    });
  }
  Result<bool> wait(std::chrono::nanoseconds limit) {
    return detail::in_time(myelin_subscriber_wait(get(), detail::ns(limit)));
  }
  /// Ends a wait. Any thread, and a signal handler.
  void interrupt() const { myelin_subscriber_interrupt(get()); }
  /// For epoll, if it was made with SubscriberOptions::descriptor. The subscriber owns the
  /// descriptor.
  Result<int> descriptor() const {
    int descriptor = -1;
    if (int code = myelin_subscriber_descriptor(get(), &descriptor)) return detail::error(code);
    return descriptor;
  }
  /// Calls `call(const Sample<T> &)` with each sample from now on; `clone` keeps one. An exception
  /// is caught and reported once: Callback::thrown().
  template <class F> Result<Callback> on_sample(F call) && {
    using Call = detail::Called<F>;
    auto context = std::make_unique<Call>(std::move(call), "on_sample");
    auto thrown = context->thrown;
    auto trampoline = [](const myelin_sample *lent, void *its) {
      // Lent, not held: its memory is not released here.
      alignas(Sample<T>) unsigned char place[sizeof(Sample<T>)];
      (*static_cast<Call *>(its))(*new (place) Sample<T>(*lent));
    };
    myelin_callback *callback;
    int code = myelin_subscriber_on_sample(get(), trampoline, context.release(),
                                           Call::release, &callback);
    if (code) return detail::error(code);
    handle_.release(); // it is used up
    return Callback(callback, std::move(thrown));
  }
  template <class F> void on_sample(F) const & {
    static_assert(detail::never<F>, "a callback uses the subscriber up: std::move(subscriber).on_sample(...)");
  }
  /// Whether there are published samples that have not been taken; see
  /// myelin_subscriber_has_unread.
  bool has_unread() const { return myelin_subscriber_has_unread(get()) == MYELIN_OK; }
  std::uint64_t lost() const { return detail::counted(get(), myelin_subscriber_lost); }
  std::size_t matched() const { return detail::counted(get(), myelin_subscriber_matched); }
  Result<bool> wait_for_match(std::size_t publishers, std::chrono::nanoseconds limit) {
    return detail::in_time(myelin_subscriber_wait_for_match(get(), publishers, detail::ns(limit)));
  }
  Result<std::vector<Event>> events() { return detail::events(get(), myelin_subscriber_event); }
  /// Triggers the guard condition whenever there is an event to take.
  Result<void> on_event(const GuardCondition &guard) {
    return detail::done(myelin_subscriber_on_event(get(), guard.get()));
  }
  /// Its endpoint id, as in events, samples and graphs.
  std::uint64_t endpoint() const { return detail::counted(get(), myelin_subscriber_endpoint); }
  myelin_subscriber *get() const { return handle_.get(); }

private:
  /// A sample that `fill` fills in its final place.
  template <class F> static inline Result<std::optional<Sample<T>>> filled(F fill) {
    Result<std::optional<Sample<T>>> sample(std::in_place, std::in_place, detail::Unfilled());
    const int code = fill(&(*sample)->held_.get());
    if (code < 0) detail::fail(sample, code);
    else if (code == MYELIN_NOTHING) sample->reset();
    return sample;
  }
  detail::Handle<myelin_subscriber, myelin_subscriber_close> handle_;
};

/// A sample as an observer has seen it: a view of the payload, as of a Sample, if `missing()` is 0.
/// The payload is valid until the next take of its observer.
template <class T> class Observed : public detail::View<T, Observed<T>, true> {
public:
  explicit Observed(const myelin_observed &seen) : seen_(seen) {}
  std::uint64_t publisher() const { return raw().publisher; }
  std::uint64_t sequence() const { return raw().sequence; }
  /// By myelin_now(); 0 if its publisher adds no timestamps.
  std::uint64_t published_ns() const { return raw().published_ns; }
  /// Bytes of the payload, also if it is missing.
  std::uint64_t length() const { return raw().length; }
  /// How many samples of its publisher were overwritten before the observer looked.
  std::uint64_t overwritten_before() const { return raw().overwritten_before; }
  /// A MYELIN_MISSING_*: why there is no payload.
  int missing() const { return raw().missing; }
  const myelin_observed &raw() const { return seen_; }

private:
  myelin_observed seen_;
};

/// Looks at the samples of a topic on this host, while its publishers do nothing for it: for tools.
/// One thread at a time.
template <class T> class Observer {
public:
  Observer() = default;
  explicit Observer(myelin_observer *handle) : handle_(handle) {}
  /// The next sample, if there is one.
  Result<std::optional<Observed<T>>> take() {
    auto seen = detail::sized<myelin_observed>();
    const int code = myelin_observer_take(get(), &seen);
    if (code < 0) return detail::error(code);
    if (code == MYELIN_NOTHING) return std::optional<Observed<T>>();
    return std::optional<Observed<T>>(Observed<T>(seen));
  }
  /// The header of the next sample, if there is one; the sample is then taken.
  Result<std::optional<myelin_observed>> take_header() {
    auto seen = detail::sized<myelin_observed>();
    const int code = myelin_observer_take_header(get(), &seen);
    if (code < 0) return detail::error(code);
    if (code == MYELIN_NOTHING) return std::optional<myelin_observed>();
    return std::optional<myelin_observed>(seen);
  }
  /// Waits until there is a sample to take; looks at intervals of 1 to 100 ms.
  Result<bool> wait(std::chrono::nanoseconds limit) {
    return detail::in_time(myelin_observer_wait(get(), detail::ns(limit)));
  }
  /// Ends a wait. Any thread, and a signal handler.
  void interrupt() const { myelin_observer_interrupt(get()); }
  /// How long to wait before the next look, for a loop of your own.
  std::chrono::nanoseconds interval() const {
    return std::chrono::nanoseconds(detail::counted(get(), myelin_observer_interval));
  }
  /// Its publishers; those that have gone since the last call once more.
  Result<std::vector<myelin_observed_publisher>> publishers() {
    std::vector<myelin_observed_publisher> all;
    for (;;) {
      auto next = detail::sized<myelin_observed_publisher>();
      const int code = myelin_observer_publisher(get(), all.size(), &next);
      if (code < 0) return detail::error(code);
      if (code == MYELIN_NOTHING) return all;
      all.push_back(next);
    }
  }
  myelin_observer *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_observer, myelin_observer_close> handle_;
};

/// A name, a type and settings. Nothing happens before `publisher` or `subscriber`; its node must
/// still exist then.
template <class T> class Topic {
public:
  Topic(myelin_node *node, std::string name) : node_(node), name_(std::move(name)) {}
  // Each setting exists twice: for a topic with a name it returns that topic, for a temporary one a
  // new topic.

  /// How many samples a subscriber can be behind without a loss.
  Topic &depth(std::uint32_t samples) & { return options_.depth = samples, *this; }
  Topic depth(std::uint32_t samples) && { return std::move(depth(samples)); }
  Topic &reliable(std::chrono::nanoseconds limit) & { return reliable(MYELIN_RELIABLE, limit); }
  Topic reliable(std::chrono::nanoseconds limit) && { return std::move(reliable(limit)); }
  Topic &reliable_or_fail(std::chrono::nanoseconds limit) & {
    return reliable(MYELIN_RELIABLE_OR_FAIL, limit);
  }
  Topic reliable_or_fail(std::chrono::nanoseconds limit) && { return std::move(reliable_or_fail(limit)); }
  /// ROS 2's KEEP_LAST, reliable: MYELIN_KEEP_LAST.
  Topic &reliable_keep_last() & { return options_.reliability = MYELIN_KEEP_LAST, *this; }
  Topic reliable_keep_last() && { return std::move(reliable_keep_last()); }
  Topic &transient_local(std::uint32_t samples) & { return options_.transient_local = samples, *this; }
  Topic transient_local(std::uint32_t samples) && { return std::move(transient_local(samples)); }
  /// The longest time between two samples: myelin_topic_options says who gets an event for a longer one.
  Topic &deadline(std::chrono::nanoseconds period) & {
    return options_.deadline_ns = detail::ns(period), *this;
  }
  Topic deadline(std::chrono::nanoseconds period) && { return std::move(deadline(period)); }
  /// MYELIN_MATCHING_REQUESTED_OFFERED: matched only if the publisher offers what the subscriber
  /// requests, by the rules of DDS.
  Topic &matching(int matching) & { return options_.matching = matching, *this; }
  Topic matching(int how) && { return std::move(matching(how)); }
  /// A named byte string that others see in the graph.
  Topic &attribute(std::string name, std::string value) & {
    return attributes_.emplace_back(std::move(name), std::move(value)), *this;
  }
  Topic attribute(std::string name, std::string value) && {
    return std::move(attribute(std::move(name), std::move(value)));
  }
  /// The IDL type whose CDR is the payload's bytes.
  Topic &dds_type(std::string name) & { return dds_type_ = std::move(name), *this; }
  Topic dds_type(std::string name) && { return std::move(dds_type(std::move(name))); }
  /// The topic's name among other DDS programs; by default the same name.
  Topic &dds_name(std::string name) & { return dds_name_ = std::move(name), *this; }
  Topic dds_name(std::string name) && { return std::move(dds_name(std::move(name))); }
  /// Samples are whole CDR messages of `name`, with their header: for a topic of Bytes.
  Topic &dds_cdr(std::string name) & {
    static_assert(std::is_same_v<T, Bytes>, "whole messages are Bytes: Topic<Bytes>");
    return options_.dds_cdr = true, dds_type(std::move(name));
  }
  Topic dds_cdr(std::string name) && { return std::move(dds_cdr(std::move(name))); }

  Result<Publisher<T>> publisher(const PublisherOptions &options = {}) const {
    myelin_publisher *publisher = nullptr;
    int code = with_topic([&](myelin_topic *topic) {
      return myelin_publisher_open(topic, &options, &publisher);
    });
    if (code) return detail::error(code);
    return Publisher<T>(publisher);
  }
  Result<Subscriber<T>> subscriber(const SubscriberOptions &options = {}) const {
    myelin_subscriber *subscriber = nullptr;
    int code = with_topic([&](myelin_topic *topic) {
      return myelin_subscriber_open(topic, &options, &subscriber);
    });
    if (code) return detail::error(code);
    return Subscriber<T>(subscriber);
  }
  Result<Observer<T>> observer() const {
    myelin_observer *observer = nullptr;
    int code = with_topic([&](myelin_topic *topic) { return myelin_observer_open(topic, &observer); });
    if (code) return detail::error(code);
    return Observer<T>(observer);
  }

private:
  Topic &reliable(int how, std::chrono::nanoseconds limit) & {
    options_.reliability = how;
    options_.reliable_ns = detail::ns(limit);
    return *this;
  }
  template <class F> int with_topic(F act) const {
    auto payload = detail::Payload<T>::describe();
    auto options = options_;
    if (!dds_type_.empty()) options.dds_type = dds_type_.c_str();
    if (!dds_name_.empty()) options.dds_name = dds_name_.c_str();
    std::vector<myelin_attribute> attributes;
    for (const auto &it : attributes_)
      attributes.push_back({it.first.c_str(), it.second.data(), it.second.size()});
    options.attributes = attributes.data();
    options.attribute_count = attributes.size();
    myelin_topic *topic = nullptr;
    auto carried = std::is_same_v<T, Bytes> ? nullptr : &payload;
    if (int code = myelin_topic_open(node_, name_.c_str(), carried, &options, &topic)) return code;
    int code = act(topic);
    myelin_topic_close(topic);
    return code;
  }
  myelin_node *node_;
  std::string name_, dds_type_, dds_name_;
  std::vector<std::pair<std::string, std::string>> attributes_;
  Options<myelin_topic_options> options_;
};

/// A reply where its server wrote it. Any thread may hold and release it.
template <class Rep> class Reply : public detail::View<Rep, Reply<Rep>, true> {
public:
  explicit Reply(myelin_reply reply) : held_(reply) {}
  const myelin_reply &raw() const { return held_.get(); }

private:
  detail::Held<myelin_reply, myelin_reply_release> held_;
};

/// A reply that is still to come. If it is dropped, the call goes on at the server and its reply is
/// dropped.
template <class Rep> class Call {
public:
  Call(myelin_client *client, std::uint64_t number) : client_(client), number_(number) {}
  Call(Call &&other) noexcept : client_(std::exchange(other.client_, nullptr)), number_(other.number_) {}
  Call &operator=(Call &&other) noexcept {
    std::swap(client_, other.client_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~Call() {
    if (client_) myelin_client_abandon(client_, number_);
  }
  /// Empty if the time is over: you can wait again.
  Result<std::optional<Reply<Rep>>> receive(std::chrono::nanoseconds limit) {
    auto reply = detail::sized<myelin_reply>();
    int code = myelin_client_receive(client_, number_, detail::ns(limit), &reply);
    if (code == MYELIN_NOTHING) return std::optional<Reply<Rep>>();
    client_ = nullptr; // the call is over
    if (code < 0) return detail::error(code);
    return std::optional<Reply<Rep>>(Reply<Rep>(reply));
  }

private:
  myelin_client *client_;
  std::uint64_t number_;
};

/// Memory for a request: write all of it, then `std::move(loan).send()`.
template <class Req, class Rep> class RequestLoan : public detail::View<Req, RequestLoan<Req, Rep>, false> {
public:
  RequestLoan(myelin_client *client, myelin_loan loan) : client_(client), loan_(loan) {}
  RequestLoan(RequestLoan &&other) noexcept
      : client_(other.client_), loan_(std::exchange(other.loan_, myelin_loan{})) {}
  ~RequestLoan() {
    if (loan_.data) myelin_client_discard(client_, &loan_);
  }
  Result<Call<Rep>> send() && {
    std::uint64_t call;
    int code = myelin_client_send_loan(client_, &loan_, &call);
    loan_.data = nullptr;
    if (code) return detail::error(code);
    return Call<Rep>(client_, call);
  }
  template <class Never = void> void send() const & {
    static_assert(detail::never<Never>, "sending uses the loan up: std::move(loan).send()");
  }
  const myelin_loan &raw() const { return loan_; }

private:
  myelin_client *client_;
  myelin_loan loan_;
};

/// A client of a service. One thread at a time.
template <class Req, class Rep> class Client {
public:
  Client() = default;
  explicit Client(myelin_client *handle) : handle_(handle) {}
  /// Sends a copy and waits for the reply. The server may also start within this time.
  Result<Reply<Rep>> call(detail::Copy<Req> request, std::chrono::nanoseconds limit) {
    const detail::Copied<Req> copied(request);
    auto reply = detail::sized<myelin_reply>();
    int code = myelin_client_call(get(), copied.data, copied.bytes, detail::ns(limit), &reply);
    if (code) return detail::error(code);
    return Reply<Rep>(reply);
  }
  /// Sends a copy, and does not wait.
  Result<Call<Rep>> send(detail::Copy<Req> request) {
    const detail::Copied<Req> copied(request);
    std::uint64_t call;
    if (int code = myelin_client_send(get(), copied.data, copied.bytes, &call))
      return detail::error(code);
    return Call<Rep>(get(), call);
  }
  template <class... Length> Result<RequestLoan<Req, Rep>> loan(Length... length) {
    auto loan = detail::sized<myelin_loan>();
    if (int code = myelin_client_loan(get(), detail::Size<Req>::of(length...), &loan))
      return detail::error(code);
    return RequestLoan<Req, Rep>(get(), loan);
  }
  Result<bool> wait_for_service(std::chrono::nanoseconds limit) {
    return detail::in_time(myelin_client_wait_for_service(get(), detail::ns(limit)));
  }
  /// How many servers there are now: more than one is a mistake.
  std::size_t servers() const { return detail::counted(get(), myelin_client_servers); }
  /// How many replies came too late, and were dropped.
  std::uint64_t late() const { return detail::counted(get(), myelin_client_late); }
  /// How it waits: MYELIN_WAIT_*.
  Result<void> set_wait(int wait) { return detail::done(myelin_client_set_wait(get(), wait)); }
  Result<std::vector<Event>> events() { return detail::events(get(), myelin_client_event); }
  myelin_client *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_client, myelin_client_close> handle_;
};

template <class Req, class Rep> class Request;

/// Memory for a reply: write all of it, then `std::move(loan).send()`. It is discarded with its
/// request.
template <class Rep> class ReplyLoan : public detail::View<Rep, ReplyLoan<Rep>, false> {
public:
  ReplyLoan(myelin_request request, myelin_loan loan) : request_(request), loan_(loan) {}
  ReplyLoan(ReplyLoan &&) = default;
  Result<void> send() && { return detail::done(myelin_request_send(&request_, &loan_)); }
  template <class Never = void> void send() const & {
    static_assert(detail::never<Never>, "sending uses the loan up: std::move(loan).send()");
  }
  const myelin_loan &raw() const { return loan_; }

private:
  myelin_request request_;
  myelin_loan loan_;
};

/// A client's request where it was written. Any thread may hold it and reply. If it is dropped
/// without a reply, its client gets MYELIN_ERROR_NO_REPLY.
template <class Req, class Rep> class Request : public detail::View<Req, Request<Req, Rep>, true> {
public:
  explicit Request(myelin_request request) : held_(request) {}
  Result<void> reply(detail::Copy<Rep> reply) {
    const detail::Copied<Rep> copied(reply);
    return detail::done(myelin_request_reply(&raw(), copied.data, copied.bytes));
  }
  template <class... Length> Result<ReplyLoan<Rep>> loan(Length... length) {
    auto loan = detail::sized<myelin_loan>();
    if (int code = myelin_request_loan(&raw(), detail::Size<Rep>::of(length...), &loan))
      return detail::error(code);
    return ReplyLoan<Rep>(raw(), loan);
  }
  const myelin_request &raw() const { return held_.get(); }

private:
  detail::Held<myelin_request, myelin_request_release> held_;
};

/// The server of a service. One thread at a time uses it; any thread may interrupt it.
template <class Req, class Rep> class Server {
public:
  Server() = default;
  explicit Server(myelin_server *handle) : handle_(handle) {}
  /// The next request; waits for it.
  Result<std::optional<Request<Req, Rep>>> receive(std::chrono::nanoseconds limit) {
    auto request = detail::sized<myelin_request>();
    int code = myelin_server_receive(get(), detail::ns(limit), &request);
    if (code < 0) return detail::error(code);
    if (code == MYELIN_NOTHING) return std::optional<Request<Req, Rep>>();
    return std::optional<Request<Req, Rep>>(Request<Req, Rep>(request));
  }
  /// Calls `call(Request<Req, Rep>)` with each request from now on. An exception is caught and
  /// reported once, and the client gets MYELIN_ERROR_NO_REPLY.
  template <class F> Result<Callback> on_request(F call) && {
    using Call = detail::Called<F>;
    auto context = std::make_unique<Call>(std::move(call), "on_request");
    auto thrown = context->thrown;
    auto trampoline = [](myelin_request *request, void *its) {
      (*static_cast<Call *>(its))(Request<Req, Rep>(*request));
    };
    myelin_callback *callback;
    int code = myelin_server_on_request(get(), trampoline, context.release(),
                                        Call::release, &callback);
    if (code) return detail::error(code);
    handle_.release(); // it is used up
    return Callback(callback, std::move(thrown));
  }
  template <class F> void on_request(F) const & {
    static_assert(detail::never<F>, "a callback uses the server up: std::move(server).on_request(...)");
  }
  void interrupt() const { myelin_server_interrupt(get()); }
  std::size_t clients() const { return detail::counted(get(), myelin_server_clients); }
  /// How it waits: MYELIN_WAIT_*.
  Result<void> set_wait(int wait) { return detail::done(myelin_server_set_wait(get(), wait)); }
  Result<std::vector<Event>> events() { return detail::events(get(), myelin_server_event); }
  myelin_server *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_server, myelin_server_close> handle_;
};

/// One thread waits for many things, each with a key that the program chooses. Any thread adds,
/// removes and closes meanwhile.
class WaitSet {
public:
  WaitSet() = default;
  explicit WaitSet(myelin_wait_set *handle) : handle_(handle) {}
  template <class T> Result<void> add(const Subscriber<T> &subscriber, std::uint64_t key) {
    return detail::done(myelin_wait_set_add(get(), subscriber.get(), key));
  }
  template <class Req, class Rep> Result<void> add(const Server<Req, Rep> &server, std::uint64_t key) {
    return detail::done(myelin_wait_set_add_server(get(), server.get(), key));
  }
  Result<GuardCondition> guard_condition(std::uint64_t key) {
    myelin_guard_condition *guard;
    if (int code = myelin_wait_set_guard_condition(get(), key, &guard)) return detail::error(code);
    return GuardCondition(guard);
  }
  Result<void> timer(std::chrono::nanoseconds period, std::uint64_t key) {
    return detail::done(myelin_wait_set_timer(get(), detail::ns(period), key));
  }
  Result<void> remove(std::uint64_t key) { return detail::done(myelin_wait_set_remove(get(), key)); }
  /// The keys of the ready members, valid until the next wait; none if the time is over.
  Result<Span<const std::uint64_t>> wait(std::chrono::nanoseconds limit) {
    std::size_t count = 0;
    int code = myelin_wait_set_wait(get(), detail::ns(limit), keys_.data(), keys_.size(), &count);
    if (code < 0) return detail::error(code);
    return Span<const std::uint64_t>(keys_.data(), count);
  }
  /// How it waits: MYELIN_WAIT_*.
  Result<void> set_wait(int wait) { return detail::done(myelin_wait_set_set_wait(get(), wait)); }
  /// For your own epoll; the caller must close it.
  Result<int> descriptor() {
    int descriptor = -1;
    if (int code = myelin_wait_set_descriptor(get(), &descriptor)) return detail::error(code);
    return descriptor;
  }
  /// Ends the wait of another thread with MYELIN_ERROR_CLOSED, and each later one with MYELIN_ERROR_HANDLE.
  Result<void> close() { return detail::done(myelin_wait_set_close(get())); }
  myelin_wait_set *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_wait_set, myelin_wait_set_close> handle_;
  std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(64);
};

/// A node's view of its domain at one moment; each member as in myelin.h.
struct Graph {
  /// Names and values, by name.
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  struct Node {
    std::uint64_t node;
    std::string name;
    std::uint32_t pid, user;
    std::string node_namespace, program, host, language, version;
    Attributes attributes;
    /// A MYELIN_LOCATION_*, and the number of another host.
    int location;
    std::uint64_t host_id;
  };
  /// A publisher or subscriber.
  struct Endpoint {
    std::uint64_t endpoint, node;
    std::string topic, type_name;
    std::uint64_t type_hash;
    std::uint32_t depth, transient_local;
    bool is_publisher, is_reliable;
    std::uint64_t created_ns, deadline_ns, liveliness_ns, lifespan_ns;
    /// A MYELIN_MATCHING_*.
    int matching;
    bool is_alive_by_topic, resends;
    Attributes attributes;
    /// A MYELIN_LOCATION_*, and the number of another host.
    int location;
    std::uint64_t host_id;
    /// Its topic, its type and its user data in DDS; empty if it is not there.
    std::string dds_topic, dds_type, dds_user_data;
    /// What it has counted, if that is known: see `Node::graph_within`.
    std::optional<myelin_graph_counters> counters;
  };
  /// A match of an endpoint of this node; `state` is a MYELIN_MATCH_*.
  struct Match {
    std::uint64_t endpoint, other;
    int state;
    std::string reason;
    /// A MYELIN_SETTING_*, and what is offered and requested.
    int setting;
    std::string offered, requested;
  };
  std::vector<Node> nodes;
  std::vector<Endpoint> endpoints;
  std::vector<Match> matches;
};

namespace detail {
/// Calls `add` with each element that `at` returns.
template <class S, class F>
void each(myelin_graph *graph, myelin_code (*at)(myelin_graph *, std::size_t, S *), F add) {
  auto told = sized<S>();
  for (std::size_t index = 0; at(graph, index, &told) == MYELIN_OK; index++) add(told);
}
inline Graph::Attributes attributes(myelin_graph *graph, std::uint64_t id) {
  Graph::Attributes all;
  myelin_attribute it;
  for (std::size_t index = 0; myelin_graph_attribute_at(graph, id, index, &it) == MYELIN_OK; index++)
    all.emplace_back(it.name, std::string(static_cast<const char *>(it.value), it.bytes));
  return all;
}
inline Graph::Node node(myelin_graph *graph, const myelin_graph_node &it) {
  return {it.node, it.name, it.pid, it.user, it.node_namespace, it.program, it.host, it.language, it.version,
          attributes(graph, it.node), it.location, it.host_id};
}
inline Graph::Match match(const myelin_graph_match &it) {
  return {it.endpoint, it.other, it.state, it.reason ? it.reason : "", it.setting,
          it.offered ? it.offered : "", it.requested ? it.requested : ""};
}
inline std::optional<myelin_graph_counters> counters(myelin_graph *graph, std::size_t index) {
  auto it = sized<myelin_graph_counters>();
  if (myelin_graph_counters_at(graph, index, &it) != MYELIN_OK) return std::nullopt;
  return it;
}
inline Graph::Endpoint endpoint(myelin_graph *graph, const myelin_graph_endpoint &it, std::size_t index) {
  std::string user_data(reinterpret_cast<const char *>(it.dds_user_data), it.dds_user_data_bytes);
  return {it.endpoint, it.node, it.topic, it.type_name, it.type_hash, it.depth, it.transient_local, it.is_publisher,
          it.is_reliable, it.created_ns, it.deadline_ns, it.liveliness_ns, it.lifespan_ns, it.matching,
          it.is_alive_by_topic, it.resends, attributes(graph, it.endpoint), it.location, it.host_id,
          it.dds_topic ? it.dds_topic : "", it.dds_type ? it.dds_type : "", user_data,
          counters(graph, index)};
}
inline Graph graph(myelin_graph *found) {
  Handle<myelin_graph, myelin_graph_close> closes(found);
  Graph graph;
  each(found, myelin_graph_node_at, [&](const myelin_graph_node &it) {
    graph.nodes.push_back(node(found, it));
  });
  each(found, myelin_graph_endpoint_at, [&](const myelin_graph_endpoint &it) {
    graph.endpoints.push_back(endpoint(found, it, graph.endpoints.size()));
  });
  each(found, myelin_graph_match_at,
       [&](const myelin_graph_match &it) { graph.matches.push_back(match(it)); });
  return graph;
}
inline std::optional<double> known(double value) {
  return value == value ? std::optional<double>(value) : std::nullopt; // NaN equals nothing
}
} // namespace detail

/// A domain at the time of an update of a watcher; each member as in myelin.h.
struct GraphStatus {
  struct Endpoint {
    /// Its counters are the last known ones.
    Graph::Endpoint info;
    /// How many samples a publisher has published, or a subscriber has taken, in a second; empty if that
    /// is not known.
    std::optional<double> rate_hz;
    std::uint64_t lost_in_interval, counted_ns;
    bool is_silent;
    std::vector<Graph::Match> matches;
  };
  struct Topic {
    std::string name, type_name;
    /// How many types it has: more than one means that endpoints do not match.
    std::size_t types;
    std::vector<Endpoint> publishers, subscribers;
    /// Empty if it is known of no publisher. A topic without a publisher has 0.
    std::optional<double> rate_hz;
    std::uint64_t memory_bytes, lost;
    std::size_t refused;
  };
  struct Node {
    Graph::Node info;
    /// Empty if that is not known, here and below.
    std::optional<double> cpu_percent;
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint32_t> threads;
    bool is_stopped, is_silent, is_incomplete;
    std::size_t publishers, subscribers;
  };
  struct Change {
    /// Whether it has come; else it has gone.
    bool is_found;
    Graph::Endpoint endpoint;
  };
  std::uint64_t at_ns = 0;
  /// How long before that the update before was; 0 at the first one.
  std::chrono::nanoseconds since{};
  std::vector<Topic> topics;
  std::vector<Node> nodes;
  /// Endpoints that went and came with the update, those that went first.
  std::vector<Change> changes;
  /// The topic of this name, or nullptr.
  const Topic *topic(const std::string &name) const {
    for (const auto &topic : topics)
      if (topic.name == name) return &topic;
    return nullptr;
  }
};

/// Watches topics and nodes: rates, losses, matches, CPU and memory. One thread at a time.
class GraphWatcher {
public:
  GraphWatcher() = default;
  explicit GraphWatcher(myelin_graph_watcher *handle) : handle_(handle) {}
  /// Asks all nodes of this host, waits until they have answered, for at most `limit`, and computes
  /// what has changed since the last call. A node that does not answer makes each call take the whole
  /// limit.
  Result<GraphStatus> update(std::chrono::nanoseconds limit) {
    myelin_graph *found;
    if (int code = myelin_graph_watcher_update(get(), detail::ns(limit), &found)) return detail::error(code);
    detail::Handle<myelin_graph, myelin_graph_close> closes(found);
    GraphStatus status;
    auto time = detail::sized<myelin_graph_time>();
    if (int code = myelin_graph_time_of(found, &time)) return detail::error(code);
    status.at_ns = time.at_ns;
    status.since = std::chrono::nanoseconds(time.since_ns);
    detail::each(found, myelin_graph_topic_at, [&](const myelin_graph_topic &it) {
      status.topics.push_back({it.name, it.type_name, it.types, endpoints(found, it.first_endpoint, it.publishers),
                               endpoints(found, it.first_endpoint + it.publishers, it.subscribers),
                               detail::known(it.rate_hz), it.memory_bytes, it.lost, it.refused});
    });
    detail::each(found, myelin_graph_node_at, [&](const myelin_graph_node &it) {
      GraphStatus::Node node{detail::node(found, it), detail::known(it.cpu_percent), {}, {}, it.is_stopped,
                             it.is_silent, it.is_incomplete, it.publishers, it.subscribers};
      if (it.memory_bytes) node.memory_bytes = it.memory_bytes;
      if (it.threads) node.threads = it.threads;
      status.nodes.push_back(std::move(node));
    });
    myelin_graph_change change;
    auto it = detail::sized<myelin_graph_endpoint>();
    for (std::size_t index = 0; myelin_graph_change_at(found, index, &change, &it) == MYELIN_OK; index++)
      status.changes.push_back({change == MYELIN_GRAPH_FOUND, detail::endpoint(found, it, SIZE_MAX)});
    return status;
  }
  myelin_graph_watcher *get() const { return handle_.get(); }

private:
  static std::vector<GraphStatus::Endpoint> endpoints(myelin_graph *graph, std::size_t first, std::size_t count) {
    std::vector<GraphStatus::Endpoint> all;
    for (std::size_t index = first; index < first + count; index++) {
      auto it = detail::sized<myelin_graph_endpoint>();
      if (myelin_graph_endpoint_at(graph, index, &it) != MYELIN_OK) break;
      GraphStatus::Endpoint endpoint{detail::endpoint(graph, it, index), detail::known(it.rate_hz),
                                     it.lost_in_interval, it.counted_ns, it.is_silent, {}};
      for (std::size_t at = it.first_match; at < it.first_match + it.matches; at++) {
        auto match = detail::sized<myelin_graph_match>();
        if (myelin_graph_match_at(graph, at, &match) != MYELIN_OK) break;
        endpoint.matches.push_back(detail::match(match));
      }
      all.push_back(std::move(endpoint));
    }
    return all;
  }
  detail::Handle<myelin_graph_watcher, myelin_graph_watcher_close> handle_;
};

/// Whether other hosts can be reached: `state` is a MYELIN_NETWORK_*, `text` says what is missing,
/// or which interface is used.
struct Network {
  int state;
  std::string text;
};

/// A process's part in a domain. Any thread may use it.
class Node {
public:
  Node() = default;
  explicit Node(myelin_node *handle) : handle_(handle) {}
  static Result<Node> open(const std::string &name, const NodeOptions &options = {}) {
    NodeOptions opened = options;
    if (!opened.language) opened.language = "C++";
    myelin_node *node;
    if (int code = myelin_node_open(name.c_str(), &opened, &node)) return detail::error(code);
    return Node(node);
  }
  template <class T> Topic<T> topic(std::string name) const { return {get(), std::move(name)}; }
  template <class Req, class Rep> Result<Server<Req, Rep>> server(const std::string &name) const {
    auto request = detail::Payload<Req>::describe();
    auto reply = detail::Payload<Rep>::describe();
    myelin_server *server;
    if (int code = myelin_server_open(get(), name.c_str(), &request, &reply, &server))
      return detail::error(code);
    return Server<Req, Rep>(server);
  }
  template <class Req, class Rep> Result<Client<Req, Rep>> client(const std::string &name) const {
    auto request = detail::Payload<Req>::describe();
    auto reply = detail::Payload<Rep>::describe();
    myelin_client *client;
    if (int code = myelin_client_open(get(), name.c_str(), &request, &reply, &client))
      return detail::error(code);
    return Client<Req, Rep>(client);
  }
  Result<WaitSet> wait_set() const {
    myelin_wait_set *set;
    if (int code = myelin_wait_set_open(get(), &set)) return detail::error(code);
    return WaitSet(set);
  }
  Result<Graph> graph() const {
    myelin_graph *found;
    if (int code = myelin_node_graph(get(), &found)) return detail::error(code);
    return detail::graph(found);
  }
  /// The same, and asks all other nodes of this host for their matches and for the memory in which their
  /// endpoints count, and waits until all have answered, for at most so long. From then on `graph`
  /// knows these counters, too, and those of a stopped process.
  Result<Graph> graph_within(std::chrono::nanoseconds limit) const {
    myelin_graph *found;
    if (int code = myelin_node_graph_within(get(), detail::ns(limit), &found)) return detail::error(code);
    return detail::graph(found);
  }
  /// Watches the topics whose names match `pattern`, and all nodes: `*` stands for any text and `?` for
  /// one character. Nothing happens before the first update.
  Result<GraphWatcher> watch_graph(const std::string &pattern = "*") const {
    myelin_graph_watcher *watcher;
    if (int code = myelin_graph_watcher_open(get(), pattern.c_str(), &watcher)) return detail::error(code);
    return GraphWatcher(watcher);
  }
  /// How often `graph` has changed so far. While the number stays the same, a graph that was taken
  /// after it was read is still the newest, except for its matches.
  Result<std::uint64_t> graph_changes() const {
    std::uint64_t changes;
    if (int code = myelin_node_graph_changes(get(), &changes)) return detail::error(code);
    return changes;
  }
  /// An endpoint of this host by its id, if there is one: it costs one look-up, however many
  /// endpoints there are.
  Result<std::optional<Graph::Endpoint>> endpoint(std::uint64_t id) const {
    myelin_graph *found;
    int code = myelin_node_endpoint(get(), id, &found);
    if (code < 0) return detail::error(code);
    if (code != MYELIN_OK) return std::optional<Graph::Endpoint>();
    detail::Handle<myelin_graph, myelin_graph_close> closes(found);
    auto it = detail::sized<myelin_graph_endpoint>();
    if (int failed = myelin_graph_endpoint_at(found, 0, &it)) return detail::error(failed);
    return std::optional<Graph::Endpoint>(detail::endpoint(found, it, 0));
  }
  /// Triggers the guard condition from now on whenever `graph` has changed.
  Result<void> on_graph_change(const GuardCondition &guard) const {
    return detail::done(myelin_node_on_graph_change(get(), guard.get()));
  }
  Result<Network> network() const {
    char text[1024];
    myelin_network state;
    if (int code = myelin_node_network(get(), text, sizeof text, &state)) return detail::error(code);
    return Network{state, text};
  }
  /// The folder of its sockets. Two nodes meet if they use the same folder, even by different
  /// paths.
  Result<std::string> runtime_dir() const {
    char text[4096];
    if (int code = myelin_node_runtime_dir(get(), text, sizeof text)) return detail::error(code);
    return std::string(text);
  }
  /// For the C API.
  myelin_node *get() const { return handle_.get(); }

private:
  detail::Handle<myelin_node, myelin_node_close> handle_;
};

/// The layout hash of a topic's type, which both sides compare.
template <class T> std::uint64_t layout_hash() {
  auto payload = detail::Payload<T>::describe();
  std::uint64_t hash = 0;
  if (int code = myelin_payload_hash(&payload, &hash)) throw detail::error(code);
  return hash;
}

} // namespace myelin

/// MYELIN_STRUCT uses it to check that it is outside all namespaces.
struct myelin_in_no_namespace;

/// Describes a struct to topics: its name and all its fields, in order, outside all namespaces. It
/// is a macro, because the names of the fields are in the layout hash, and C++17 gives a program no
/// more than the fields' types. Padding is refused, as in Rust: fill gaps with fields like
/// `uint8_t _pad[4]`.
#define MYELIN_STRUCT(T, ...)                                                                     \
  struct myelin_in_no_namespace;                                                                  \
  static_assert(std::is_same_v<myelin_in_no_namespace, ::myelin_in_no_namespace>,                 \
                "MYELIN_STRUCT belongs behind the end of all namespaces, with the struct's full " \
                "name: MYELIN_STRUCT(robot::Imu, ...)");                                          \
  template <> struct myelin::detail::Describe<T> {                                                \
    static constexpr bool is_described = true;                                                    \
    static_assert(std::is_standard_layout_v<T> && std::is_trivially_copyable_v<T>,                \
                  #T " must be standard layout and trivially copyable");                          \
    static_assert(sizeof(T) == MYELIN_EACH_(MYELIN_BYTES_, T, __VA_ARGS__) 0,                     \
                  #T " has padding, or a field that MYELIN_STRUCT does not name");                \
    static_assert(ascend({MYELIN_EACH_(MYELIN_OFFSET_, T, __VA_ARGS__)}),                         \
                  "MYELIN_STRUCT(" #T ", ...) names the fields in another order than the struct"); \
    static const myelin_struct *structure() {                                                     \
      static const myelin_field fields[] = {MYELIN_EACH_(MYELIN_DESCRIBE_, T, __VA_ARGS__)};      \
      static const myelin_struct described = {                                                    \
          sizeof(myelin_struct), short_name(#T),                        sizeof(T),                \
          alignof(T),            fields,                                                          \
          sizeof(fields) / sizeof(*fields), sizeof(myelin_field)};                                \
      return &described;                                                                          \
    }                                                                                             \
  };
#define MYELIN_BYTES_(T, field) sizeof(T::field) +
#define MYELIN_OFFSET_(T, field) offsetof(T, field),
#define MYELIN_DESCRIBE_(T, field) {#field, offsetof(T, field), type_of<decltype(T::field)>()},

// For up to 48 fields.
#define MYELIN_EXPAND_(x) x
#define MYELIN_EACH_(M, T, ...) MYELIN_EXPAND_(MYELIN_PICK_(__VA_ARGS__, MYELIN_E48_, MYELIN_E47_, \
    MYELIN_E46_, MYELIN_E45_, MYELIN_E44_, MYELIN_E43_, MYELIN_E42_, MYELIN_E41_, MYELIN_E40_, \
    MYELIN_E39_, MYELIN_E38_, MYELIN_E37_, MYELIN_E36_, MYELIN_E35_, MYELIN_E34_, MYELIN_E33_, \
    MYELIN_E32_, MYELIN_E31_, MYELIN_E30_, MYELIN_E29_, MYELIN_E28_, MYELIN_E27_, MYELIN_E26_, \
    MYELIN_E25_, MYELIN_E24_, MYELIN_E23_, MYELIN_E22_, MYELIN_E21_, MYELIN_E20_, MYELIN_E19_, \
    MYELIN_E18_, MYELIN_E17_, MYELIN_E16_, MYELIN_E15_, MYELIN_E14_, MYELIN_E13_, MYELIN_E12_, \
    MYELIN_E11_, MYELIN_E10_, MYELIN_E9_, MYELIN_E8_, MYELIN_E7_, MYELIN_E6_, MYELIN_E5_, MYELIN_E4_, \
    MYELIN_E3_, MYELIN_E2_, MYELIN_E1_, )(M, T, __VA_ARGS__))
#define MYELIN_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
    a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, \
    a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, pick, ...) pick
#define MYELIN_E1_(M, T, a) M(T, a)
#define MYELIN_E2_(M, T, a, ...) M(T, a) MYELIN_E1_(M, T, __VA_ARGS__)
#define MYELIN_E3_(M, T, a, ...) M(T, a) MYELIN_E2_(M, T, __VA_ARGS__)
#define MYELIN_E4_(M, T, a, ...) M(T, a) MYELIN_E3_(M, T, __VA_ARGS__)
#define MYELIN_E5_(M, T, a, ...) M(T, a) MYELIN_E4_(M, T, __VA_ARGS__)
#define MYELIN_E6_(M, T, a, ...) M(T, a) MYELIN_E5_(M, T, __VA_ARGS__)
#define MYELIN_E7_(M, T, a, ...) M(T, a) MYELIN_E6_(M, T, __VA_ARGS__)
#define MYELIN_E8_(M, T, a, ...) M(T, a) MYELIN_E7_(M, T, __VA_ARGS__)
#define MYELIN_E9_(M, T, a, ...) M(T, a) MYELIN_E8_(M, T, __VA_ARGS__)
#define MYELIN_E10_(M, T, a, ...) M(T, a) MYELIN_E9_(M, T, __VA_ARGS__)
#define MYELIN_E11_(M, T, a, ...) M(T, a) MYELIN_E10_(M, T, __VA_ARGS__)
#define MYELIN_E12_(M, T, a, ...) M(T, a) MYELIN_E11_(M, T, __VA_ARGS__)
#define MYELIN_E13_(M, T, a, ...) M(T, a) MYELIN_E12_(M, T, __VA_ARGS__)
#define MYELIN_E14_(M, T, a, ...) M(T, a) MYELIN_E13_(M, T, __VA_ARGS__)
#define MYELIN_E15_(M, T, a, ...) M(T, a) MYELIN_E14_(M, T, __VA_ARGS__)
#define MYELIN_E16_(M, T, a, ...) M(T, a) MYELIN_E15_(M, T, __VA_ARGS__)
#define MYELIN_E17_(M, T, a, ...) M(T, a) MYELIN_E16_(M, T, __VA_ARGS__)
#define MYELIN_E18_(M, T, a, ...) M(T, a) MYELIN_E17_(M, T, __VA_ARGS__)
#define MYELIN_E19_(M, T, a, ...) M(T, a) MYELIN_E18_(M, T, __VA_ARGS__)
#define MYELIN_E20_(M, T, a, ...) M(T, a) MYELIN_E19_(M, T, __VA_ARGS__)
#define MYELIN_E21_(M, T, a, ...) M(T, a) MYELIN_E20_(M, T, __VA_ARGS__)
#define MYELIN_E22_(M, T, a, ...) M(T, a) MYELIN_E21_(M, T, __VA_ARGS__)
#define MYELIN_E23_(M, T, a, ...) M(T, a) MYELIN_E22_(M, T, __VA_ARGS__)
#define MYELIN_E24_(M, T, a, ...) M(T, a) MYELIN_E23_(M, T, __VA_ARGS__)
#define MYELIN_E25_(M, T, a, ...) M(T, a) MYELIN_E24_(M, T, __VA_ARGS__)
#define MYELIN_E26_(M, T, a, ...) M(T, a) MYELIN_E25_(M, T, __VA_ARGS__)
#define MYELIN_E27_(M, T, a, ...) M(T, a) MYELIN_E26_(M, T, __VA_ARGS__)
#define MYELIN_E28_(M, T, a, ...) M(T, a) MYELIN_E27_(M, T, __VA_ARGS__)
#define MYELIN_E29_(M, T, a, ...) M(T, a) MYELIN_E28_(M, T, __VA_ARGS__)
#define MYELIN_E30_(M, T, a, ...) M(T, a) MYELIN_E29_(M, T, __VA_ARGS__)
#define MYELIN_E31_(M, T, a, ...) M(T, a) MYELIN_E30_(M, T, __VA_ARGS__)
#define MYELIN_E32_(M, T, a, ...) M(T, a) MYELIN_E31_(M, T, __VA_ARGS__)
#define MYELIN_E33_(M, T, a, ...) M(T, a) MYELIN_E32_(M, T, __VA_ARGS__)
#define MYELIN_E34_(M, T, a, ...) M(T, a) MYELIN_E33_(M, T, __VA_ARGS__)
#define MYELIN_E35_(M, T, a, ...) M(T, a) MYELIN_E34_(M, T, __VA_ARGS__)
#define MYELIN_E36_(M, T, a, ...) M(T, a) MYELIN_E35_(M, T, __VA_ARGS__)
#define MYELIN_E37_(M, T, a, ...) M(T, a) MYELIN_E36_(M, T, __VA_ARGS__)
#define MYELIN_E38_(M, T, a, ...) M(T, a) MYELIN_E37_(M, T, __VA_ARGS__)
#define MYELIN_E39_(M, T, a, ...) M(T, a) MYELIN_E38_(M, T, __VA_ARGS__)
#define MYELIN_E40_(M, T, a, ...) M(T, a) MYELIN_E39_(M, T, __VA_ARGS__)
#define MYELIN_E41_(M, T, a, ...) M(T, a) MYELIN_E40_(M, T, __VA_ARGS__)
#define MYELIN_E42_(M, T, a, ...) M(T, a) MYELIN_E41_(M, T, __VA_ARGS__)
#define MYELIN_E43_(M, T, a, ...) M(T, a) MYELIN_E42_(M, T, __VA_ARGS__)
#define MYELIN_E44_(M, T, a, ...) M(T, a) MYELIN_E43_(M, T, __VA_ARGS__)
#define MYELIN_E45_(M, T, a, ...) M(T, a) MYELIN_E44_(M, T, __VA_ARGS__)
#define MYELIN_E46_(M, T, a, ...) M(T, a) MYELIN_E45_(M, T, __VA_ARGS__)
#define MYELIN_E47_(M, T, a, ...) M(T, a) MYELIN_E46_(M, T, __VA_ARGS__)
#define MYELIN_E48_(M, T, a, ...) M(T, a) MYELIN_E47_(M, T, __VA_ARGS__)
#endif
