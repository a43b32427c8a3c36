"""Python types as plain data: their memory layout, with the layout hash of the Rust type with the same
fields.

An element is a scalar, an array, a ctypes structure, a numpy dtype, a dataclass, a named tuple, an enum or a
FixedString. A topic's type is an element, `[element]`, or `(element, [element])`. numpy is imported when it is
needed.
"""

import collections.abc
import contextlib
import ctypes
import dataclasses
import enum
import functools
import operator
import struct
import sys
import types
import typing

from . import _native
from ._buffers import (
    BY_FORMAT,
    Within,
    base_of,
    bytes_of,
    is_numpy,
    items_of,
    numpy_module,
    plain_array,
    raw,
    scalar_of,
    short,
    viewed,
)
from ._elements import (
    SCALARS,
    ArrayOf,
    Dataclass,
    Enum,
    Record,
    Structure,
    Text,
    pack_all,
    scalar,
)
from ._errors import Error, WrongValue

u8, u16, u32, u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
i8, i16, i32, i64 = ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64
f32, f64, bool8 = ctypes.c_float, ctypes.c_double, ctypes.c_bool

_BY_DTYPE = {dtype: name for name, (_, dtype) in SCALARS.items()} | {"b1": "bool"}
_OF_PYTHON = {float: "f64", int: "i64", bool: "bool"}


@dataclasses.dataclass(frozen=True)
class FixedString:
    """Text of up to `capacity` bytes of UTF-8, as `FixedString<N>` in Rust; a `str` in values."""

    capacity: int


@dataclasses.dataclass(frozen=True)
class Array:
    """An array of any element: the counterpart of ctypes' `element * length`; a tuple in values."""

    element: object
    length: int


def _fields_of(cls):
    """The fields of a ctypes structure, those of its bases first."""
    for base in reversed(cls.__mro__):
        yield from base.__dict__.get("_fields_", ())


# The meaning of an annotation or of a topic's type.


