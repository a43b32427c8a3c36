"""Types of Python as plain data: what they are in memory, with the layout hash of the Rust type of the same
fields, and how values are read from there and written to it.

An element is a scalar, an array, a ctypes structure, a numpy dtype, a dataclass or a FixedString; what a
topic carries is one, `[element]`, or `(element, [element])`. numpy is imported when it is needed.
"""

import ctypes
import dataclasses
import functools
import struct
import sys
import typing

from . import _native
from ._errors import WrongValue

u8, u16, u32, u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
i8, i16, i32, i64 = ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64
f32, f64, bool8 = ctypes.c_float, ctypes.c_double, ctypes.c_bool

# Of each scalar its Rust name, its code for `struct` and the kind of its dtype.
_SCALARS = {
    "u8": ("B", "u1"),
    "i8": ("b", "i1"),
    "u16": ("H", "u2"),
    "i16": ("h", "i2"),
    "u32": ("I", "u4"),
    "i32": ("i", "i4"),
    "u64": ("Q", "u8"),
    "i64": ("q", "i8"),
    "f32": ("f", "f4"),
    "f64": ("d", "f8"),
    "bool": ("?", "?"),
}
_BY_DTYPE = {dtype: name for name, (_, dtype) in _SCALARS.items()} | {"b1": "bool"}
_OF_PYTHON = {float: "f64", int: "i64", bool: "bool"}


@dataclasses.dataclass(frozen=True)
class FixedString:
    """Text of up to `capacity` bytes of UTF-8, as `FixedString<N>` in Rust; a `str` in values."""

    capacity: int


@dataclasses.dataclass(frozen=True)
class Array:
    """So many elements: what `element * length` is for ctypes, for any element; a tuple in values."""

    element: object
    length: int


class _Scalar:
    """A number or a truth value."""

    def __init__(self, name):
        self.layout = _native.Layout.scalar(name)
        self.code, self.kind = _SCALARS[name]
        self.packer = struct.Struct("=" + self.code)
        self.shape = ()

    def dtype(self):
        return _numpy().dtype(self.kind)

    def read(self, memory, offset):
        return self.packer.unpack_from(memory, offset)[0]

    def write(self, memory, offset, value):
        try:
            self.packer.pack_into(memory, offset, value)
        except struct.error as error:
            raise WrongValue(f"{value!r} is no {self.layout.type_name}: {error}") from None


class _Array:
    """So many elements: a tuple, of `u8` bytes."""

    def __init__(self, element, length):
        self.layout = _native.Layout.array(element.layout, length)
        self.element, self.length = element, length
        self.is_bytes = element.layout.type_name == "u8"
        self.code = element.code
        self.shape = None if element.shape is None else (length, *element.shape)
        self.is_flat = isinstance(element, _Scalar) and not self.is_bytes
        self.packer = struct.Struct(f"={length}{element.code}") if self.is_flat else None

    def dtype(self):
        return _numpy().dtype((self.element.dtype(), (self.length,)))

    def read(self, memory, offset):
        if self.is_bytes:
            return bytes(memory[offset : offset + self.length])
        if self.is_flat:
            return self.packer.unpack_from(memory, offset)
        step = self.element.layout.bytes
        return tuple(self.element.read(memory, offset + at * step) for at in range(self.length))

    def write(self, memory, offset, value):
        if len(value) != self.length:
            raise WrongValue(f"{len(value)} elements are no {self.layout.type_name}")
        if self.is_bytes:
            memory[offset : offset + self.length] = bytes(value)
            return
        step = self.element.layout.bytes
        for at, each in enumerate(value):
            self.element.write(memory, offset + at * step, each)


