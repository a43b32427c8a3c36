"""Recordings: recorded from a publisher, read back, played, and broken ones."""

import dataclasses
import gc
import os
import pathlib
import signal
import unittest
import weakref
from typing import Annotated

import myelin
import numpy
from support import WATCHDOG, Case


@dataclasses.dataclass
class Imu:
    stamp_ns: myelin.u64
    acceleration: myelin.f64 * 3
    temperature: myelin.f32
    flags: myelin.u8 * 4


@dataclasses.dataclass
class Frame:
    width: myelin.u32
    height: myelin.u32


@dataclasses.dataclass
class Picture:
    width: myelin.u32
    height: myelin.u32
    encoding: Annotated[str, myelin.FixedString(8)]


def imu(number):
    return Imu(number, (number, -number, number / 8), number / 4, bytes([number % 256, 1, 2, 3]))


class Recorded(Case):
    """With a recording of 1,000 samples of `imu` and 3 of `camera`."""

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.folder) / "run.mcap"

    def record(self, samples=1000):
        self.imu = self.node.topic("imu", Imu, depth=2048).publisher()
        self.camera = self.node.topic("camera", (Frame, bytes), depth=8).publisher()
        for publisher in (self.imu, self.camera):
            self.addCleanup(publisher.close)
        with myelin.Recorder(self.path, ["imu", "cam*"], node=self.node) as recorder:
            for publisher in (self.imu, self.camera):
                self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            for number in range(samples):
                self.imu.publish(imu(number))
            for number in range(3):
                self.camera.publish((Frame(4, 2), bytes(range(number, number + 8))))
            status = recorder.close()
        return status