def _element(kind, inside=()):
    """The memory layout of a type's values; `inside` are the dataclasses around it."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _annotated(kind, inside)
    if isinstance(kind, FixedString):
        return Text(_length(kind.capacity))
    if isinstance(kind, Array):
        return ArrayOf(_element(kind.element, inside), _length(kind.length))
    if isinstance(kind, str) and kind in SCALARS:
        return scalar(kind)
    if hasattr(kind, "__supertype__"):
        return _element(kind.__supertype__, inside)
    if origin is typing.Final:
        return _element(typing.get_args(kind)[0], inside)
    if origin is tuple:
        first, *others = typing.get_args(kind) or (None,)
        if all(other == first for other in others):
            return ArrayOf(_element(first, inside), 1 + len(others))
    if _is_composed(origin or kind):
        if kind in inside:
            raise WrongValue(f"{kind!r} contains itself; take the number of an element instead")
        cls, hints = origin or kind, _hints_of(kind).items()
        names = [(name, f"{cls.__name__}.{name}", hint) for name, hint in hints]
        return Dataclass(cls, _elements(names, (*inside, kind)))
    if _is_class(kind):
        if kind in _OF_PYTHON:
            return scalar(_OF_PYTHON[kind])
        if issubclass(kind, enum.Enum):
            return _of_enum(kind, scalar("i64"))
        if issubclass(kind, ctypes.Structure):
            if issubclass(kind, ctypes.BigEndianStructure):
                raise WrongValue(f"{kind.__name__} is big-endian; samples have the byte order of the machine")
            if not hasattr(kind, "_fields_"):
                raise WrongValue(f"{kind.__name__} has no _fields_ yet")
            fields = list(_fields_of(kind))
            names = [(name, f"{kind.__name__}.{name}", of) for name, of, *_ in fields]
            for name, _, *bits in fields:
                if bits:
                    raise WrongValue(f"{kind.__name__}.{name} is a bit field; take a whole integer")
            return Structure(kind, _elements(names, inside))
        if issubclass(kind, ctypes.Array):
            return ArrayOf(_element(kind._type_, inside), kind._length_)
        if issubclass(kind, ctypes._SimpleCData):
            return _ctypes_scalar(kind)
    if _is_of_numpy(kind):
        return _of_dtype(sys.modules["numpy"].dtype(kind), inside)
    raise WrongValue(f"{short(kind)} is not plain data: {_remedy(kind, origin)}")


def _elements(names, inside):
    """The elements of fields, given as name, name in errors, and type."""
    elements = []
    for name, where, kind in names:
        with Within(where):
            elements.append((name, _element(kind, inside)))
    return elements


def _remedy(kind, origin):
    if origin in (typing.Union, types.UnionType):
        return "a field cannot be absent: use a value that means none (such as math.nan), or a bool beside it"
    if kind is str:
        return "take Annotated[str, myelin.FixedString(32)], or bytes as the topic's type"
    if _is_bytes(kind):
        return "an element has a fixed size: take Annotated[bytes, myelin.u8 * 32]"
    if kind is list or kind is tuple or origin in (list, tuple, collections.abc.Sequence):
        return (
            "an element has a fixed size: take Annotated[list, myelin.f64 * 3] or myelin.Array(T, 3); "
            "for a number of elements that each sample chooses, take [T] or (Header, [T]) as the topic's type"
        )
    if isinstance(kind, typing.TypeVar):
        return "give its type, as in Pair[float]"
    if isinstance(kind, (list, tuple)):
        return "a list or a pair is the type of a topic, not of an element"
    return (
        "take a ctypes structure, a numpy dtype, a dataclass, a NamedTuple, an enum, a number (float, "
        "int, bool, or of a size as myelin.u16), an array of these as `myelin.f64 * 3`, or a "
        "FixedString; for a number of elements that each sample chooses, [element] or bytes"
    )


def _annotated(kind, inside):
    """The element for the first argument of an `Annotated` that is a type here. Others are ignored."""
    said, *words = typing.get_args(kind)
    word = next((word for word in words if _is_kind(word)), None)
    if word is None:
        return _element(said, inside)
    element = _element(word, inside)
    return _of_enum(said, element) if _is_enum(said) else element


def _is_kind(word):
    if _is_class(word):
        of_ctypes = (ctypes.Structure, ctypes.Array, ctypes._SimpleCData)
        if word in _OF_PYTHON or issubclass(word, of_ctypes) or _is_composed(word):
            return True
    is_named = isinstance(word, str) and word in SCALARS
    return is_named or isinstance(word, (FixedString, Array)) or _is_of_numpy(word)


def _is_of_numpy(kind):
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    return isinstance(kind, numpy.dtype) or (_is_class(kind) and issubclass(kind, numpy.generic))


def _is_class(kind):
    # In Python 3.10, `list[float]` claims to be a class.
    return isinstance(kind, type) and typing.get_origin(kind) is None


def _is_composed(kind):
    """Whether it is a dataclass or a named tuple with annotations."""
    if not _is_class(kind):
        return False
    return dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def _is_bytes(kind):
    # Not `in`: a dtype of numpy compares as equal to `bytes`.
    return any(kind is each for each in (bytes, bytearray, memoryview))


def _is_enum(kind):
    return _is_class(kind) and issubclass(kind, enum.Enum)


def _of_enum(cls, element):
    for member in cls.__members__.values():
        with Within(f"{cls.__name__}.{member.name}"):
            element.pack(member.value)
    return Enum(cls, element)


def _hints_of(kind):
    """The fields of a dataclass or a named tuple, and their types."""
    cls = typing.get_origin(kind) or kind
    if dataclasses.is_dataclass(cls):
        names = {field.name: field.type for field in dataclasses.fields(cls)}
    else:
        names = {name: cls.__annotations__.get(name) for name in cls._fields}
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:
        hints = {name: _hint_of(cls, name, told) for name, told in names.items()}
    variables = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(kind)))
    return {name: _filled_in(hints.get(name), variables) for name in names}


def _hint_of(cls, name, told):
    """The type of one field; the error names the field."""
    owners = [base for base in cls.__mro__ if name in base.__dict__.get("__annotations__", ())]
    owner = owners[0] if owners else cls
    alone = type(owner.__name__, (), {"__annotations__": {name: told}})
    alone.__module__ = owner.__module__
    try:
        return typing.get_type_hints(alone, None, dict(vars(owner)), include_extras=True)[name]
    except Exception as error:
        raise WrongValue(
            f"{cls.__name__}.{name}: the annotation {told!r} cannot be resolved ({error}). An annotation "
            "that is a string, as all are under `from __future__ import annotations`, can use names of "
            f"the module {owner.__module__} only: define or import the type there, not in a function and "
            "not under TYPE_CHECKING"
        ) from None


def _filled_in(hint, variables):
    if isinstance(hint, typing.TypeVar):
        return variables.get(hint, hint)
    wanted = getattr(hint, "__parameters__", ())
    if wanted and not _is_class(hint) and all(each in variables for each in wanted):
        return hint[tuple(variables[each] for each in wanted)]
    return hint


def _length(length):
    """The length of an array or a text."""
    try:
        number = operator.index(length)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise WrongValue(f"{length!r} is not a length; use an int of at least 0")
    return number


def _ctypes_scalar(kind):
    code = kind._type_
    if getattr(kind, f"__ctype_{sys.byteorder[0]}e__", kind) is not kind:
        raise WrongValue(f"{kind.__name__} has the other byte order; samples have the byte order of the machine")
    name = BY_FORMAT.get((code, ctypes.sizeof(kind)))
    if name is None:
        raise WrongValue(
            f"{kind.__name__} is not plain data: pointers, wide characters and long doubles mean nothing "
            "in another process"
        )
    return scalar(name)


def _of_dtype(dtype, inside):
    if not dtype.isnative:
        raise WrongValue(f"{dtype} has the other byte order; samples have the byte order of the machine")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        element = _element(base, inside)
        for length in reversed(shape):
            element = ArrayOf(element, length)
        return element
    if dtype.names is not None:
        names = [(name, f"field {name!r}", dtype.fields[name][0]) for name in dtype.names]
        return Record(dtype, _elements(names, inside))
    name = _BY_DTYPE.get(dtype.str[1:])
    if name is None:
        raise WrongValue(f"{dtype} is not plain data: take integers, f4, f8, bool, or a structure of such")
    return scalar(name)


class SchemaType:
    """The type that a schema describes: a value is a dict, a list, a number, a str or bytes."""

    def __init__(self, topic):
        self.topic = topic
        self.native = topic.native

    def value(self, memory):
        return self.topic.value(memory)

    def field(self, memory, path):
        part = self.topic.field(memory, path)
        if not isinstance(part, _native.Numbers):
            return part
        numpy = numpy_module()
        dtype = numpy.dtype(part.dtype)
        view = memoryview(memory).cast("B")[part.offset :]
        count = functools.reduce(operator.mul, part.shape, 1)
        return numpy.frombuffer(view, dtype, count=count).reshape(part.shape)

    def header(self, memory):
        raise WrongValue("take a field by its name: sample.field(name)")

    def array(self, memory, shape, dtype):
        numpy = numpy_module()
        array = numpy.frombuffer(memory, numpy.uint8 if dtype is None else dtype)
        return array if shape is None else array.reshape(shape)

    def set_header(self, memory, value):
        raise WrongValue("publish a dict: publisher.publish({...})")

    def pack(self, value):
        return self.topic.pack(value)


class Carried:
    """A payload type: one element, a slice of elements, or a header and a slice."""

    def __init__(self, kind):
        self.head = None
        if typing.get_origin(kind) is list:
            kind = list(typing.get_args(kind))
        self.is_slice = isinstance(kind, (list, tuple)) or _is_bytes(kind)
        elements = kind
        if isinstance(kind, tuple):
            if len(kind) != 2 or not (isinstance(kind[1], list) or _is_bytes(kind[1])):
                raise WrongValue(
                    f"{short(kind)} is not a topic type: a pair is a header and its elements, as "
                    "(Header, [float]) or (Header, bytes); several fields are a dataclass"
                )
            header, elements = kind
            self.head = _element(header)
        if isinstance(elements, list):
            if len(elements) != 1:
                raise WrongValue(
                    f"{short(elements)} is not a topic type: a list holds the one type of its "
                    "elements, as [float]"
                )
            self.element = _element(elements[0])
        else:
            self.element = scalar("u8") if _is_bytes(elements) else _element(elements)
        self.is_bytes = self.is_slice and self.element is scalar("u8")
        name = "header_slice" if self.head else "slice" if self.is_slice else "value"
        arguments = {}
        if self.head:
            arguments = {"header": self.head.layout}
        elif self.element.shape is not None:
            code = SCALARS[self.element.scalar][0]
            size = struct.calcsize("=" + code)
            shape = list(self.element.shape)
            arguments = {"format": code, "item_bytes": size, "element_shape": shape}
        self.native = _native.Type(name, self.element.layout, **arguments)
        self.offset = self.native.elements_offset if self.is_slice else 0
        self._pack = (
            self._pack_pair if self.head else self._pack_elements if self.is_slice else self.element.pack
        )

    # Reading: `memory` is a buffer of a sample.

    def value(self, memory):
        view = bytes_of(memory)
        if not self.is_slice:
            return self.element.read(view, 0)
        if self.is_bytes:
            elements = bytes(view[self.offset :])
        else:
            step = self.element.layout.bytes
            elements = [self.element.read(view, at) for at in range(self.offset, len(view), step)]
        return (self.head.read(view, 0), elements) if self.head else elements

    def field(self, memory, path):
        raise WrongValue(
            f"{self.native.name} is a type of this program: take `sample.value`; `field` is for topics of "
            "`any_topic`"
        )

    def header(self, memory):
        return self._header().read(bytes_of(memory), 0)

    def array(self, memory, shape, dtype):
        numpy = numpy_module()
        dtype = self.element.dtype if dtype is None else numpy.dtype(dtype)
        base, inner = base_of(dtype)
        array = numpy.frombuffer(memory, base, offset=self.offset if self.head else 0)
        if shape is not None:
            return array.reshape(shape)
        return array.reshape((-1, *inner) if self.is_slice else inner)

    # Writing.

    def set_header(self, memory, value):
        packed = bytes(self._packed(self._header().pack, value))
        bytes_of(memory)[: len(packed)] = packed

    def pack(self, value):
        """A buffer of the bytes of a value."""
        return self._packed(self._pack, value)

    def _packed(self, pack, value):
        """Errors of other code become an error that names the value."""
        try:
            return pack(value)
        except (Error, MemoryError):
            raise
        except Exception as error:
            raise WrongValue(f"{short(value)} is not a valid {self.native.name}: {error}") from error

    def _pack_pair(self, value):
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise WrongValue(f"{short(value)} is not a valid {self.native.name}: take a pair (header, elements)")
        with Within("the header"):
            header = bytes(self.head.pack(value[0])).ljust(self.offset, b"\0")
        with Within("the elements"):
            return b"".join([header, self._pack_elements(value[1])])

    def _header(self):
        if self.head is None:
            raise WrongValue(f"{self.native.name} has no header; a type with one is (Header, [element])")
        return self.head

    def _pack_elements(self, value):
        element = self.element
        if self.is_bytes:
            return raw(value)
        if is_numpy(value):
            return self._pack_array(value)
        source, view = viewed(value)
        if view is None:
            return self._pack_items(source, view)
        if source is not value:
            return self._pack_array(source)
        if element.shape is not None and scalar_of(view) == element.scalar:
            if view.shape[max(view.ndim - len(element.shape), 0) :] == element.shape:
                return view if view.c_contiguous else view.tobytes()
        if isinstance(value, ctypes.Array):
            if _element(value._type_).layout.hash == element.layout.hash:
                return value
        return self._pack_items(source, view)

    def _pack_items(self, source, view):
        element = self.element
        items = items_of(source, view, element.scalar, self.native.name)
        return pack_all(element, items)

    def _pack_array(self, array):
        numpy = sys.modules["numpy"]
        base, inner = self.shape_of_dtype
        dtype = array.dtype
        if dtype is not base or type(array) is not numpy.ndarray:
            array = plain_array(array)
            dtype = array.dtype
        if (dtype is base or dtype == base) and (not inner or array.shape[-len(inner) :] == inner):
            return numpy.ascontiguousarray(array)
        if array.dtype.names is not None and array.dtype.names == base.names:
            return pack_all(self.element, array.ravel())
        raise WrongValue(
            f"an array of {array.dtype}{list(array.shape)} is not a valid {self.native.name}; convert it "
            "(array.astype), or publish its values (array.tolist())"
        )

    @functools.cached_property
    def shape_of_dtype(self):
        return base_of(self.element.dtype)


_CACHE = {}


def carried(kind):
    """The payload type for a topic's type. Cached for types that can be keys."""
    try:
        return _CACHE[kind]
    except Exception:
        pass  # it is new, or has no hash
    try:
        made = Carried(kind)
    except (Error, MemoryError):
        raise
    except Exception as error:
        raise WrongValue(f"{short(kind)} is not a topic type: {error}") from error
    with contextlib.suppress(Exception):
        _CACHE[kind] = made
    return made


def layout_hash(kind):
    """The hash that two endpoints compare: equal to that of the Rust type with the same fields."""
    return carried(kind).native.hash