class _Text:
    """A FixedString."""

    def __init__(self, capacity):
        length, text = _Array(_scalar("u8"), 4), _Array(_scalar("u8"), capacity)
        fields = [("length", length.layout, 0), ("bytes", text.layout, 4)]
        layout = _native.Layout.structure("FixedString", fields, 4 + capacity, 1)
        self.layout = layout.named(f"FixedString<{capacity}>")
        self.capacity = capacity
        self.code, self.shape = None, None

    def dtype(self):
        return _numpy().dtype([("length", "u1", (4,)), ("bytes", "u1", (self.capacity,))])

    def read(self, memory, offset):
        length = min(int.from_bytes(memory[offset : offset + 4], "little"), self.capacity)
        return bytes(memory[offset + 4 : offset + 4 + length]).decode(errors="replace")

    def write(self, memory, offset, value):
        text = value.encode()
        if len(text) > self.capacity:
            raise WrongValue(f"{value!r} has more than {self.capacity} bytes; shorten it")
        memory[offset : offset + 4] = len(text).to_bytes(4, "little")
        memory[offset + 4 : offset + 4 + self.capacity] = text.ljust(self.capacity, b"\0")


class _Structure:
    """A ctypes structure: values are copies."""

    def __init__(self, cls):
        fields = []
        for name, kind, *bits in _fields_of(cls):
            if bits:
                raise WrongValue(f"{cls.__name__}.{name} is a bit field; take a whole integer")
            fields.append((name, _element(kind).layout, getattr(cls, name).offset))
        size, align = ctypes.sizeof(cls), ctypes.alignment(cls)
        self.layout = _native.Layout.structure(cls.__name__, fields, size, align)
        self.cls = cls
        self.code, self.shape = None, None

    def dtype(self):
        return _numpy().dtype(self.cls)

    def read(self, memory, offset):
        return self.cls.from_buffer_copy(memory, offset)

    def write(self, memory, offset, value):
        if not isinstance(value, self.cls):
            raise WrongValue(f"{_named(value)} is no {self.cls.__name__}")
        memory[offset : offset + self.layout.bytes] = memoryview(value).cast("B")


class _Record:
    """A numpy structured dtype: values are views."""

    def __init__(self, dtype):
        fields = [(name, _element(dtype.fields[name][0]).layout, dtype.fields[name][1])
                  for name in dtype.names]
        align = max((layout.align for _, layout, _ in fields), default=1)
        name = "struct {" + ", ".join(dtype.names) + "}"
        self.layout = _native.Layout.structure(name, fields, dtype.itemsize, align)
        self._dtype = dtype
        self.code, self.shape = None, None

    def dtype(self):
        return self._dtype

    def read(self, memory, offset):
        return _numpy().frombuffer(memory, self._dtype, 1, offset)[0]

    def write(self, memory, offset, value):
        _numpy().frombuffer(memory, self._dtype, 1, offset)[0] = value


class _Dataclass:
    """A dataclass: values are copies."""

    def __init__(self, cls):
        hints = typing.get_type_hints(cls, include_extras=True)
        self.fields, fields, end, align = [], [], 0, 1
        for field in dataclasses.fields(cls):
            element = _element(hints[field.name])
            self.fields.append((field.name, element, end))
            # A field that is not aligned where the one before ends is refused: there would be padding.
            fields.append((field.name, element.layout, end))
            end += element.layout.bytes
            align = max(align, element.layout.align)
        self.layout = _native.Layout.structure(cls.__name__, fields, end, align)
        self.cls = cls
        self.code, self.shape = None, None

    def dtype(self):
        return _numpy().dtype([(name, element.dtype()) for name, element, _ in self.fields])

    def read(self, memory, offset):
        return self.cls(**{name: it.read(memory, offset + at) for name, it, at in self.fields})

    def write(self, memory, offset, value):
        if not isinstance(value, self.cls):
            raise WrongValue(f"{_named(value)} is no {self.cls.__name__}")
        for name, element, at in self.fields:
            element.write(memory, offset + at, getattr(value, name))


def _fields_of(cls):
    """Those of its bases first."""
    for base in reversed(cls.__mro__):
        yield from base.__dict__.get("_fields_", ())


@functools.cache
def _scalar(name):
    return _Scalar(name)


