"""Collectives of a group on tensors of the CPU: agreed on, planned and executed; everything here runs on the worker."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

import torch

from opticcl.collective import Request
from opticcl.errors import ExecutionError, OpticclError
from opticcl.execute.calls import MOVES, check_buffers
from opticcl.execute.failures import text_of_error
from opticcl.execute.loop import Exchange, Reduction
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.torch.agreement import Agreement, GroupCall
from opticcl.execute.torch.connections import Connections
from opticcl.execute.torch.executor import TableLayout, TorchExecutor
from opticcl.execute.torch.reductions import tensor_reduction
from opticcl.execute.torch.small import SMALL_BYTES, SmallTensorCall

__all__ = ["GroupCollectives", "Planner"]

LOG = logging.getLogger("opticcl")
KEPT = 256
"""Calls that are remembered at most; all of them are forgotten when one more comes [count]."""


class _Kept(NamedTuple):
    """A call that was made before, with all that its arguments give.

    Args:
        schedule: of this rank.
        layout: of its tables.
        reduce: its reduction.
        asked: what is compared with the calls of other ranks.
        early: whether it writes to the result before the ranks have agreed.
        small: the call, where it is of few bytes.
    """

    schedule: RankSchedule
    layout: TableLayout
    reduce: Reduction
    asked: GroupCall
    early: bool
    small: SmallTensorCall | None


class Planner(Protocol):
    """Makes plans for the ranks of a group."""

    def __call__(self, request: Request, size_bytes: int) -> list[RankSchedule]:
        """Verified schedules of all ranks, for a collective and the size of its message [bytes]."""

    def part(self, ranks: Sequence[int]) -> Planner:
        """The planner of some of the ranks."""


class GroupCollectives:
    """The collectives of one group. Rank 0 compiles, verifies and cuts a plan for each collective, root and power of two of the
    size, once, and shares it through the store.

    Args:
        executor: runs schedules.
        transport: of the executor.
        agreement: compares the calls of all ranks.
        store: of torch, for this group.
        rank, size: of this process in the group.
        timeout: longest wait for a plan.
        planner: compiles, verifies and cuts plans; called on rank 0 of the group only.
        log: whether to print plans, and collectives that are sent without a schedule.
    """

    def __init__(
        self,
        executor: TorchExecutor,
        transport: Connections,
        agreement: Agreement,
        store: Any,
        rank: int,
        size: int,
        timeout: timedelta,
        planner: Planner,
        log: bool = False,
    ) -> None:
        self._executor, self._transport, self._agreement, self._store = executor, transport, agreement, store
        self._rank, self._size, self._timeout, self._planner, self._log_it = rank, size, timeout, planner, log
        self._schedules: dict[tuple[str, int, int], RankSchedule] = {}
        self._kept: dict[tuple[Any, ...], _Kept] = {}

    def all_reduce(self, tensor: torch.Tensor, op: str) -> None:
        """Reduce a tensor over all ranks, in place."""
        flat = tensor if tensor.dim() == 1 and tensor.is_contiguous() else tensor.reshape(-1)
        self.run("all_reduce", 0, flat, flat, flat.numel(), op)
        self.divide(flat, op)
        if not tensor.is_contiguous():
            tensor.copy_(flat.view(tensor.shape))

    def all_gather(self, output: torch.Tensor, given: torch.Tensor) -> None:
        """Gather a tensor of every rank."""
        flat = given.reshape(-1)
        with_place(output, lambda result: self.run("all_gather", 0, flat, result, flat.numel() * self._size))

    def reduce_scatter(self, output: torch.Tensor, given: torch.Tensor, op: str) -> None:
        """Reduce a tensor; every rank gets a block.

        Args:
            output: block of this rank.
            given: contribution.
            op: reduction, as torch writes it.
        """

        def call(result: torch.Tensor) -> None:
            self.run("reduce_scatter", 0, given.reshape(-1), result, given.numel(), op)
            self.divide(result, op)

        with_place(output, call)

    def all_to_all(
        self,
        outputs: list[torch.Tensor],
        inputs: list[torch.Tensor],
        whole: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> None:
        """Send a tensor to every rank: by a schedule where those of all ranks are of one size, otherwise directly.

        Args:
            outputs, inputs: of and for each rank.
            whole: tensors of which they are the parts, in this order; None: there are none.
        """
        parts = [part.numel() for part in inputs]
        sizes = {*parts, *(place.numel() for place in outputs)}
        kinds = ", ".join(sorted({str(tensor.dtype) for tensor in (*inputs, *outputs)}))
        call, problem = f"all_to_all of {kinds}", None
        if len(inputs) != self._size or len(outputs) != self._size:
            problem = f"{len(inputs)} parts to send and {len(outputs)} to receive; {self._size} ranks need one each"
        elif "," in kinds:
            problem = f"tensors of {kinds}; all must have one type"
        common, announced = parts[0] if len(sizes) == 1 else -1, parts if problem is None else [0] * self._size
        self._agreement.begin_call("all_to_all")
        asked = GroupCall.of("all_to_all", call, problem)
        tag, commons, sent = self._agreement.agree_on_parts(asked, common, announced)
        if common >= 0 and set(commons) == {common}:
            given = torch.cat([part.reshape(-1) for part in inputs]) if whole is None else whole[1].reshape(-1)
            length = common * self._size
            if whole is not None:
                with_place(whole[0], lambda result: self.run("all_to_all", 0, given, result, length, tag=tag))
                return
            result = torch.empty(length, dtype=given.dtype)
            self.run("all_to_all", 0, given, result, length, tag=tag)
            for place, part in zip(outputs, result.view(self._size, -1), strict=True):
                place.copy_(part.view(place.shape))
            return
        wrong = [rank for rank, place in enumerate(outputs) if place.numel() != sent[rank]]
        if wrong:
            problem = f"rank {wrong[0]} sends it {sent[wrong[0]]} elements, and it expects {outputs[wrong[0]].numel()}"
        self._agreement.begin_call("all_to_all")
        tag = self._agreement.agree(GroupCall.of("all_to_all", call, problem))
        self.log("all_to_all of unequal parts is sent directly, without a schedule")
        self._direct(outputs, inputs, tag)

    def several(self, name: str, call: str, each: Sequence[Callable[[], None]]) -> None:
        """Execute several collectives, once all ranks have agreed on all of them.

        Args:
            name: of the collectives.
            call: all of them, in words.
            each: executes one.
        """
        self._agreement.begin_call(name)
        self._agreement.agree(GroupCall.of(name, call, None))
        for one in each:
            one()

    def divide(self, tensor: torch.Tensor, op: str) -> None:
        """The division of AVG, after the sum."""
        if op == "AVG":
            tensor.div_(self._size)

    def refuse(self, name: str, problem: str) -> None:
        """Take part in a call that this rank cannot execute.

        Raises: ParameterError: on every rank, with the problem.
        """
        self._agreement.begin_call(name)
        asked = GroupCall.of(name, name, problem)
        if name == "all_to_all":
            self._agreement.agree_on_parts(asked, -1, [0] * self._size)
        else:
            self._agreement.agree(asked)

    @property
    def calls(self) -> int:
        """Calls that have begun [count]."""
        return self._agreement.calls

    def run(
        self,
        name: str,
        root: int,
        given: torch.Tensor | None,
        result: torch.Tensor | None,
        length: int,
        op: str = "SUM",
        tag: int = -1,
    ) -> None:
        """Execute one collective on flat tensors.

        Args:
            name: of the collective.
            root: rank, 0 where there is none.
            given: what this rank holds at the start; None if nothing.
            result: filled with what it gets; None if nothing. It may be `given`.
            length: elements of the whole message [count].
            op: reduction, as torch writes it.
            tag: of the messages, where all ranks have agreed on the call; -1: they have not.
        Raises: ParameterError: on every rank, where their calls differ, or the collective cannot be compiled.
        """
        form = _form(name, root, op, length, given, result)
        kept = self._kept.get(form)
        if kept is not None and tag < 0:
            self._agreement.begin_call(name)
            if kept.small is not None:
                kept.small.run(given, result)
            else:
                self._execute(kept, given, result, -1)
            return
        some = given if given is not None else result
        assert some is not None
        call = f"{name} root {root} {op} {some.dtype} of {length} elements"
        if tag < 0:
            problem = text_of_error(lambda: check_call(name, self._size, given, result, length, op))
            self._agreement.begin_call(name)
            tag = self._agreement.agree(GroupCall.of(name, call, problem))
        if not length:
            return
        size_bytes = length * some.element_size()
        key = (name, root, size_bytes.bit_length())
        if key not in self._schedules:
            self._schedules[key] = self._shared(key, size_bytes)
        schedule = self._schedules[key]
        layout = TableLayout.of(schedule, result, length)
        reduce = _moves_only if name in MOVES else tensor_reduction(op, some.dtype)
        early, asked = writes_early(schedule, layout, given, result), GroupCall.of(name, call, None)
        small = None
        if schedule.steps and size_bytes <= SMALL_BYTES:
            small = SmallTensorCall(schedule, asked, length, some.dtype, reduce, self._agreement, self._transport)
        kept = _Kept(schedule, layout, reduce, asked, early, small)
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[form] = kept
        self._execute(kept, given, result, tag)

    def _execute(self, kept: _Kept, given: torch.Tensor | None, result: torch.Tensor | None, tag: int) -> None:
        """Execute a call in the memory of its tensors, where that can be.

        Args:
            kept: the call.
            given, result: of this rank.
            tag: of the messages, where all ranks have agreed on the call; -1: they agree now.
        """

        def carry(exchanges: Iterator[Exchange]) -> None:
            by_call = tag
            if tag < 0:
                by_call = self._agreement.agree(kept.asked, None if kept.early else next(exchanges, None))
            self._transport.run(exchanges, by_call)

        self._executor.execute(kept.schedule, given, result, kept.layout, kept.reduce, carry)

    def _shared(self, key: tuple[str, int, int], size_bytes: int) -> RankSchedule:
        """Rank 0 compiles; every rank gets its schedule from the store.

        Raises: ParameterError: on every rank, where rank 0 cannot compile it.
        """
        name, root, _ = key
        where = f"plan/{self._agreement.calls}"
        failure: Exception | None = None
        if self._rank == 0:
            try:
                answers: list[Any] = list(self._planner(Request(name, root), size_bytes))
            except Exception as error:
                failure = error
                answers = [str(error) if isinstance(error, OpticclError) else f"{name}: rank 0: {error!r}"] * self._size
            for rank, answer in enumerate(answers):
                self._store.set(f"{where}/{rank}", pickle.dumps(answer))
        try:
            self._store.wait([f"{where}/{self._rank}"], self._timeout)
        except RuntimeError:
            limit = f"{self._timeout.total_seconds():g} s"
            late = ExecutionError(f"rank {self._rank} of {self._size}: {name}: rank 0 has no plan within {limit}")
            late.failed_rank = 0
            raise late from None
        received = pickle.loads(self._store.get(f"{where}/{self._rank}"))
        if isinstance(received, str):
            raise self._agreement.common(received) from (None if isinstance(failure, OpticclError) else failure)
        assert isinstance(received, RankSchedule)
        self.log(f"{name} of {size_bytes} bytes: {len(received.steps)} steps, {received.num_chunks} chunks")
        return received

    def _direct(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], tag: int) -> None:
        """Exchange parts of any size, every pair directly."""
        outputs[self._rank].copy_(inputs[self._rank])
        places = [place if place.is_contiguous() else torch.empty_like(place).contiguous() for place in outputs]
        others = [rank for rank in range(self._size) if rank != self._rank]
        sends = [(rank, inputs[rank].contiguous()) for rank in others if inputs[rank].numel()]
        recvs = [(rank, places[rank]) for rank in others if places[rank].numel()]
        self._transport.run(iter([Exchange(0, sends, recvs)]), tag)
        for place, out in zip(places, outputs, strict=True):
            if place is not out:
                out.copy_(place)

    def log(self, text: str) -> None:
        """Log a line, and print it where the settings say so."""
        LOG.log(logging.INFO if self._log_it else logging.DEBUG, "rank %d of %d: %s", self._rank, self._size, text)
        if self._log_it:
            print(f"opticcl: rank {self._rank} of {self._size}: {text}", flush=True)


def _form(
    name: str, root: int, op: str, length: int, given: torch.Tensor | None, result: torch.Tensor | None
) -> tuple[Any, ...]:
    """What a call depends on, but for the numbers in its tensors."""
    of_given = None if given is None else (given.dtype, given.numel())
    if given is result:
        return name, root, op, length, of_given
    return name, root, op, length, of_given, None if result is None else (result.dtype, result.numel())


def with_place(output: torch.Tensor, call: Callable[[torch.Tensor], None]) -> None:
    """Call a function with a flat tensor for the result of a call: the output itself where it is contiguous."""
    result = output.view(-1) if output.is_contiguous() else torch.empty(output.numel(), dtype=output.dtype)
    call(result)
    if not output.is_contiguous():
        output.copy_(result.view(output.shape))


def writes_early(
    schedule: RankSchedule, layout: TableLayout, given: torch.Tensor | None, result: torch.Tensor | None
) -> bool:
    """Whether the first messages of a schedule, or its input, go directly into the memory of the result.

    Args:
        schedule: of this rank.
        layout: of its tables.
        given: what the rank holds at the start, flat; None if nothing.
        result: flat; None if it gets nothing.
    """
    return layout.in_result and (
        given is not result or any(not message.staged for step in schedule.steps[:1] for message in step.recvs)
    )


def check_call(
    name: str, size: int, given: torch.Tensor | None, result: torch.Tensor | None, length: int, op: str
) -> None:
    """Check the tensors of a call.

    Args:
        name: of the collective.
        size: ranks of the group [count].
        given: input, flat; None if the rank has none.
        result: flat; None if it gets nothing.
        length: elements of the whole message [count].
        op: reduction, as torch writes it.
    Raises: ParameterError: lengths, types or the operation do not fit together.
    """
    some = given if given is not None else result
    assert some is not None
    if name not in MOVES:
        tensor_reduction(op, some.dtype)
    check_buffers(name, size, given, result, length, ("the input", "the result"))


def _moves_only(target: torch.Tensor, source: torch.Tensor) -> None:
    """The reduction of collectives without one."""
    raise AssertionError("a schedule that only moves data reduces them")
