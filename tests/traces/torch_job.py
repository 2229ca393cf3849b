"""A job of four ranks on Gloo that records itself: DDP, FSDP2, transfers of a pipeline, an MoE layer; run under torchrun.

Each part is a trace of the profiler; the flight recorder has all of them together, as JSON and as pickle.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile
from torch_sizes import HIDDEN, ROWS

PAIRS = [[0, 2], [1, 3]]


def layers():
    """A small network."""
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Linear(64, 8))


def ddp(rank, pairs):
    """One step of data-parallel training."""
    model = DistributedDataParallel(layers())
    model(torch.randn(4, 32)).sum().backward()


def fsdp(rank, pairs):
    """One step with sharded parameters."""
    model, mesh = layers(), dist.device_mesh.init_device_mesh("cpu", (4,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)(torch.randn(4, 32)).sum().backward()


def pipeline(rank, pairs):
    """Three micro-batches from stage to stage, one batch of transfers around the ring, and one within a pair."""
    data = torch.zeros(500)
    for _ in range(3):
        if rank > 0:
            dist.recv(data, rank - 1)
        if rank < 3:
            dist.send(data, rank + 1)
    ring = [dist.P2POp(dist.isend, data, (rank + 1) % 4), dist.P2POp(dist.irecv, torch.zeros(500), (rank - 1) % 4)]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    if rank < 2:
        dist.send(torch.zeros(7), rank + 2, group=pairs[rank])
    else:
        dist.recv(torch.zeros(7), rank - 2, group=pairs[rank - 2])


def moe(rank, pairs):
    """An uneven all_to_all of rows."""
    into = [row[rank] for row in ROWS]
    dist.all_to_all_single(torch.empty(sum(into), HIDDEN), torch.randn(sum(ROWS[rank]), HIDDEN), into, ROWS[rank])


def main(folder):
    """Run and record all parts."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pairs = [dist.new_group(ranks) for ranks in PAIRS]
    for part in (ddp, fsdp, pipeline, moe):
        (folder / part.__name__).mkdir(parents=True, exist_ok=True)
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
            part(rank, pairs)
        recorded.export_chrome_trace(str(folder / part.__name__ / f"rank{rank}.json"))
    from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

    for name, content in (("json", _dump_fr_trace_json()), ("pickle", _dump_fr_trace())):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / f"fr_{rank}").write_bytes(content)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
