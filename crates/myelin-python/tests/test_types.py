"""Types of Python: their layout hashes against Rust's, their values, and numpy."""

import ctypes
import dataclasses
import gc
import os
import unittest
from typing import Annotated

import myelin
from support import WATCHDOG, Case

try:
    import numpy
except ImportError:
    numpy = None

PEER = os.environ.get("MYELIN_PEER")


class Imu(ctypes.Structure):
    _fields_ = [
        ("stamp_ns", myelin.u64),
        ("acceleration", myelin.f64 * 3),
        ("temperature", myelin.f32),
        ("_pad", myelin.u8 * 4),
    ]


class Part(ctypes.Structure):
    class Name(ctypes.Structure):
        _fields_ = [("length", myelin.u8 * 4), ("bytes", myelin.u8 * 20)]

    _fields_ = [
        ("id", myelin.i32),
        ("state", myelin.i16),
        ("flags", myelin.bool8 * 2),
        ("name", Name),
        ("path", (myelin.f32 * 2) * 3),
    ]


class Box3(ctypes.Structure):
    _fields_ = [("imu", Imu), ("parts", Part * 2), ("tail", myelin.u16 * 4)]


class Frame(ctypes.Structure):
    _fields_ = [("stamp_ns", myelin.u64), ("width", myelin.u32), ("height", myelin.u32)]


@dataclasses.dataclass
class ImuData:
    stamp_ns: myelin.u64
    acceleration: Annotated[tuple[float, ...], myelin.f64 * 3]
    temperature: myelin.f32
    _pad: Annotated[bytes, myelin.u8 * 4] = bytes(4)


@dataclasses.dataclass
class PartData:
    id: myelin.i32
    state: Annotated[int, "i16"]
    flags: Annotated[tuple[bool, ...], myelin.bool8 * 2]
    name: Annotated[str, myelin.FixedString(20)]
    path: Annotated[tuple, (myelin.f32 * 2) * 3]


@dataclasses.dataclass
class BoxData:
    imu: ImuData
    parts: Annotated[tuple[PartData, PartData], myelin.Array(PartData, 2)]
    tail: Annotated[tuple[int, ...], myelin.u16 * 4]


IMU = ImuData(7, (0.0, 0.0, 9.81), 21.5)
PART = PartData(-3, 2, (True, False), "grüß", ((0.0, 1.0), (2.0, 3.0), (4.0, 5.0)))

BY_NAME = {
    "u8": [myelin.u8, "u8"],
    "i64": [int, myelin.i64, ctypes.c_longlong],
    "f32": [myelin.f32],
    "f64": [float, ctypes.c_double],
    "bool": [bool, ctypes.c_bool],
    "array": [myelin.f64 * 3],
    "matrix": [(myelin.f32 * 2) * 3],
    "bytes": [bytes, [myelin.u8]],
    "doubles": [[float]],
    "points": [[myelin.f32 * 2]],
    "Imu": [Imu, ImuData],
    "Imus": [[Imu], [ImuData]],
    "Part": [Part, PartData],
    "Box3": [Box3, BoxData],
    "image": [(Frame, bytes), (Frame, [myelin.u8])],
    "scan": [(Frame, [myelin.f64 * 2])],
}
if numpy:
    IMU_DTYPE = numpy.dtype(
        [("stamp_ns", "u8"), ("acceleration", "f8", 3), ("temperature", "f4"), ("_pad", "u1", 4)]
    )
    BY_NAME["i64"] += [numpy.int64, numpy.dtype("i8")]
    BY_NAME["bool"] += [numpy.bool_]
    BY_NAME["matrix"] += [numpy.dtype(("f4", (3, 2)))]
    BY_NAME["points"] += [[numpy.dtype(("f4", 2))]]
    BY_NAME["Imu"] += [IMU_DTYPE, numpy.dtype(Imu)]
    BY_NAME["Imus"] += [[IMU_DTYPE]]
    BY_NAME["Part"] += [numpy.dtype(Part)]
    BY_NAME["Box3"] += [numpy.dtype(Box3)]


