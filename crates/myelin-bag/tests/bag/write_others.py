"""Writes recordings as other people do: write_others.py FOLDER."""

import sys
from pathlib import Path

from mcap_ros2.writer import Writer as McapWriter
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

folder = Path(sys.argv[1])

with open(folder / "support.mcap", "wb") as file:
    writer = McapWriter(file)
    schema = writer.register_msgdef("std_msgs/msg/String", "string data")
    for number in range(20):
        time = 1_000_000_000 + number * 100_000
        writer.write_message("/chatter", schema, {"data": f"word {number}"}, time, time, number)
    writer.finish()

store = get_typestore(Stores.ROS2_JAZZY)
Int32 = store.types["std_msgs/msg/Int32"]
infinite = QosTime(9223372036, 854775807)
latched = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    infinite,
    infinite,
    QosLiveliness.AUTOMATIC,
    infinite,
    False,
)
with Writer(folder / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
    count = writer.add_connection(
        "/count", "std_msgs/msg/Int32", typestore=store, offered_qos_profiles=[latched]
    )
    for number in range(20):
        data = store.serialize_cdr(Int32(number), "std_msgs/msg/Int32")
        writer.write(count, 1_000_000_000 + number * 100_000, bytes(data))
