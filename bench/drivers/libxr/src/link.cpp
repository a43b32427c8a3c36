// The adaptor: topics of LibXR within one process, as the functions of the kit's table; below that
// a table of functions for each size of message.
//
// The payload of a topic is an object of a C++ type that is known when the topic is made. Hence
// there is a type for each size, and a list of sizes. All pointers that leave this file point to
// objects of the size whose table made them.
//
// LibXR never removes a topic or a subscriber: both stay until the process ends. PlatformInit() is
// not called, because it reads standard input and sets up the terminal; topics do not need it.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "link.h"
#include "message.hpp"
#include "timebase.hpp"

using LibXR::ErrorCode;
using LibXR::Topic;

namespace {

// The 8-byte sequence number of the bench precedes each payload.
constexpr size_t HEADER_BYTES = 8;

struct Listener {
    myelin_bench_call call;
    void *context;
};

struct Table {
    size_t payload_bytes;
    // A frame of zeros; null if there is no memory for it. Its bytes begin at its address.
    void *(*new_frame)();
    void (*delete_frame)(void *frame);
    // Null if a topic with this name, or with the same CRC32, exists already.
    void *(*create)(const char *name);
    // Returns when every callback has returned and every waiting subscriber has a copy.
    void (*publish)(void *topic, void *frame);
    // Calls `call` with each frame, in the thread that publishes it, for ever.
    void (*listen)(void *topic, myelin_bench_call call, void *context);
    // A subscriber; frames for which it waits are copied into `frame`.
    void *(*subscribe)(void *topic, void *frame);
    // 1 if a frame has arrived, 0 if none has within the timeout, -1 if waiting failed.
    int (*wait)(void *subscriber, uint32_t timeout_ms);
    void (*unsubscribe)(void *subscriber);
};

template <size_t PAYLOAD_BYTES>
struct Carrier {
    struct Frame {
        alignas(8) uint8_t bytes[HEADER_BYTES + PAYLOAD_BYTES];
    };
    using Subscriber = Topic::SyncSubscriber<Frame>;

    static Topic topic(void *handle) { return Topic(static_cast<Topic::TopicHandle>(handle)); }

    static void *new_frame() { return new (std::nothrow) Frame(); }

    static void delete_frame(void *frame) { delete static_cast<Frame *>(frame); }

    static void *create(const char *name) {
        if (Topic::Find(name) != nullptr) {
            return nullptr;
        }
        return static_cast<Topic::TopicHandle>(Topic::CreateTopic<Frame>(name));
    }

    static void publish(void *handle, void *frame) {
        topic(handle).Publish(*static_cast<Frame *>(frame));
    }

    static void listen(void *handle, myelin_bench_call call, void *context) {
        auto callback = Topic::Callback::Create(
            [](bool, Listener listener, const Frame &frame) {
                listener.call(listener.context, frame.bytes, HEADER_BYTES + PAYLOAD_BYTES);
            },
            Listener{call, context});
        topic(handle).RegisterCallback(callback);
    }

    static void *subscribe(void *handle, void *frame) {
        return new Subscriber(topic(handle), *static_cast<Frame *>(frame));
    }

    static int wait(void *subscriber, uint32_t timeout_ms) {
        switch (static_cast<Subscriber *>(subscriber)->Wait(timeout_ms)) {
            case ErrorCode::OK:
                return 1;
            case ErrorCode::TIMEOUT:
                return 0;
            default:
                return -1;
        }
    }

    static void unsubscribe(void *subscriber) { delete static_cast<Subscriber *>(subscriber); }

