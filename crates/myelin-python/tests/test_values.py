"""Values: they arrive as they were sent, with any strides. One that does not fit is an error that says where, and
nothing was published."""

import array
import collections
import ctypes
import dataclasses
import decimal
import enum
import fractions
import math
import random
import typing
import unittest
from dataclasses import InitVar, dataclass, field
from typing import Annotated, ClassVar, Final, Generic, NamedTuple, NewType, Optional, TypeVar

import myelin
from support import WATCHDOG, Case

try:
    import numpy
except ImportError:
    numpy = None

T = TypeVar("T")


class Mode(enum.IntEnum):
    OFF = 0
    ON = 200


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: myelin.f32
    y: myelin.f32 = 0.0


@dataclass
class Scan:
    stamp_ns: myelin.u64
    points: Annotated[list, myelin.Array(Point, 2)]
    name: Annotated[str, "of the sensor", myelin.FixedString(8)]
    level: myelin.u8 = 3
    valid: bool = True
    _pad: Annotated[bytes, myelin.u8 * 2] = bytes(2)


@dataclass
class Postponed:
    """As under `from __future__ import annotations`."""

    at: "Point"
    mode: "Annotated[Mode, myelin.u8]" = Mode.OFF
    kind: "ClassVar[str]" = "postponed"
    rest: "Annotated[bytes, myelin.u8 * 3]" = bytes(3)


class Pair(ctypes.Structure):
    _fields_ = [("a", myelin.f64), ("b", myelin.i32 * 2)]


def scan(**changes):
    made = Scan(7, (Point(1.0, 2.0), Point(3.0, 4.0)), "front")
    return dataclasses.replace(made, **changes)


class Ways(Case):
    """Sends a value by publish, loan, call and reply: it arrives by all of them, or is an error in all."""

    def ways(self, kind):
        """The same topic, loan, call and reply for many values."""
        publisher, subscriber = self.ends(f"topic {kind}", kind)
        service = self.node.service(f"service {kind}", kind, kind)
        client = self.node.client(f"service {kind}", kind, kind)
        self.addCleanup(service.close)
        self.addCleanup(client.close)
        self.meet(service, client)

        def publish(value):
            publisher.publish(value)
            return subscriber.receive(WATCHDOG).value

        def loan(value, length):
            with publisher.loan(*length) as loan:
                loan.value = value
                loan.publish()
            return subscriber.receive(WATCHDOG).value

        def call(value):
            pending = client.send(value)
            asked = service.receive(WATCHDOG)
            got = asked.value
            asked.reply(value)
            return got, pending.receive(WATCHDOG).value

        return publish, loan, call

    def meet(self, service, client):
        """A server of the same thread has to take the hello of a client."""

        def is_there():
            self.assertIsNone(service.take())
            return client.wait_for_service(0)

        self.until("the service", is_there)

    def goes(self, kind, value, wanted, length=()):
        """It arrives as `wanted` in all ways; a loan of it has `length`."""
        publish, loan, call = self.ways(kind)
        for got in (publish(value), loan(value, length), *call(value)):
            self.assertEqual(plain(got), plain(wanted), (kind, type(value)))

    def fails(self, kind, value, *words, length=()):
        """It is an error with these words in all ways, after which nothing is there to take."""
        publisher, subscriber = self.ends(f"fails {kind}", kind)
        service = self.node.service(f"fails {kind}", kind, kind)
        client = self.node.client(f"fails {kind}", kind, kind)
        self.addCleanup(service.close)
        self.addCleanup(client.close)
        loan = publisher.loan(*length)
        before = bytes(loan)
        for act in (
            lambda: publisher.publish(value),
            lambda: setattr(loan, "value", value),
            lambda: client.call(value, 0),
            lambda: client.send(value),
        ):
            with self.assertRaises(myelin.WrongValue) as raised:
                act()
            for word in words:
                self.assertIn(word, str(raised.exception))
        self.assertEqual(bytes(loan), before)
        loan.discard()
        self.assertIsNone(subscriber.take())
        self.assertIsNone(service.take())


