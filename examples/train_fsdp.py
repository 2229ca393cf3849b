"""Train a small transformer on copied sequences with fully sharded parameters (FSDP2).

torchrun --nproc-per-node 4 examples/train_fsdp.py --backend opticcl
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

TOKENS, LENGTH, WIDTH = 16, 8, 64


class Transformer(nn.Module):
    """Token and position embeddings, encoder layers, a prediction of every token."""

    def __init__(self, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, sequence):
        """Logits of every position."""
        hidden = self.tokens(sequence) + self.positions
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def sequences(count, seed):
    """Random sequences, and the same in reverse, which is what the network learns."""
    given = torch.randint(TOKENS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    return given, given.flip(1)


def main():
    """Train, and print the share of tokens that are right on sequences that were not trained on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="opticcl", help="opticcl or gloo")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Transformer()
    mesh = init_device_mesh("cpu", (size,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    begun = time.perf_counter()
    for step in range(options.steps):
        given, due = (part.chunk(size)[rank] for part in sequences(64, seed=step))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(given).flatten(0, 1), due.flatten()).backward()
        optimizer.step()
    seconds = time.perf_counter() - begun

    given, due = sequences(256, seed=10**6)
    with torch.no_grad():
        correct = (model(given).argmax(2) == due).float().mean()
    dist.all_reduce(correct, op=dist.ReduceOp.AVG if options.backend != "gloo" else dist.ReduceOp.SUM)
    if options.backend == "gloo":
        correct /= size
    if rank == 0:
        print(f"{options.backend}, {size} processes: accuracy {correct.item():.3f}, {seconds:.2f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
