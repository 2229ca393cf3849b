"""Wall time of training the CNN of examples/train_ddp.py with DistributedDataParallel, beside Gloo.

torchrun --nproc-per-node 4 benchmarks/torch_ddp.py
"""

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import train_ddp

BATCH = 64


def trainer(group, iterations):
    """A function that trains for some iterations by a group, and returns their wall time [s]."""
    torch.manual_seed(0)
    model = DistributedDataParallel(train_ddp.network(), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    size, rank = dist.get_world_size(), dist.get_rank()
    images, labels = (part.chunk(size)[rank] for part in train_ddp.pictures(BATCH, seed=1))

    def train():
        dist.barrier()
        begun = time.perf_counter()
        for _ in range(iterations):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        return time.perf_counter() - begun

    return train


def main():
    """Print the median over rounds of the ratio of both; within a round one follows the other, so that others disturb both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--iterations", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("opticcl")
    gloo = dist.new_group(backend="gloo")
    ours, theirs = (trainer(group, options.iterations) for group in (dist.group.WORLD, gloo))
    ours(), theirs()
    rounds = [(ours(), theirs()) for _ in range(options.rounds)]
    if dist.get_rank() == 0:
        each = [min(times) / options.iterations * 1e3 for times in zip(*rounds, strict=True)]
        ratio = median(mine / other for mine, other in rounds)
        print(
            f"iteration {each[0]:.2f} ms, Gloo {each[1]:.2f} ms, ratio {ratio:.2f}, of the least {each[0] / each[1]:.2f}"
        )
    sys.stdout.flush()
    dist.barrier()
    os._exit(0)  # models on Gloo that are freed now and then wait for a thread of Gloo for ever


if __name__ == "__main__":
    main()
