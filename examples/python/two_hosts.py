"""A robot's pose, on its own host and on others: the same two programs, a node that is opened to the
network.

`python3 two_hosts.py subscribe` on one host, and `python3 two_hosts.py publish` on another one, or on the
same. Both need CycloneDDS (`apt-get install cyclonedds-dev`).
"""

import sys
import time
from dataclasses import dataclass

import myelin

POSES = 10


@dataclass
class Pose:
    x: float
    y: float
    heading: float


def open_node(name):
    node = myelin.Node(name, network=True)
    state, reason = node.network
    if state == "waiting":
        # Topics work on the host, and on the network when it is up.
        print(f"alone for now: {reason}", file=sys.stderr)
    return node


def publish():
    publisher = open_node("robot").topic("pose", Pose, reliable=10).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `two_hosts.py subscribe` within 30 s")
        return
    for step in range(POSES):
        publisher.publish(Pose(step, step / 2, 0.25))
        time.sleep(0.02)
    print(f"published {POSES} poses")


def subscribe():
    subscriber = open_node("map").topic("pose", Pose, reliable=10).subscriber()
    for _ in range(POSES):
        sample = subscriber.receive(timeout=30)
        if sample is None:
            print("nothing came for 30 s; start `two_hosts.py publish`")
            return
        pose = sample.value
        print(f"at {pose.x:g} m, {pose.y:g} m, heading {pose.heading:g} rad")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: two_hosts.py publish|subscribe")
    ROLES[sys.argv[1]]()
