"""Callbacks end before the interpreter does."""

import atexit
import weakref

_alive = weakref.WeakSet()


def keep(callback):
    _alive.add(callback)


@atexit.register
def _close_all():
    for callback in list(_alive):
        callback.close()
