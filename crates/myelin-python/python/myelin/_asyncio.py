"""Samples for asyncio, by the subscriber's descriptor."""

import asyncio
import os

from ._errors import Closed

# A task whose samples come faster than it handles them lets other tasks run after so many.
_TURN_MAX = 64


class Samples:
    """The samples of a subscriber, for one task, until the subscriber is closed."""

    def __init__(self, subscriber):
        self._subscriber = subscriber
        self._turn = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            while True:
                sample = self._subscriber.take()
                if sample is not None:
                    self._turn += 1
                    if self._turn % _TURN_MAX == 0:
                        await asyncio.sleep(0)
                    return sample
                await _readable(self._subscriber)
        except Closed:
            raise StopAsyncIteration from None


async def _readable(subscriber):
    """Waits until there may be a sample, or the subscriber is closed."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def wake():
        readable.done() or readable.set_result(None)

    subscriber._on_close(lambda: loop.call_soon_threadsafe(wake))
    try:
        # A duplicate, because the subscriber's number may become another file's after its close.
        descriptor = os.dup(subscriber.fileno())
        loop.add_reader(descriptor, wake)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
    finally:
        subscriber._on_close(None)
