"""One process of a fleet over Zenoh with its default configuration; see ../fleet.py.

    over_zenoh.py robot NUMBER TOPICS       TOPICS publishers
    over_zenoh.py operator ROBOTS TOPICS    a subscriber of each topic of each robot

The operator prints how many pairs have matched, whenever that changes. A subscriber of Zenoh does not know
its publishers; each publisher counts for the operator when it says that it has matched, by one message. Both
end with their input. Needs the package eclipse-zenoh.
"""

import sys
import threading

import zenoh


def main() -> None:
    role, number, topics = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    session = zenoh.open(zenoh.Config())
    if role == "robot":
        publishers = [session.declare_publisher(f"robot{number}/topic{at}") for at in range(topics)]
        print("ready", flush=True)
        waiting, end = set(publishers), threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
        while not end.wait(0.01 if waiting else 1.0):
            for publisher in [it for it in waiting if it.matching_status.matching]:
                publisher.put(b"")
                waiting.discard(publisher)
        session.close()
        return
    matched, lock = set(), threading.Lock()

    def heard(sample: zenoh.Sample) -> None:
        with lock:
            matched.add(str(sample.key_expr))
            print("matched", len(matched), flush=True)

    kept = [
        session.declare_subscriber(f"robot{robot}/topic{at}", heard)
        for robot in range(number)
        for at in range(topics)
    ]
    print("ready", flush=True)
    sys.stdin.read()
    del kept
    session.close()


main()