class Layouts(Case):
    @unittest.skipUnless(PEER, "MYELIN_PEER names the Rust program")
    def test_the_hashes_are_those_of_rust(self):
        lines = self.program([PEER, "hashes"]).stdout.read().splitlines()
        self.assertEqual({line.split()[0] for line in lines}, set(BY_NAME))
        for line in lines:
            name, hash, type_name = line.split(maxsplit=2)
            for kind in BY_NAME[name]:
                self.assertEqual(myelin.layout_hash(kind), int(hash), f"{name}: {kind}")
            self.assertEqual(self.node.topic("t", BY_NAME[name][0]).type_name, type_name)

    def test_padding_is_refused_where_it_is(self):
        class Gap(ctypes.Structure):
            _fields_ = [("flag", myelin.u8), ("value", myelin.u64)]

        @dataclasses.dataclass
        class GapData:
            flag: myelin.u8
            value: myelin.u64

        class Tail(ctypes.Structure):
            _fields_ = [("value", myelin.u64), ("flag", myelin.u8)]

        for kind, where in [
            (Gap, "Gap.value, with 7 B of padding before"),
            (GapData, "GapData.value, with 7 B of padding before"),
            (Tail, "Tail, with 7 B of padding at the end"),
        ]:
            with self.assertRaisesRegex(myelin.WrongSetting, where):
                self.node.topic("t", kind)

    def test_what_is_no_plain_data(self):
        class Bits(ctypes.Structure):
            _fields_ = [("a", ctypes.c_uint8, 3)]

        class Pointer(ctypes.Structure):
            _fields_ = [("a", ctypes.c_void_p)]

        class Union(ctypes.Union):
            _fields_ = [("a", ctypes.c_uint8)]

        for kind in (str, list, Bits, Pointer, Union, object(), 3, complex, "u7"):
            with self.assertRaises(myelin.WrongValue):
                self.node.topic("t", kind)

    def test_field_names_matter(self):
        class Other(ctypes.Structure):
            _fields_ = [("stamp", myelin.u64), ("width", myelin.u32), ("height", myelin.u32)]

        self.assertNotEqual(myelin.layout_hash(Other), myelin.layout_hash(Frame))


class Values(Case):
    def round(self, kind, value):
        publisher, subscriber = self.ends(str(kind), kind)
        publisher.publish(value)
        copied = subscriber.receive(WATCHDOG).value
        is_slice = kind is bytes or isinstance(kind, list)
        with publisher.loan(*([len(value)] if is_slice else [])) as loan:
            loan.value = value
            loan.publish()
        return copied, subscriber.receive(WATCHDOG).value

    def test_scalars_and_arrays(self):
        for kind, value in [
            (float, 21.5),
            (int, -3),
            (bool, True),
            (myelin.u16, 65535),
            (myelin.f64 * 3, (1.0, 2.0, 3.0)),
            (myelin.u8 * 4, b"abcd"),
            ((myelin.f32 * 2) * 2, ((1.0, 2.0), (3.0, 4.0))),
            ([float], [1.0, 2.0]),
            ([myelin.f32 * 2], [(1.0, 2.0)]),
            (bytes, b"hello"),
        ]:
            self.assertEqual(self.round(kind, value), (value, value), kind)

    def test_dataclasses(self):
        self.assertEqual(self.round(PartData, PART), (PART, PART))
        close = dataclasses.replace(IMU, temperature=21.5)
        self.assertEqual(self.round(ImuData, close), (close, close))
        self.assertEqual(self.round([ImuData], [close, close]), ([close, close],) * 2)
        box = BoxData(close, (PART, PART), (1, 2, 3, 4))
        self.assertEqual(self.round(BoxData, box), (box, box))

    def test_structures(self):
        imu = Imu(7, (0.0, 0.0, 9.81), 21.5)
        for got in self.round(Imu, imu):
            self.assertIsInstance(got, Imu)
            self.assertEqual(bytes(got), bytes(imu))
        publisher, _ = self.ends("in-place", Imu)
        loan = publisher.loan()
        Imu.from_buffer(loan).stamp_ns = 8
        self.assertEqual(loan.value.stamp_ns, 8)
        loan.publish()

    def test_a_header_and_a_slice(self):
        publisher, subscriber = self.ends("image", (Frame, bytes))
        with publisher.loan(6) as loan:
            loan.header = Frame(1, 3, 2)
            memoryview(loan)[16:] = b"pixels"
            loan.publish()
        publisher.publish((Frame(2, 3, 2), b"pixels"))
        for stamp in (1, 2):
            sample = subscriber.receive(WATCHDOG)
            header, pixels = sample.value
            self.assertEqual((header.stamp_ns, header.width, pixels), (stamp, 3, b"pixels"))
            self.assertEqual((sample.header.height, len(sample), sample.nbytes), (2, 6, 22))
        publisher.publish((Frame(3, 0, 0), b""))
        self.assertEqual(subscriber.receive(WATCHDOG).value[1], b"")

    def test_values_that_do_not_fit(self):
        for kind, wrong in [
            (float, "text"),
            (myelin.u8, 256),
            (myelin.f64 * 3, (1.0, 2.0)),
            (Imu, Frame()),
            (ImuData, PART),
            (PartData, dataclasses.replace(PART, name="x" * 21)),
        ]:
            publisher, _ = self.ends(str(kind), kind)
            with self.assertRaises(myelin.WrongValue):
                publisher.publish(wrong)
        publisher, _ = self.ends("one", float)
        with self.assertRaisesRegex(myelin.WrongValue, "one value"):
            publisher.loan(3)
        publisher, _ = self.ends("many")
        with self.assertRaisesRegex(myelin.WrongValue, "number of its elements"):
            publisher.loan()