class Reading(Recorded):
    def test_each_value_is_read_back(self):
        status = self.record()
        self.assertEqual((status.messages, status.losses.total, status.ended), (1003, 0, None))
        self.assertEqual(status.files, [self.path])
        self.assertEqual({it.name: it.messages for it in status.topics}, {"imu": 1000, "camera": 3})
        with myelin.BagReader(self.path) as bag:
            self.assertEqual(bag.path, self.path)
            self.assertEqual(bag.problems, [])
            counts = {name: topic.messages for name, topic in bag.topics.items()}
            self.assertEqual({"imu": 1000, "camera": 3}, {it: counts[it] for it in ("imu", "camera")})
            self.assertEqual(bag.topics["imu"].type_name, "Imu")
            self.assertEqual(bag.losses["imu"].total, 0)
            messages = list(bag.messages("imu"))
            self.assertEqual(len(messages), 1000)
            times = [message.log_time_ns for message in messages]
            self.assertEqual((times, times[0] >= bag.begin_ns), (sorted(times), True))
            for number, message in enumerate(messages):
                of = imu(number)
                expected = {
                    "stamp_ns": number,
                    "acceleration": [*of.acceleration],
                    "temperature": of.temperature,
                    "flags": of.flags,
                }
                self.assertEqual(message.value, expected)
                self.assertEqual(message.topic, "imu")
            self.assertEqual(messages[7].field("acceleration[2]"), 7 / 8)
            self.assertLessEqual(messages[0].publish_time_ns, messages[0].log_time_ns)
        self.assertEqual(messages[9].value["stamp_ns"], 9, "messages outlive the reader")
        with self.assertRaises(myelin.Closed):
            bag.topics

    def test_a_topic_is_one_array(self):
        self.record()
        with myelin.BagReader(self.path) as bag:
            rows = bag.array("imu")
            expected = [imu(number) for number in range(1000)]
            self.assertEqual(rows["value"]["stamp_ns"].tolist(), [*range(1000)])
            self.assertEqual(rows["value"].dtype.names, ("stamp_ns", "acceleration", "temperature", "flags"))
            accelerations = numpy.array([[*it.acceleration] for it in expected])
            self.assertTrue((rows["value"]["acceleration"] == accelerations).all())
            self.assertEqual(rows["value"]["flags"][3].tolist(), [3, 1, 2, 3])
            self.assertTrue((numpy.diff(rows["publish_time_ns"]) >= 0).all())
            self.assertTrue(rows.flags.writeable)
            middle = [message.log_time_ns for message in bag.messages("imu")][500]
            start = (middle - bag.begin_ns) / 1e9
            later = bag.array("imu", start=start)
            self.assertTrue((later["log_time_ns"] >= middle).all())
            self.assertEqual(len(later) + len(bag.array("imu", end=start)), 1000)
            temperatures = bag.array("imu", "temperature")["value"]
            self.assertEqual(temperatures.dtype, numpy.float32)
            self.assertEqual(temperatures.tolist(), [it.temperature for it in expected])
            self.assertEqual(bag.array("imu", "acceleration")["value"].shape, (1000, 3))
            self.assertEqual(len(bag.array("imu", start=bag.duration + 1)), 0)
            with self.assertRaisesRegex(myelin.WrongValue, "lengths"):
                bag.array("camera")
            with self.assertRaisesRegex(myelin.WrongValue, "nearest|temperature"):
                bag.array("imu", "temprature")

    def test_an_image_is_an_array_without_a_copy(self):
        self.record(1)
        with myelin.BagReader(self.path) as bag:
            message = [*bag.messages("camera")][1]
            self.assertEqual(message.field("header.width"), 4)
            pixels = message.array()
            self.assertEqual(pixels.tolist(), [*range(1, 9)])
            self.assertFalse(pixels.flags.owndata or pixels.flags.writeable)
            self.assertTrue(numpy.shares_memory(pixels, numpy.frombuffer(message, numpy.uint8)))
            ends = weakref.ref(message)
            del message
            gc.collect()
            self.assertIsNotNone(ends(), "the array keeps the message")
            del pixels
            gc.collect()
            self.assertIsNone(ends())
            [message] = bag.messages("imu")
            value = message.array()
            self.assertEqual((value.shape, value["stamp_ns"], value["flags"].tolist()), ((), 0, [0, 1, 2, 3]))

    def test_a_dtype_comes_back(self):
        dtype = numpy.dtype([("at", "u8"), ("pose", [("x", "f8"), ("y", "f8")]), ("id", "i4", (2,))])
        publisher = self.node.topic("row", dtype, depth=16).publisher()
        self.addCleanup(publisher.close)
        sent = numpy.zeros(10, dtype)
        sent["at"], sent["pose"]["y"], sent["id"][:, 1] = range(10), 0.5, 7
        with myelin.Recorder(self.path, node=self.node):
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            for row in sent:
                publisher.publish(row)
        with myelin.BagReader(self.path) as bag:
            rows = bag.array("row")["value"]
        self.assertEqual((rows.dtype, rows.tobytes()), (dtype, sent.tobytes()))

    def test_an_image_that_viewers_show(self):
        """It is in the file as a message of `sensor_msgs`."""
        publisher = self.node.topic("image", (Picture, bytes)).publisher()
        self.addCleanup(publisher.close)
        with myelin.Recorder(self.path, node=self.node) as recorder:
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            publisher.publish((Picture(4, 2, "mono8"), bytes(range(8))))
            self.assertEqual(recorder.close().messages, 1)
        with myelin.BagReader(self.path) as bag:
            [message] = bag.messages("image")
            self.assertEqual(message.field("encoding"), "mono8")
            self.assertEqual(message.value["header"]["width"], 4)
            for pixels in (message.field("data"), message.array()):
                self.assertEqual(pixels.reshape(2, 4).tolist(), [[0, 1, 2, 3], [4, 5, 6, 7]])
                self.assertFalse(pixels.flags.owndata)
            self.assertEqual(bag.array("image", "width")["value"].tolist(), [4])
            self.assertEqual(bag.array("image", "data")["value"].shape, (1, 8))

    def test_wrong_names_are_named(self):
        self.record(1)
        with myelin.BagReader(self.path) as bag:
            with self.assertRaisesRegex(myelin.WrongSetting, '"imi".*"imu"'):
                bag.messages("imi")
            with self.assertRaisesRegex(myelin.WrongSetting, "publish"):
                bag.messages(by="pub")
            with self.assertRaisesRegex(myelin.WrongSetting, "begin"):
                bag.messages(start=-1)
        with self.assertRaises(FileNotFoundError) as caught:
            myelin.BagReader(self.path.with_name("other.mcap"))
        self.assertIn("other.mcap", str(caught.exception))
        text = self.path.with_name("text")
        text.write_text("this is a text and no recording")
        for opens in (myelin.BagReader, lambda path: myelin.Player(path, node=self.node)):
            with self.assertRaisesRegex(myelin.BagError, "text.*MCAP"):
                opens(text)

    def test_of_a_cut_file_the_rest_is_read(self):
        self.record()
        cut = self.path.with_name("cut.mcap")
        cut.write_bytes(self.path.read_bytes()[: os.path.getsize(self.path) // 3])
        with myelin.BagReader(cut) as bag:
            self.assertRegex(bag.problems[0], "ends|not ended")
            rows = bag.array("imu")
            self.assertTrue(0 < len(rows) < 1000)
            self.assertEqual(rows["value"]["stamp_ns"].tolist(), [*range(len(rows))])

    def test_a_damaged_part_is_a_warning(self):
        self.record()
        data = bytearray(self.path.read_bytes())
        at = len(data) // 3
        data[at : at + 512] = bytes([255] * 512)
        self.path.write_bytes(data)
        with myelin.BagReader(self.path) as bag, self.assertWarnsRegex(RuntimeWarning, "run.mcap: "):
            list(bag.messages())


class Recording(Recorded):
    def test_it_ends_by_itself(self):
        publisher = self.node.topic("count", int, depth=64).publisher()
        self.addCleanup(publisher.close)
        with myelin.Recorder(self.path, node=self.node, messages_max=5) as recorder:
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            self.assertFalse(recorder.wait(0))
            for number in range(9):
                publisher.publish(number)
            self.assertTrue(recorder.wait(WATCHDOG))
            self.assertFalse(recorder.is_recording)
        status = recorder.status()
        self.assertEqual(status.messages, 5)
        self.assertRegex(status.ended, "messages")
        self.assertEqual(recorder.close().messages, 5)

    def test_what_is_not_possible_is_an_error(self):
        self.path.write_text("mine")
        with self.assertRaises(FileExistsError):
            myelin.Recorder(self.path, node=self.node)
        self.assertEqual(self.path.read_text(), "mine")
        with self.assertRaises(FileNotFoundError):
            myelin.Recorder("/nowhere/y.mcap", node=self.node)
        with self.assertRaisesRegex(myelin.WrongSetting, "max_rate"):
            myelin.Recorder(self.path.with_name("b.mcap"), node=self.node, max_rate={"*": 0})
        self.node.close()
        with self.assertRaises(myelin.Closed):
            myelin.Recorder(self.path.with_name("c.mcap"), node=self.node)

    def test_ctrl_c_ends_a_wait_and_the_file_is_whole(self):
        source = """
publisher = node.topic("count", int).publisher()
try:
    with myelin.Recorder(sys.argv[1], node=node) as recorder:
        publisher.wait_for_match(1, WATCHDOG)
        publisher.publish(7)
        print("records", flush=True)
        recorder.wait()
except KeyboardInterrupt:
    print("ended", recorder.status().messages, flush=True)
"""
        process = self.start(source, str(self.path))
        self.assertEqual(process.stdout.readline(), "records\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "ended 1\n")
        self.assertEqual(process.wait(WATCHDOG), 0)
        with myelin.BagReader(self.path) as bag:
            self.assertEqual(([it.value for it in bag.messages("count")], bag.problems), ([7], []))


class Playing(Recorded):
    def test_a_subscriber_gets_each_value(self):
        self.record()
        subscriber = self.node.topic("imu", Imu, depth=2048, reliable=WATCHDOG).subscriber()
        self.addCleanup(subscriber.close)
        self.imu.close()
        with myelin.Player(self.path, ["imu"], rate=100, wait_for_slow=True, node=self.node) as player:
            self.assertEqual((player.topics, player.refused), (["imu"], []))
            self.assertTrue(player.wait_for_subscribers(1, "imu", timeout=WATCHDOG))
            with self.assertRaisesRegex(myelin.WrongSetting, "imi"):
                player.wait_for_subscribers(1, "imi")
            player.play()
            for number in range(1000):
                got = subscriber.receive(WATCHDOG).value
                self.assertEqual((got.stamp_ns, tuple(got.acceleration)), (number, tuple(imu(number).acceleration)))
            played = player.wait(WATCHDOG)
        self.assertEqual((played.messages, played.unfit, played.is_stopped), (1000, 0, False))
        self.assertGreaterEqual(played.lateness_max, played.lateness_p50)
        with self.assertRaises(myelin.Closed):
            player.play()

    def test_it_pauses_steps_and_seeks(self):
        self.record(10)
        subscriber = self.node.topic("imu", Imu, depth=64).subscriber()
        self.addCleanup(subscriber.close)
        with myelin.Player(self.path, ["imu"], rate=0.001, node=self.node) as player:
            self.assertTrue(player.wait_for_subscribers(timeout=WATCHDOG))
            with self.assertRaisesRegex(myelin.BagError, "play"):
                player.wait()
            player.pause()
            self.until("it is paused", lambda: player.is_paused)
            for number in range(3):
                player.step()
                self.assertEqual(subscriber.receive(WATCHDOG).value.stamp_ns, number)
            player.seek(0)
            player.step()
            self.assertEqual(subscriber.receive(WATCHDOG).value.stamp_ns, 0)
            self.assertIsNone(player.wait(0))
            self.assertEqual(player.rate, 0.001)
            player.rate = 1000
            with self.assertRaisesRegex(myelin.WrongSetting, "rate"):
                player.rate = 0
            player.play()
            self.assertFalse(player.wait(WATCHDOG).is_stopped)
            self.assertEqual(player.messages, 4 + 9)

    def test_a_close_in_another_thread_ends_the_wait(self):
        self.record(2)
        player = myelin.Player(self.path, rate=1e-6, node=self.node)
        player.pause()
        end = self.in_thread(lambda: player.wait(WATCHDOG))
        player.close()
        with self.assertRaises((myelin.Closed, myelin.Busy)):
            end()

    def test_a_child_of_fork_ends_without_them(self):
        source = """
import os
publisher = node.topic("count", int).publisher()
recorder = myelin.Recorder(sys.argv[1], ["count"], node=node)
publisher.wait_for_match(1, WATCHDOG)
publisher.publish(7)
player = myelin.Player(sys.argv[2], rate=1e-6, node=node)
player.pause()
child = os.fork()
if child == 0:
    for call in (recorder.close, recorder.status, player.play, player.wait):
        try:
            call()
            print("no error")
        except myelin.Forked:
            pass
    player.close()
    with recorder:
        pass
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
player.close()
print(recorder.close().messages, flush=True)
"""
        self.record(2)
        process = self.start(source, str(self.path.with_name("own.mcap")), str(self.path))
        self.assertEqual(process.stdout.read(), "1\n")
        self.assertEqual(process.wait(WATCHDOG), 0)

    def test_a_topic_that_is_not_there_is_named(self):
        self.record(1)
        with self.assertRaisesRegex(myelin.WrongSetting, "imi"):
            myelin.Player(self.path, ["imi"], node=self.node)


if __name__ == "__main__":
    unittest.main()