def _element(kind):
    """How values of a type lie in memory."""
    if typing.get_origin(kind) is typing.Annotated:
        return _element(typing.get_args(kind)[1])
    if isinstance(kind, FixedString):
        return _Text(kind.capacity)
    if isinstance(kind, Array):
        return _Array(_element(kind.element), kind.length)
    if isinstance(kind, str) and kind in _SCALARS:
        return _scalar(kind)
    if isinstance(kind, type):
        if kind in _OF_PYTHON:
            return _scalar(_OF_PYTHON[kind])
        if issubclass(kind, ctypes.Structure):
            if issubclass(kind, ctypes.BigEndianStructure):
                raise WrongValue(f"{kind.__name__} is big-endian; samples are as the machine is")
            return _Structure(kind)
        if issubclass(kind, ctypes.Array):
            return _Array(_element(kind._type_), kind._length_)
        if issubclass(kind, ctypes._SimpleCData):
            return _ctypes_scalar(kind)
        if dataclasses.is_dataclass(kind):
            return _Dataclass(kind)
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        is_scalar = isinstance(kind, type) and issubclass(kind, numpy.generic)
        if is_scalar or isinstance(kind, numpy.dtype):
            return _of_dtype(numpy.dtype(kind))
    raise WrongValue(
        f"{kind!r} is no plain data: take a ctypes structure, a numpy dtype, a dataclass, a number "
        "(float, int, bool, or of a size as myelin.u16), an array of these as `myelin.f64 * 3`, or a "
        "FixedString; of as many elements as each sample has, [element], or bytes"
    )


def _ctypes_scalar(kind):
    code = kind._type_
    if code == "c":
        return _scalar("u8")
    if code == "?":
        return _scalar("bool")
    if code in "fd":
        return _scalar({"f": "f32", "d": "f64"}[code])
    if code in "bBhHiIlLqQ":
        sign = "i" if code.islower() else "u"
        return _scalar(f"{sign}{8 * ctypes.sizeof(kind)}")
    raise WrongValue(f"{kind.__name__} is no plain data: pointers mean nothing in another process")


def _of_dtype(dtype):
    if not dtype.isnative:
        raise WrongValue(f"{dtype} is of the other byte order; samples are as the machine is")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        element = _element(base)
        for length in reversed(shape):
            element = _Array(element, length)
        return element
    if dtype.names is not None:
        return _Record(dtype)
    name = _BY_DTYPE.get(dtype.str[1:])
    if name is None:
        raise WrongValue(f"{dtype} is no plain data: take integers, f4, f8, bool, or a structure of such")
    return _scalar(name)


