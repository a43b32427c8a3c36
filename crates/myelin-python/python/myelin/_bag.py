"""Recordings: their messages as Python objects, and as arrays of numpy."""

from . import _native
from ._buffers import numpy_module
from ._types import SchemaType


class MessageType(SchemaType):
    """How the messages of a channel are read."""

    def array(self, message):
        numpy = numpy_module()
        offset, dtype, count = self.topic.view(message)
        dtype = numpy.dtype(dtype)
        if count is None:
            return _from_buffer(numpy, message, dtype, 1, offset)[0, ...]
        return _from_buffer(numpy, message, dtype, count, offset)


class BagReader(_native.BagReader):
    __doc__ = _native.BagReader.__doc__

    def array(self, topic, field="", *, start=None, end=None, by="log"):
        """All messages of a topic as a structured array, with one copy: `publish_time_ns`, `log_time_ns`,
        `sequence` and `value`, which is the whole value of plain data, or the field with this path: a number, or
        an array with the same length in each message.
        """
        numpy = numpy_module()
        rows, dtype = self._rows(topic, field, start, end, by)
        dtype = numpy.dtype(dtype)
        return numpy.frombuffer(rows, dtype) if memoryview(rows).nbytes else numpy.empty(0, dtype)


def _from_buffer(numpy, buffer, dtype, count, offset):
    """A view of the buffer. Of a dtype that is an array itself, numpy makes more dimensions."""
    if count == 0 or dtype.itemsize == 0:
        return numpy.empty(count, dtype)
    octets = numpy.frombuffer(buffer, numpy.uint8, count * dtype.itemsize, offset)
    base = dtype.base
    return octets.view(base).reshape(count, *dtype.shape)