def plain(value):
    """As lists and numbers of Python."""
    if numpy and isinstance(value, (numpy.ndarray, numpy.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


class Buffers(Ways):
    """Without numpy."""

    def test_bytes_whatever_the_strides(self):
        data = bytes(range(12))
        grid = memoryview(data).cast("B", (3, 4))
        for value in (data, bytearray(data), memoryview(data)[::2], memoryview(data)[::-3]):
            self.goes(bytes, value, bytes(value), (len(value),))
        self.goes(bytes, grid, data, (12,))
        self.goes(bytes, grid[::2], data[:4] + data[8:], (8,))
        self.goes(bytes, array.array("H", [1, 2]), b"\1\0\2\0", (4,))
        self.goes(bytes, (ctypes.c_uint16 * 2)(1, 2), b"\1\0\2\0", (4,))
        self.goes(bytes, "grüß", "grüß".encode(), (6,))
        self.goes(bytes, [1, 2, 255], b"\1\2\xff", (3,))
        header = (myelin.u32, bytes)
        self.goes(header, (7, memoryview(data)[::-1]), (7, data[::-1]), (12,))

    def test_numbers_whatever_the_strides(self):
        doubles = array.array("d", range(6))
        view = memoryview(doubles)
        self.goes([float], doubles, list(doubles), (6,))
        self.goes([float], view[::2], [0.0, 2.0, 4.0], (3,))
        self.goes([float], view[::-1], [5.0, 4.0, 3.0, 2.0, 1.0, 0.0], (6,))
        self.goes([float], (myelin.f64 * 3)(1, 2, 3), [1.0, 2.0, 3.0], (3,))
        self.goes([float], collections.deque([1.0, 2.0]), [1.0, 2.0], (2,))
        self.goes([float], range(3), [0.0, 1.0, 2.0], (3,))
        self.goes([int], array.array("l", [1, -2]), [1, -2], (2,))
        self.goes([myelin.i32], array.array("i", [1, -2]), [1, -2], (2,))
        self.goes([float], array.array("i", [1, -2]), [1.0, -2.0], (2,))
        self.goes(myelin.f64 * 3, view[4::-2], (4.0, 2.0, 0.0))
        self.goes((myelin.f64 * 3) * 2, view.cast("B").cast("d", (2, 3)), ((0, 1, 2), (3, 4, 5)))
        self.goes([myelin.f64 * 3], view.cast("B").cast("d", (2, 3)), [(0, 1, 2), (3, 4, 5)], (2,))
        self.goes((myelin.f32 * 2) * 2, ((myelin.f32 * 2) * 2)((1, 2), (3, 4)), ((1, 2), (3, 4)))
        self.goes(myelin.u8 * 3, memoryview(b"abcdef")[::2], b"ace")

    def test_nothing_is_a_value_too(self):
        for kind in ([float], [myelin.f64 * 2], [Point], [myelin.Array(Point, 2)]):
            self.goes(kind, [], [], (0,))
        self.goes((myelin.u64, [myelin.f64 * 2]), (7, []), (7, []), (0,))
        self.goes(bytes, b"", b"", (0,))
        self.goes(myelin.Array(float, 0), (), ())
        self.goes(myelin.Array(myelin.f64 * 2, 0), (), ())

    def test_structures(self):
        pair = Pair(1.5, (1, 2))
        publisher, subscriber = self.ends("pairs", [Pair])
        publisher.publish((Pair * 2)(pair, pair))
        publisher.publish([pair, pair])
        for _ in range(2):
            self.assertEqual([bytes(got) for got in subscriber.take().value], [bytes(pair)] * 2)

        class Wider(Pair):
            _fields_ = [("more", myelin.f64)]

        self.fails(Pair, Wider(), "Pair")

    def test_a_sample_is_forwarded(self):
        publisher, subscriber = self.ends("from", [myelin.f64 * 2])
        onward, last = self.ends("onward", [myelin.f64 * 2])
        publisher.publish([(1.0, 2.0), (3.0, 4.0)])
        onward.publish(subscriber.take())
        self.assertEqual(last.take().value, [(1.0, 2.0), (3.0, 4.0)])

    def test_pointers_are_no_bytes(self):
        self.fails(bytes, (ctypes.c_char_p * 2)(), "pointers", length=(16,))
        self.fails(bytes, (ctypes.c_void_p * 2)(), "pointers", length=(16,))
        self.fails([float], b"12345678", "bytes are no", length=(1,))

    def test_a_loan_of_another_length_stays_as_it_is(self):
        publisher, subscriber = self.ends("loan", [float])
        with publisher.loan(3) as loan:
            loan.value = [1.0, 2.0, 3.0]
            for wrong in ([4.0], [4.0] * 4, [4.0, 5.0, "x"]):
                with self.assertRaises(myelin.WrongValue):
                    loan.value = wrong
            self.assertEqual(loan.value, [1.0, 2.0, 3.0])
            loan.publish()
        self.assertEqual(subscriber.take().value, [1.0, 2.0, 3.0])
        head, _ = self.ends("head", (Point, [float]))
        with head.loan(1) as loan:
            loan.value = (Point(1.0, 2.0), [3.0])
            for wrong in ((Point(5.0), [4.0, 4.0]), (Point(5.0), ["x"]), (Point("x"), [4.0])):
                with self.assertRaises(myelin.WrongValue):
                    loan.value = wrong
            with self.assertRaises(myelin.WrongValue):
                loan.header = Point(5.0, "x")
            self.assertEqual(loan.value, (Point(1.0, 2.0), [3.0]))


@unittest.skipUnless(numpy, "numpy is not installed")
class Arrays(Ways):
    def strided(self, rng, array):
        """A view of an array, or a copy with other strides or in the other byte order."""
        for _ in range(rng.randrange(3)):
            axis = rng.randrange(array.ndim)
            match rng.randrange(6):
                case 0:
                    array = numpy.moveaxis(array, axis, 0)
                case 1:
                    array = numpy.flip(array, axis)
                case 2:
                    array = array[(slice(None),) * axis + (slice(rng.randrange(2), None, 2),)]
                case 3:
                    array = numpy.asfortranarray(array)
                case 4:
                    array = array.astype(array.dtype.newbyteorder())
                case 5:
                    row = array[(slice(None),) * axis + (slice(0, 1),)]
                    array = numpy.broadcast_to(row, array.shape)
        return array

    def test_what_arrives_is_what_was_sent_whatever_the_strides(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        inner = [("a", "u2"), ("b", "u2")]
        record = numpy.dtype([("x", "f8"), ("y", "f4"), ("z", "i4", 3), ("s", inner), ("w", "u1", 4)])
        for kind in ("u1", "i2", "f4", "f8", "?", record):
            dtype = numpy.dtype(kind)
            slices, slice_subscriber = self.ends(f"slice {dtype}", [dtype])
            headed, headed_subscriber = self.ends(f"headed {dtype}", (myelin.u16, [dtype]))
            rows = numpy.dtype((dtype, (2, 3)))
            fixed, fixed_subscriber = self.ends(f"fixed {dtype}", rows)
            for _ in range(30):
                shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 4)))
                data = numpy.frombuffer(rng.randbytes(math.prod(shape) * dtype.itemsize), dtype)
                if kind == "?":
                    data = data.view("u1") % 2 == 1
                value = self.strided(rng, data.reshape(shape))
                wanted = numpy.ascontiguousarray(value).astype(dtype).tobytes()
                with self.subTest(seed=seed, dtype=dtype, shape=value.shape, strides=value.strides):
                    slices.publish(value)
                    self.assertEqual(bytes(slice_subscriber.take()), wanted)
                    with slices.loan(value.size) as loan:
                        loan.value = value
                        loan.publish()
                    self.assertEqual(bytes(slice_subscriber.take()), wanted)
                    headed.publish((7, value))
                    self.assertTrue(bytes(headed_subscriber.take()).endswith(wanted))
                    if dtype.names is None:
                        value = numpy.resize(value, (3, 2)).T
                        fixed.publish(value)
                        got = bytes(fixed_subscriber.take())
                        self.assertEqual(got, numpy.ascontiguousarray(value).astype(dtype).tobytes())

    def test_columns_images_and_single_values(self):
        square = numpy.arange(9.0).reshape(3, 3)
        image = numpy.arange(24, dtype="u1").reshape(2, 4, 3)
        self.goes(myelin.f64 * 3, square[:, 0], square[:, 0])
        self.goes((myelin.f64 * 3) * 3, square.T, square.T)
        self.goes(myelin.f64 * 3, numpy.arange(3), (0.0, 1.0, 2.0))
        self.goes(bytes, image[:, :, ::-1], image[:, :, ::-1].tobytes(), (24,))
        self.goes(bytes, square.T, square.T.tobytes(), (72,))
        self.goes((myelin.u64, bytes), (7, image.T), (7, image.T.tobytes()), (24,))
        for value in (square[1, 1], numpy.array(4.0), square[1:2, 1:2].reshape(())):
            self.goes(float, value, 4.0)
        self.goes(bool, numpy.bool_(True), True)
        self.goes(bool, numpy.array(True), True)
        self.goes(myelin.i16, numpy.int64(-3), -3)

    def test_records(self):
        dtype = numpy.dtype([("x", "f8"), ("y", "f4"), ("z", "i4")])
        records = numpy.zeros(6, dtype)
        records["x"], records["z"] = range(6), range(6)
        for value in (records[::2][1], records[2], records[::2][1:2].reshape(()), (2, 0, 2)):
            self.goes(dtype, value, (2.0, 0.0, 2))
        self.goes(dtype, records[2].astype(dtype.newbyteorder()), (2.0, 0.0, 2))
        # Fields of the same names and other types go one by one, as far as they fit.
        wide = numpy.dtype([("x", "f8"), ("y", "f8"), ("z", "i8")])
        for infinite in (math.inf, -math.inf):
            self.goes(dtype, numpy.array((1.0, infinite, 3), wide), (1.0, infinite, 3))
        publish, _, _ = self.ways(dtype)
        self.assertTrue(math.isnan(publish((1.0, math.nan, 3))["y"]))
        self.fails(dtype, numpy.array((1.0, 1e300, 3), wide), "field 'y'", "1e+300")
        self.fails(dtype, numpy.array((1.0, 1.0, 1 << 40), wide), "field 'z'")
        self.fails(dtype, (1.0, 2.0), "struct(x, y, z)")
        self.fails(dtype, (1.0, 2.0, 3.5), "field 'z'", "3.5")
        self.fails([dtype], records[["x", "z"]], "astype", length=(6,))
        views = numpy.zeros(2, numpy.dtype([("w", "u8"), *dtype.descr]))[["x", "y", "z"]]
        self.goes([dtype], views, [(0.0, 0.0, 0)] * 2, (2,))

    def test_arrays_that_do_not_fit(self):
        self.fails([float], numpy.arange(3), "astype", length=(3,))
        self.fails([myelin.f32], numpy.arange(3.0), "float64", length=(3,))
        self.fails([float], numpy.array([1, "a"], object), "object", length=(2,))
        self.fails(bytes, numpy.array([1, "a"], object), "pointers", length=(16,))
        self.fails(bytes, numpy.zeros(2, "M8[ns]"), "buffer", length=(16,))
        masked = numpy.ma.masked_array([1.0, 2.0], [False, True])
        self.fails([float], masked, "filled", length=(2,))
        self.fails(myelin.f64 * 2, masked, "filled")
        self.goes([float], numpy.ma.masked_array([1.0, 2.0]), [1.0, 2.0], (2,))
        self.fails(myelin.f64 * 3, numpy.eye(3), "[0]")
        self.fails(myelin.f64 * 3, numpy.zeros(2), "2 elements")
        self.fails(myelin.f32 * 2, numpy.array([1.0, 1e300]), "[1]")
        self.fails(float, numpy.complex128(1 + 2j), "complex")
        self.fails(float, numpy.longdouble("1e4000"), "too large")


