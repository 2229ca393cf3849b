"""CPU time of collective calls by the backend, against Gloo: medians of runs of both in turn.

torchrun --nproc-per-node 4 benchmarks/torch_calls.py
"""

import argparse
import time
from statistics import median

import torch
import torch.distributed as dist

TARGETS = {
    "all_reduce": {**{1 << k: 2.0 for k in range(10, 20)}, **{1 << k: 1.3 for k in range(20, 27)}},
    "all_gather": {1 << 20: 2.5, 1 << 24: 1.5},
    "reduce_scatter": {1 << 20: 2.5, 1 << 24: 1.5},
}
"""Bytes of each call, and how many times the CPU time of Gloo it may take."""
BYTES_A_RUN = 1 << 24
"""Bytes of the calls of a run together, of at most `CALLS` calls and at least two."""
CALLS = 100


def calls(group, size_bytes):
    """The three collectives on tensors of that size, by name."""
    n = dist.get_world_size()
    whole, part = torch.ones(size_bytes // 4), torch.ones(size_bytes // 4 // n)
    return {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "all_gather": lambda: group._allgather_base(whole, part).wait(),
        "reduce_scatter": lambda: group._reduce_scatter_base(part, whole).wait(),
    }


def cpu_s(call, count):
    """Mean CPU time of a call over all ranks [s]."""
    dist.barrier(group=GLOO)
    begun = time.process_time()
    for _ in range(count):
        call()
    taken = torch.tensor(time.process_time() - begun, dtype=torch.float64)
    dist.all_reduce(taken, group=GLOO)
    return taken.item() / dist.get_world_size() / count


def main():
    """Print a line per collective and size; exit code 1 where a target is missed."""
    global GLOO
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("opticcl")
    GLOO = dist.new_group(backend="gloo")
    missed = False
    for name, targets in TARGETS.items():
        for size_bytes, target in targets.items():
            both = [calls(group, size_bytes)[name] for group in (dist.group.WORLD, GLOO)]
            count = max(2, min(CALLS, BYTES_A_RUN // size_bytes))
            for call in both * 2:
                call()
            runs = [[cpu_s(call, count) for call in both] for _ in range(options.runs)]
            ours, gloos = (median(times) for times in zip(*runs, strict=True))
            missed |= ours > target * gloos
            if dist.get_rank() == 0:
                ratio = f"{ours * 1e3:7.3f} ms, Gloo {gloos * 1e3:7.3f} ms, ratio {ours / gloos:.2f} (target {target})"
                print(f"{name:15} {size_bytes >> 10:6} KiB  {ratio}", flush=True)
    dist.destroy_process_group()
    raise SystemExit(missed)


if __name__ == "__main__":
    main()
