"""The cost of publishing and taking in Python, in ns a sample, in one process and without a wait.

`publish_time.py`: the median and the least of 300 rounds each. Beside it: `cargo bench -p myelin --bench publish_time`.
"""

import statistics
import tempfile
import time

import myelin

ROUNDS, EACH = 300, 500


def measured(name, act):
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        for _ in range(EACH):
            act()
        times.append((time.perf_counter_ns() - begun) / EACH)
    print(f"{name:42} {statistics.median(times):8.0f} ns  (least {min(times):.0f})")


def main():
    with tempfile.TemporaryDirectory() as folder, myelin.Node("bench", runtime_dir=folder) as node:
        for size in (64, 65536, 1 << 20):
            topic = node.topic(f"bytes-{size}")
            publisher, subscriber = topic.publisher(), topic.subscriber()
            publisher.wait_for_match()
            payload = bytes(size)

            def copied():
                publisher.publish(payload)
                subscriber.take()

            def viewed():
                loan = publisher.loan(size)
                with memoryview(loan) as view:
                    view[0] = 1
                loan.publish()
                sample = subscriber.take()
                with memoryview(sample) as view:
                    view[0]

            measured(f"publish(bytes), take, {size} B", copied)
            measured(f"loan, view, publish, take, view, {size} B", viewed)
        measured("a take of nothing", subscriber.take)
        measured("an empty call", lambda: None)


if __name__ == "__main__":
    main()
