"""A lidar's point clouds: a header and as many points as the scan has, as numpy arrays of named fields without a copy.

`python3 point_cloud.py subscribe`, and in another terminal `python3 point_cloud.py publish`. Both end by themselves.
"""

import sys

import myelin
import numpy as np

SCANS = 10
Point = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f4")])
Scan = np.dtype([("stamp_ns", "u8"), ("rings", "u4"), ("_pad", "u1", 4)])


def cloud_topic(node):
    return node.topic("points", (Scan, [Point]), reliable=10)


def publish():
    publisher = cloud_topic(myelin.Node("lidar")).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `point_cloud.py subscribe` within 30 s")
        return
    for scan in range(SCANS):
        points = 10_000 + scan  # each scan has as many as came back
        with publisher.loan(points) as cloud:
            cloud.header = (myelin.now(), 16, bytes(4))
            written = cloud.array()
            angle = np.linspace(0, 2 * np.pi, points, dtype="f4")
            written["x"], written["y"] = 5 * np.cos(angle), 5 * np.sin(angle)
            written["z"], written["intensity"] = scan, 1
            del written  # a view could still write after the publish
            cloud.publish()
    print(f"published {SCANS} scans")


def subscribe():
    with cloud_topic(myelin.Node("mapper")).subscriber() as subscriber:
        for _ in range(SCANS):
            cloud = subscriber.receive(timeout=30)
            if cloud is None:
                print("not all scans came within 30 s; start `point_cloud.py publish`")
                return
            points = cloud.array()
            distance = np.hypot(points["x"], points["y"]).mean()
            print(f"scan {cloud.sequence}: {len(points)} points at {distance:.1f} m, z {points['z'].max():g} m")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: point_cloud.py publish|subscribe")
    ROLES[sys.argv[1]]()
