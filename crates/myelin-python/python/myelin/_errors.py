"""The exceptions of the library. A call that raises one has changed nothing: no sample was published or taken.
The message says what to do."""


class Error(Exception):
    """Any error of the library."""


class Closed(Error, ValueError):
    """The object is closed, published, discarded or released."""


class Busy(Error):
    """The object, which one thread at a time may use, is in use: by another thread, or by a call of this thread
    inside which this signal handler or callback runs."""


class WrongValue(Error, TypeError):
    """A value, or a type, that the topic cannot carry."""


class WrongSetting(Error, ValueError):
    """A setting is out of range, a name is not valid, or a type has padding."""


class TypeMismatch(Error):
    """Two endpoints of a topic do not agree on its type."""


class PayloadTooLarge(Error):
    """The payload is larger than `payload_bytes_max`."""


class MemoryLimit(Error):
    """The publisher's slots would need more memory than its `memory_max`."""


class NoMemory(Error, MemoryError):
    """The kernel has no memory for a segment, or the file system of the sockets is full."""


class NoPermission(Error, PermissionError):
    """Someone else's folder, or no access to the latency guard's device."""


class Reentered(Error):
    """A callback inside a publish uses the same publisher. Python's publishers allow that."""


class LayoutVersion(Error):
    """The other side has another version of Myelin."""


class PeerCorrupt(Error):
    """A peer wrote invalid data; it has been disconnected."""


class TooManyHeld(Error):
    """The subscriber already holds `held_max` samples."""


class TooManyLoans(Error):
    """The publisher already has `loans_max` loans."""


class TooMany(Error):
    """A table is full, or there are too many open files."""


class ReliableTimeout(Error, TimeoutError):
    """A publisher with `reliable_or_fail` waited too long for a subscriber."""


class NoServer(Error, TimeoutError):
    """The service has no server."""


class ServerGone(Error):
    """The server of a call has left or died."""


class NoReply(Error):
    """The server dropped a request without a reply."""


class ReplyTimeout(Error, TimeoutError):
    """The reply to a call has not come in time."""


class Forked(Error):
    """The handle was made before a `fork`, and this is the child."""


class NetworkError(Error):
    """The network to other hosts failed."""


class BagError(Error, ValueError):
    """A recording that cannot be read, written or played."""