    static constexpr Table table() {
        return {PAYLOAD_BYTES, new_frame, delete_frame, create,     publish,
                listen,        subscribe, wait,         unsubscribe};
    }
};

template <size_t... PAYLOAD_BYTES>
struct Carriers {
    static constexpr Table TABLES[] = {Carrier<PAYLOAD_BYTES>::table()...};
};

constexpr size_t KIB = 1024, MIB = 1024 * KIB;

// Payloads of the scenarios in bench/scenarios. Add a missing one here, in order.
using Sizes = Carriers<
    0, 8, 12, 16, 32, 64, 128, 256, 512, 1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB,
    64 * KIB, 128 * KIB, 320 * 240 * 3, 256 * KIB, 512 * KIB, 640 * 480 * 3, 1000000, 1 * MIB,
    2 * MIB, 1280 * 720 * 3, 4 * MIB, 1440 * 1080 * 3, 5 * MIB, 1920 * 1080 * 3, 8 * MIB, 10 * MIB,
    16 * MIB>;

static_assert(Sizes::TABLES[std::size(Sizes::TABLES) - 1].payload_bytes ==
              MYELIN_LIBXR_PAYLOAD_BYTES_MAX);

// A topic with its one publisher. The data of a publish call is contiguous: after the sleep of a
// period, each further cache line would be a miss, and would be measured.
struct Link {
    void (*publish)(void *topic, void *frame);
    void *topic;
    // The publisher's object, which a user of LibXR would fill. It serves as the loan.
    void *frame;
    size_t bytes;
    const Table *table;
    bool is_called;
};

// The function and context for LibXR's calls; it lives for ever, because LibXR cannot unregister.
struct Slot {
    std::atomic<bool> live{true};
    myelin_bench_call call;
    void *context;
};

// A receiving end: a slot that is called, or a waiting subscriber with a frame for its copies.
struct Receiver {
    Link *link;
    Slot *slot;
    void *subscriber;
    void *frame;
};

int fail(const std::string &what, const std::string &remedy = {}) {
    myelin_bench_error(("LibXR: " + what).c_str(), remedy.empty() ? nullptr : remedy.c_str());
    return -1;
}

const Table *table_for(uint64_t payload_bytes) {
    const auto found = std::find_if(
        std::begin(Sizes::TABLES), std::end(Sizes::TABLES),
        [&](const Table &table) { return table.payload_bytes == payload_bytes; });
    return found == std::end(Sizes::TABLES) ? nullptr : found;
}

// LibXR's register of topics is a tree without a lock.
void *create_topic(const Table &table, const char *name) {
    static std::mutex alone;
    const std::lock_guard<std::mutex> guard(alone);
    return table.create(name);
}

void close_link(void *context) {
    Link *link = static_cast<Link *>(context);
    if (link->frame != nullptr) {
        link->table->delete_frame(link->frame);
    }
    delete link;
}

int open_link(const myelin_bench_prepare *prepare, void **context) {
    if (!LibXR::Timebase::IsReady()) {
        return fail("its clock, which stamps each message, is not set up");
    }
    const Table &table = *table_for(prepare->payload_bytes);
    const bool is_called = std::strcmp(prepare->system, MYELIN_LIBXR_CALLBACK) == 0;
    Link *link = new Link{table.publish, nullptr, table.new_frame(), prepare->message_bytes, &table,
                          is_called};
    int status = link->frame == nullptr ? fail("no memory for a frame") : 0;
    if (status == 0) {
        link->topic = create_topic(table, prepare->run);
        if (link->topic == nullptr) {
            status = fail(std::string("a topic ") + prepare->run +
                              ", or one with the same CRC32, already exists",
                          "LibXR tells topics apart by the CRC32 of their names; rename the run");
        }
    }
    if (status != 0) {
        close_link(link);
        return status;
    }
    *context = link;
    return 0;
}

// In a separate function, so that a loan does not reserve stack for its texts.
[[gnu::cold, gnu::noinline]] int fail_to_fit(const Link &link, size_t bytes) {
    return fail("messages have " + std::to_string(link.bytes) + " B here; " +
                std::to_string(bytes) + " B do not fit");
}

int loan(void *context, size_t bytes, void **memory) {
    Link *link = static_cast<Link *>(context);
    if (bytes != link->bytes) {
        return fail_to_fit(*link, bytes);
    }
    *memory = link->frame;
    return 0;
}

int publish_loan(void *context) {
    Link *link = static_cast<Link *>(context);
    link->publish(link->topic, link->frame);
    return 0;
}

int publish(void *context, const void *message, size_t bytes) {
    void *memory = nullptr;
    const int status = loan(context, bytes, &memory);
    if (status != 0) {
        return status;
    }
    std::memcpy(memory, message, bytes);
    return publish_loan(context);
}

int subscribe(void *context, uint32_t, void **subscriber) {
    Link *link = static_cast<Link *>(context);
    Receiver *receiver = new Receiver{link, nullptr, nullptr, nullptr};
    if (!link->is_called) {
        receiver->frame = link->table->new_frame();
        if (receiver->frame == nullptr) {
            delete receiver;
            return fail("no memory for a frame");
        }
        receiver->subscriber = link->table->subscribe(link->topic, receiver->frame);
    }
    *subscriber = receiver;
    return 0;
}

// The subscriber stays in the topic's list with a pointer to our frame. But LibXR writes there only
// while a thread waits, and none will again.
void unsubscribe(void *context) {
    Receiver *receiver = static_cast<Receiver *>(context);
    if (receiver->subscriber != nullptr) {
        receiver->link->table->unsubscribe(receiver->subscriber);
        receiver->link->table->delete_frame(receiver->frame);
    }
    delete receiver;
}

// Waits here. LibXR drops messages that are published while no thread waits, without counting them.
int take(void *context, uint64_t until_ns, const void **message, size_t *bytes) {
    constexpr uint64_t NS_PER_MS = 1'000'000;
    // One more would mean for ever.
    constexpr uint64_t TIMEOUT_MS_MAX = UINT32_MAX - 1;
    Receiver *receiver = static_cast<Receiver *>(context);
    const uint64_t left_ns = myelin_bench_left_ns(until_ns);
    const uint64_t left_ms = left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0);
    const Link &link = *receiver->link;
    const auto timeout_ms = static_cast<uint32_t>(std::min(left_ms, TIMEOUT_MS_MAX));
    const int came = link.table->wait(receiver->subscriber, timeout_ms);
    *message = receiver->frame;
    *bytes = link.bytes;
    return came < 0 ? fail("SyncSubscriber::Wait failed") : came;
}

