// A round trip over eCAL, written directly against its API, without the kit and the driver's
// adaptor, which are compared with it. The settings are the driver's. Pong answers in eCAL's
// callback; ping waits for the message that its callback has copied.
//
//     roundtrip pong DOMAIN RUN PAYLOAD shm|shm-zero-copy
//     roundtrip ping DOMAIN RUN PAYLOAD shm|shm-zero-copy [MESSAGES [WARMUP]]
//
// Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
// and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
// (nearest rank). Pong ends when its standard input closes. DOMAIN is not used.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ecal/ecal.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds ANSWER_WITHIN{2};

struct Answer {
    std::mutex mutex;
    std::condition_variable arrived;
    bool has_arrived = false;
    std::vector<uint8_t> bytes;
};

void start() {
    eCAL::Configuration settings;
    settings.communication_mode = eCAL::eCommunicationMode::local;
    settings.registration.local.transport_type = eCAL::Registration::Local::eTransportType::shm;
    settings.logging.provider.udp.enable = false;
    settings.logging.provider.console.log_level = eCAL::Logging::log_level_error;
    settings.publisher.layer.udp.enable = settings.publisher.layer.tcp.enable = false;
    settings.subscriber.layer.udp.enable = settings.subscriber.layer.tcp.enable = false;
    // It logs to standard output, which is for our own lines.
    auto *own = std::cout.rdbuf(std::cerr.rdbuf());
    eCAL::Initialize(settings, "check", eCAL::Init::Publisher | eCAL::Init::Subscriber);
    std::cout.rdbuf(own);
}

void ping(eCAL::CPublisher &publisher, Answer &answer, size_t messages, size_t warmup) {
    std::string line;
    std::getline(std::cin, line);
    std::vector<uint8_t> message(answer.bytes.size(), 1), read(message.size());
    std::vector<int64_t> took;
    for (uint64_t sequence = 0; sequence < warmup + messages; sequence++) {
        std::memcpy(message.data(), &sequence, sizeof sequence);
        const auto begin = Clock::now();
        publisher.Send(message.data(), message.size());
        {
            std::unique_lock<std::mutex> lock(answer.mutex);
            if (!answer.arrived.wait_until(lock, begin + ANSWER_WITHIN, [&] { return answer.has_arrived; })) {
                std::cerr << "no answer\n";
                std::exit(1);
            }
            answer.has_arrived = false;
            std::swap(answer.bytes, read);
        }
        if (sequence >= warmup) {
            took.push_back((Clock::now() - begin).count());
        }
        if (read != message) {
            std::cerr << "an answer to another message\n";
            std::exit(1);
        }
    }
    std::sort(took.begin(), took.end());
    const auto rank = [&](size_t share) { return took[(took.size() * share + 99) / 100 - 1]; };
    std::cout << "p50 " << rank(50) << " p99 " << rank(99) << std::endl;
}

} // namespace

int main(int count, char **arguments) {
    if (count < 6) {
        std::cerr << "usage: roundtrip ping|pong DOMAIN RUN PAYLOAD shm|shm-zero-copy [MESSAGES [WARMUP]]\n";
        return 2;
    }
    const bool is_ping = std::string(arguments[1]) == "ping";
    const std::string run = arguments[3];
    const size_t bytes = 8 + std::stoul(arguments[4]);
    start();
    auto settings = eCAL::GetPublisherConfiguration();
    settings.layer.shm.zero_copy_mode = std::string(arguments[5]) == "shm-zero-copy";
    eCAL::CPublisher publisher(run + (is_ping ? "/ping" : "/pong"), {}, settings);
    eCAL::CSubscriber subscriber(run + (is_ping ? "/pong" : "/ping"));
    Answer answer;
    answer.bytes.resize(bytes);
    subscriber.SetReceiveCallback([&](const auto &, const auto &, const eCAL::SReceiveCallbackData &data) {
        if (!is_ping) {
            // Like the kit: directly from eCAL's buffer.
            publisher.Send(data.buffer, data.buffer_size);
            return;
        }
        const std::lock_guard<std::mutex> lock(answer.mutex);
        std::memcpy(answer.bytes.data(), data.buffer, std::min(data.buffer_size, bytes));
        answer.has_arrived = true;
        answer.arrived.notify_one();
    });
    while (publisher.GetSubscriberCount() == 0 || subscriber.GetPublisherCount() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::cout << "ready" << std::endl;
    if (is_ping) {
        const auto number = [&](int index, size_t otherwise) {
            return count > index ? std::stoul(arguments[index]) : otherwise;
        };
        ping(publisher, answer, number(6, 10'000), number(7, 1'000));
    } else {
        std::string line;
        while (std::getline(std::cin, line)) {
        }
    }
    subscriber.RemoveReceiveCallback();
    eCAL::Finalize();
}
