"""Collectives of mpi4py by verified OptiCCL schedules.

A script that uses the upper-case collectives of mpi4py changes one line::

    from mpi4py import MPI
    from opticcl.mpi import Communicator

    comm = Communicator(MPI.COMM_WORLD, fabric="lightpath:shape=2x4")
    comm.Allreduce(gradients, sums)
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from opticcl.collective import Request
from opticcl.errors import ParameterError
from opticcl.execute.calls import check_buffers
from opticcl.execute.failures import report_failures
from opticcl.execute.loop import Scratch, run_rank
from opticcl.execute.mpi import MpiTransport, from_rank_0, load_mpi
from opticcl.execute.mpi_buffers import Held, NoScheduleError, held
from opticcl.execute.mpi_small import CallCheck, SmallCall, is_small
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.reductions import numpy_reduction
from opticcl.ir import Fabric
from opticcl.plans.rank_plans import RankPlanner, size_class
from opticcl.units import quantity

__all__ = ["Communicator"]

MPI = load_mpi()
LOG = logging.getLogger("opticcl")
OPS = {
    getattr(MPI, name).handle: name.lower()
    for name in ("SUM", "PROD", "MIN", "MAX", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR")
}
CONTIGUOUS_AND_WRITEABLE = np.zeros(1).flags.num
PLAN_S = 300.0
"""Least time that rank 0 has to make a plan [s]."""
IS_WRONG, HAS_NO_SCHEDULE = 1, 2
KEPT = 64
"""Small calls that are remembered at most; all of them are forgotten when one more comes [count]."""


class _Call(NamedTuple):
    """What one rank calls.

    Args:
        name: of the collective.
        root: rank, 0 where there is none.
        given: what it holds at the start, flat; None if nothing.
        result: filled with its result; None if it gets nothing.
        length: elements of the whole message [count].
        reduction: by name; None: it only moves data.
        held: buffers to unpack at the end.
    """

    name: str
    root: int
    given: np.ndarray | None
    result: np.ndarray | None
    length: int
    reduction: str | None = None
    held: Held | None = None

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        some = self.given if self.given is not None else self.result
        assert some is not None
        return some.dtype

    def places(self, args: tuple[Any, ...]) -> tuple[int | None, int | None] | None:
        """Which arguments are the input and the result, as they are; None where another array is."""
        ends = list[int | None]()
        for array, which in ((self.given, 0), (self.result, -1)):  # the input comes first, should both be one array
            at = [i for i, given in enumerate(args) if array is not None and _is_all_of(given, array)]
            if array is not None and not at:
                return None
            ends.append(at[which] if at else None)
        return ends[0], ends[1]

    def check(self, size: int) -> Callable[..., None] | None:
        """The reduction, where the call has one.

        Raises: ParameterError: lengths, types or the operation do not fit together.
        """
        if not 0 <= self.root < size:
            raise ParameterError(f"root={self.root} is not 0 to {size - 1}")
        check_buffers(self.name, size, self.given, self.result, self.length, ("sendbuf", "recvbuf"))
        return numpy_reduction(self.reduction, self.dtype) if self.reduction is not None else None


class _Asked(NamedTuple):
    """What one rank asks the others.

    Args:
        method: name of mpi4py.
        label: for messages.
        text: the call in words.
        state: 0, or why no schedule executes it: IS_WRONG, HAS_NO_SCHEDULE.
        why: in words.
        head: digests of the text and of the method, and the state, int64 (3,).
    """

    method: str
    label: str
    text: str
    state: int
    why: str
    head: np.ndarray

    @classmethod
    def of(cls, method: str, call: _Call | None, state: int, why: str) -> _Asked:
        """What a rank asks that makes this call, or cannot make it."""
        label, text = method, method
        if call is not None:
            label = call.name
            text = f"{call.name} root {call.root} {call.reduction or 'of'} {call.dtype.str} of {call.length} elements"
        head = np.array([_digest(text), _digest(method), state])
        return cls(method, label, text, state, why, head)


Collective = TypeVar("Collective", bound=Callable[..., Any])


def _collective(method: Collective) -> Collective:
    """A collective that all ranks agree on: executed, refused on all of them, or handed to the MPI library by all."""

    name = method.__name__
    names = (name,)

    @wraps(method)
    def call(self: Communicator, *args: Any, **kwargs: Any) -> None:
        values = (*args, *kwargs.values()) if kwargs else args
        form = _form((name, *kwargs) if kwargs else names, values)
        known = self._known.get(form)
        if known is not None:
            kept, asked, plain, given_at, result_at = known
            memories = values if plain else _memories(values)
            given = None if given_at is None else memories[given_at]
            if not self._perform(asked, kept, given, None if result_at is None else memories[result_at]):
                getattr(self._comm, name)(*args, **kwargs)
            return
        made: _Call | None = None
        reduce: Callable[..., None] | None = None
        state, why = 0, ""
        try:
            made = method(self, *args, **kwargs)
            reduce = made.check(self._comm.size)
        except ParameterError as error:
            state, why = IS_WRONG, str(error)
        except NoScheduleError as error:
            state, why = HAS_NO_SCHEDULE, str(error)
        except Exception as error:  # of Python or MPI on this rank alone: the others wait for its word
            state, why = IS_WRONG, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        asked = _Asked.of(name, made, state, why)
        small = self._small.get(asked.text) if state == 0 else None
        given, result = (None, None) if made is None else (made.given, made.result)
        if not self._perform(asked, small, given, result):
            getattr(self._comm, name)(*args, **kwargs)
            return
        assert made is not None
        if small is None:
            self._execute(made, reduce, asked)
        elif form is not None and (places := made.places(_memories(values))) is not None:
            plain = all(one is other for one, other in zip(_memories(values), values, strict=True))
            self._known[form] = small, asked, plain, *places
        if made.held is not None:
            made.held.store()

    return cast("Collective", call)


class Communicator(MPI.Intracomm):  # type: ignore[misc,name-defined]
    """An mpi4py communicator whose upper-case collectives execute OptiCCL schedules; everything else is that of `comm`.

    Collectives: Allreduce, Allgather, Reduce_scatter_block, Alltoall, Bcast, Reduce, Gather, Scatter, Barrier, on the buffers
    that mpi4py takes (`opticcl.execute.mpi_buffers`). Rank 0 compiles and verifies a plan for each collective, root and power
    of two of the size, once, and sends every rank its schedule. Before data move, all ranks compare collective, type, length
    and operation. What has no schedule, such as operations of the user, the MPI library carries on `comm`; a warning of the
    logger "opticcl" says so once.

    Args:
        comm: an mpi4py communicator of one group; it is duplicated, so other messages do not interfere.
        fabric: a fabric, or "name:key=value,..."; None: an ideal switch. Rank r is node r.
        algorithm: "name:key=value,..." or "auto", the fastest on that fabric.
        time_limit: longest duration of a step, "300 s" or seconds; the process ends with a message when it is exceeded. None:
            no limit.
        abort: whether an uncaught exception on one rank ends all processes.
    Raises: ParameterError: an invalid time limit, or no such communicator. Importing this module raises UnsupportedError where
        mpi4py is not installed.
    """

    def __new__(cls, comm: Any, **_: Any) -> Communicator:
        """A second name of the caller's communicator."""
        if not isinstance(comm, MPI.Intracomm):
            raise ParameterError(
                f"Communicator: {type(comm).__name__} is not a communicator of one group; try MPI.COMM_WORLD"
            )
        return super().__new__(cls, comm)

    def __init__(
        self,
        comm: Any,
        *,
        fabric: Fabric | str | None = None,
        algorithm: str = "auto",
        time_limit: str | float | None = 300.0,
        abort: bool = True,
    ) -> None:
        limit_s = None if time_limit is None else quantity(time_limit, "s", "time_limit")
        if limit_s is not None and limit_s <= 0:
            raise ParameterError(f"time_limit={time_limit} is not positive; try 300 s")
        self._comm = comm
        self._own = comm.Dup()
        self._transport = MpiTransport(self._own, limit_s)
        self._planner = RankPlanner(comm.size, fabric, algorithm)
        self._schedules: dict[tuple[str, int, int], RankSchedule] = {}
        self._comparison = CallCheck(self._own, self._transport)
        self._once: set[str] = set()
        self._small: dict[str, SmallCall] = {}
        self._known: dict[Any, tuple[SmallCall, _Asked, bool, int | None, int | None]] = {}
        self._scratch = Scratch()
        self._passed: set[str] = set()
        if abort and comm.size > 1:
            report_failures(comm.rank, self._own.Abort, others=True)

    def __repr__(self) -> str:
        return f"<Communicator rank {self._comm.rank} of {self._comm.size}>"

    @_collective
    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> Any:  # noqa: N802 (names of mpi4py)
        """Reduce arrays of all ranks; every rank gets the result.

        Args:
            sendbuf: contribution, or MPI.IN_PLACE: the contribution is `recvbuf`.
            recvbuf: result, of as many elements of the same type.
            op: MPI.SUM (default), PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR or LXOR; MPI itself executes any other.
        """
        reduction = _reduction(op)
        into = held(recvbuf, 1, writes=True)
        given = into if _in_place(sendbuf) else held(sendbuf, 1, writes=False)
        return _reducing(_Call("all_reduce", 0, given.array, into.array, len(into.array), reduction), given, into)

    @_collective
    def Reduce(self, sendbuf: Any, recvbuf: Any = None, op: Any = None, root: int = 0) -> Any:  # noqa: N802
        """Reduce arrays of all ranks; the root gets the result.

        Args:
            sendbuf: contribution; MPI.IN_PLACE on the root: the contribution is `recvbuf`.
            recvbuf: result, on the root.
            op: as in `Allreduce`.
            root: rank.
        """
        reduction = _reduction(op)
        into = held(recvbuf, 1, writes=True) if self.rank == root else None
        given = into if into is not None and _in_place(sendbuf) else self._sent(sendbuf, 1)
        result = None if into is None else into.array
        return _reducing(_Call("reduce", root, given.array, result, len(given.array), reduction), given, into)

    @_collective
    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> Any:  # noqa: N802
        """Reduce arrays of all ranks; rank r gets block r of the result.

        Args:
            sendbuf: contribution, of `size` times the elements of `recvbuf`; MPI.IN_PLACE: it is `recvbuf`, and the block is
                written to its beginning.
            recvbuf: block of the result.
            op: as in `Allreduce`.
        """
        reduction = _reduction(op)
        into = held(recvbuf, self.size if _in_place(sendbuf) else 1, writes=True)
        if _in_place(sendbuf):
            given, result = Held(into.array.copy(), into.layout), into.array[: len(into.array) // self.size]
        else:
            given, result = held(sendbuf, self.size, writes=False), into.array
        call = _Call("reduce_scatter", 0, given.array, result, len(result) * self.size, reduction)
        return _reducing(call, given, into)

    @_collective
    def Allgather(self, sendbuf: Any, recvbuf: Any) -> Any:  # noqa: N802
        """Gather the blocks of all ranks on every rank.

        Args:
            sendbuf: block of this rank, or MPI.IN_PLACE: it is in `recvbuf` already.
            recvbuf: all blocks in rank order, of `size` times the elements of a block.
        """
        into = held(recvbuf, self.size, writes=True)
        given = self._block(into) if _in_place(sendbuf) else held(sendbuf, 1, writes=False).array
        return _Call("all_gather", 0, given, into.array, len(given) * self.size, held=into)

    @_collective
    def Gather(self, sendbuf: Any, recvbuf: Any = None, root: int = 0) -> Any:  # noqa: N802
        """Gather the blocks of all ranks on the root.

        Args:
            sendbuf: block of this rank; MPI.IN_PLACE on the root: it is in `recvbuf` already.
            recvbuf: all blocks in rank order, on the root.
            root: rank.
        """
        into = held(recvbuf, self.size, writes=True) if self.rank == root else None
        given = self._block(into) if into is not None and _in_place(sendbuf) else self._sent(sendbuf, 1).array
        result = None if into is None else into.array
        return _Call("gather", root, given, result, len(given) * self.size, held=into)

    @_collective
    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Any:  # noqa: N802
        """Send block r of the root's array to rank r.

        Args:
            sendbuf: all blocks in rank order, on the root.
            recvbuf: block of this rank; MPI.IN_PLACE on the root: it stays in `sendbuf`.
            root: rank.
        """
        given = held(sendbuf, self.size, writes=False).array if self.rank == root else None
        if given is not None and _in_place(recvbuf):
            return _Call("scatter", root, given, np.empty(len(given) // self.size, given.dtype), len(given))
        into = held(recvbuf, 1, writes=True)
        return _Call("scatter", root, given, into.array, len(into.array) * self.size, held=into)

    @_collective
    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> Any:  # noqa: N802
        """Send block r of every rank's array to rank r.

        Args:
            sendbuf: blocks for all ranks, or MPI.IN_PLACE: they are in `recvbuf`.
            recvbuf: blocks from all ranks, of the same size.
        """
        into = held(recvbuf, self.size, writes=True)
        given = into.array.copy() if _in_place(sendbuf) else held(sendbuf, self.size, writes=False).array
        return _Call("all_to_all", 0, given, into.array, len(into.array), held=into)

    @_collective
    def Bcast(self, buf: Any, root: int = 0) -> Any:  # noqa: N802
        """Send the root's array to all ranks.

        Args:
            buf: data on the root, result elsewhere.
            root: rank.
        """
        mine = self.rank == root
        into = held(buf, 1, writes=not mine)
        result = into.array if into.array.flags.writeable else None
        return _Call(
            "broadcast", root, into.array if mine else None, result, len(into.array), held=None if mine else into
        )

    @_collective
    def Barrier(self) -> Any:  # noqa: N802
        """Wait for all ranks."""
        token = np.zeros(1, np.uint8)
        return _Call("barrier", 0, token, token, 1, "sum")

    def Free(self) -> None:  # noqa: N802
        """Free the duplicate and end the watchdog; the communicator of the caller stays."""
        self._transport.close()
        self._forget()
        self._comparison.free()
        self._own.Free()

    def Dup(self, info: Any = None) -> Any:  # noqa: N802
        """A duplicate of the communicator of the caller, as all communicators that are made of this one."""
        return self._comm.Dup(info)

    def Clone(self) -> Any:  # noqa: N802
        """As `Dup`, without attributes."""
        return self._comm.Clone()

    def Dup_with_info(self, info: Any) -> Any:  # noqa: N802
        """As `Dup`, with hints."""
        return self._comm.Dup_with_info(info)

    def Idup(self, info: Any = None) -> Any:  # noqa: N802
        """As `Dup`, with a request."""
        return self._comm.Idup(info)

    def Idup_with_info(self, info: Any) -> Any:  # noqa: N802
        """As `Idup`, with hints."""
        return self._comm.Idup_with_info(info)

    def _block(self, into: Held) -> np.ndarray:
        """The block of this rank of all blocks."""
        block = len(into.array) // self.size
        return into.array[self.rank * block : (self.rank + 1) * block]

    def _sent(self, sendbuf: Any, blocks: int) -> Held:
        if _in_place(sendbuf):
            raise ParameterError("only the root calls with MPI.IN_PLACE; try an array")
        return held(sendbuf, blocks, writes=False)

    def _forget(self) -> None:
        """Free the small calls that are kept."""
        for small in self._small.values():
            small.free()
        self._comparison.forget()
        self._small.clear()
        self._once.clear()
        self._known.clear()

    def _perform(
        self, asked: _Asked, small: SmallCall | None, given: np.ndarray | None, result: np.ndarray | None
    ) -> bool:
        """Compare the call of all ranks, and execute it if it is kept.

        Args:
            asked: by this rank.
            small: that is kept for it; None: there is none.
            given, result: of this rank.
        Returns: whether a schedule executes it; otherwise MPI itself does.
        Raises: ParameterError: on every rank, where they differ or one of them is invalid.
        """
        self._transport.label = asked.label
        if small is not None:
            heads = small.run(given, result)
            return heads is None or self._judge(asked, heads)
        heads = self._comparison.heads(asked.head)
        return (asked.state == 0 and bool((heads == asked.head).all())) or self._judge(asked, heads)

    def _execute(self, call: _Call, reduce: Callable[..., None] | None, asked: _Asked) -> None:
        """Execute a call that all ranks have agreed on, and keep one of few bytes the second time."""
        size_bytes = call.length * call.dtype.itemsize
        key = (call.name, call.root, size_class(size_bytes))
        if key not in self._schedules:
            self._schedules[key] = self._shared(Request(call.name, call.root), size_bytes)
        schedule, reduce = self._schedules[key], reduce or _moves
        run_rank(schedule, self._transport.run, call.given, call.result, call.length, reduce, self._scratch)
        if not is_small(schedule, call.length, call.dtype):
            return
        if asked.text not in self._once:
            if len(self._once) >= KEPT:
                self._forget()
            self._once.add(asked.text)
            return
        tag = self._comparison.keep(asked.head)
        if tag is not None:
            kept = schedule, call.length, call.dtype, reduce, asked.head, tag
            self._small[asked.text] = SmallCall(*kept, self._comparison, self._own, self._transport)

    def _judge(self, asked: _Asked, heads: np.ndarray) -> bool:
        """Whether a schedule executes a call that ranks see differently.

        Args:
            asked: by this rank.
            heads: of all ranks.
        Returns: False: MPI itself executes it.
        Raises: ParameterError: on every rank, where they differ or one of them is invalid.
        """
        method, states = asked.method, heads[:, 2]
        passes = not (states == IS_WRONG).any() and states.any() and (heads[:, 1] == heads[0, 1]).all()
        if passes and method in self._passed:
            return False
        calls = self._transport.words((asked.text, asked.state, asked.why, method))
        if passes:
            self._passed.add(method)
            rank, reason = next((rank, said) for rank, (_, kind, said, _) in enumerate(calls) if kind)
            if self.rank == 0:
                LOG.warning(
                    "opticcl.mpi: MPI itself carries %s that have no schedule: rank %d: %s", method, rank, reason
                )
            return False
        for rank, (_, kind, said, name) in enumerate(calls):
            if kind == IS_WRONG:
                raise ParameterError(f"{name}: rank {rank}: {said}")
        other = next((rank for rank, made in enumerate(calls) if made[0] != calls[0][0]), None)
        if other is None:
            raise ParameterError(
                f"{asked.text}: kept by some ranks alone, as after an exception; make a new Communicator"
            )
        raise ParameterError(f"rank 0 calls {calls[0][0]}, rank {other} calls {calls[other][0]}; all must be equal")

    def _shared(self, request: Request, size_bytes: int) -> RankSchedule:
        """Compile on rank 0, send every rank its schedule.

        Raises: ParameterError: on every rank, where rank 0 cannot compile it.
        """

        def make() -> tuple[None, list[RankSchedule]]:
            return None, self._planner(request, size_bytes)

        with self._transport.watched(lambda: f"{request.name}, waiting for the plan of rank 0", PLAN_S):
            return from_rank_0(self._own, make)[1]


def _form(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Types and lengths of arguments that are arrays, numbers and lists of them and of types; None if one is anything else.

    Args:
        names: of the method, and of the last arguments.
        values: all arguments.
    """
    form: list[Any] = [*names]
    for given in values:
        if type(given) is np.ndarray:
            form += given.dtype, given.size, given.flags.num & CONTIGUOUS_AND_WRITEABLE
        elif given is None or type(given) is int:
            form.append(given)
        elif type(given) is MPI.Op:
            form.append(("operation", given.handle))
        elif given is MPI.IN_PLACE:
            form.append("in place")
        elif isinstance(given, MPI.Datatype):
            form.append(("type", given.handle))
        elif type(given) in (list, tuple) and (inner := _form((), tuple(given))) is not None:
            form.append(inner)
        else:
            return None
    return tuple(form)


def _memories(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with the memory in the place of a buffer specification."""
    return tuple(given[0] if type(given) in (list, tuple) and given else given for given in values)


def _is_all_of(given: Any, array: np.ndarray) -> bool:
    """Whether an argument is an array of which another is all, in the same order."""
    if type(given) is not np.ndarray or not (given.flags.c_contiguous and given.flags.writeable):
        return False
    return given.size == array.size and given.dtype == array.dtype and given.ctypes.data == array.ctypes.data


def _reducing(call: _Call, given: Held, into: Held | None) -> _Call:
    """A call with a reduction.

    Raises: NoScheduleError: its elements do not lie side by side.
    """
    if given.layout is not None or (into is not None and into.layout is not None):
        raise NoScheduleError("a reduction of a type with gaps")
    return call


def _reduction(op: Any) -> str:
    """Name of an operation.

    Raises: NoScheduleError: none of those that OptiCCL knows.
    """
    name = "sum" if op is None else OPS.get(op.handle) if isinstance(op, MPI.Op) else ""
    if name == "":
        raise ParameterError(f"{type(op).__name__} is not an MPI operation; try MPI.SUM")
    if name is None:
        raise NoScheduleError("an operation of the user, or one that has no schedule")
    return name


def _in_place(buf: Any) -> bool:
    return buf is None or buf is MPI.IN_PLACE


def _moves(target: np.ndarray, source: np.ndarray) -> None:
    """The reduction of collectives without one."""
    raise AssertionError("a schedule that only moves data reduces them")


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")