class Numbers(Ways):
    def test_numbers_as_python_has_them(self):
        for kind, value in [
            (float, 3),
            (float, True),
            (int, True),
            (myelin.u8, Mode.ON),
            (float, fractions.Fraction(1, 4)),
            (float, decimal.Decimal("0.5")),
            (float, decimal.Decimal("inf")),
            (myelin.f32, -math.inf),
            (bool, 1),
        ]:
            self.goes(kind, value, value)
        publish, _, _ = self.ways(myelin.f32)
        self.assertTrue(math.isnan(publish(math.nan)))

    def test_numbers_that_do_not_fit(self):
        for kind, value in [
            (myelin.u8, 256),
            (myelin.u8, -1),
            (int, 1 << 63),
            (int, 1.0),
            (int, "1"),
            (float, "1.0"),
            (float, None),
            (float, 1j),
            (float, 10**400),
            (float, decimal.Decimal("1e400")),
            (myelin.f32, 1e300),
            (bool, 2),
            (bool, "yes"),
            (bool, []),
            (bool, None),
            ((myelin.bool8 * 2), (True, "x")),
            (myelin.f64 * 3, (1.0, 2.0)),
            (myelin.f64 * 3, (1.0, 2.0, "x")),
            (myelin.f64 * 3, 1.0),
            (myelin.f64 * 3, {1.0, 2.0, 3.0}),
            (myelin.f64 * 3, {1.0: 1, 2.0: 2, 3.0: 3}),
            (myelin.u8 * 3, "abc"),
            (myelin.u8 * 3, b"ab"),
            (myelin.u8 * 3, (1, 2, 256)),
        ]:
            self.fails(kind, value)
        for value in ([1.0, "x"], "ab", 1.0, None, {1.0: 2.0}, [1.0, decimal.Decimal("1e400")]):
            self.fails([float], value, length=(2,))
        for value in (None, 3, [256], ["a"], {1: 2}, "\udc80"):
            self.fails(bytes, value, length=(1,))
        for value in (1.0, (1.0,), [1.0, [2.0], 3], None, ("x", [1.0]), (1.0, ["x"])):
            self.fails((float, [float]), value, length=(1,))


