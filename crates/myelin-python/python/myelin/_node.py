"""The node, with types as Python describes them."""

from . import _native
from ._types import SchemaType, carried


class Node(_native.Node):
    __doc__ = _native.Node.__doc__

    def topic(self, name, type=bytes, **settings):
        """The topic with this name and type: `docs/reference/python.md` lists the types.

        depth, transient_local: samples; reliable, reliable_or_fail, deadline: seconds; reliable_keep_last: a bool;
        dds_type, dds_name, dds_cdr: names. Nothing happens until a publisher or subscriber is made from it.
        """
        return self._topic(name, carried(type), **settings)

    def any_topic(self, name, within=1.0, **settings):
        """A topic that another node has, with the type that it has there: its values are dicts, lists,
        numbers, str and bytes; `sample.field(path)` takes one field. Other nodes are asked for the schema,
        for at most `within` seconds. Settings are those of `topic`.
        """
        found = self._any_topic(name, within)
        return self._topic(name, SchemaType(found), any=found, **settings)

    def service(self, name, request, reply):
        """Serves a service: takes requests of one type and replies with another."""
        return self._service(name, carried(request), carried(reply))

    def client(self, name, request, reply):
        """A client of a service. It finds the server on its own, now or when the server starts."""
        return self._client(name, carried(request), carried(reply))
