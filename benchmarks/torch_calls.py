"""CPU time of collective calls by the backend, against Gloo.

torchrun --nproc-per-node 4 benchmarks/torch_calls.py
"""

import argparse
import time

import torch
import torch.distributed as dist

TARGETS = {1 << 20: 2.5, 1 << 24: 1.5}


def calls(group, size_bytes):
    """The three collectives on tensors of that size, by name."""
    n = dist.get_world_size()
    whole, part = torch.ones(size_bytes // 4), torch.ones(size_bytes // 4 // n)
    return {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "all_gather": lambda: group._allgather_base(whole, part).wait(),
        "reduce_scatter": lambda: group._reduce_scatter_base(part, whole).wait(),
    }


def cpu_s(call, batches, calls_a_batch=5):
    """Least of several batches of the mean CPU time of a call over all ranks, which other processes disturb least [s]."""
    found = []
    for _ in range(batches):
        dist.barrier(group=GLOO)
        begun = time.process_time()
        for _ in range(calls_a_batch):
            call()
        taken = torch.tensor(time.process_time() - begun)
        dist.all_reduce(taken, group=GLOO)
        found.append(taken.item() / dist.get_world_size() / calls_a_batch)
    return min(found)


def main():
    """Print a line per collective and size; exit code 1 where a target is missed."""
    global GLOO
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("opticcl")
    GLOO = dist.new_group(backend="gloo")
    missed = False
    for size_bytes, target in TARGETS.items():
        mine, other = calls(dist.group.WORLD, size_bytes), calls(GLOO, size_bytes)
        for name in mine:
            for call in (mine[name], other[name]):
                call()
            ours, gloos = cpu_s(mine[name], options.batches), cpu_s(other[name], options.batches)
            missed |= ours > target * gloos
            if dist.get_rank() == 0:
                ratio = f"{ours * 1e3:7.2f} ms, Gloo {gloos * 1e3:7.2f} ms, ratio {ours / gloos:.2f} (target {target})"
                print(f"{name:15} {size_bytes >> 20:3} MiB  {ratio}", flush=True)
    dist.destroy_process_group()
    raise SystemExit(missed)


if __name__ == "__main__":
    main()
