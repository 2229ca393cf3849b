"""Run under mpiexec: every collective of the Communicator against that of the MPI library, on every kind of buffer."""

import array
import logging
import sys
import tempfile
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
from mpi4py import MPI

from opticcl.errors import ParameterError
from opticcl.mpi import Communicator

warnings = []
logging.getLogger("opticcl").addHandler(logging.Handler())
logging.getLogger("opticcl").handlers[0].emit = lambda record: warnings.append(record.getMessage())

world = MPI.COMM_WORLD
fabric = sys.argv[1] if len(sys.argv) > 1 else None
comm = Communicator(world, fabric=fabric, time_limit="60 s")
n = comm.Get_size()
OPS = [(MPI.SUM, "iuf"), (MPI.PROD, "iuf"), (MPI.MIN, "iuf"), (MPI.MAX, "iuf")]
OPS += [(op, "iu") for op in (MPI.BAND, MPI.BOR, MPI.BXOR)]


def same(mine, due):
    """Bit by bit; sums of these floats are exact."""
    assert mine.tobytes() == due.tobytes(), (mine, due)


for kind, repetition in product((np.int32, np.int64, np.float32, np.float64, np.uint8), range(3)):
    for length in (0, 1, 3, 64, 257) if kind is np.int32 else (3, 64):
        own = np.random.default_rng([length, world.rank, repetition]).integers(0, 4, length * n).astype(kind)
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


# --- kinds of buffers, beside the MPI library -----------------------------------------------------------------------------


class OnlyDLPack:
    """An array that exports its memory by DLPack alone."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


class OnlyCuda:
    """An array that exports its memory as CUDA arrays do."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__array_interface__


class OnDevice:
    """Memory at an address that this process cannot read."""

    __cuda_array_interface__ = {"data": (64, False), "shape": (4,), "typestr": "<f8", "version": 3}  # noqa: RUF012


