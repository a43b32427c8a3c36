"""Topics whose type is learnt from the schema that another node announces."""

import dataclasses
import gc
import unittest
import weakref

import myelin
import numpy
from support import WATCHDOG, Case


@dataclasses.dataclass
class Inner:
    id: myelin.u32
    weights: myelin.u16 * 2


@dataclasses.dataclass
class Pose:
    stamp_ns: myelin.u64
    position: myelin.f64 * 3
    inner: Inner


class Learnt(Case):
    def setUp(self):
        super().setUp()
        self.tool = myelin.Node("tool", runtime_dir=self.folder)
        self.addCleanup(self.tool.close)

    def test_a_value_is_a_dict(self):
        publisher = self.node.topic("pose", Pose).publisher()
        subscriber = self.tool.any_topic("pose").subscriber()
        subscriber.wait_for_match(1, WATCHDOG)
        publisher.publish(Pose(7, (1, 2, 3.5), Inner(9, (1, 65535))))
        sample = subscriber.receive(WATCHDOG)
        expected = {
            "stamp_ns": 7,
            "position": [1.0, 2.0, 3.5],
            "inner": {"id": 9, "weights": [1, 65535]},
        }
        self.assertEqual(sample.value, expected)
        self.assertEqual(sample.field("inner.id"), 9)
        self.assertEqual(sample.field("position[2]"), 3.5)
        with self.assertRaisesRegex(myelin.WrongValue, "weights"):
            sample.field("inner.wieghts")
        with self.assertRaisesRegex(myelin.WrongValue, "any_topic"):
            mine = self.node.topic("mine", int)
            ends = mine.publisher(), mine.subscriber()
            ends[0].publish(1)
            ends[1].receive(WATCHDOG).field("x")

    def test_a_dtype_is_learnt(self):
        dtype = numpy.dtype([(f"field_{number}", "f4") for number in range(100)])
        publisher = self.node.topic("row", dtype).publisher()
        subscriber = self.tool.any_topic("row").subscriber()
        subscriber.wait_for_match(1, WATCHDOG)
        publisher.publish(numpy.zeros((), dtype))
        value = subscriber.receive(WATCHDOG).value
        self.assertEqual(value, {name: 0.0 for name in dtype.names})

    def test_numbers_are_an_array_without_a_copy(self):
        publisher = self.node.topic("scan", (Inner, [float])).publisher()
        subscriber = self.tool.any_topic("scan", depth=2).subscriber()
        subscriber.wait_for_match(1, WATCHDOG)
        publisher.publish((Inner(1, (2, 3)), [0.5] * 1000))
        sample = subscriber.receive(WATCHDOG)
        array = sample.field("slice")
        self.assertEqual((array.dtype, array.shape, array[999]), (numpy.float64, (1000,), 0.5))
        self.assertFalse(array.flags.owndata or array.flags.writeable)
        whole = numpy.frombuffer(sample, numpy.uint8)
        self.assertTrue(numpy.shares_memory(array, whole))
        ends = weakref.ref(sample)
        del sample, whole
        gc.collect()
        self.assertEqual(array.sum(), 500.0)
        self.assertIsNotNone(ends(), "the array keeps the sample")
        del array
        gc.collect()
        self.assertIsNone(ends())

    def test_a_dict_is_published(self):
        subscriber = self.node.topic("pose", Pose).subscriber()
        publisher = self.tool.any_topic("pose").publisher()
        publisher.wait_for_match(1, WATCHDOG)
        publisher.publish({"position": numpy.array([1, 2, 3.5]), "inner": {"weights": (1, 2)}})
        pose = subscriber.receive(WATCHDOG).value
        self.assertEqual((pose.stamp_ns, tuple(pose.position)), (0, (1, 2, 3.5)))
        self.assertEqual(tuple(pose.inner.weights), (1, 2))
        for wrong, text in [
            ({"inner": {"weights": [1, 65536]}}, r"inner.weights\[1\]"),
            ({"positon": [1, 2, 3]}, "position"),
            ({"stamp_ns": "now"}, "stamp_ns"),
            ({"stamp_ns": None}, "stamp_ns"),
            ({"stamp_ns": object()}, "stamp_ns"),
            ([], "Pose"),
        ]:
            with self.subTest(wrong), self.assertRaisesRegex(myelin.WrongValue, text):
                publisher.publish(wrong)
        endless = {}
        endless["inner"] = endless
        with self.assertRaisesRegex(myelin.WrongValue, "nested"):
            publisher.publish(endless)

    def test_what_cannot_be_learnt_is_named(self):
        with self.assertRaisesRegex(myelin.WrongSetting, "nothing"):
            self.tool.any_topic("nothing")

    def test_a_schema_that_cannot_be_read_is_a_problem_of_the_topic(self):
        deep = myelin.f64
        for _ in range(100):
            deep = deep * 1
        good, bad = (self.node.topic(name, type) for name, type in (("good", int), ("bad", deep)))
        publishers = good.publisher(), bad.publisher()
        self.assertIsNone(good.problem)
        self.assertIsNone(self.tool.any_topic("good").problem)
        self.assertRegex(self.tool.any_topic("bad").problem, "deep|nest")
        for publisher in publishers:
            publisher.close()

    def test_a_node_may_wait_longer_for_its_matches(self):
        patient = myelin.Node("patient", runtime_dir=self.folder, match_limit=WATCHDOG)
        self.addCleanup(patient.close)
        subscriber = patient.topic("patient", int).subscriber()
        self.assertEqual(self.node.topic("patient", int).publisher().matched, 1)
        subscriber.close()

    def test_endpoints_are_found(self):
        found = self.tool.discover("camera/*")
        self.assertEqual(found.changes(), [])
        publisher = self.node.topic("camera/left", int).publisher()
        all_changes = []

        def has_changes():
            all_changes.extend(found.changes())
            return all_changes

        self.until("the camera", has_changes)
        [(kind, endpoint)] = all_changes
        self.assertEqual((kind, endpoint.topic, endpoint.id), ("found", "camera/left", publisher.id))
        publisher.close()
        all_changes.clear()
        self.until("its end", has_changes)
        self.assertEqual([(kind, each.id) for kind, each in all_changes], [("gone", endpoint.id)])


if __name__ == "__main__":
    unittest.main()