// Runs in the publisher's thread, while LibXR holds the topic's lock.
void enter(void *context, const void *bytes, size_t length) {
    Slot *slot = static_cast<Slot *>(context);
    // ORDER: SeqCst, see `unlisten`.
    if (slot->live.load()) {
        slot->call(slot->context, bytes, length);
    }
}

int listen(void *context, myelin_bench_call call, void *call_context) {
    Receiver *receiver = static_cast<Receiver *>(context);
    receiver->slot = new Slot{{true}, call, call_context};
    receiver->link->table->listen(receiver->link->topic, enter, receiver->slot);
    return 0;
}

// Whether a publish call is in progress: reads LibXR's own lock of the topic. Totally ordered with
// taking that lock.
bool is_publishing(void *topic) {
    return static_cast<uint32_t>(static_cast<Topic::TopicHandle>(topic)->data_.busy.load()) != 0;
}

// ORDER: SeqCst for all four: this store, the read of the topic's lock below, taking that lock in a
// publish call, and the load of `live` in `enter` after it. If we find the lock free, there are two
// cases. Either a publish call takes it later, and then finds `live` false. Or it has released the
// lock, and its calls are over (its release pairs with our load).
void unlisten(void *context) {
    Receiver *receiver = static_cast<Receiver *>(context);
    receiver->slot->live.store(false);
    while (is_publishing(receiver->link->topic)) {
        std::this_thread::yield();
    }
}

}  // namespace

extern "C" {

// A topic carries one C++ type, so only compiled sizes are possible.
int myelin_libxr_check(const myelin_bench_prepare *prepare) {
    if (table_for(prepare->payload_bytes) != nullptr) {
        return 0;
    }
    std::string sizes;
    for (const Table &table : Sizes::TABLES) {
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(table.payload_bytes);
    }
    return fail("no type with " + std::to_string(prepare->payload_bytes) +
                    " B of payload was compiled in",
                "choose one of " + sizes + "; or add it to bench/drivers/libxr/src/link.cpp");
}

const myelin_bench_link myelin_libxr_link = {
    MYELIN_BENCH_SIZE(link), open_link, loan, publish_loan, publish, nullptr, take, nullptr,
    close_link, nullptr, subscribe, unsubscribe, listen, unlisten};
}
