"""A ROS 2 node without anything of Myelin: it publishes `sensor_msgs/Image` on `camera/image` and prints every
`std_msgs/String` from `camera/remarks`.

    export RMW_IMPLEMENTATION=rmw_myelin     # or leave it out: then both meet through DDS
    python3 camera_node.py                   # and viewer.py in another terminal
"""

import rclpy
from sensor_msgs.msg import Image
from std_msgs.msg import String

HEIGHT, WIDTH = 480, 640
REMARKS = 3

rclpy.init()
node = rclpy.create_node("camera")
publisher = node.create_publisher(Image, "camera/image", 10)
image = Image(height=HEIGHT, width=WIDTH, encoding="rgb8", step=WIDTH * 3)
remarks = []
frame = 0


def expose():
    global frame
    image.header.stamp = node.get_clock().now().to_msg()
    image.header.frame_id = "camera"
    image.data = bytes([min(frame, 255)]) * (HEIGHT * WIDTH * 3)
    publisher.publish(image)
    frame += 1


def remark(message):
    print(f"remark: {message.data}", flush=True)
    remarks.append(message)


node.create_timer(1 / 30, expose)
node.create_subscription(String, "camera/remarks", remark, 10)
while len(remarks) < REMARKS:
    rclpy.spin_once(node)
node.destroy_node()
rclpy.shutdown()
