"""Run under torchrun: record two iterations of training by a backend with the PyTorch profiler."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

backend, file = sys.argv[1:]
dist.init_process_group(backend)
model = DistributedDataParallel(torch.nn.Linear(300, 300))
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
    for _ in range(2):
        model(torch.ones(4, 300)).sum().backward()
    some = torch.ones(1000)
    dist.all_reduce(some)
    dist.all_gather([torch.empty(1000) for _ in range(dist.get_world_size())], some)
    dist.broadcast(some, 0)
    dist.barrier()
if dist.get_rank() == 0:
    recorded.export_chrome_trace(file)
dist.destroy_process_group()
