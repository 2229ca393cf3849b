"""CPU time of Allreduce of few bytes by the Communicator, against the MPI library: medians of runs of both in turn.

mpiexec -n 2 python benchmarks/mpi_calls.py
"""

import time
from statistics import median

import numpy as np
from mpi4py import MPI

from opticcl.mpi import Communicator

RUNS, CALLS = 7, 300


def main():
    """Print a line for each size, with the median ratio."""
    world = MPI.COMM_WORLD
    ours = Communicator(world)
    for size_bytes in (1 << 10, 1 << 16):
        given = np.ones(size_bytes // 4, np.float32)
        result = np.empty_like(given)

        def cpu_s(comm, given=given, result=result):
            world.Barrier()
            begun = time.thread_time()
            for _ in range(CALLS):
                comm.Allreduce(given, result)
            return world.allreduce(time.thread_time() - begun) / world.size / CALLS

        cpu_s(ours), cpu_s(world)
        mine, theirs = (
            median(times) for times in zip(*((cpu_s(ours), cpu_s(world)) for _ in range(RUNS)), strict=True)
        )
        if world.rank == 0:
            took = f"{mine * 1e6:.1f} us, MPI {theirs * 1e6:.1f} us"
            print(f"{size_bytes >> 10} KiB: {took}, ratio {mine / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