class Classes(Ways):
    """Annotations as people write them."""

    def test_errors_name_the_class_and_the_field(self):
        for wrong, *words in [
            (scan(stamp_ns=-1), "Scan.stamp_ns", "-1"),
            (scan(points=(Point(1.0),)), "Scan.points", "1 elements"),
            (scan(points=(Point(1.0), Point(1.0, 1e300))), "Scan.points[1]: Point.y", "1e+300"),
            (scan(points=(Point(1.0), (1.0, 2.0))), "Scan.points[1]", "tuple"),
            (scan(points=None), "Scan.points", "None"),
            (scan(name="too long a name"), "Scan.name", "8"),
            (scan(name=b"front"), "Scan.name", "str"),
            (scan(name="\udc80"), "Scan.name", "UTF-8"),
            (scan(level=256), "Scan.level", "256"),
            (scan(valid="yes"), "Scan.valid", "'yes'"),
            (scan(_pad=bytes(3)), "Scan._pad", "3 elements"),
            (Point(1.0), "Point", "Scan"),
            (None, "NoneType", "Scan"),
        ]:
            self.fails(Scan, wrong, *words)
        self.fails([Scan], [scan(), scan(level=256)], "[1]: Scan.level", length=(2,))
        self.fails((Scan, [Point]), (scan(level=-1), [Point(1.0)]), "header: Scan.level", length=(1,))
        self.fails((Scan, [Point]), (scan(), [Point(None)]), "elements[0]: Point.x", length=(1,))
        for one in (scan(), [Point(1.0)], None):
            self.fails((Scan, [Point]), one, "take a pair (header, elements)", length=(1,))
        self.goes(Scan, scan(), scan())

    def test_a_value_that_raises_is_an_error_of_its_field(self):
        class Odd:
            def __float__(self):
                raise AttributeError("odd")

        self.fails(Point, Point(Odd()), "Point.x", "Odd")
        unset = scan()
        del unset.points
        self.fails(Scan, unset, "Scan.points")

    def test_one_with_more_fields_is_another_type(self):
        @dataclass
        class Point3(Point):
            z: myelin.f32 = 0.0

        self.fails(Point, Point3(1.0), "Point3", "Point")
        self.goes(Point3, Point3(1.0, 2.0, 3.0), Point3(1.0, 2.0, 3.0))

    def test_values_arrive_as_they_were_sent(self):
        made = []

        @dataclass
        class Doubled:
            x: float
            scale: InitVar[float]
            kind: ClassVar[str] = "doubled"
            y: float = field(init=False, default=2.0)

            def __post_init__(self, scale):
                made.append(self)
                self.x *= scale

        self.goes(Doubled, Doubled(1.0, 2.0), made[0])
        self.assertEqual(len(made), 1)

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Sealed:
            x: Final[float] = 1.0
            y: Annotated[float, "metres"] = 2.0

        self.goes(Sealed, Sealed(x=3.0), Sealed(x=3.0))

        @dataclass
        class Box(Generic[T]):
            low: T
            both: tuple[T, T]

        self.goes(Box[float], Box(1.0, (2.0, 3.0)), Box(1.0, (2.0, 3.0)))

        class Pose(NamedTuple):
            at: Point
            angle: float

        self.goes(Pose, Pose(Point(1.0, 2.0), 0.5), Pose(Point(1.0, 2.0), 0.5))
        self.goes([Pose], [Pose(Point(1.0), 0.5)], [Pose(Point(1.0), 0.5)], (1,))
        self.fails(Pose, (Point(1.0), 0.5), "Pose")
        self.fails(Pose, Pose(Point(1.0), None), "Pose.angle")

        Metres = NewType("Metres", float)

        @dataclass
        class Many:
            height: Metres
            axes: tuple[float, float, float]
            colour: Colour
            mode: Annotated[Mode, myelin.u8]
            words: Annotated[bytes, "of the driver", myelin.u8 * 7] = b"1234567"

        many = Many(1.0, (1.0, 2.0, 3.0), Colour.BLUE, Mode.ON)
        self.goes(Many, many, many)
        publish, _, _ = self.ways(Many)
        self.assertIsInstance(publish(many).mode, Mode)
        self.fails(Many, dataclasses.replace(many, mode=7), "Many.mode", "7")
        self.fails(Many, dataclasses.replace(many, colour="RED"), "Many.colour")
        self.goes(Postponed, Postponed(Point(1.0)), Postponed(Point(1.0)))
        self.goes(list[float], [1.0, 2.0], [1.0, 2.0], (2,))

    def test_annotations_that_are_no_plain_data_name_the_field(self):
        class Big(enum.IntEnum):
            A = 300

        class Text(enum.Enum):
            A = "a"

        for annotation, *words in [
            (Optional[float], "cannot be absent"),
            (float | None, "cannot be absent"),
            (list[float], "myelin.f64 * 3"),
            (typing.List[float], "myelin.f64 * 3"),
            (list, "myelin.f64 * 3"),
            (typing.Sequence[float], "myelin.f64 * 3"),
            (tuple[float, ...], "myelin.f64 * 3"),
            (tuple[float, int], "myelin.f64 * 3"),
            (tuple, "myelin.f64 * 3"),
            ([float], "not of an element"),
            (str, "FixedString"),
            (bytes, "u8"),
            (dict, "take"),
            (typing.Any, "take"),
            (complex, "take"),
            (typing.Literal[1], "take"),
            (T, "Pair[float]"),
            (None, "take"),
            (Final, "take"),
            (Annotated[Big, myelin.u8], "Big.A", "300"),
            (Text, "Text.A", "'a'"),
            (myelin.Array(float, -1), "-1"),
            (myelin.Array(float, 2.5), "2.5"),
            (myelin.FixedString("a"), "'a'"),
            (myelin.FixedString(1 << 64), "length"),
            (myelin.u32.__ctype_be__, "byte order"),
            (ctypes.c_wchar, "c_wchar"),
            (ctypes.c_longdouble, "c_longdouble"),
            (ctypes.c_void_p, "pointers"),
            ("Missing", "Missing", "module", "TYPE_CHECKING"),
            ("3 +", "3 +"),
        ]:
            made = dataclasses.make_dataclass("Made", [("x", float), ("wrong", annotation)])
            with self.assertRaises(myelin.Error) as raised:
                self.node.topic("t", made)
            for word in ("Made.wrong", *words):
                self.assertIn(word, str(raised.exception), annotation)

    def test_other_kinds_of_structs_name_the_field_too(self):
        class Deep(ctypes.Structure):
            _fields_ = [("good", myelin.u64), ("bad", ctypes.c_void_p)]

        class Bits(ctypes.Structure):
            _fields_ = [("flag", ctypes.c_uint8, 1)]

        class Empty(ctypes.Structure):
            pass

        @dataclass
        class Outer:
            deep: Deep

        class Node(NamedTuple):
            x: float
            next: "Node"

        Node.__annotations__["next"] = Node
        for kind, word in [
            (Outer, "Outer.deep: Deep.bad"),
            (Bits, "Bits.flag"),
            (Empty, "_fields_"),
            (Node, "contains itself"),
            (collections.namedtuple("Bare", "x"), "Bare.x"),
        ]:
            with self.assertRaises(myelin.Error) as raised:
                self.node.topic("t", kind)
            self.assertIn(word, str(raised.exception))
        if numpy:
            dtype = numpy.dtype([("good", "f8"), ("bad", [("worse", "O")])])
            with self.assertRaisesRegex(myelin.Error, "'bad': field 'worse'"):
                self.node.topic("t", dtype)

    def test_the_type_of_a_topic(self):
        for kind in (
            [],
            [float, int],
            (),
            (float,),
            (float, float),
            (float, Point),
            (float, [float, float]),
            (Point, [float], [float]),
            [[float]],
            [bytes],
            None,
            3,
            "float",
            Point(1.0),
            Optional[float],
            str,
            list,
            dict,
            array.array,
            typing.TypedDict("Typed", {"x": float}),
            memoryview(bytearray(1)),
            *([numpy.zeros(3), numpy.dtype("S3")] if numpy else []),
        ):
            with self.subTest(kind=kind), self.assertRaises(myelin.Error):
                self.node.topic("t", kind)


