"""A camera: images whose size is known only at run time, written straight into shared memory and read
there, as numpy arrays, in a callback. Nothing is copied.

`python3 image.py subscribe`, and in another terminal `python3 image.py publish`. Both end by themselves.
"""

import sys
import threading

import myelin

FRAMES = 10


def publish():
    node = myelin.Node("camera")
    publisher = node.topic("image", bytes, reliable=10).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `image.py subscribe` within 30 s")
        return
    for frame in range(FRAMES):
        width, height = (320, 240) if frame % 2 == 0 else (1440, 1080)
        with publisher.loan(height, width, 3) as image:
            image.array((height, width, 3))[:] = frame  # the exposure
            image.publish()
    print(f"published {FRAMES} images")


def subscribe():
    node = myelin.Node("viewer")
    finished = threading.Event()

    def show(image):
        print(f"image {image.sequence}: {image.nbytes} B, brightness {int(image.array().mean())}")
        if image.sequence + 1 == FRAMES:
            finished.set()

    with node.topic("image", bytes, reliable=10).subscriber().on_sample(show):
        if not finished.wait(60):
            print("not all images came within 60 s; start `image.py publish`")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: image.py publish|subscribe")
    ROLES[sys.argv[1]]()
