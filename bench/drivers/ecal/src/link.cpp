// The adaptor: one role of a round trip or of a stream over eCAL, as the functions of the kit's
// table.
//
// Topic n of a run is `<run>/ping<n>`; pong answers on `<run>/pong0`. eCAL calls with each message,
// in a thread for each publisher's memory file. Pong's function is called there; ping waits for its
// answer, and the call stores it for ping.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ecal/ecal.h>

#include "link.h"

namespace {

// How long a reliable publisher waits for a subscriber: longer than any test of the bench.
constexpr unsigned ACKNOWLEDGE_TIMEOUT_MS = 60'000;
constexpr std::chrono::milliseconds LOOK_AGAIN{1};
// More than eCAL's header before a message, and more than its minimum size.
constexpr size_t MEMORY_FILE_HEADER_BYTES = 4096;

int fail(const std::string &what, const char *remedy) {
    myelin_bench_error(("eCAL: " + what).c_str(), remedy);
    return -1;
}

// eCAL's defaults without a configuration file, with shared memory as the only transport: no socket
// is opened.
eCAL::Configuration configuration() {
    eCAL::Configuration configuration;
    configuration.communication_mode = eCAL::eCommunicationMode::local;
    configuration.registration.local.transport_type = eCAL::Registration::Local::eTransportType::shm;
    configuration.logging.provider.udp.enable = false;
    configuration.logging.provider.file.enable = false;
    configuration.logging.provider.console.log_level =
        eCAL::Logging::log_level_error | eCAL::Logging::log_level_fatal;
    configuration.logging.receiver.enable = false;
    configuration.publisher.layer.udp.enable = false;
    configuration.publisher.layer.tcp.enable = false;
    configuration.subscriber.layer.udp.enable = false;
    configuration.subscriber.layer.tcp.enable = false;
    return configuration;
}

class Link {
public:
    explicit Link(const myelin_bench_prepare &prepare)
        : message_bytes_(prepare.message_bytes), is_reliable_(prepare.reliable) {
        const bool is_ping = prepare.is_ping != 0;
        if (prepare.publishes) {
            open_publishers(prepare, is_ping ? "/ping" : "/pong");
        }
        if (prepare.subscribes) {
            open_subscribers(prepare, is_ping ? "/pong" : "/ping");
        }
    }

    // Whether all ends of the other side have matched, on every topic.
    bool is_matched(const myelin_bench_prepare &prepare) const {
        const size_t expected = prepare.others;
        return std::all_of(publishers_.begin(), publishers_.end(),
                           [&](const auto &it) { return it.GetSubscriberCount() >= expected; }) &&
               std::all_of(subscribers_.begin(), subscribers_.end(),
                           [&](const auto &it) { return it.GetPublisherCount() >= expected; });
    }

    int publish(const void *message, size_t bytes) {
        if (publishers_[selected_].Send(message, bytes) || !is_reliable_) {
            return 0;
        }
        return fail("a message was not sent", "see the other side's log in the results folder");
    }

    void select(uint32_t topic) { selected_ = topic; }

    int take(uint64_t until_ns, const void **message, size_t *bytes) {
        const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(
            std::min<uint64_t>(until_ns, std::chrono::nanoseconds::max().count()))};
        std::unique_lock<std::mutex> lock(mutex_);
        if (!arrived_.wait_until(lock, until, [&] { return has_arrived_; })) {
            return 0;
        }
        has_arrived_ = false;
        // Meanwhile the call fills the other buffer.
        std::swap(incoming_, taken_);
        *message = taken_.data();
        *bytes = incoming_bytes_;
        return 1;
    }

    void listen(myelin_bench_call call, void *context) {
        const std::lock_guard<std::mutex> lock(mutex_);
        call_ = call;
        context_ = context;
    }

    void unlisten() { listen(nullptr, nullptr); }

private:
    void open_publishers(const myelin_bench_prepare &prepare, const char *side) {
        auto configuration = eCAL::GetPublisherConfiguration();
        configuration.layer.shm.zero_copy_mode = prepare.system == std::string(MYELIN_ECAL_ZERO_COPY);
        configuration.layer.shm.acknowledge_timeout_ms = is_reliable_ ? ACKNOWLEDGE_TIMEOUT_MS : 0;
        // Otherwise the first message makes a new file, and the following messages are lost until
        // subscribers know it.
        configuration.layer.shm.memfile_min_size_bytes =
            static_cast<unsigned>(message_bytes_ + MEMORY_FILE_HEADER_BYTES);
        for (uint32_t topic = 0; topic < std::max(prepare.topics, 1u); topic++) {
            publishers_.emplace_back(prepare.run + std::string(side) + std::to_string(topic),
                                     eCAL::SDataTypeInformation(), configuration);
        }
    }

