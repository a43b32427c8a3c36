"""Python values as buffers: numpy's arrays, memoryviews, `array.array`, ctypes' arrays and samples, with any
strides. And errors that say where in a value or a type they occurred."""

import collections.abc
import re
import sys

from ._errors import Error, WrongValue

# The scalar of a buffer's items, by format and size: the sizes of C's types differ.
BY_FORMAT = {
    **{(code, size): f"i{8 * size}" for code in "bhilqn" for size in (1, 2, 4, 8)},
    **{(code, size): f"u{8 * size}" for code in "BHILQN" for size in (1, 2, 4, 8)},
    **{("c", 1): "u8", ("f", 4): "f32", ("d", 8): "f64", ("?", 1): "bool"},
}
_NATIVE_ORDER = "@=<" if sys.byteorder == "little" else "@=>!"
# Pointers in a format. A field has its name between colons; "Z" before a float is a complex number.
_POINTERS = re.compile(r"^([^:]|:[^:]*:)*?([OPzX&]|Z(?![fdg]))")
_NO_BUFFERS = frozenset([list, tuple, str, float, int, bool])


def viewed(value):
    """The value and a memoryview of it; None if it is not a buffer. A numpy array is replaced by one in the
    byte order of the machine."""
    if type(value) in _NO_BUFFERS:
        return value, None
    if is_numpy(value):
        value = plain_array(value)
    try:
        return value, memoryview(value)
    except TypeError:
        pass
    if hasattr(value, "__array__") and not is_numpy(value):
        array = plain_array(numpy_module().asarray(value))
        return array, memoryview(array)
    return value, None


def plain_array(array):
    """The array without a mask, in the byte order of the machine."""
    masks = sys.modules.get("numpy.ma")
    if masks is not None and isinstance(array, masks.MaskedArray):
        if masks.is_masked(array):
            raise WrongValue("a masked array has no values where its mask is: take array.filled(...)")
        array = array.data
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def scalar_of(view):
    """The scalar type of its items; None for other items."""
    return BY_FORMAT.get((view.format.lstrip(_NATIVE_ORDER), view.itemsize))


def raw(value):
    """The bytes of a buffer, of text, or of a list of them."""
    if isinstance(value, str):
        return value.encode()
    source, view = viewed(value)
    if view is None:
        return bytes(items_of(source, view, "u8", "bytes"))
    if _POINTERS.search(view.format):
        raise WrongValue(f"pointers mean nothing in another process: a buffer of {view.format!r}")
    if view.c_contiguous:
        return view
    return numpy_module().ascontiguousarray(source) if is_numpy(source) else view.tobytes()


def items_of(source, view, scalar, type_name):
    """The elements one by one. `scalar` is the wanted scalar type, if they are numbers."""
    if view is None:
        if isinstance(source, (str, collections.abc.Set, collections.abc.Mapping)):
            raise WrongValue(f"{named(source)} is not a list of {type_name}")
        return list(source)
    if view.ndim == 0:
        raise WrongValue(f"one value is not a list of {type_name}")
    is_bytes = isinstance(source, (bytes, bytearray, memoryview)) and view.format == "B"
    if is_bytes and scalar != "u8":
        raise WrongValue(f"bytes are not a valid {type_name}; give their format: memoryview(value).cast(format)")
    if type(source) is not memoryview and hasattr(type(source), "__iter__"):
        return list(source)
    return view.tolist()


def bytes_of(memory):
    view = memoryview(memory)
    if view.format == "B" and view.ndim == 1:
        return view
    # A view of several dimensions and no elements cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(b"")


def numpy_module():
    try:
        import numpy
    except ImportError as error:
        raise WrongValue("this needs numpy; install it: pip install numpy") from error
    return numpy


def base_of(dtype):
    """The innermost dtype of an array of arrays, and the whole shape."""
    shape = ()
    while dtype.subdtype is not None:
        dtype, outer = dtype.subdtype
        shape += outer
    return dtype, shape


def is_numpy(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.void))


class Within:
    """Puts a place before the text of errors raised inside."""

    def __init__(self, where):
        self.where = where

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception):
            raise_within(self.where, error)


def raise_within(where, error):
    """Raises `error` as a WrongValue at this place. Other errors of the library are not changed."""
    text, cause = str(error), error.__cause__
    if not isinstance(error, WrongValue):
        if isinstance(error, (Error, MemoryError)):
            raise error
        text, cause = f"{type(error).__name__}: {text}", error
    raise WrongValue(where + ("" if text.startswith("[") else ": ") + text) from cause


def named(value):
    cls = type(value)
    module = "" if cls.__module__ in ("builtins", "__main__") else cls.__module__ + "."
    return f"a value of the class {module}{cls.__qualname__}"


def short(value):
    try:
        text = repr(value)
    except Exception:
        return named(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
