"""A queue of jobs; none may be lost. It is reliable, so the publisher waits for a slow worker.

`python3 queue_.py subscribe`, and in another terminal `python3 queue_.py publish`. Both end by themselves.
"""

import sys

import myelin

JOBS = 100_000


def jobs(node):
    """Both sides must be reliable; each chooses how long the queue is and how long to wait."""
    return node.topic("jobs", myelin.u64, depth=64, reliable_or_fail=10)


def publish():
    publisher = jobs(myelin.Node("planner")).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `queue_.py subscribe` within 30 s")
        return
    for job in range(JOBS):
        publisher.publish(job)  # waits while the worker is 64 jobs behind
    print(f"published {JOBS} jobs")


def subscribe():
    subscriber = jobs(myelin.Node("worker")).subscriber()
    total = 0
    for done in range(JOBS):
        job = subscriber.receive(timeout=30)
        if job is None:
            print(f"nothing came for 30 s after {done} jobs")
            return
        total += job.value
    print(f"did {JOBS} jobs, lost {subscriber.lost}, sum {total}")
    for event in subscriber.events():
        if event.died:
            print(f"the planner, process {event.pid}, has died")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: queue_.py publish|subscribe")
    ROLES[sys.argv[1]]()