vector = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
indexed = MPI.DOUBLE.Create_indexed([1, 2], [3, 0]).Commit()
wide = vector.Create_resized(0, 40).Commit()
pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT]).Create_resized(0, 16).Commit()
PLAIN = {
    "array": lambda a, n: a[:n],
    "list with a type": lambda a, n: [a[:n], MPI.DOUBLE],
    "count": lambda a, n, blocks=1: [a, n // blocks],
    "count and type": lambda a, n, blocks=1: (a, n // blocks, MPI.DOUBLE),
    "displacement": lambda a, n, blocks=1: [a, (n // blocks, 1), MPI.DOUBLE],
    "four": lambda a, n, blocks=1: [a, n // blocks, 2, "d"],
    "memoryview": lambda a, n: memoryview(a[:n]),
    "bytes of numbers": lambda a, n: [a[:n].view(np.uint8), MPI.DOUBLE],
    "Fortran": lambda a, n: a[:n].reshape(-1, n // 2).T if n % 2 == 0 else a[:n],
    "DLPack": lambda a, n: OnlyDLPack(a[:n]),
    "CUDA": lambda a, n: OnlyCuda(a[:n]),
}
GAPS = {
    "vector": lambda a, n, blocks=1: [a, n // blocks // 2, wide],
    "indexed": lambda a, n, blocks=1: [a, n // blocks // 3, indexed],
    "pairs": lambda a, n, blocks=1: [a, n // blocks, pair],
}


def buffers(form, values, blocks):
    """A buffer of that form in memory of its own, filled with values: (memory, specification, elements)."""
    memory = np.array(values)
    length = {"vector": 2, "indexed": 3, "pairs": 3}.get(form, 6) * blocks
    made = {**PLAIN, **GAPS}[form]
    whole = made(memory, length, blocks) if "blocks" in made.__code__.co_varnames else made(memory, length)
    return memory, whole, length


def calls(name, given, into, root):
    """Arguments of a collective of mpi4py."""
    mine = world.rank == root
    return {
        "Allreduce": (given, into), "Reduce_scatter_block": (given, into), "Allgather": (given, into),
        "Alltoall": (given, into), "Bcast": (into, root), "Reduce": (given, into if mine else None, MPI.SUM, root),
        "Gather": (given, into if mine else None, root), "Scatter": (given if mine else None, into, root),
    }[name]  # fmt: skip


BLOCKS = {
    "Allreduce": (1, 1), "Reduce_scatter_block": (n, 1), "Allgather": (1, n), "Alltoall": (n, n), "Bcast": (1, 1),
    "Reduce": (1, 1), "Gather": (1, n), "Scatter": (n, 1),
}  # fmt: skip
REDUCING = ("Allreduce", "Reduce_scatter_block", "Reduce")


def compared(name, make_given, make_into, root):
    """One collective by both; all memory must be equal afterwards."""
    results = []
    for by in (world, comm):
        held, given = make_given()
        into_held, into = make_into()
        getattr(by, name)(*calls(name, given, into, root))
        results.append((held, into_held))
    (held, into_held), (mine, mine_into) = results
    same(mine, held)
    same(mine_into, into_held)


for name, (of, to) in BLOCKS.items():
    forms = list(PLAIN) + ([] if name in REDUCING else list(GAPS))
    for at, form in enumerate(forms):
        root = at % n
        values = np.arange(40.0 * n) + 1000 * world.rank
        compared(
            name,
            lambda form=form, values=values, of=of: buffers(form, values, of)[:2],
            lambda form=form, values=values, to=to: buffers(form, -values - 1, to)[:2],
            root,
        )
    for place in (MPI.IN_PLACE, None):  # None is IN_PLACE to mpi4py
        if name == "Bcast":
            continue
        for root in range(n):
            alone = name in ("Reduce", "Gather", "Scatter") and world.rank != root
            count = n if name == "Reduce_scatter_block" else to
            values = np.arange(3.0 * count) + 100 * world.rank

            def given(values=values, of=of, alone=alone, name=name, place=place):  # noqa: D103
                if name == "Scatter":
                    return (held := np.arange(3.0 * of) + 7), held
                return ((held := values[:3].copy()), held) if alone else (values[:0], place)

            def into(values=values, alone=alone, name=name, place=place):  # noqa: D103
                return (values[:0], place) if name == "Scatter" and not alone else ((held := values.copy()), held)

            compared(name, given, into, root)
    comm.Barrier()

# what is kept for a call of one form serves others of that form: one array for both, other memory, another operation
for _ in range(3):
    in_place, other, into = (np.full(5, float(world.rank + i)) for i in range(3))
    comm.Allreduce(in_place, in_place)
    comm.Allreduce(other, into)
    assert into.tolist() == [n * (n + 1) / 2] * 5
    comm.Allreduce(other, into, op=MPI.MAX)
    assert into.tolist() == [float(n)] * 5
    comm.Allreduce([other, MPI.DOUBLE], (into, 5, MPI.DOUBLE), op=MPI.MIN)
    assert into.tolist() == [1.0] * 5
    comm.Allreduce([other, 3, MPI.DOUBLE], [into, (3, 2), MPI.DOUBLE])
    assert into.tolist() == [1.0] * 2 + [n * (n + 1) / 2] * 3
    comm.Bcast(other, n - 1)
    assert other.tolist() == [float(n)] * 5
    only_read = np.full(64, float(world.rank))
    only_read.flags.writeable = world.rank != n - 1
    comm.Bcast(only_read, n - 1)
    assert only_read.tolist() == [n - 1.0] * 64
four = np.arange(4.0)
at_address = MPI.DOUBLE.Create_hindexed([4], [MPI.Get_address(four)]).Commit()
for _ in range(4):  # rank 0 gives an absolute address, which MPI carries, where the others call what is kept
    for by_address in (False, True):
        into = four if world.rank == 0 else np.zeros(4)
        comm.Bcast([MPI.BOTTOM, 1, at_address] if by_address and world.rank == 0 else into, 0)
        assert into.tolist() == four.tolist()
warnings.clear()
for length in range(1, 100):  # more than are kept
    for _ in range(3):
        comm.Allreduce(np.ones(length), into := np.zeros(length))
        assert into.tolist() == [n] * length

for kind in (bytearray, lambda data: array.array("B", data)):
    mine = kind(bytes(range(world.rank, world.rank + 5)))
    comm.Bcast(mine, root=n - 1)
    assert bytes(mine) == bytes(range(n - 1, n + 4))
mine, due = [np.array([(2.0, 1)], "f8,i4"), np.zeros(1, "f8,i4")], np.zeros(3)
root = world.rank == 0
comm.Bcast(
    [due + 3, 3, MPI.DOUBLE] if root else [due, 1, MPI.DOUBLE.Create_contiguous(3).Commit()]
)  # two types, one signature
assert root or due.tolist() == [3, 3, 3]
comm.Gather(b"ab", bytearray(2 * n) if root else None)
assert comm.allgather(world.rank) == list(range(n))


# --- what has no schedule, and what a communicator is -----------------------------------------------------------------------


def add_twice(source, target, datatype):
    """An operation of the user."""
    np.frombuffer(target)[:] = np.frombuffer(source) + 2 * np.frombuffer(target)


own = MPI.Op.Create(add_twice, commute=True)
mine, due = np.zeros(2), np.zeros(2)
for _ in range(3):
    comm.Allreduce(np.ones(2) * world.rank, mine, own)
    world.Allreduce(np.ones(2) * world.rank, due, own)
same(mine, due)
places = np.array([(1.0 + world.rank, world.rank)], [("value", "f8"), ("rank", "i4")])
found = np.zeros_like(places)
comm.Allreduce([places, 1, MPI.DOUBLE_INT], [found, 1, MPI.DOUBLE_INT], MPI.MAXLOC)
assert found.tolist() == [(n, n - 1)]
assert len(warnings) == (1 if root else 0)
assert not root or "MPI itself carries Allreduce that have no schedule: rank 0: an operation" in warnings[0]
assert isinstance(comm, MPI.Intracomm)
assert MPI.Comm.Compare(comm, world) == MPI.IDENT
assert type(comm.Dup()) is type(comm.Split(0, world.rank)) is MPI.Intracomm
MPI.Win.Allocate(8, comm=comm).Free()
folder = comm.bcast(tempfile.mkdtemp() if root else None)
MPI.File.Open(comm, f"{folder}/x", MPI.MODE_CREATE | MPI.MODE_WRONLY).Close()
assert comm.Barrier() is None
if root:
    (Path(folder) / "x").unlink()
    Path(folder).rmdir()


# --- arguments that differ between ranks, and those that no rank may give ----------------------------------------------------


def refused(call):
    """The words in which a call is refused; None if it is not."""
    try:
        call()
    except ParameterError as error:
        return str(error)
    return None


def drawn(draw):
    """A call with drawn arguments, right or wrong."""
    name, length, kind, root = draw(list(BLOCKS)), draw((2, 2, 3)), draw(("f8", "f8", "i8", "f4")), draw(range(n))
    of, to = BLOCKS[name]
    given, into = (np.ones(length * blocks + draw((0, 0, 0, 1)), kind) for blocks in (of, to))
    given = draw((given, given, given, MPI.IN_PLACE, [1, 2], given[::2], np.array(["x"], object)))
    into.flags.writeable = draw((True, True, True, False))
    return name, calls(name, given, into, root)


shared, alone = Random(3), Random(world.rank)
count = 0
for _ in range(150):
    seed = shared.random()
    name, arguments = drawn(Random(seed).choice)
    if shared.random() < 0.7 and world.rank == shared.randrange(n):
        name, arguments = drawn(alone.choice)
    words = world.allgather(refused(lambda name=name, given=arguments: getattr(comm, name)(*given)))
    assert words == words[:1] * n, (name, words)
    count += words[0] is not None
    assert words[0] is None or "\n" not in words[0]
    same(np.array(comm.allreduce(1)), np.array(n))
    comm.Barrier()
assert 20 < count < 150
four = np.ones(4)
for bad, words in [
    (np.ones((4, 4))[:, 0], "the array is not contiguous; try numpy.ascontiguousarray"),
    ([four, 5, MPI.DOUBLE], "5 elements of 8 bytes at 0 are more than 32 bytes hold"),
    ([four, (2, 3), MPI.DOUBLE], "2 elements of 8 bytes at 24 are more than 32 bytes hold"),
    ([four, 2, vector], "2 elements of the type reach beyond the 32 bytes"),
    ([four, -1, MPI.DOUBLE], "count -1 is negative"),
    ([four, 1.5], "count 1.5 is not a whole number"),
    ([np.ones(3, "u1"), MPI.DOUBLE], "3 bytes are not a multiple of elements of 8 bytes; give a count"),
    ([four, "no type"], "'no type' is not a code of a type"),
    ([four, 1, 7], "int is not an MPI type"),
    ([four, 1, MPI.DATATYPE_NULL], "MPI.DATATYPE_NULL is not a type"),
    ([four], "list of 1 items is not a buffer"),
    ([1, 2], "int is not memory; try a NumPy array"),
    (OnDevice(), "the memory is that of a device; copy it to the host"),
    (np.array([None]), "an array of Python objects has no MPI type"),
    (None, "None is not memory"),
]:
    found = refused(lambda given=bad: comm.Bcast(given, n - 1))
    assert found == f"Bcast: rank 0: {found.partition('rank 0: ')[2]}"
    assert words in found, found
if world.rank:
    assert "numba" not in sys.modules  # rank 0 alone compiles and verifies
comm.Free()
print(f"rank {world.rank} done")