    void open_subscribers(const myelin_bench_prepare &prepare, const char *side) {
        incoming_.resize(message_bytes_);
        taken_.resize(message_bytes_);
        for (uint32_t topic = 0; topic < std::max(prepare.topics, 1u); topic++) {
            subscribers_.emplace_back(prepare.run + std::string(side) + std::to_string(topic));
            subscribers_.back().SetReceiveCallback(
                [this](const auto &, const auto &, const eCAL::SReceiveCallbackData &data) {
                    on_message(data.buffer, data.buffer_size);
                });
        }
    }

    // Locked, because each memory file has its own thread.
    void on_message(const void *message, size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (call_ != nullptr) {
            call_(context_, message, bytes);
            return;
        }
        if (bytes > message_bytes_) {
            return; // A message of another run.
        }
        std::memcpy(incoming_.data(), message, bytes);
        incoming_bytes_ = bytes;
        has_arrived_ = true;
        arrived_.notify_one();
    }

    size_t message_bytes_; // Of the largest message.
    bool is_reliable_;
    uint32_t selected_ = 0;
    std::mutex mutex_;
    std::condition_variable arrived_;
    bool has_arrived_ = false;
    size_t incoming_bytes_ = 0;
    std::vector<uint8_t> incoming_, taken_;
    myelin_bench_call call_ = nullptr;
    void *context_ = nullptr;
    // Declared last, so that they are destroyed first and no calls occur after that.
    std::vector<eCAL::CPublisher> publishers_;
    std::vector<eCAL::CSubscriber> subscribers_;
};

Link &of(void *link) { return *static_cast<Link *>(link); }

void close_link(void *link) {
    delete static_cast<Link *>(link);
    eCAL::Finalize();
    myelin_ecal_leave();
}

int open_link(const myelin_bench_prepare *prepare, void **link) {
    // eCAL throws exceptions of the standard library.
    try {
        if (myelin_ecal_enter(prepare->run) != 0) {
            return -1;
        }
        auto settings = configuration();
        if (!eCAL::Initialize(settings, "myelin-bench", eCAL::Init::Publisher | eCAL::Init::Subscriber)) {
            return fail("it does not start", "see this run's log");
        }
        *link = new Link(*prepare);
        while (!of(*link).is_matched(*prepare)) {
            if (myelin_bench_now_ns() >= prepare->match_until_ns) {
                close_link(*link);
                return fail(prepare->is_ping ? "pong did not connect" : "ping did not connect",
                            "see its log in the results folder; eCAL takes a second to match, and "
                            "match_timeout_ms sets the limit");
            }
            std::this_thread::sleep_for(LOOK_AGAIN);
        }
        return 0;
    } catch (const std::exception &error) {
        return fail(error.what(), "see this run's log");
    }
}

int publish(void *link, const void *message, size_t bytes) { return of(link).publish(message, bytes); }

int take(void *link, uint64_t until_ns, const void **message, size_t *bytes) {
    return of(link).take(until_ns, message, bytes);
}

void select_topic(void *link, uint32_t topic) { of(link).select(topic); }

int listen(void *link, myelin_bench_call call, void *context) {
    of(link).listen(call, context);
    return 0;
}

void unlisten(void *link) { of(link).unlisten(); }

myelin_bench_link table() {
    myelin_bench_link link{};
    link.struct_size = MYELIN_BENCH_SIZE(link);
    link.open = open_link;
    link.publish = publish;
    link.take = take;
    link.close = close_link;
    link.select = select_topic;
    link.listen = listen;
    link.unlisten = unlisten;
    return link;
}

} // namespace

extern "C" const myelin_bench_link myelin_ecal_link = table();

extern "C" void myelin_ecal_probe(myelin_bench_system *system) {
    system->version = eCAL::GetVersionString().c_str();
}
