"""A sensor: a struct, checked on both sides. Run `subscribe`, then `publish`. `subscribe-wrong`, while one
of them waits, shows the error for a program with a different struct.

`python3 typed.py subscribe|publish|subscribe-wrong`
"""

import sys
from dataclasses import dataclass
from typing import Annotated

import myelin

SAMPLES = 5


@dataclass
class Imu:
    """A ctypes.Structure or a numpy dtype of the same fields would be the same type."""

    stamp_ns: myelin.u64
    acceleration: Annotated[tuple[float, ...], myelin.f64 * 3]
    temperature: myelin.f32
    # There must be no padding: the error says so, and where, if this field is missing.
    _pad: Annotated[bytes, myelin.u8 * 4] = bytes(4)


def publish():
    node = myelin.Node("imu-driver")
    publisher = node.topic("imu", Imu).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `typed.py subscribe` within 30 s")
        return
    for number in range(SAMPLES):
        publisher.publish(Imu(number * 10_000_000, (0.0, 0.0, 9.81), 21.5))
    print(f"published {SAMPLES} samples")


def subscribe():
    node = myelin.Node("filter")
    subscriber = node.topic("imu", Imu).subscriber()
    for _ in range(SAMPLES):
        sample = subscriber.receive(timeout=30)
        if sample is None:
            return
        imu = sample.value
        print(f"{imu.stamp_ns} ns: {list(imu.acceleration)} m/s², {imu.temperature:g} °C")


def subscribe_wrong():
    try:
        myelin.Node("old-filter").topic("imu", myelin.f32 * 3).subscriber()
    except myelin.TypeMismatch as error:
        print(error)
    else:
        print("there is no other program on this topic; start `typed.py publish` first")


ROLES = {"publish": publish, "subscribe": subscribe, "subscribe-wrong": subscribe_wrong}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: typed.py publish|subscribe|subscribe-wrong")
    ROLES[sys.argv[1]]()
