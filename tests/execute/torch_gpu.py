"""Run under torchrun, one GPU a rank: rank schedules by the sends and receives of NCCL; with one GPU a rank sends to itself."""

import os
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import opticcl
from opticcl.execute.loop import Exchange
from opticcl.execute.ranks import rank_schedules
from opticcl.execute.torch import NcclTransport, TorchExecutor, ddp_hook
from opticcl.execute.torch.executor import TableLayout
from opticcl.execute.torch.reductions import tensor_reduction
from opticcl.fabrics import fabric

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
transport = NcclTransport(dist.group.WORLD, rank, size, device)
executor = TorchExecutor(transport, device)


def plan(collective, algorithm="auto"):
    """A verified plan of all ranks."""
    found = opticcl.compile(fabric("ideal", nodes=size), collective, 1_000_000, algorithm=algorithm)
    found.verify().raise_if_bad()
    return found


def run(schedule, given, result, length):
    """Execute this rank's part on the worker; the result is ready on the device when it returns."""
    own = rank_schedules(schedule)[rank]
    reduce = tensor_reduction("SUM", given.dtype, "cuda")
    layout = TableLayout.of(own, result, length)
    executor.submit(schedule.collective.name, lambda: executor.execute(own, given, result, layout, reduce)).wait()
    return result


# Messages to the next rank; the next of one rank is itself.
sent = torch.arange(1000, device=device) + 1000 * rank
found = torch.zeros_like(sent)
step = Exchange(0, [((rank + 1) % size, sent)], [((rank - 1) % size, found)])
executor.submit("send_recv", lambda: transport.run(iter([step]))).wait()
assert torch.equal(found, torch.arange(1000, device=device) + 1000 * ((rank - 1) % size))

# Collectives on whole numbers: exact, odd lengths too.
everywhere = [np.random.default_rng(r).integers(0, 1000, 1001 * size) for r in range(size)]
own = torch.from_numpy(everywhere[rank]).to(device)
for algorithm in ("auto", "ring"):
    done = own.clone()
    run(plan("all_reduce", algorithm).schedule, done, done, len(done))
    assert np.array_equal(done.cpu().numpy(), sum(everywhere))
block = run(plan("reduce_scatter").schedule, own, own.new_empty(1001), len(own))
assert np.array_equal(block.cpu().numpy(), sum(everywhere)[1001 * rank : 1001 * (rank + 1)])
gathered = run(plan("all_gather").schedule, block, torch.empty_like(own), len(own))
assert np.array_equal(gathered.cpu().numpy(), sum(everywhere))

# A step of training with the communication hook, beside NCCL's own all_reduce.
torch.manual_seed(0)
start = nn.Linear(64, 64).to(device).state_dict()
gradients = []
for hook in (None, ddp_hook(plan("all_reduce").schedule)):
    layer = nn.Linear(64, 64).to(device)
    layer.load_state_dict(start)
    model = DistributedDataParallel(layer, device_ids=[device.index])
    if hook is not None:
        model.register_comm_hook(None, hook)
    model(torch.ones(8, 64, device=device) * (rank + 1)).square().sum().backward()
    gradients.append(layer.weight.grad.clone())
assert torch.allclose(*gradients)

executor.close()
dist.destroy_process_group()
print(f"rank {rank} of {size} done on {torch.cuda.get_device_name(device)}")
