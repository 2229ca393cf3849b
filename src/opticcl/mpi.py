"""Collectives of mpi4py by verified OptiCCL schedules.

A script that uses the upper-case collectives of mpi4py on NumPy arrays changes one line::

    from mpi4py import MPI
    from opticcl.mpi import Communicator

    comm = Communicator(MPI.COMM_WORLD, fabric="lightpath:shape=2x4")
    comm.Allreduce(gradients, sums)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from opticcl.collective import Request
from opticcl.errors import ParameterError
from opticcl.execute.failures import report_failures, text_of_error
from opticcl.execute.loop import Scratch, run_rank
from opticcl.execute.mpi import MpiTransport, from_rank_0, load_mpi
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.reductions import numpy_reduction
from opticcl.ir import Fabric
from opticcl.plans.rank_plans import RankPlanner, size_class
from opticcl.units import quantity

__all__ = ["Communicator"]

_OPS = ("SUM", "PROD", "MIN", "MAX", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR")


Collective = TypeVar("Collective", bound=Callable[..., None])


class _UnusableError(ParameterError):
    """An argument that no collective takes, found on this rank alone."""


def _collective(method: Collective) -> Collective:
    """A collective that reports to all ranks where one of them cannot take part."""

    @wraps(method)
    def call(self: Communicator, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except _UnusableError as error:
            self._agree(method.__name__, method.__name__, str(error))

    return cast("Collective", call)


class Communicator:
    """An mpi4py communicator whose upper-case collectives execute OptiCCL schedules; everything else is that of `comm`.

    Collectives: Allreduce, Allgather, Reduce_scatter_block, Alltoall, Bcast, Reduce, Gather, Scatter, Barrier, on contiguous
    NumPy arrays. Rank 0 compiles and verifies a plan for each collective, root and power of two of the size, once, and sends
    every rank its schedule. Before data move, all ranks compare collective, type, length and operation.

    Args:
        comm: an mpi4py communicator; it is duplicated, so other messages do not interfere.
        fabric: a fabric, or "name:key=value,..."; None: an ideal switch. Rank r is node r.
        algorithm: "name:key=value,..." or "auto", the fastest on that fabric.
        time_limit: longest duration of a step, "300 s" or seconds; the process ends with a message when it is exceeded. None:
            no limit.
        abort: whether an uncaught exception on one rank ends all processes.
    Raises: UnsupportedError: mpi4py is not installed. ParameterError: an invalid time limit.
    """

    def __init__(
        self,
        comm: Any,
        *,
        fabric: Fabric | str | None = None,
        algorithm: str = "auto",
        time_limit: str | float | None = 300.0,
        abort: bool = True,
    ) -> None:
        self._mpi = load_mpi()
        limit_s = None if time_limit is None else quantity(time_limit, "s", "time_limit")
        if limit_s is not None and limit_s <= 0:
            raise ParameterError(f"time_limit={time_limit} is not positive; try 300 s")
        self._comm = comm
        self._own = comm.Dup()
        self._transport = MpiTransport(self._own, limit_s)
        self._planner = RankPlanner(comm.size, fabric, algorithm)
        self._schedules: dict[tuple[str, int, int], RankSchedule] = {}
        self._scratch = Scratch()
        if abort and comm.size > 1:
            report_failures(comm.rank, self._own.Abort, others=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def __repr__(self) -> str:
        return f"<Communicator rank {self._comm.rank} of {self._comm.size}>"

    @_collective
    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> None:  # noqa: N802 (names of mpi4py)
        """Reduce arrays of all ranks; every rank gets the result.

        Args:
            sendbuf: contribution, or MPI.IN_PLACE: the contribution is `recvbuf`.
            recvbuf: result, of the same shape and type.
            op: MPI.SUM (default), PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR or LXOR.
        """
        result = _flat(recvbuf)
        given = result if self._in_place(sendbuf) else _flat(sendbuf)
        self._run("all_reduce", 0, given, result, len(result), op)

    @_collective
    def Reduce(self, sendbuf: Any, recvbuf: Any = None, op: Any = None, root: int = 0) -> None:  # noqa: N802
        """Reduce arrays of all ranks; the root gets the result.

        Args:
            sendbuf: contribution; MPI.IN_PLACE on the root: the contribution is `recvbuf`.
            recvbuf: result, on the root.
            op: as in `Allreduce`.
            root: rank.
        """
        result = _flat(recvbuf) if self._comm.rank == root else None
        given = result if self._in_place(sendbuf) else _flat(sendbuf)
        assert given is not None
        self._run("reduce", root, given, result, len(given), op)

    @_collective
    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> None:  # noqa: N802
        """Reduce arrays of all ranks; rank r gets block r of the result.

        Args:
            sendbuf: contribution, of `size` times the elements of `recvbuf`.
            recvbuf: block of the result.
            op: as in `Allreduce`.
        """
        given, result = _flat(sendbuf), _flat(recvbuf)
        self._run("reduce_scatter", 0, given, result, len(result) * self._comm.size, op)

    @_collective
    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather the blocks of all ranks on every rank.

        Args:
            sendbuf: block of this rank, or MPI.IN_PLACE: it is in `recvbuf` already.
            recvbuf: all blocks in rank order, of `size` times the elements of a block.
        """
        result = _flat(recvbuf)
        block = len(result) // self._comm.size
        own = result[self._comm.rank * block : (self._comm.rank + 1) * block]
        given = own if self._in_place(sendbuf) else _flat(sendbuf)
        self._run("all_gather", 0, given, result, len(given) * self._comm.size)

    @_collective
    def Gather(self, sendbuf: Any, recvbuf: Any = None, root: int = 0) -> None:  # noqa: N802
        """Gather the blocks of all ranks on the root.

        Args:
            sendbuf: block of this rank.
            recvbuf: all blocks in rank order, on the root.
            root: rank.
        """
        given = _flat(sendbuf)
        result = _flat(recvbuf) if self._comm.rank == root else None
        self._run("gather", root, given, result, len(given) * self._comm.size)

    @_collective
    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:  # noqa: N802
        """Send block r of the root's array to rank r.

        Args:
            sendbuf: all blocks in rank order, on the root.
            recvbuf: block of this rank.
            root: rank.
        """
        result = _flat(recvbuf)
        given = _flat(sendbuf) if self._comm.rank == root else None
        self._run("scatter", root, given, result, len(result) * self._comm.size)

    @_collective
    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Send block r of every rank's array to rank r.

        Args:
            sendbuf: blocks for all ranks.
            recvbuf: blocks from all ranks, of the same size.
        """
        given, result = _flat(sendbuf), _flat(recvbuf)
        self._run("all_to_all", 0, given, result, len(result))

    @_collective
    def Bcast(self, buf: Any, root: int = 0) -> None:  # noqa: N802
        """Send the root's array to all ranks.

        Args:
            buf: data on the root, result elsewhere.
            root: rank.
        """
        array = _flat(buf)
        self._run("broadcast", root, array if self._comm.rank == root else None, array, len(array))

    @_collective
    def Barrier(self) -> None:  # noqa: N802
        """Wait for all ranks."""
        token = np.zeros(1, np.uint8)
        self._run("barrier", 0, token, token, 1)

    def Free(self) -> None:  # noqa: N802
        """Free the duplicate and end the watchdog; the communicator of the caller stays."""
        self._transport.close()
        self._own.Free()

    def _in_place(self, buf: Any) -> bool:
        return buf is self._mpi.IN_PLACE or (isinstance(buf, int) and buf == self._mpi.IN_PLACE)

    def _run(
        self, name: str, root: int, given: np.ndarray | None, result: np.ndarray | None, length: int, op: Any = None
    ) -> None:
        some = given if given is not None else result
        assert some is not None
        reduction = self._reduction(op)
        error = text_of_error(lambda: _check(name, root, self._comm.size, given, result, length))
        self._agree(name, f"{name} root {root} {reduction} {some.dtype.str} of {length} elements", error)
        reduce = numpy_reduction(reduction, some.dtype)
        key = (name, root, size_class(length * some.dtype.itemsize))
        if key not in self._schedules:
            self._schedules[key] = self._shared(Request(name, root), length * some.dtype.itemsize)
        run_rank(self._schedules[key], self._transport.run, given, result, length, reduce, self._scratch)

    def _reduction(self, op: Any) -> str:
        """Name of an operation.

        Raises: ParameterError: none of those that OptiCCL knows.
        """
        if op is None:
            return "sum"
        found = [name for name in _OPS if op == getattr(self._mpi, name)]
        if not found:
            raise _UnusableError(f"this MPI operation has no schedule; try one of MPI.{', MPI.'.join(_OPS)}")
        return found[0].lower()

    def _agree(self, name: str, call: str, error: str | None) -> None:
        """Compare the call of all ranks before data move.

        Raises: ParameterError: on every rank, where they differ or one of them is invalid.
        """
        self._transport.label = name
        digest = int.from_bytes(hashlib.blake2b(f"{call}{error}".encode(), digest_size=7).digest(), "little")
        found = self._transport.compare([digest, int(error is not None)])
        if error is None and (found == found[0]).all():
            return
        calls = self._own.allgather((call, error))
        for rank, (_, problem) in enumerate(calls):
            if problem is not None:
                raise ParameterError(f"{name}: rank {rank}: {problem}")
        other = next(rank for rank, made in enumerate(calls) if made[0] != calls[0][0])
        raise ParameterError(f"rank 0 calls {calls[0][0]}, rank {other} calls {calls[other][0]}; all must be equal")

    def _shared(self, request: Request, size_bytes: int) -> RankSchedule:
        """Compile on rank 0, send every rank its schedule.

        Raises: ParameterError: on every rank, where rank 0 cannot compile it.
        """

        def make() -> tuple[None, list[RankSchedule]]:
            return None, self._planner(request, size_bytes)

        return from_rank_0(self._own, make)[1]


def _flat(buf: Any) -> np.ndarray:
    """A buffer of mpi4py as a flat view.

    Raises: _UnusableError: no contiguous NumPy array.
    """
    array = buf[0] if isinstance(buf, (list, tuple)) and buf else buf
    if not isinstance(array, np.ndarray):
        raise _UnusableError(f"a {type(buf).__name__} is not a NumPy array; try numpy.array")
    if not array.flags.c_contiguous:
        raise _UnusableError("the array is not contiguous; try numpy.ascontiguousarray")
    return array.reshape(-1)


def _check(name: str, root: int, size: int, given: np.ndarray | None, result: np.ndarray | None, length: int) -> None:
    """Raises: ParameterError: lengths or types do not fit together."""
    if not 0 <= root < size:
        raise ParameterError(f"root={root} is not 0 to {size - 1}")
    blocks = name in ("reduce_scatter", "all_to_all", "scatter", "all_gather", "gather")
    if blocks and length % size:
        raise ParameterError(f"{length} elements do not divide among {size} ranks")
    if given is not None and result is not None and given.dtype != result.dtype:
        raise ParameterError(f"the types {given.dtype} and {result.dtype} differ")
    whole, block = length, length // size
    due = {
        "reduce_scatter": (whole, block),
        "all_gather": (block, whole),
        "gather": (block, whole),
        "scatter": (whole, block),
    }.get(name, (whole, whole))
    for what, array, expected in (("sendbuf", given, due[0]), ("recvbuf", result, due[1])):
        if array is not None and len(array) != expected:
            raise ParameterError(f"{what} has {len(array)} elements, not {expected}")