@unittest.skipUnless(numpy, "numpy is not installed")
class Numpy(Case):
    def test_arrays_without_a_copy(self):
        publisher, subscriber = self.ends("image")
        with publisher.loan((480, 640, 3)) as loan:
            loan.array((480, 640, 3))[:, :, 1] = 7
            address = loan.array().ctypes.data
            self.assertEqual(address % 64, 0)
            loan.publish()
        sample = subscriber.receive(WATCHDOG)
        image = sample.array((480, 640, 3))
        self.assertFalse(image.flags.writeable or image.flags.owndata)
        self.assertEqual(image.ctypes.data, sample.array().ctypes.data)
        self.assertTrue((image[:, :, 1] == 7).all())
        self.assertEqual(sample.array(dtype="<u4").shape, (480 * 640 * 3 // 4,))

    def test_an_array_that_outlives_its_sample_holds_it(self):
        publisher, subscriber = self.ends("image", subscriber={"held_max": 1})
        publisher.publish(numpy.full((20, 50), 1, "u1"))
        publisher.publish(numpy.full((20, 50), 2, "u1"))
        rows = subscriber.receive(WATCHDOG).array((20, 50))[3:5]
        gc.collect()
        with self.assertRaises(myelin.TooManyHeld):
            subscriber.take()
        self.assertTrue((rows == 1).all())
        del rows
        gc.collect()
        self.assertTrue((subscriber.take().array() == 2).all())

    def test_a_loan_whose_array_is_kept_is_not_published(self):
        publisher, subscriber = self.ends("image")
        loan = publisher.loan(1000)
        array = loan.array()
        part = array[10:]
        del array
        with self.assertRaisesRegex(BufferError, "`del` the array"):
            loan.publish()
        part[:] = 3
        del part
        loan.publish()
        self.assertEqual(subscriber.receive(WATCHDOG).array()[10], 3)

    def test_dtypes(self):
        publisher, subscriber = self.ends("points", [myelin.f32 * 2])
        points = numpy.arange(6, dtype="f4").reshape(3, 2)
        publisher.publish(points)
        publisher.publish(points[::-1])
        sample = subscriber.receive(WATCHDOG)
        self.assertTrue((sample.array() == points).all())
        self.assertTrue((numpy.asarray(sample) == points).all())
        self.assertEqual(numpy.asarray(sample).dtype, "f4")
        self.assertTrue((subscriber.receive(WATCHDOG).array() == points[::-1]).all())
        for wrong in (points.astype("f8"), points.ravel(), points.reshape(2, 3)):
            with self.assertRaisesRegex(myelin.WrongValue, "is not a valid"):
                publisher.publish(wrong)

    def test_structured_arrays(self):
        publisher, subscriber = self.ends("imus", [IMU_DTYPE])
        imus = numpy.zeros(5, IMU_DTYPE)
        imus["acceleration"][:, 2] = 9.81
        publisher.publish(imus)
        got = subscriber.receive(WATCHDOG).array()
        self.assertEqual(got.dtype, IMU_DTYPE)
        self.assertTrue((got["acceleration"][:, 2] == 9.81).all())
        for kind in (Imu, ImuData):
            with self.node.topic("imus", [kind]).subscriber() as other:
                self.assertTrue(publisher.wait_for_match(2, WATCHDOG))
                publisher.publish(imus)
                self.assertEqual(other.receive(WATCHDOG).value[0].acceleration[2], 9.81)

    def test_one_record(self):
        publisher, subscriber = self.ends("imu", IMU_DTYPE)
        imu = numpy.zeros((), IMU_DTYPE)
        imu["stamp_ns"] = 7
        publisher.publish(imu)
        with publisher.loan() as loan:
            loan.value = imu
            loan.array()["temperature"] = 21.5
            loan.publish()
        self.assertEqual(subscriber.receive(WATCHDOG).value["stamp_ns"], 7)
        sample = subscriber.receive(WATCHDOG)
        self.assertEqual((sample.array()["temperature"], sample.array().shape), (21.5, ()))

    def test_matrices(self):
        publisher, subscriber = self.ends("pose", numpy.dtype(("f8", (4, 4))))
        publisher.publish(numpy.eye(4))
        self.assertTrue((subscriber.receive(WATCHDOG).array() == numpy.eye(4)).all())
        with self.assertRaises(myelin.WrongValue):
            publisher.publish(numpy.eye(3))


if __name__ == "__main__":
    unittest.main()