class Names(Case):
    """A type's name may be of any length."""

    def test_long_names(self):
        fields = [(f"joint_{number:02}_position", float) for number in range(40)]
        kinds = [
            dataclasses.make_dataclass("N" * 260, fields),
            type("K" * 300, (ctypes.Structure,), {"_fields_": [(name, myelin.f64) for name, _ in fields]}),
        ]
        if numpy:
            kinds.append(numpy.dtype([(name, "f8") for name, _ in fields]))
        self.assertEqual(len({myelin.layout_hash(kind) for kind in kinds}), 1)
        topic = self.node.topic("t", kinds[0])
        publisher = topic.publisher()
        value = kinds[0](*map(float, range(40)))
        for kind in kinds:
            with self.node.topic("t", kind).subscriber() as subscriber:
                self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
                publisher.publish(value)
                self.assertEqual(bytes(subscriber.receive(WATCHDOG)), bytes(memoryview(pack(value))))
        for number, kind in enumerate(kinds):
            pairs = [([kind], [kind]), ((kind, [kind]), (kind, [kind])), (kind, kind)]
            for request, reply in pairs:
                name = f"service {number} {type(request)}"
                with self.node.service(name, request, reply):
                    with self.node.client(name, request, reply) as client:
                        self.until("the service", lambda: client.servers == 1)
        names = {endpoint.type_name for endpoint in self.node.graph().endpoints}
        self.assertTrue(all(len(name.encode()) <= 255 for name in names), names)
        self.assertTrue(any("NNN.." in name for name in names), names)

    def test_other_processes_shorten_alike(self):
        source = """
import dataclasses
kind = dataclasses.make_dataclass("N" * 300, [("x", float)])
publisher = node.topic("t", kind).publisher()
print("made", flush=True)
sys.stdin.read()
"""
        other = self.start(source)
        self.assertEqual(other.stdout.readline(), "made\n")
        other.wait()


def pack(value):
    return b"".join(ctypes.c_double(number) for number in dataclasses.astuple(value))


if __name__ == "__main__":
    unittest.main()
