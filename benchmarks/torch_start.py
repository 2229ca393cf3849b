"""Wall time of the first all_reduce of a process group, from before `init_process_group`.

torchrun --nproc-per-node 2 benchmarks/torch_start.py opticcl
"""

import sys
import time

import torch
import torch.distributed as dist


def main(backend):
    """Print the seconds of rank 0."""
    torch.set_num_threads(1)
    begun = time.perf_counter()
    dist.init_process_group(backend)
    dist.all_reduce(torch.ones(4))
    taken = time.perf_counter() - begun
    if dist.get_rank() == 0:
        print(f"{backend}: {taken:.3f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
