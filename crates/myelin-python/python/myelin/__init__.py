"""Topics for robots: typed samples and bytes from process to process without a copy.

    import myelin

    node = myelin.Node("camera")
    publisher = node.topic("image").publisher()
    publisher.publish(b"...")

The guide is `docs/reference/python.md`.
"""

from ._errors import *  # noqa: F403
from ._errors import __dict__ as _errors
from ._native import (
    Callback,
    Called,
    Client,
    Discovery,
    EndpointInfo,
    Event,
    Executor,
    Graph,
    Guard,
    Loan,
    MatchInfo,
    NodeInfo,
    Pending,
    Published,
    Publisher,
    Reply,
    ReplyLoan,
    Request,
    Sample,
    Service,
    Subscriber,
    Timer,
    Topic,
    TypeInfo,
    WaitSet,
    now,
)
from ._node import Node
from ._types import (
    Array,
    FixedString,
    bool8,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    layout_hash,
    u8,
    u16,
    u32,
    u64,
)

__all__ = [name for name in _errors if isinstance(_errors[name], type)] + [
    "Array",
    "Callback",
    "Called",
    "Client",
    "Discovery",
    "EndpointInfo",
    "Event",
    "Executor",
    "FixedString",
    "Graph",
    "Guard",
    "Loan",
    "MatchInfo",
    "Node",
    "NodeInfo",
    "Pending",
    "Published",
    "Publisher",
    "Reply",
    "ReplyLoan",
    "Request",
    "Sample",
    "Service",
    "Subscriber",
    "Timer",
    "Topic",
    "TypeInfo",
    "WaitSet",
    "bool8",
    "f32",
    "f64",
    "i16",
    "i32",
    "i64",
    "i8",
    "layout_hash",
    "now",
    "u16",
    "u32",
    "u64",
    "u8",
]
