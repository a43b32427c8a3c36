"""Recordings of other programs, read as values and arrays."""

import gc
import pathlib
import struct
import tempfile
import unittest
import warnings

import myelin
import numpy

MAGIC = b"\x89MCAP0\r\n"
SCAN = b"uint32 id\nfloat32[] ranges\n"


def text(of):
    of = of if isinstance(of, bytes) else of.encode()
    return struct.pack("<I", len(of)) + of


def record(opcode, *fields):
    fields = b"".join(fields)
    return struct.pack("<BQ", opcode, len(fields)) + fields


def message(channel, sequence, time_ns, data):
    return record(5, struct.pack("<HIQQ", channel, sequence, time_ns, time_ns - 1), data)


def scan(id, ranges):
    ranges = numpy.asarray(ranges, "f4")
    return b"\0\1\0\0" + struct.pack("<II", id, len(ranges)) + ranges.tobytes()


def write(path, records, is_whole=True):
    """A file of three channels and these records, in no chunk."""

    def channel(id, schema, topic, encoding):
        return record(4, struct.pack("<HH", id, schema), text(topic), text(encoding), text(b""))

    parts = [
        record(1, text("ros2"), text("test")),
        record(3, struct.pack("<H", 1), text("robot/msg/Scan"), text("ros2msg"), text(SCAN)),
        record(3, struct.pack("<H", 2), text("A"), text("protobuf"), text(b"")),
        channel(1, 1, "/scan", "cdr"),
        channel(2, 0, "/status", "json"),
        channel(3, 2, "/other", "protobuf"),
        *records,
    ]
    end = record(15, bytes(4)) + record(2, bytes(20)) + MAGIC
    path.write_bytes(MAGIC + b"".join(parts) + (end if is_whole else b""))


class Bags(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "run.mcap"
        self.records = [
            message(1, 2, 2_000, scan(2, [])),
            message(1, 1, 1_000, scan(1, [0.5, 1.5, 2.5])),
            message(2, 1, 1_500, b'{"ok": [true, null]}'),
            message(3, 1, 3_000, b"\x08\x01"),
        ]
        write(self.path, self.records)

    def test_messages_are_values_in_order_of_time(self):
        reader = myelin.BagReader(self.path)
        types = {"/scan": ("robot/msg/Scan", 2), "/status": ("", 1), "/other": ("A", 1)}
        self.assertEqual({name: (it.type_name, it.messages) for name, it in reader.topics.items()}, types)
        self.assertEqual((reader.begin_ns, reader.duration, reader.lost_messages), (1_000, 2e-6, 0))
        found = [(it.topic, it.sequence, it.log_time_ns) for it in reader.messages()]
        expected = [("/scan", 1, 1_000), ("/status", 1, 1_500), ("/scan", 2, 2_000), ("/other", 1, 3_000)]
        self.assertEqual(found, expected)
        values = [it.value for it in reader.messages("/scan", "status", end=1e-6)]
        self.assertEqual(values, [{"id": 1, "ranges": [0.5, 1.5, 2.5]}, {"ok": [True, None]}])
        first = next(reader.messages("/scan", by="publish"))
        self.assertEqual((first.publish_time_ns, first.field("id")), (999, 1))
        [other] = reader.messages("/other")
        self.assertEqual(bytes(other), b"\x08\x01")
        with self.assertRaisesRegex(myelin.WrongValue, "protobuf"):
            other.value
        with self.assertRaisesRegex(myelin.WrongValue, "ranges"):
            first.field("rnages")
        rows = reader.array("/scan", "id")
        self.assertEqual((rows["value"].tolist(), rows["sequence"].tolist()), ([1, 2], [1, 2]))
        for field, text in (("ranges", "lengths"), ("", "field")):
            with self.assertRaisesRegex(myelin.WrongValue, text):
                reader.array("/scan", field)

    def test_arrays_are_no_copies_and_keep_the_memory(self):
        reader = myelin.BagReader(str(self.path))
        one = next(reader.messages("/scan"))
        ranges = one.field("ranges")
        self.assertEqual((ranges.dtype, ranges.tolist()), (numpy.dtype("f4"), [0.5, 1.5, 2.5]))
        self.assertTrue(numpy.shares_memory(ranges, numpy.frombuffer(one, "u1")))
        self.assertFalse(ranges.flags.writeable)
        one.release()
        del one, reader
        gc.collect()
        self.assertEqual(ranges.tolist(), [0.5, 1.5, 2.5])

    def test_broken_files_say_what_is_lost(self):
        write(self.path, [self.records[0], self.records[1][:-3]], is_whole=False)
        reader = myelin.BagReader(self.path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual([it.sequence for it in reader.messages()], [2])
        self.assertEqual(len(reader.problems), 1)
        self.path.write_bytes(b"no recording")
        with self.assertRaisesRegex(ValueError, "not an MCAP file"):
            myelin.BagReader(self.path)
        with self.assertRaises(FileNotFoundError):
            myelin.BagReader(self.path.with_name("missing"))

    def test_wrong_arguments_are_named(self):
        reader = myelin.BagReader(self.path)
        with self.assertRaisesRegex(myelin.WrongSetting, '"/sacn".*"/scan"'):
            reader.messages("/sacn")
        with self.assertRaisesRegex(ValueError, "publish"):
            reader.messages(by="time")


if __name__ == "__main__":
    unittest.main()
