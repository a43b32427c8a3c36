// LibXR's topics behind a table of functions for each size of message. The Rust side is link.rs,
// which declares the same structures.
//
// The payload of a topic is an object of a C++ type that is known when the topic is made. Hence a
// type for each size, and a list of sizes. All pointers that leave this file are to objects of the
// size whose table made them.
//
// LibXR never removes a topic or a subscriber: both stay until the process ends. PlatformInit() is
// not called, as it reads standard input and sets up the terminal; topics do not need it.

#include <cstddef>
#include <cstdint>
#include <new>

#include "message.hpp"
#include "timebase.hpp"

using LibXR::ErrorCode;
using LibXR::Topic;

namespace {

// In front of each payload stands the 8-byte sequence number of the bench.
constexpr size_t HEADER_BYTES = 8;

using Call = void (*)(void *context, const uint8_t *bytes, size_t length);

struct Listener {
    Call call;
    void *context;
};

struct Table {
    size_t payload_bytes;
    // A frame of zeros, or null if there is no memory for it. Its bytes start where it starts.
    void *(*new_frame)();
    void (*delete_frame)(void *frame);
    // Null if there is a topic of this name, or of another with the same CRC32, already.
    void *(*create)(const char *name);
    // Returns when every callback has, and when every subscriber that waits has a copy.
    void (*publish)(void *topic, void *frame);
    // Has `call` called with each frame, in the thread that publishes it, for ever.
    void (*listen)(void *topic, Call call, void *context);
    // A subscriber that has the frames it waits for copied into `frame`.
    void *(*subscribe)(void *topic, void *frame);
    // 1 if a frame has come, 0 if none has in so many milliseconds, -1 if waiting failed.
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

    static void listen(void *handle, Call call, void *context) {
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

// Payloads of the scenarios in bench/scenarios. One that is missing is added here, in order.
using Sizes = Carriers<
    0, 8, 12, 16, 32, 64, 128, 256, 512, 1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB,
    64 * KIB, 128 * KIB, 320 * 240 * 3, 256 * KIB, 512 * KIB, 640 * 480 * 3, 1000000, 1 * MIB,
    2 * MIB, 1280 * 720 * 3, 4 * MIB, 1440 * 1080 * 3, 5 * MIB, 1920 * 1080 * 3, 8 * MIB, 10 * MIB,
    16 * MIB>;

}  // namespace

extern "C" {

const Table *myelin_libxr_tables(size_t *count) {
    *count = sizeof Sizes::TABLES / sizeof Sizes::TABLES[0];
    return Sizes::TABLES;
}

// Whether LibXR's clock, which stamps each message, was set up.
int myelin_libxr_is_ready() { return LibXR::Timebase::IsReady(); }

// Whether a publish call is under way: LibXR's own lock of the topic. Totally ordered with the
// taking of that lock.
int myelin_libxr_is_publishing(void *topic) {
    return static_cast<uint32_t>(static_cast<Topic::TopicHandle>(topic)->data_.busy.load()) != 0;
}
}
