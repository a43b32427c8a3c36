"""A program on Myelin beside a ROS 2 node: it takes `sensor_msgs/Image` from `camera/image` as an array of numpy,
and answers with `std_msgs/String` on `camera/remarks`. It needs no ROS 2.

    python3 viewer.py              # and camera_node.py in another terminal

With a node on `rmw_myelin` on this host, the array lies in the shared memory that the node wrote. A node on another
RMW or another host sends the image through DDS (`apt-get install cyclonedds-dev`).
"""

import os
import struct

import myelin


def ros_topic(node, name, message, **settings):
    """The topic that ROS 2 nodes know as `name`; its samples are CDR."""
    package, kind = message.split("/")
    return node.topic(f"rt/{name}", bytes, dds_cdr=f"{package}::msg::dds_::{kind}_", **settings)


class Cdr:
    """Reads a CDR message from memory, field by field. Numbers are aligned to their size."""

    def __init__(self, message):
        little = message[1] & 1
        self.order, self.data, self.at = "<" if little else ">", message[4:], 0

    def number(self, kind="I"):
        size = struct.calcsize(kind)
        self.at += -self.at % size
        (value,) = struct.unpack_from(self.order + kind, self.data, self.at)
        self.at += size
        return value

    def octets(self):
        length = self.number()
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self):
        return bytes(self.octets()[:-1]).decode()  # it ends with a zero byte


def image_of(message):
    """Stamp in ns, encoding and pixels of a sensor_msgs/Image. Nothing is copied."""
    cdr = Cdr(message)
    stamp = cdr.number("i") * 1_000_000_000 + cdr.number()
    cdr.text()  # frame_id
    height, width, encoding = cdr.number(), cdr.number(), cdr.text()
    cdr.number("B")  # is_bigendian
    step = cdr.number()
    pixels = cdr.octets().reshape(height, step)[:, : width * 3].reshape(height, width, 3)
    return stamp, encoding, pixels


def string_message(text):
    """A std_msgs/String: header of CDR, length with the zero byte at the end, text."""
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(data)) + data


def main():
    domain = int(os.environ.get("ROS_DOMAIN_ID") or 0)
    with myelin.Node("viewer", network=True, domain=domain) as node:
        # As ROS 2 has it by default, and as it has it for sensors: the newest images, from any publisher.
        remarks = ros_topic(node, "camera/remarks", "std_msgs/String", depth=10, reliable=1.0).publisher()
        subscriber = ros_topic(node, "camera/image", "sensor_msgs/Image", depth=5).subscriber()
        print("waits for images", flush=True)
        images = 0
        while True:
            sample = subscriber.receive(timeout=1)
            if sample is None:
                if images and not subscriber.matched:
                    break  # the camera has ended
                continue
            stamp, encoding, pixels = image_of(sample.array())
            images += 1
            if images % REMARK_EVERY == 0:
                remark = f"{images} images, {pixels.shape[1]} x {pixels.shape[0]} {encoding}"
                print(f"{remark}, brightness {pixels.mean():.0f}, stamped {stamp}", flush=True)
                remarks.publish(string_message(remark))
    print("the camera has ended")


REMARK_EVERY = 10
if __name__ == "__main__":
    main()
