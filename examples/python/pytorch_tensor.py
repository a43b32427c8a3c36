"""Images as PyTorch tensors on the CPU: the tensor lies in shared memory, on both sides.

`python3 pytorch_tensor.py subscribe`, and in another terminal `python3 pytorch_tensor.py publish`. Both end by
themselves. (pip install torch numpy)
"""

import sys
import warnings

import myelin
import torch

# PyTorch has no read-only tensors, and warns. Do not write to a tensor of a sample: its memory is every
# subscriber's, mapped read-only, and the process would end by SIGSEGV. `tensor.clone()` may be written to.
warnings.filterwarnings("ignore", "The given buffer is not writable")

SHAPE = (3, 240, 320)
TENSORS = 10


def tensor_topic(node):
    return node.topic("tensor", [myelin.f32], reliable=10)


def publish():
    publisher = tensor_topic(myelin.Node("camera")).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `pytorch_tensor.py subscribe` within 30 s")
        return
    for number in range(TENSORS):
        with publisher.loan(*SHAPE) as loan:
            tensor = torch.from_numpy(loan.array(SHAPE))
            torch.full(SHAPE, number / TENSORS, out=tensor)
            del tensor  # it could still write after the publish
            loan.publish()
    print(f"published {TENSORS} tensors")


def subscribe():
    with tensor_topic(myelin.Node("detector")).subscriber() as subscriber:
        for _ in range(TENSORS):
            sample = subscriber.receive(timeout=30)
            if sample is None:
                print("not all tensors came within 30 s; start `pytorch_tensor.py publish`")
                return
            tensor = torch.frombuffer(sample, dtype=torch.float32).view(SHAPE)
            print(f"tensor {sample.sequence}: mean {tensor.mean():.1f}")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: pytorch_tensor.py publish|subscribe")
    ROLES[sys.argv[1]]()
