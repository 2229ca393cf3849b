"""Run under mpiexec: every collective of the Communicator against that of the MPI library."""

import sys

import numpy as np
from mpi4py import MPI

from opticcl.mpi import Communicator

world = MPI.COMM_WORLD
fabric = sys.argv[1] if len(sys.argv) > 1 else None
comm = Communicator(world, fabric=fabric, time_limit="60 s")
n = comm.Get_size()
OPS = [(MPI.SUM, "iuf"), (MPI.PROD, "iuf"), (MPI.MIN, "iuf"), (MPI.MAX, "iuf")]
OPS += [(op, "iu") for op in (MPI.BAND, MPI.BOR, MPI.BXOR)]


def same(mine, due):
    """Bit by bit; sums of these floats are exact."""
    assert mine.tobytes() == due.tobytes(), (mine, due)


for kind in (np.int32, np.int64, np.float32, np.float64, np.uint8):
    for length in (0, 1, 3, 64, 257):
        own = np.random.default_rng([length, world.rank]).integers(0, 4, length * n).astype(kind)
        mine, due = np.zeros_like(own), np.zeros_like(own)
        for op, kinds in OPS:
            if own.dtype.kind in kinds:
                comm.Allreduce(own, mine, op)
                world.Allreduce(own, due, op)
                same(mine, due)
        mine[:] = own
        comm.Allreduce(MPI.IN_PLACE, mine)
        world.Allreduce(own, due)
        same(mine, due)
        block, due_block = np.zeros(length, kind), np.zeros(length, kind)
        comm.Reduce_scatter_block(own, block)
        world.Reduce_scatter_block(own, due_block)
        same(block, due_block)
        comm.Allgather(block, mine)
        world.Allgather(due_block, due)
        same(mine, due)
        mine[:] = 0
        mine[world.rank * length : (world.rank + 1) * length] = block
        comm.Allgather(MPI.IN_PLACE, mine)
        same(mine, due)
        comm.Alltoall(own, mine)
        world.Alltoall(own, due)
        same(mine, due)
        for root in range(n):
            mine, due = own.copy(), own.copy()
            comm.Bcast(mine, root)
            world.Bcast(due, root)
            same(mine, due)
            mine[:] = due[:] = 0
            comm.Reduce(own, mine, root=root)
            world.Reduce(own, due, root=root)
            same(mine, due)
            comm.Gather(block, mine if world.rank == root else None, root)
            world.Gather(block, due if world.rank == root else None, root)
            same(mine, due)
            comm.Scatter(own if world.rank == root else None, block, root)
            world.Scatter(own if world.rank == root else None, due_block, root)
            same(block, due_block)
    comm.Barrier()
if world.rank:
    assert "numba" not in sys.modules  # rank 0 alone compiles and verifies
comm.Free()
print(f"rank {world.rank} done")
