"""What can go wrong. Nothing has happened when a call raises one: no sample was published or taken. The
message says what to do."""


class Error(Exception):
    """Any error of the library."""


class Closed(Error, ValueError):
    """What was used is closed, published, discarded or released."""


class Busy(Error):
    """What one thread at a time may use is in use: by another thread, or by a call of this thread that a signal
    handler or a callback has come out of."""


class WrongValue(Error, TypeError):
    """A value, or a type, that the topic cannot carry."""


class WrongSetting(Error, ValueError):
    """A setting is out of range, a name is none, or a type has padding."""


class TypeMismatch(Error):
    """Two endpoints of a topic do not agree on its type."""


class PayloadTooLarge(Error):
    """The payload is beyond `payload_bytes_max`."""


class MemoryLimit(Error):
    """The publisher's slots would need more memory than its `memory_max`."""


class NoMemory(Error, MemoryError):
    """The kernel has no memory for a segment, or the file system of the sockets is full."""


class NoPermission(Error, PermissionError):
    """Someone else's folder, or no access to the latency guard's device."""


class Reentered(Error):
    """A callback that a publish runs has come back to the same publisher. Python's publishers allow that."""


class LayoutVersion(Error):
    """The other side is of another version of Myelin."""


class PeerCorrupt(Error):
    """A peer wrote nonsense; it has been disconnected."""


class TooManyHeld(Error):
    """The subscriber holds `held_max` samples."""


class TooManyLoans(Error):
    """The publisher has `loans_max` loans out."""


class TooMany(Error):
    """A table is full, or there are too many open files."""


class ReliableTimeout(Error, TimeoutError):
    """A publisher with `reliable_or_fail` waited in vain for a subscriber."""


class NoServer(Error, TimeoutError):
    """Nobody serves a service."""


class ServerGone(Error):
    """The server of a call has left or died."""


class NoReply(Error):
    """The server let go of a request without a reply."""


class ReplyTimeout(Error, TimeoutError):
    """The reply to a call has not come in time."""


class Forked(Error):
    """The handle was made before a `fork`, and this is the child."""


class NetworkError(Error):
    """The way to other hosts failed."""
