"""torch.distributed as a transport of rank schedules, and a process group whose collectives execute them.

`OpticclProcessGroup` is what `init_process_group("opticcl")` creates. Collectives run in the order of their calls on one
worker thread per group, which completes a future; messages travel by the sends and receives of an inner Gloo group. Rank 0
of the group compiles, verifies and cuts a plan for each collective, root and power of two of the size, once, and shares it
through the store. Before data move, all ranks compare what they call.

Source: torch/csrc/distributed/c10d/PyProcessGroup.hpp names the methods that callers in C++ reach.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import pickle
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo, Work
from torch.futures import Future

from opticcl.collective import Request
from opticcl.errors import ExecutionError, OpticclError, ParameterError
from opticcl.execute.failures import text_of_error
from opticcl.execute.loop import Exchange, Reduction, chunk_width, play
from opticcl.execute.ranks import RankSchedule, rank_schedules
from opticcl.ir import Schedule

__all__ = ["GlooTransport", "OpticclProcessGroup", "Settings", "TorchExecutor", "ddp_hook"]

LOG = logging.getLogger("opticcl")
OWN_TAGS = 1 << 30  # tags of schedules; those of user messages are below
NUMPY_TYPES = {
    torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
    torch.complex64, torch.complex128,
}  # fmt: skip
"""Types that NumPy adds as fast as torch, in the thread that calls it."""

Planner = Callable[[Request, int], list[RankSchedule]]
"""(collective, size of the message [bytes]) -> verified schedules of all ranks."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the backend.

    Args:
        check: whether all ranks compare their calls before data move.
        log: whether to log plans, and collectives that are sent without a schedule.
    """

    check: bool = True
    log: bool = False

    @classmethod
    def of_environment(cls, variables: Mapping[str, str]) -> Settings:
        """OPTICCL_CHECK and OPTICCL_LOG, 0 or 1.

        Raises: ParameterError: another value.
        """
        found = {}
        for name, default in (("OPTICCL_CHECK", "1"), ("OPTICCL_LOG", "0")):
            value = variables.get(name, default)
            if value not in ("0", "1"):
                raise ParameterError(f"{name}={value!r} is neither 0 nor 1")
            found[name] = value == "1"
        return cls(found["OPTICCL_CHECK"], found["OPTICCL_LOG"])


class GlooTransport:
    """Messages by the sends and receives of a Gloo group.

    Args:
        p2p: group with `send` and `recv`.
        rank, size: of this process in it.
        timeout: longest duration of a message.
    """

    def __init__(self, p2p: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._p2p, self._rank, self._size, self._timeout = p2p, rank, size, timeout
        self._calls = 0
        self.label = "collective"

    def run(self, exchanges: Iterator[Exchange]) -> None:
        """Carry the messages of all steps.

        Raises: ExecutionError: a rank does not answer, or its connection is closed.
        """
        self._calls = (self._calls + 1) % OWN_TAGS
        tag = OWN_TAGS + self._calls
        for exchange in exchanges:
            works = [(peer, self._p2p.recv([buffer], peer, tag)) for peer, buffer in exchange.recvs]
            works += [(peer, self._p2p.send([buffer.contiguous()], peer, tag)) for peer, buffer in exchange.sends]
            for peer, work in works:
                try:
                    work.wait(self._timeout)
                except RuntimeError as error:
                    reason = str(error).splitlines()[0].rpartition("] ")[2].partition(". ")[0]
                    step = "before step 0" if exchange.step < 0 else f"step {exchange.step}"
                    raise ExecutionError(
                        f"rank {self._rank} of {self._size}: {self.label}, {step}: rank {peer}: {reason}"
                    ) from None


class FutureWork(Work):  # type: ignore[misc]
    """A call that is in progress; waiting for it raises its failure.

    Args: future: completed with the tensors of the result, or with an exception.
    """

    def __init__(self, future: Future) -> None:
        super().__init__()
        self._future = future

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the result; messages have the timeout of the group.

        Raises: ExecutionError, ParameterError: the call failed.
        """
        self._future.wait()
        return True

    def is_completed(self) -> bool:
        """Whether the call is done."""
        return bool(self._future.done())

    def get_future(self) -> Future:
        """The future of the result."""
        return self._future


