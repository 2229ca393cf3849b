"""Train a small CNN on generated pictures with DistributedDataParallel.

torchrun --nproc-per-node 4 examples/train_ddp.py --backend opticcl
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CLASSES, SIDE = 4, 12


def pictures(count, seed):
    """Bars in four directions with noise, and their directions."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=random)
    images = 0.5 * torch.randn(count, 1, SIDE, SIDE, generator=random)
    place = torch.randint(2, SIDE - 2, (count,), generator=random)
    for image, label, at in zip(images, labels.tolist(), place.tolist(), strict=True):
        if label == 0:
            image[0, at] += 1.5
        elif label == 1:
            image[0, :, at] += 1.5
        else:
            diagonal = torch.eye(SIDE).roll(at - SIDE // 2, 1)
            image[0] += 1.5 * (diagonal if label == 2 else diagonal.flip(1))
    return images, labels


def network():
    """Two convolutions and a classifier."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * (SIDE // 4) ** 2, CLASSES),
    )  # fmt: skip


def main():
    """Train, and print the accuracy on pictures that were not trained on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="opticcl", help="opticcl or gloo")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pictures", type=int, default=2048)
    parser.add_argument("--save", help="write the final parameters to this file")
    options = parser.parse_args()

    dist.init_process_group(options.backend)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = DistributedDataParallel(network())
    data = TensorDataset(*pictures(options.pictures, seed=1))
    sampler = DistributedSampler(data, seed=2)
    loader = DataLoader(data, batch_size=64 // dist.get_world_size(), sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    begun = time.perf_counter()
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    seconds = time.perf_counter() - begun

    images, labels = pictures(512, seed=3)
    with torch.no_grad():
        correct = (model(images).argmax(1) == labels).float().sum()
    dist.all_reduce(correct)
    if dist.get_rank() == 0:
        accuracy = correct.item() / (len(labels) * dist.get_world_size())
        print(f"{options.backend}, {dist.get_world_size()} processes: accuracy {accuracy:.3f}, {seconds:.2f} s")
        if options.save:
            torch.save(model.module.state_dict(), options.save)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