class Carried:
    """What a topic carries: one element, as many as a sample has, or a header and as many."""

    def __init__(self, kind):
        self.head = None
        self.is_slice = isinstance(kind, list) or kind in (bytes, bytearray, memoryview)
        if isinstance(kind, list):
            (kind,) = kind
        elif self.is_slice:
            kind = u8
        elif isinstance(kind, tuple):
            header, elements = kind
            self.head = _element(header)
            self.is_slice = True
            (kind,) = elements if isinstance(elements, list) else [u8]
        self.element = _element(kind)
        self.is_bytes = self.is_slice and self.element.layout.type_name == "u8"
        name = "header_slice" if self.head else "slice" if self.is_slice else "value"
        arguments = {}
        if self.head:
            arguments = {"header": self.head.layout}
        elif self.element.shape is not None:
            code = self.element.code
            size = struct.calcsize("=" + code)
            shape = list(self.element.shape)
            arguments = {"format": code, "item_bytes": size, "element_shape": shape}
        self.native = _native.Type(name, self.element.layout, **arguments)
        self.offset = self.native.elements_offset if self.is_slice else 0
        self.is_plain_bytes = self.is_bytes and self.head is None

    # Reading: `memory` is a buffer of a sample.

    def value(self, memory):
        view = _bytes(memory)
        if not self.is_slice:
            return self.element.read(view, 0)
        if self.is_bytes:
            elements = bytes(view[self.offset :])
        else:
            step = self.element.layout.bytes
            elements = [self.element.read(view, at) for at in range(self.offset, len(view), step)]
        return (self.head.read(view, 0), elements) if self.head else elements

    def header(self, memory):
        return self._header().read(_bytes(memory), 0)

    def array(self, memory, shape, dtype):
        numpy = _numpy()
        dtype = self.element.dtype() if dtype is None else numpy.dtype(dtype)
        base, inner = _base(dtype)
        array = numpy.frombuffer(memory, base, offset=self.offset if self.head else 0)
        if shape is not None:
            return array.reshape(shape)
        return array.reshape((-1, *inner) if self.is_slice else inner)

    # Writing.

    def set_value(self, memory, value):
        view = _bytes(memory)
        if not self.is_slice:
            self._write_one(view, value)
            return
        if self.head:
            header, value = value
            self.head.write(view, 0, header)
        packed = _bytes(self._elements(value))
        if len(packed) != len(view) - self.offset:
            raise WrongValue(f"{len(packed)} bytes do not fill a loan of {len(view) - self.offset}")
        view[self.offset :] = packed

    def set_header(self, memory, value):
        self._header().write(_bytes(memory), 0, value)

    def pack(self, value):
        """A buffer of the bytes of a value."""
        if self.is_plain_bytes:
            return self._elements(value)
        if not self.is_slice:
            if self._is_one(value):
                return value
            memory = bytearray(self.element.layout.bytes)
            self._write_one(memoryview(memory), value)
            return memory
        if not self.head:
            return self._elements(value)
        header, elements = value
        packed = _bytes(self._elements(elements))
        memory = bytearray(self.offset + len(packed))
        self.head.write(memoryview(memory), 0, header)
        memory[self.offset :] = packed
        return memory

    def _header(self):
        if self.head is None:
            raise WrongValue(f"{self.native.name} has no header; a type with one is (Header, [element])")
        return self.head

    def _is_one(self, value):
        """Whether its buffer is what is to be published."""
        cls = getattr(self.element, "cls", None)
        if isinstance(self.element, _Structure):
            return isinstance(value, cls)
        return _is_numpy(value) and self._has_dtype(value, self.element.shape or ())

    def _write_one(self, view, value):
        if _is_numpy(value) and isinstance(self.element, (_Scalar, _Array, _Structure)):
            if not self._has_dtype(value, self.element.shape or ()):
                raise WrongValue(f"an array of {value.dtype}{value.shape} is no {self.native.name}")
            view[:] = _bytes(value.tobytes())
            return
        if isinstance(value, ctypes.Array):
            value = tuple(value)
        self.element.write(view, 0, value)

    def _has_dtype(self, array, shape):
        dtype = self.element.dtype()
        return array.dtype == _base(dtype)[0] and array.shape == shape

    def _elements(self, value):
        """A buffer of the bytes of all elements."""
        if _is_numpy(value):
            return self._array_elements(value)
        if self.is_bytes:
            return value.encode() if isinstance(value, str) else value
        if isinstance(value, ctypes.Array) and _element(value._type_).layout.hash == self.element.layout.hash:
            return value
        step = self.element.layout.bytes
        memory = bytearray(step * len(value))
        view = memoryview(memory)
        for at, each in enumerate(value):
            self.element.write(view, at * step, each)
        return memory

    def _array_elements(self, array):
        dtype = self.element.dtype()
        base, inner = _base(dtype)
        if array.dtype != base or (inner and array.shape[array.ndim - len(inner) :] != inner):
            raise WrongValue(f"an array of {array.dtype}{list(array.shape)} is no {self.native.name}")
        return _numpy().ascontiguousarray(array)


_CACHE = {}


def carried(kind):
    """What a topic of a type carries. Kept for types that can be keys."""
    try:
        return _CACHE[kind]
    except (KeyError, TypeError):
        pass
    made = Carried(kind)
    try:
        _CACHE[kind] = made
    except TypeError:
        pass
    return made


def layout_hash(kind):
    """What two endpoints compare: the same as that of the Rust type of the same fields."""
    return carried(kind).native.hash


def _bytes(memory):
    view = memoryview(memory)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def _numpy():
    try:
        import numpy
    except ImportError as error:
        raise WrongValue("this takes numpy; install it: pip install numpy") from error
    return numpy


def _base(dtype):
    """Of an array of arrays the innermost dtype, and the whole shape."""
    shape = ()
    while dtype.subdtype is not None:
        dtype, outer = dtype.subdtype
        shape += outer
    return dtype, shape


def _is_numpy(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.void))


def _named(value):
    return f"a {type(value).__name__}"
