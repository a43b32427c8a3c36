"""A camera or a video by OpenCV, decoded straight into shared memory, and a viewer that shows it from there.

    python3 opencv_camera.py view [--save LAST.png]     in one terminal
    python3 opencv_camera.py publish [0 | VIDEO]        in another; 0 is the first camera

With --save the viewer opens no window and saves the last image. It ends when nothing has arrived for 5 s.
(apt-get install python3-opencv, or pip install opencv-python)
"""

import argparse
from dataclasses import dataclass

import cv2
import myelin


@dataclass
class Frame:
    stamp_ns: myelin.u64
    width: myelin.u32
    height: myelin.u32


def camera_topic(node):
    return node.topic("camera", (Frame, bytes), depth=4, transient_local=1)


def publish(source):
    video = cv2.VideoCapture(int(source) if source.isdecimal() else source)
    if not video.isOpened():
        raise SystemExit(f"OpenCV cannot open {source}")
    height, width = (int(video.get(it)) for it in (cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_WIDTH))
    publisher = camera_topic(myelin.Node("camera")).publisher()
    frames = 0
    while video.grab():
        with publisher.loan(height, width, 3) as image:
            image.header = Frame(myelin.now(), width, height)
            video.retrieve(image.array((height, width, 3)))
            image.publish()
        frames += 1
    print(f"published {frames} images of {width} x {height}")


def view(save):
    last = None
    with camera_topic(myelin.Node("viewer")).subscriber() as subscriber:
        while (sample := subscriber.receive(timeout=5 if last else 30)) is not None:
            pixels = sample.array((sample.header.height, sample.header.width, 3))
            if not save:
                cv2.imshow("camera", pixels)
                cv2.waitKey(1)
            last = sample
    if last is None:
        raise SystemExit("no image came within 30 s; start `opencv_camera.py publish`")
    if save:
        cv2.imwrite(save, last.array((last.header.height, last.header.width, 3)))
    print(f"the last image was number {last.sequence}")


arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
roles = arguments.add_subparsers(dest="role", required=True)
roles.add_parser("publish").add_argument("source", nargs="?", default="0")
roles.add_parser("view").add_argument("--save")
chosen = arguments.parse_args()
publish(chosen.source) if chosen.role == "publish" else view(chosen.save)