class TorchExecutor:
    """Executes rank schedules on CPU tensors, one call after the other, on a worker thread.

    Args:
        p2p: group with `send` and `recv`.
        rank, size: of this process in it.
        timeout: longest duration of a message.
    """

    def __init__(self, p2p: Any, rank: int, size: int, timeout: timedelta) -> None:
        self.rank, self.size = rank, size
        self.transport = GlooTransport(p2p, rank, size, timeout)
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future] | None] = queue.SimpleQueue()
        self._failed: Exception | None = None
        self._closed = False
        self._scratch: dict[tuple[str, torch.dtype], torch.Tensor] = {}
        self._thread = threading.Thread(target=self._work, name="opticcl-worker", daemon=True)
        self._thread.start()
        _executors.add(self)

    def submit(self, name: str, call: Callable[[], Any]) -> Any:
        """Run a call on the worker, after those before it.

        Args:
            name: of the collective, for messages.
            call: returns the tensors of the result.
        Returns: a torch Work.
        """
        if self._closed:
            raise ExecutionError(f"{name}: the process group has been destroyed")
        future: Future = Future()
        self._calls.put((call, future))
        return FutureWork(future)

    def close(self) -> None:
        """Finish the calls that were submitted, and end the worker."""
        if not self._closed:
            self._closed = True
            self._calls.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _work(self) -> None:
        with torch.no_grad():
            while (entry := self._calls.get()) is not None:
                call, future = entry
                try:
                    if self._failed is not None:
                        raise self._failed
                    result = call()
                except ParameterError as error:  # the same on all ranks; the group stays usable
                    future.set_exception(error.with_traceback(None))
                except OpticclError as error:
                    self._failed = self._failed or error.with_traceback(None)
                    future.set_exception(self._failed)
                except Exception as error:
                    self._failed = self._failed or error
                    future.set_exception(error)
                else:
                    future.set_result(result)
                del call, future, entry

    def execute(
        self,
        schedule: RankSchedule,
        given: torch.Tensor | None,
        result: torch.Tensor | None,
        length: int,
        reduce: Reduction,
    ) -> None:
        """Execute a rank schedule; on the worker.

        Args:
            schedule: of this rank.
            given: what the rank holds at the start, flat and contiguous; None if nothing.
            result: filled with its result, flat and contiguous; None if it gets nothing. It may be `given`.
            length: elements of the whole message [count].
            reduce: reduces one table of rows into another.
        """
        some = given if given is not None else result
        assert some is not None
        width = chunk_width(schedule, length)
        staging = self._table("staging", schedule.stage_rows, width, some.dtype)
        in_result = (
            result is not None
            and schedule.slots == schedule.num_chunks
            and len(result) == length == schedule.num_chunks * width
            and schedule.final is None
            and bool(schedule.after.all())
        )
        if in_result:
            assert result is not None
            state = result.view(schedule.num_chunks, width)
            if given is not None and given.data_ptr() != result.data_ptr():
                (result if len(given) == length else result.view(schedule.blocks, -1)[schedule.rank]).copy_(given)
            elif given is not None and len(given) != length:
                result.view(schedule.blocks, -1)[schedule.rank].copy_(given)
        else:
            state = self._table("state", schedule.slots, width, some.dtype)
            _fill(schedule, given, length, state)
        self.transport.run(play(schedule, state, staging, reduce))
        if result is not None and not in_result:
            _store(schedule, state, length, result)

    def _table(self, name: str, rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        size = rows * width
        buffer = self._scratch.get((name, dtype))
        if buffer is None or len(buffer) < size:
            buffer = self._scratch[name, dtype] = torch.empty(size, dtype=dtype)
        return buffer[:size].view(rows, width)


_executors: weakref.WeakSet[TorchExecutor] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End all workers before the interpreter ends; a thread that is left would abort the process."""
    for executor in list(_executors):
        executor.close()


@cache
def _marker(name: str) -> Any:
    """An operator that does nothing, so that a profiler records the call: c10d::<name>_by_opticcl, with output and input."""
    library = torch.library.Library("c10d", "FRAGMENT")
    operator = f"{name}_by_opticcl"
    library.define(f"{operator}(Tensor output, Tensor given) -> ()")
    library.impl(operator, lambda output, given: None, "CompositeExplicitAutograd")
    return library, getattr(torch.ops.c10d, operator)


def _record(name: str, output: int, given: int, dtype: torch.dtype) -> None:
    """Record a call where a profiler runs; its name is read as that of a collective.

    Args:
        name: of the collective.
        output, given: elements of the result and of the input [count].
        dtype: of both.
    """
    _, operator = _marker(name)
    operator(*(torch.empty(length, dtype=dtype, device="meta") for length in (output, given)))


def _fill(schedule: RankSchedule, given: torch.Tensor | None, length: int, state: torch.Tensor) -> None:
    """Fill a state with what a rank holds at the start; zeros where chunks are padded or not held."""
    block = length // schedule.blocks
    by_block = state[: schedule.num_chunks].view(schedule.blocks, -1)
    whole = given is not None and len(given) == length and bool(schedule.before.all())
    if not whole or by_block.shape[1] != block:
        state.zero_()
    if given is None or not schedule.before.any() or not block:
        return
    if len(given) == length:
        by_block[:, :block] = given.view(schedule.blocks, block)
    else:
        by_block[schedule.rank, :block] = given


def _store(schedule: RankSchedule, state: torch.Tensor, length: int, result: torch.Tensor) -> None:
    """Copy the result of a rank from its state: the message or its block."""
    block = length // schedule.blocks
    if schedule.final is not None:
        result.view(schedule.num_ranks, block)[:] = state[schedule.final].view(schedule.num_ranks, -1)[:, :block]
        return
    by_block = state[: schedule.num_chunks].view(schedule.blocks, -1)[:, :block]
    if len(result) == length:
        result.view(schedule.blocks, block)[:] = by_block
    else:
        due = int(np.flatnonzero(schedule.after.reshape(schedule.blocks, -1).any(axis=1))[0])
        result[:] = by_block[due]


def _numpy(function: Any) -> Reduction:
    def reduce(target: torch.Tensor, source: torch.Tensor) -> None:
        array = target.numpy()
        function(array, source.numpy(), out=array)

    return reduce


def _torch(function: Any) -> Reduction:
    def reduce(target: torch.Tensor, source: torch.Tensor) -> None:
        function(target, source, out=target)

    return reduce


_OPS = {
    "SUM": (np.add, torch.add),
    "PRODUCT": (np.multiply, torch.mul),
    "MIN": (np.minimum, torch.minimum),
    "MAX": (np.maximum, torch.maximum),
    "BAND": (np.bitwise_and, torch.bitwise_and),
    "BOR": (np.bitwise_or, torch.bitwise_or),
    "BXOR": (np.bitwise_xor, torch.bitwise_xor),
}


def _op_name(opts: Any) -> str:
    """Name of the reduce operation of the options of a call; SUM by default."""
    op = getattr(opts, "reduceOp", None)
    return "SUM" if op is None else str(getattr(op, "op", op)).rpartition(".")[2]  # a ReduceOp holds its kind


def _root(opts: Any) -> int:
    """Root of the options of a call; 0 by default."""
    return int(getattr(opts, "rootRank", 0))


def _reduction(op: str, dtype: torch.dtype) -> Reduction:
    """The reduction of an operation; AVG is a sum that the caller divides.

    Raises: ParameterError: not available for that type.
    """
    name = "SUM" if op == "AVG" else op
    if name not in _OPS:
        raise ParameterError(f"reduction {op} is not available; try SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR")
    if op == "AVG" and not (dtype.is_floating_point or dtype.is_complex):
        raise ParameterError(f"reduction AVG of {dtype} is not defined; use SUM and divide")
    if op in ("BAND", "BOR", "BXOR") and (dtype.is_floating_point or dtype.is_complex):
        raise ParameterError(f"reduction {op} of {dtype} is not defined; use an integer type")
    by_numpy, by_torch = _OPS[name]
    if dtype == torch.bool:
        logical = {"SUM": torch.logical_or, "MAX": torch.logical_or, "PRODUCT": torch.logical_and}
        return _torch({**logical, "MIN": torch.logical_and}.get(name, by_torch))
    return _numpy(by_numpy) if dtype in NUMPY_TYPES else _torch(by_torch)


class OpticclProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A process group whose collectives execute verified schedules.

    Args:
        store: of torch, for this group.
        rank, size: of this process in the group.
        timeout: longest duration of a message.
        planner: compiles, verifies and cuts plans; called on rank 0 of the group only.
        settings: of the backend.
        nodes: global rank of each rank of the group.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        timeout: timedelta,
        planner: Planner,
        settings: Settings,
        nodes: Sequence[int],
    ) -> None:
        super().__init__(rank, size)
        self._rank, self._size, self._timeout = rank, size, timeout
        self._planner, self._settings, self._nodes = planner, settings, tuple(nodes)
        self._store = dist.PrefixStore("opticcl", store)
        self._gloo = ProcessGroupGloo(dist.PrefixStore("p2p", self._store), rank, size, timeout=timeout)
        self._executor = TorchExecutor(self._gloo, rank, size, timeout)
        self._schedules: dict[tuple[str, int, int], RankSchedule] = {}
        self._calls = 0
        self._name = self._description = ""

    # --- what callers ask of a group ---------------------------------------------------------------------------------

    def getSize(self) -> int:  # noqa: N802 (names of torch)
        """Ranks of the group."""
        return self._size

    def getRank(self) -> int:  # noqa: N802
        """This rank."""
        return self._rank

    def size(self) -> int:
        """Ranks of the group."""
        return self._size

    def rank(self) -> int:
        """This rank."""
        return self._rank

    def name(self) -> str:
        """Name of the backend."""
        return "opticcl"

    def getBackendName(self) -> str:  # noqa: N802
        """Name of the backend."""
        return "opticcl"

    @property
    def group_name(self) -> str:
        """Name under which torch knows the group."""
        return self._name

    def getGroupName(self) -> str:  # noqa: N802
        """Name under which torch knows the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Set the name."""
        self._name = name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_desc(self) -> str:
        """Description of the group."""
        return self._description

    def getGroupDesc(self) -> str:  # noqa: N802
        """Description of the group."""
        return self._description

    def _set_group_desc(self, text: str) -> None:
        self._description = text

    def shutdown(self) -> None:
        """Finish all calls and end the worker thread."""
        self._executor.close()

    def abort(self) -> None:
        """End the worker thread."""
        self._executor.close()

    # --- collectives that callers in C++ and Python reach ------------------------------------------------------------

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduce a tensor over all ranks, in place."""
        (tensor,) = tensors
        op = _op_name(opts)
        return self._submit("all_reduce", tensor, lambda: self._all_reduce(tensor, op), tensors)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduce several tensors, one flat buffer per type."""
        op = _op_name(opts)

        def call() -> None:
            for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
                some = [tensor for tensor in tensors if tensor.dtype == dtype]
                flat = torch.cat([tensor.reshape(-1) for tensor in some])
                self._all_reduce(flat, op)
                parts = flat.split([tensor.numel() for tensor in some])
                for tensor, part in zip(some, parts, strict=True):
                    tensor.copy_(part.view(tensor.shape))

        total = sum(tensor.numel() for tensor in tensors)
        return self._submit("all_reduce", tensors[0], call, tensors, (total, total))

    def reduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduce a tensor to one rank."""
        (tensor,) = tensors
        op, root = _op_name(opts), _root(opts)

        def call() -> None:
            flat = tensor.reshape(-1)
            result = flat if self._rank == root else None
            if result is not None and not tensor.is_contiguous():
                result = flat.clone()
            self._run("reduce", root, flat, result, flat.numel(), op)
            if result is not None:
                self._divide(result, op)
                tensor.copy_(result.view(tensor.shape))

        return self._submit("reduce", tensor, call, tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Send a tensor of one rank to all."""
        (tensor,) = tensors
        root = _root(opts)

        def call() -> None:
            flat = tensor.reshape(-1)
            self._run("broadcast", root, flat if self._rank == root else None, flat, flat.numel())
            if not tensor.is_contiguous():
                tensor.copy_(flat.view(tensor.shape))

        return self._submit("broadcast", tensor, call, tensors)

    def barrier(self, opts: Any = None) -> Any:
        """Wait for all ranks."""
        token = torch.zeros(1, dtype=torch.uint8)
        return self._submit("barrier", token, lambda: self._run("barrier", 0, token, token, 1), [], (0, 0))

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Gather a tensor of every rank into a list."""
        (out,), (given,) = outputs, inputs
        self._same_sizes("all_gather", [*out, given])

        def call() -> None:
            flat = given.reshape(-1)
            result = torch.empty(flat.numel() * self._size, dtype=given.dtype)
            self._run("all_gather", 0, flat, result, result.numel())
            for tensor, part in zip(out, result.view(self._size, -1), strict=True):
                tensor.copy_(part.view(tensor.shape))

        return self._submit("all_gather", given, call, out, (given.numel() * self._size, given.numel()))

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """Gather a tensor of every rank into one."""
        return self._submit("all_gather", given, lambda: self._all_gather(output, given), [output])

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Several gathers of one tensor each."""

        def call() -> None:
            for output, given in zip(outputs, inputs, strict=True):
                self._all_gather(output, given)

        total = sum(given.numel() for given in inputs)
        return self._submit("all_gather", inputs[0], call, outputs, (total * self._size, total))

    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Several gathers into lists."""
        works = [self.allgather([[row[i] for row in outputs]], [given], opts) for i, given in enumerate(inputs)]
        return works[-1]

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """Reduce a list of tensors; every rank gets one of them."""
        (output,), (given,) = outputs, inputs
        self._same_sizes("reduce_scatter", [output, *given])
        op = _op_name(opts)

        def call() -> None:
            self._reduce_scatter(output, torch.cat([tensor.reshape(-1) for tensor in given]), op)

        return self._submit("reduce_scatter", output, call, outputs, (output.numel(), output.numel() * self._size))

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """Reduce a tensor; every rank gets a block of it."""
        op = _op_name(opts)
        return self._submit("reduce_scatter", given, lambda: self._reduce_scatter(output, given, op), [output])

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Several reductions of one tensor each."""
        op = _op_name(opts)

        def call() -> None:
            for output, given in zip(outputs, inputs, strict=True):
                self._reduce_scatter(output, given, op)

        total = sum(output.numel() for output in outputs)
        return self._submit("reduce_scatter", inputs[0], call, outputs, (total, total * self._size))

    def all_to_all_single(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: list[int],
        input_splits: list[int],
        opts: Any = None,
    ) -> Any:
        """Send a block of a tensor to every rank; blocks of unequal size travel directly, without a schedule."""
        if len(set(output_splits)) > 1 or len(set(input_splits)) > 1:
            parts = list(given.split(list(input_splits or self._equal_rows(given))))
            places = list(output.split(list(output_splits or self._equal_rows(output))))
            return self.alltoall(places, parts, opts)

        def call() -> None:
            flat = given.reshape(-1)
            result = output.view(-1) if output.is_contiguous() else torch.empty(output.numel(), dtype=output.dtype)
            self._run("all_to_all", 0, flat, result, flat.numel())
            if not output.is_contiguous():
                output.copy_(result.view(output.shape))

        return self._submit("all_to_all", given, call, [output])

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Send a tensor to every rank; tensors of unequal size travel directly, without a schedule."""

        def call() -> None:
            if self._equal_everywhere([part.numel() for part in (*inputs, *outputs)]):
                result = torch.empty(sum(part.numel() for part in outputs), dtype=outputs[0].dtype)
                self._run("all_to_all", 0, torch.cat([part.reshape(-1) for part in inputs]), result, result.numel())
                for place, part in zip(outputs, result.view(self._size, -1), strict=True):
                    place.copy_(part.view(place.shape))
                return
            self._log("all_to_all of unequal parts is sent directly, without a schedule")
            self._direct(outputs, inputs)

        lengths = (sum(part.numel() for part in outputs), sum(part.numel() for part in inputs))
        return self._submit("all_to_all", inputs[0], call, outputs, lengths)

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Gather a tensor of every rank on one rank."""
        (given,), root = inputs, _root(opts)
        out = outputs[0] if self._rank == root else []
        self._same_sizes("gather", [given, *out])

        def call() -> None:
            flat = given.reshape(-1)
            result = torch.empty(flat.numel() * self._size, dtype=given.dtype) if self._rank == root else None
            self._run("gather", root, flat, result, flat.numel() * self._size)
            if result is not None:
                for tensor, part in zip(out, result.view(self._size, -1), strict=True):
                    tensor.copy_(part.view(tensor.shape))

        return self._submit("gather", given, call, out, (given.numel() * self._size, given.numel()))

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """Send a tensor of one rank to every rank."""
        (output,), root = outputs, _root(opts)
        given = inputs[0] if self._rank == root else []
        self._same_sizes("scatter", [output, *given])

        def call() -> None:
            flat = torch.cat([tensor.reshape(-1) for tensor in given]) if given else None
            result = torch.empty(output.numel(), dtype=output.dtype)
            self._run("scatter", root, flat, result, output.numel() * self._size)
            output.copy_(result.view(output.shape))

        return self._submit("scatter", output, call, outputs, (output.numel(), output.numel() * self._size))

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # --- messages of users --------------------------------------------------------------------------------------------

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Any:
        """Send a tensor to a rank."""
        return self._gloo.send(tensors, dst, self._user_tag(tag))

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Any:
        """Receive a tensor from a rank."""
        return self._gloo.recv(tensors, src, self._user_tag(tag))

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        """Receive a tensor from any rank."""
        return self._gloo.recv_anysource(tensors, self._user_tag(tag))

    def _user_tag(self, tag: int) -> int:
        if not 0 <= tag < OWN_TAGS:
            raise ParameterError(f"tag={tag} is not 0 to {OWN_TAGS - 1}")
        return tag

    # --- execution, on the worker -------------------------------------------------------------------------------------

    def _submit(
        self,
        name: str,
        tensor: torch.Tensor,
        call: Callable[[], None],
        result: list[torch.Tensor],
        lengths: tuple[int, int] | None = None,
    ) -> Any:
        """Check devices, record the call where a profiler runs, and run it on the worker.

        Args:
            name: of the collective.
            tensor: input, whose type counts.
            call: executes the collective.
            result: tensors of the result.
            lengths: elements of output and input, where these are not the tensors above [count].
        """
        for each in (tensor, *result):
            if each.device.type != "cpu":
                raise ParameterError(
                    f"{name}: a tensor on {each.device} in a group for CPU tensors; move it to the CPU"
                )
            if each.is_sparse:
                raise ParameterError(f"{name}: sparse tensors are not available; use to_dense()")

        if torch._C._autograd._profiler_enabled():
            out, given = lengths or (result[0].numel() if result else tensor.numel(), tensor.numel())
            _record(name, out, given, tensor.dtype)

        def run() -> list[torch.Tensor]:
            call()
            return result

        return self._executor.submit(name, run)

    def _all_reduce(self, tensor: torch.Tensor, op: str) -> None:
        flat = tensor.reshape(-1)
        self._run("all_reduce", 0, flat, flat, flat.numel(), op)
        self._divide(flat, op)
        if not tensor.is_contiguous():
            tensor.copy_(flat.view(tensor.shape))

    def _all_gather(self, output: torch.Tensor, given: torch.Tensor) -> None:
        flat = given.reshape(-1)
        result = output.view(-1) if output.is_contiguous() else torch.empty(output.numel(), dtype=output.dtype)
        self._run("all_gather", 0, flat, result, flat.numel() * self._size)
        if not output.is_contiguous():
            output.copy_(result.view(output.shape))

    def _reduce_scatter(self, output: torch.Tensor, given: torch.Tensor, op: str) -> None:
        result = output.view(-1) if output.is_contiguous() else torch.empty(output.numel(), dtype=output.dtype)
        self._run("reduce_scatter", 0, given.reshape(-1), result, given.numel(), op)
        self._divide(result, op)
        if not output.is_contiguous():
            output.copy_(result.view(output.shape))

    def _divide(self, tensor: torch.Tensor, op: str) -> None:
        if op == "AVG":
            tensor.div_(self._size)

    def _run(
        self,
        name: str,
        root: int,
        given: torch.Tensor | None,
        result: torch.Tensor | None,
        length: int,
        op: str = "SUM",
    ) -> None:
        """Execute one collective on flat tensors.

        Raises: ParameterError: on every rank, where their calls differ, or the collective cannot be compiled.
        """
        some = given if given is not None else result
        assert some is not None
        error = text_of_error(lambda: _check(name, self._size, given, result, length, op))
        self._agree(name, f"{name} root {root} {op} {some.dtype} of {length} elements", error)
        if not length:
            return
        size_bytes = length * some.element_size()
        key = (name, root, size_bytes.bit_length())
        if key not in self._schedules:
            self._schedules[key] = self._shared(key, size_bytes)
        self._executor.transport.label = name
        self._executor.execute(self._schedules[key], given, result, length, _reduction(op, some.dtype))

    def _agree(self, name: str, call: str, error: str | None) -> None:
        """Compare the call of all ranks before data move.

        Raises: ParameterError: on every rank, where they differ or one of them is invalid.
        """
        self._calls += 1
        if not self._settings.check or self._size == 1:
            if error is not None:
                raise ParameterError(f"{name}: {error}")
            return
        digest = int.from_bytes(hashlib.blake2b(f"{call}{error}".encode(), digest_size=7).digest(), "little")
        all_of_them = self._compare(name, [digest, int(error is not None)])
        if bool((all_of_them == all_of_them[0]).all()) and error is None:
            return
        calls = self._all_texts(f"call{self._calls}", pickle.dumps((call, error)))
        for rank, (_, problem) in enumerate(calls):
            if problem is not None:
                raise ParameterError(f"{name}: rank {rank}: {problem}")
        other = next(rank for rank, made in enumerate(calls) if made[0] != calls[0][0])
        raise ParameterError(f"rank 0 calls {calls[0][0]}, rank {other} calls {calls[other][0]}; all must be equal")

    def _equal_everywhere(self, sizes: list[int]) -> bool:
        """Whether all parts of all ranks are of one size."""
        all_of_them = self._compare("all_to_all", [min(sizes), max(sizes)])
        return bool((all_of_them == all_of_them[0, 0]).all())

    def _compare(self, name: str, values: list[int]) -> torch.Tensor:
        """The values of all ranks, (ranks, values): every pair exchanges them directly."""
        found = torch.empty((self._size, len(values)), dtype=torch.int64)
        found[self._rank] = torch.tensor(values)
        others = [rank for rank in range(self._size) if rank != self._rank]
        self._executor.transport.label = name
        self._executor.transport.run(
            iter(
                [Exchange(-1, [(rank, found[self._rank]) for rank in others], [(rank, found[rank]) for rank in others])]
            )
        )
        return found

    def _all_texts(self, key: str, own: bytes) -> list[Any]:
        self._store.set(f"{key}/{self._rank}", own)
        return [pickle.loads(self._store.get(f"{key}/{rank}")) for rank in range(self._size)]

    def _shared(self, key: tuple[str, int, int], size_bytes: int) -> RankSchedule:
        """Rank 0 compiles; every rank gets its schedule from the store.

        Raises: ParameterError: on every rank, where rank 0 cannot compile it.
        """
        name, root, _ = key
        where = f"plan/{name}/{root}/{key[2]}"
        if self._rank == 0:
            try:
                answers: list[Any] = list(self._planner(Request(name, root), size_bytes))
            except OpticclError as error:
                answers = [str(error)] * self._size
            for rank, answer in enumerate(answers):
                self._store.set(f"{where}/{rank}", pickle.dumps(answer))
        found = pickle.loads(self._store.get(f"{where}/{self._rank}"))
        if isinstance(found, str):
            raise ParameterError(found)
        assert isinstance(found, RankSchedule)
        self._log(f"{name} of {size_bytes} bytes: {len(found.steps)} steps, {found.num_chunks} chunks")
        return found

    def _direct(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
        """Exchange parts of any size, every pair directly."""
        outputs[self._rank].copy_(inputs[self._rank])
        places = [place if place.is_contiguous() else torch.empty_like(place).contiguous() for place in outputs]
        others = [rank for rank in range(self._size) if rank != self._rank]
        self._executor.transport.label = "all_to_all"
        self._executor.transport.run(
            iter(
                [
                    Exchange(
                        0,
                        [(rank, inputs[rank].contiguous()) for rank in others if inputs[rank].numel()],
                        [(rank, places[rank]) for rank in others if places[rank].numel()],
                    )
                ]
            )
        )
        for place, out in zip(places, outputs, strict=True):
            if place is not out:
                out.copy_(place)

    def _same_sizes(self, name: str, tensors: list[torch.Tensor]) -> None:
        if len({tensor.numel() for tensor in tensors}) > 1:
            raise ParameterError(
                f"{name}: tensors of {sorted({t.numel() for t in tensors})} elements; all must be equal"
            )

    def _equal_rows(self, tensor: torch.Tensor) -> list[int]:
        return [tensor.shape[0] // self._size] * self._size

    def _log(self, text: str) -> None:
        LOG.log(
            logging.INFO if self._settings.log else logging.DEBUG, "rank %d of %d: %s", self._rank, self._size, text
        )
        if self._settings.log:
            print(f"opticcl: rank {self._rank} of {self._size}: {text}", flush=True)


def _check(name: str, size: int, given: torch.Tensor | None, result: torch.Tensor | None, length: int, op: str) -> None:
    """Raises: ParameterError: lengths, types or the operation do not fit together."""
    some = given if given is not None else result
    assert some is not None
    _reduction(op, some.dtype)
    if name in ("reduce_scatter", "all_to_all") and length % size:
        raise ParameterError(f"{length} elements do not divide among {size} ranks")
    if given is not None and result is not None and given.dtype != result.dtype:
        raise ParameterError(f"the types {given.dtype} and {result.dtype} differ")
    block = {"reduce_scatter": length // size}.get(name, length)
    if result is not None and name in ("all_gather", "reduce_scatter", "all_to_all") and len(result) != block:
        raise ParameterError(f"the result has {len(result)} elements, not {block}")


def ddp_hook(
    schedule: Schedule | None = None, group: Any = None, timeout: timedelta = dist.default_pg_timeout
) -> Callable[[Any, Any], Future]:
    """A communication hook of DistributedDataParallel: divide, then reduce over all ranks.

    Args:
        schedule: verified all_reduce that every rank passes, for a group of any backend with sends and receives, such as
            Gloo; None: the all_reduce of the group.
        group: process group of the gradients; None: the default group.
        timeout: longest duration of a message of the schedule.
    Raises: ParameterError: the schedule is not an all_reduce, or of another number of ranks.

    ``model.register_comm_hook(None, ddp_hook(plan.schedule))``
    """
    members = group if group is not None else dist.group.WORLD
    rank, size = members.rank(), members.size()
    own = None
    if schedule is not None:
        c = schedule.collective
        if c.name != "all_reduce" or c.num_ranks != size:
            raise ParameterError(f"ddp_hook: {c.name} of {c.num_ranks} ranks in a group of {size}; try an all_reduce")
        own = rank_schedules(schedule)[rank]
    executor = None if own is None else TorchExecutor(members, rank, size, timeout)

    def hook(state: Any, bucket: Any) -> Future:
        gradients = bucket.buffer()
        gradients.div_(size)
        if executor is None or own is None:
            work = dist.all_reduce(gradients, group=members, async_op=True)
        else:
            work = executor.submit("all_reduce", lambda: _in_place(executor, own, gradients))
        return work.get_future().then(lambda done: done.value()[0])

    hook.__annotations__ = {"bucket": dist.GradBucket, "return": Future[torch.Tensor]}  # torch checks the types
    return hook


def _in_place(executor: TorchExecutor, schedule: RankSchedule, tensor: torch.Tensor) -> list[torch.Tensor]:
    """An all_reduce of a flat tensor, on the worker."""
    executor.execute(schedule, tensor, tensor, tensor.numel(), _reduction("SUM", tensor.dtype))
    return [tensor]


def _leave_out_of_graphs() -> None:
    """Keep torch.compile from compiling the methods of the group, which it meets where a compiled model communicates."""
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:  # another torch: its compiler reports the function
        return
    for function in vars(OpticclProcessGroup).values():
        if isinstance(function, FunctionType):
            set_code_exec_strategy(function.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))


_leave_out_of_graphs()
