"""Run in processes on several hosts: collectives over the addresses between them, and the time that the link takes."""

import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("opticcl")
rank, size = dist.get_rank(), dist.get_world_size()
numbers = torch.arange(250_000, dtype=torch.int32) + rank
dist.all_reduce(numbers)
assert torch.equal(numbers, size * torch.arange(250_000, dtype=torch.int32) + size * (size - 1) // 2)
gathered = [torch.empty(3) for _ in range(size)]
dist.all_gather(gathered, torch.full((3,), float(rank)))
assert torch.equal(torch.stack(gathered)[:, 0], torch.arange(float(size)))
pair = dist.new_group([0, 1])
dist.broadcast(numbers, 1, group=pair)
dist.barrier()
begun = time.perf_counter()
dist.all_reduce(torch.ones(250_000))
seconds = time.perf_counter() - begun
dist.barrier()
addresses = [None] * size
with open("/proc/self/net/fib_trie") as routes:
    own = sorted({line.split()[-1] for line in routes if line.strip().startswith("|-- 10.")})
dist.all_gather_object(addresses, own)
dist.destroy_process_group()
print(f"rank {rank} done in {seconds:.6f} s, addresses {addresses}, master {os.environ['MASTER_ADDR']}")
