from . import _native
from ._types import SchemaType


class BagReader(_native.BagReader):
    __doc__ = _native.BagReader.__doc__

    def messages(self, topic=None, *, start_ns=None, end_ns=None, by="log"):
        """The messages of a topic, of a list of topics or of all, in order of time: from `start_ns` on and
        before `end_ns`, in ns since 1970. `by`: the time at which they were recorded ("log") or published
        ("publish").
        """
        topics = [topic] if isinstance(topic, str) else topic
        return self._messages(topics, start_ns, end_ns, by, SchemaType)
