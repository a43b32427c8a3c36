/* A link in C++, for drivers whose middleware throws exceptions. They write classes and get the
 * functions of the kit's table, which let no exception escape. Since C++17.
 */
#ifndef MYELIN_BENCH_LINK_HPP
#define MYELIN_BENCH_LINK_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "myelin_bench_kit.h"

namespace myelin_bench {

/* What went wrong and what to do about it. */
class Failure : public std::runtime_error {
public:
  explicit Failure(const std::string &what, std::string remedy = {})
      : std::runtime_error(what), remedy_(std::move(remedy))
  {
  }

  const std::string &remedy() const { return remedy_; }

private:
  std::string remedy_;
};

/* Thrown when the kit already has the error text. */
struct ErrorIsSet {};

/* Runs `act`; turns an exception into -1 and the kit's error, which names the middleware. */
template <typename Act> int guarded(const char *middleware, Act act) noexcept
{
  const auto tell = [&](const char *what, const char *remedy) {
    myelin_bench_error((std::string(middleware) + ": " + what).c_str(), remedy);
  };
  try {
    return act();
  } catch (const ErrorIsSet &) {
  } catch (const Failure &failure) {
    tell(failure.what(), failure.remedy().empty() ? nullptr : failure.remedy().c_str());
  } catch (const std::exception &error) {
    tell(error.what(), nullptr);
  } catch (...) {
    tell("an exception that is no std::exception", nullptr);
  }
  return -1;
}

/* Returns when `is_matched` is true, which is checked every `pause`. */
template <typename Ask>
void wait_until_matched(const myelin_bench_prepare &prepare, std::chrono::milliseconds pause,
                        Ask is_matched)
{
  while (!is_matched()) {
    if (myelin_bench_now_ns() >= prepare.match_until_ns)
      throw Failure("some or all processes of the other side did not match within match_timeout_ms",
                    "see this run's log");
    std::this_thread::sleep_for(pause);
  }
}

/* A receiving end: it waits and takes, or calls a function. The system's table offers only what it
 * implements. */
class Receiver {
public:
  virtual ~Receiver() = default;
  Receiver() = default;
  Receiver(const Receiver &) = delete;
  Receiver &operator=(const Receiver &) = delete;

  virtual bool wait(std::uint64_t until_ns) = 0;
  /* The bytes are valid until the next take. */
  virtual bool take(const void *&message, std::size_t &bytes) = 0;
  virtual void listen(myelin_bench_call, void *) { throw Failure("it has no callbacks"); }
  virtual void unlisten() {}
};

/* Both directions of a role, or the single direction of a stream. */
class Link : public Receiver {
public:
  virtual void *loan(std::size_t bytes) = 0;
  /* Publishes the last loan. */
  virtual void publish() = 0;
  /* A further subscriber of this process on the published topic. */
  virtual std::unique_ptr<Receiver> subscribe() { throw Failure("it has one subscriber"); }

  std::uint32_t selected = 0; /* topic of the next loan */
};

/* The functions of the table. `Driver` has `middleware`, its name, and `open`, which returns a
 * matched link:
 *
 *     struct Driver {
 *       static constexpr const char *middleware = "CyberRT";
 *       static std::unique_ptr<Link> open(const myelin_bench_prepare &);
 *     };
 *     extern "C" const myelin_bench_link link = myelin_bench::Table<Driver>::link;
 */
template <typename Driver> class Table {
  template <typename Act> static int guarded(Act act) noexcept
  {
    return myelin_bench::guarded(Driver::middleware, act);
  }

  /* Publishing needs a link; receiving works with a link or a subscriber. */
  static Receiver &receiver_of(void *context) { return *static_cast<Receiver *>(context); }
  static Link &link_of(void *context) { return static_cast<Link &>(receiver_of(context)); }

  static int open(const myelin_bench_prepare *prepare, void **context)
  {
    return guarded([&] {
      *context = static_cast<Receiver *>(Driver::open(*prepare).release());
      return 0;
    });
  }

  static void close(void *context) { delete &receiver_of(context); }

  static int loan(void *context, std::size_t bytes, void **memory)
  {
    return guarded([&] {
      *memory = link_of(context).loan(bytes);
      return 0;
    });
  }

  static int publish_loan(void *context)
  {
    return guarded([&] {
      link_of(context).publish();
      return 0;
    });
  }

  static int publish(void *context, const void *message, std::size_t bytes)
  {
    return guarded([&] {
      std::memcpy(link_of(context).loan(bytes), message, bytes);
      link_of(context).publish();
      return 0;
    });
  }

  static int wait(void *context, std::uint64_t until_ns)
  {
    return guarded([&] { return int(receiver_of(context).wait(until_ns)); });
  }

  static int take(void *context, std::uint64_t, const void **message, std::size_t *bytes)
  {
    return guarded([&] { return int(receiver_of(context).take(*message, *bytes)); });
  }

  static void select(void *context, std::uint32_t topic) { link_of(context).selected = topic; }

  static int subscribe(void *context, std::uint32_t, void **subscriber)
  {
    return guarded([&] {
      *subscriber = link_of(context).subscribe().release();
      return 0;
    });
  }

  static int listen(void *context, myelin_bench_call call, void *call_context)
  {
    return guarded([&] {
      receiver_of(context).listen(call, call_context);
      return 0;
    });
  }

  static void unlisten(void *context) { receiver_of(context).unlisten(); }

public:
  static constexpr myelin_bench_link link = {
      MYELIN_BENCH_SIZE(link), open, loan, publish_loan, publish, wait, take, nullptr,
      close, select, subscribe, close, listen, unlisten};
};

} // namespace myelin_bench

#endif
