"""Samples for asyncio, by the subscriber's descriptor."""

import asyncio

# So that a task whose samples come faster than it works on them lets others run.
_TURN_MAX = 64


class Samples:
    """The samples of a subscriber, for one task."""

    def __init__(self, subscriber):
        self._subscriber = subscriber
        self._turn = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            sample = self._subscriber.take()
            if sample is not None:
                self._turn += 1
                if self._turn % _TURN_MAX == 0:
                    await asyncio.sleep(0)
                return sample
            await _readable(self._subscriber.fileno())


async def _readable(descriptor):
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(descriptor, lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)
