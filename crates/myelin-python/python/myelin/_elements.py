"""Plain values: their memory layout, how they are read from memory and packed for it.

Each element has `layout`; `read(memory, offset)`, which returns the value there; and `pack(value)`, which
returns a buffer of a value's bytes: the value's own buffer if it already has the right layout. A value is
packed before anything is written, so an error leaves no loan half filled.
"""

import ctypes
import functools
import math
import struct

from . import _native
from ._buffers import (
    is_numpy,
    items_of,
    named,
    numpy_module,
    plain_array,
    raise_within,
    scalar_of,
    short,
    viewed,
)
from ._errors import WrongValue

# Each scalar: its Rust name, its code for `struct` and its dtype.
SCALARS = {
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
# `struct` packs these exactly or refuses them. It converts other types to a float, which may be infinite.
_NUMBERS = frozenset([float, int, bool])


class Element:
    """The base of all elements. A buffer with this shape and scalar type is a value without conversion."""

    scalar, shape = None, None

    @functools.cached_property
    def dtype(self):
        return self.make_dtype(numpy_module())


class Scalar(Element):
    """A number."""

    shape = ()

    def __init__(self, name):
        self.layout = _native.Layout.scalar(name)
        self.scalar = name
        self.code, self.kind = SCALARS[name]
        self.packer = struct.Struct("=" + self.code)

    def make_dtype(self, numpy):
        return numpy.dtype(self.kind)

    def read(self, memory, offset):
        return self.packer.unpack_from(memory, offset)[0]

    def pack(self, value):
        is_odd = type(value) not in _NUMBERS
        if is_odd and getattr(value, "imag", 0) != 0:
            raise WrongValue(f"{short(value)} is not a valid {self.scalar}: it is complex")
        try:
            packed = self.packer.pack(value)
        except (struct.error, OverflowError, TypeError, ValueError) as error:
            raise WrongValue(f"{short(value)} is not a valid {self.scalar}: {error}") from None
        if is_odd and self.code in "fd" and math.isinf(self.packer.unpack(packed)[0]):
            if value != math.inf and value != -math.inf:
                raise WrongValue(f"{short(value)} is not a valid {self.scalar}: it is too large")
        return packed


class Bool(Scalar):
    """A truth value. Text and lists, which have a truth value in Python, too, are refused."""

    def pack(self, value):
        try:
            return _BOOLS[value.item() if is_numpy(value) and value.shape == () else value]
        except (KeyError, TypeError):
            raise WrongValue(f"{short(value)} is not a bool: use True or False") from None


_BOOLS = {False: b"\0", True: b"\1"}


class Enum(Element):
    """An enum: the number of a member."""

    def __init__(self, cls, element):
        self.layout, self.element, self.cls = element.layout, element, cls

    def make_dtype(self, numpy):
        return self.element.dtype

    def read(self, memory, offset):
        return self.member(self.element.read(memory, offset))

    def pack(self, value):
        return self.element.pack(self.member(value).value)

    def member(self, value):
        try:
            return self.cls(value)
        except ValueError as error:
            raise WrongValue(f"{short(value)} is not a valid {self.cls.__name__}: {error}") from None


class ArrayOf(Element):
    """An array: a tuple of values, or bytes for `u8`."""

    def __init__(self, element, length):
        self.layout = _native.Layout.array(element.layout, length)
        self.element, self.length = element, length
        self.scalar = element.scalar
        self.shape = None if element.shape is None else (length, *element.shape)
        self.is_bytes = element is scalar("u8")
        is_flat = type(element) is Scalar and not self.is_bytes
        self.unpacker = struct.Struct(f"={length}{element.code}") if is_flat else None

    def make_dtype(self, numpy):
        return numpy.dtype((self.element.dtype, (self.length,)))

    def read(self, memory, offset):
        if self.is_bytes:
            return bytes(memory[offset : offset + self.length])
        if self.unpacker:
            return self.unpacker.unpack_from(memory, offset)
        step = self.element.layout.bytes
        return tuple(self.element.read(memory, offset + at * step) for at in range(self.length))

    def pack(self, value):
        items = value
        if type(value) is not tuple and type(value) is not list:
            source, view = viewed(value)
            if view is not None and view.shape == self.shape and scalar_of(view) == self.scalar:
                return view if view.c_contiguous else view.tobytes()
            items = items_of(source, view, self.scalar, self.layout.type_name)
        if len(items) != self.length:
            raise WrongValue(f"{len(items)} elements do not fit {self.layout.type_name}")
        return pack_all(self.element, items)


class Text(Element):
    """A FixedString."""

    def __init__(self, capacity):
        length, text = ArrayOf(scalar("u8"), 4), ArrayOf(scalar("u8"), capacity)
        fields = [("length", length.layout, 0), ("bytes", text.layout, 4)]
        layout = _native.Layout.structure("FixedString", fields, 4 + capacity, 1)
        self.layout = layout.named(f"FixedString<{capacity}>")
        self.capacity = capacity

    def make_dtype(self, numpy):
        return numpy.dtype([("length", "u1", (4,)), ("bytes", "u1", (self.capacity,))])

    def read(self, memory, offset):
        length = min(int.from_bytes(memory[offset : offset + 4], "little"), self.capacity)
        return bytes(memory[offset + 4 : offset + 4 + length]).decode(errors="replace")

    def pack(self, value):
        if not isinstance(value, str):
            raise WrongValue(f"{short(value)} is not a str")
        try:
            text = value.encode()
        except UnicodeEncodeError as error:
            raise WrongValue(f"{short(value)} is not UTF-8 text: {error}") from None
        if len(text) > self.capacity:
            raise WrongValue(
                f"{short(value)} has {len(text)} bytes, more than {self.capacity}; shorten it"
            )
        return len(text).to_bytes(4, "little") + text.ljust(self.capacity, b"\0")


class Structure(Element):
    """A ctypes structure: values are copies."""

    def __init__(self, cls, elements):
        fields = [(name, it.layout, getattr(cls, name).offset) for name, it in elements]
        size, align = ctypes.sizeof(cls), ctypes.alignment(cls)
        self.layout = _native.Layout.structure(cls.__name__, fields, size, align)
        self.cls = cls

    def make_dtype(self, numpy):
        return numpy.dtype(self.cls)

    def read(self, memory, offset):
        return self.cls.from_buffer_copy(memory, offset)

    def pack(self, value):
        if type(value) is self.cls:
            return value
        if isinstance(value, self.cls) and ctypes.sizeof(value) == self.layout.bytes:
            return value
        return _record_or_error(self, value)


class Record(Element):
    """A numpy structured dtype: values are views."""

    def __init__(self, dtype, elements):
        self.fields = elements
        fields = [(name, it.layout, dtype.fields[name][1]) for name, it in elements]
        align = max((layout.align for _, layout, _ in fields), default=1)
        self.layout = _native.Layout.structure(_name_of(dtype), fields, dtype.itemsize, align)
        self.dtype = dtype

    def read(self, memory, offset):
        return numpy_module().frombuffer(memory, self.dtype, 1, offset)[0]

    def pack(self, value):
        record = _record_of(self, value)
        if record is not None:
            return record
        if is_numpy(value) and value.dtype.names == self.dtype.names:
            value = value[()]  # the record of an array without dimensions
            value = tuple(value[name] for name in self.dtype.names)
        if not isinstance(value, (tuple, list)) or len(value) != len(self.fields):
            raise WrongValue(f"{short(value)} is not a valid {self.layout.type_name}")
        return _pack_fields(self.fields, value)


def _name_of(dtype):
    """A name for messages, without what has a meaning in a layout's text."""
    names = ", ".join(dtype.names)
    shown = names if len(names) <= 60 else names[:60] + "…"
    return "struct(" + "".join(it if it.isalnum() or it in "_, …" else "_" for it in shown) + ")"


class Dataclass(Element):
    """A dataclass, or a named tuple: values are copies, made without `__init__`, as by `copy`."""

    def __init__(self, cls, elements):
        self.cls, self.fields, end, align = cls, [], 0, 1
        for name, element in elements:
            # A field that is not aligned at the end of the previous one is refused: there would be padding.
            self.fields.append((name, element, end))
            end += element.layout.bytes
            align = max(align, element.layout.align)
        fields = [(name, element.layout, at) for name, element, at in self.fields]
        self.layout = _native.Layout.structure(cls.__name__, fields, end, align)
        self.is_tuple = issubclass(cls, tuple)

    def make_dtype(self, numpy):
        return numpy.dtype([(name, element.dtype) for name, element, _ in self.fields])

    def read(self, memory, offset):
        if self.is_tuple:
            values = [it.read(memory, offset + at) for _, it, at in self.fields]
            return tuple.__new__(self.cls, values)
        try:
            made = self.cls.__new__(self.cls)
        except TypeError as error:
            raise WrongValue(f"{self.cls.__name__} has a __new__ that takes arguments: {error}") from error
        for name, it, at in self.fields:
            object.__setattr__(made, name, it.read(memory, offset + at))
        return made

    def pack(self, value):
        # An object of a derived class may have more fields, which would be lost.
        if type(value) is not self.cls:
            return _record_or_error(self, value)
        packed, name = [], None
        try:
            for name, element, _ in self.fields:
                packed.append(element.pack(getattr(value, name)))
        except Exception as error:
            raise_within(f"{self.cls.__name__}.{name}", error)
        return b"".join(packed)


@functools.cache
def scalar(name):
    return Bool(name) if name == "bool" else Scalar(name)


def pack_all(element, items):
    if type(element) is Scalar and _NUMBERS.issuperset(map(type, items)):
        try:
            return struct.pack(f"={len(items)}{element.code}", *items)
        except (struct.error, OverflowError):
            pass  # one item does not fit: the code below finds it
    packed = []
    try:
        for item in items:
            packed.append(element.pack(item))
    except Exception as error:
        raise_within(f"[{len(packed)}]", error)
    return b"".join(packed)


def _pack_fields(fields, values):
    packed, name = [], None
    try:
        for (name, element), value in zip(fields, values):
            packed.append(element.pack(value))
    except Exception as error:
        raise_within(f"field {name!r}", error)
    return b"".join(packed)


def _record_of(element, value):
    """The value, if it is a record of numpy, or an array without dimensions, with the element's dtype."""
    if not is_numpy(value) or value.shape != ():
        return None
    if value.dtype != element.dtype or hasattr(value, "mask"):
        value = plain_array(value)
        if value.dtype != element.dtype:
            return None
    return value


def _record_or_error(element, value):
    record = _record_of(element, value)
    if record is None:
        raise WrongValue(f"{named(value)} is not a valid {element.layout.type_name}")
    return record
