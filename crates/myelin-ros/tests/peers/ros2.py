"""The other side of the tests: a ROS 2 node. How it is called: the last lines. It ends when its
standard input does."""

import select
import sys
import time

import numpy
import rclpy
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, Imu, PointCloud2, PointField
from std_msgs.msg import Header, String

# As pattern.h.
IMAGE_WIDTH, IMAGE_HEIGHT = 1440, 1080
POINT_STEP, POINTS = 16, 65536
PERIOD_S = 0.005
PREAMBLE, PREAMBLE_PERIOD_S = 1000, 0.05


def header(n):
    made = Header(frame_id="abcdefgh"[: n % 9])
    made.stamp.sec, made.stamp.nanosec = 1700000000 + n, n
    return made


def octets(n, count):
    i = numpy.arange(count, dtype=numpy.uint32)
    return (n * 31 + i * 7 + (i >> 8)).astype(numpy.uint8).tobytes()


def reals(n, count, first):
    return [1000.0 * n + i + 0.25 for i in range(first, first + count)]


def string(n):
    return String(data=f"message {n}")


def image(n):
    made = Image(header=header(n), height=IMAGE_HEIGHT, width=IMAGE_WIDTH, encoding="rgb8")
    made.step = IMAGE_WIDTH * 3
    made.data = octets(n, made.step * IMAGE_HEIGHT)
    return made


def point_cloud(n):
    made = PointCloud2(header=header(n), height=1, width=POINTS, point_step=POINT_STEP)
    fields = [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 2)]
    for name, offset, datatype in fields:
        made.fields.append(PointField(name=name, offset=offset, datatype=datatype, count=1))
    made.row_step = POINT_STEP * POINTS
    made.data = octets(n, made.row_step)
    made.is_dense = n % 2 == 0
    return made


def imu(n):
    made = Imu(header=header(n))
    turn, rate, force = made.orientation, made.angular_velocity, made.linear_acceleration
    turn.x, turn.y, turn.z, turn.w = reals(n, 4, 0)
    made.orientation_covariance = reals(n, 9, 10)
    rate.x, rate.y, rate.z = reals(n, 3, 20)
    made.angular_velocity_covariance = reals(n, 9, 30)
    force.x, force.y, force.z = reals(n, 3, 40)
    made.linear_acceleration_covariance = reals(n, 9, 50)
    return made


def number_of(message):
    if isinstance(message, String):
        return int(message.data.split()[1])
    return message.header.stamp.nanosec


KINDS = {
    "String": (String, string),
    "Image": (Image, image),
    "PointCloud2": (PointCloud2, point_cloud),
    "Imu": (Imu, imu),
}


def say(what, n):
    print(what, n, flush=True)


def wait_for(matched):
    while matched() == 0:
        time.sleep(0.01)
    say("matched", 1)


def publish(node, kind, topic, count, qos, late):
    kind, make = KINDS[kind]
    publisher = node.create_publisher(kind, topic, qos)
    best_effort = qos.reliability == ReliabilityPolicy.BEST_EFFORT
    if not late:
        wait_for(publisher.get_subscription_count)
    if not late and not best_effort:
        while not select.select([sys.stdin], [], [], PREAMBLE_PERIOD_S)[0]:
            publisher.publish(make(PREAMBLE))
    for n in range(count):
        publisher.publish(make(n))
        if best_effort:
            time.sleep(PERIOD_S)
    if not late and not publisher.wait_for_all_acked(Duration(seconds=60)):
        sys.exit("not acknowledged")
    say("published", count)


def subscribe(node, kind, topic, count, qos):
    kind, make = KINDS[kind]
    taken = 0

    def take(message):
        nonlocal taken
        taken += 1
        if taken <= count:
            n = number_of(message)
            say("got" if message == make(n) else "wrong", n)

    wait_for(node.create_subscription(kind, topic, take, qos).get_publisher_count)
    while taken < count:
        rclpy.spin_once(node)


def main(role, domain, kind, topic, count, *options):
    rclpy.init(domain_id=int(domain))
    node = rclpy.create_node("peer")
    qos = QoSProfile(depth=10)  # otherwise ROS 2's default
    if "best-effort" in options:
        qos.reliability = ReliabilityPolicy.BEST_EFFORT
    if "transient-local" in options:
        qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
    topic = topic.removeprefix("rt")  # the tests have its name in DDS
    if role == "pub":
        publish(node, kind, topic, int(count), qos, "transient-local" in options)
    else:
        subscribe(node, kind, topic, int(count), qos)
    sys.stdin.read()
    rclpy.shutdown()


if __name__ == "__main__":
    if len(sys.argv) < 6 or sys.argv[1] not in ("pub", "sub"):
        sys.exit("usage: ros2.py pub|sub DOMAIN TYPE TOPIC COUNT [best-effort] [transient-local]")
    main(*sys.argv[1:])
