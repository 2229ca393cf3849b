"""Rank schedules on tensors: the calls of a group run in their order, on a worker thread or on that of the caller."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

import torch
from torch._C._distributed_c10d import Work
from torch.futures import Future

from opticcl.errors import ExecutionError, OpticclError, ParameterError
from opticcl.execute.failures import remember_failure
from opticcl.execute.loop import Exchange, Reduction, chunk_width, fill_state, play
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.torch.tables import store_table

__all__ = ["Carry", "FutureWork", "TableLayout", "TorchExecutor", "Transport"]

Carry = Callable[[Iterator[Exchange]], None]
"""Carries the messages of all steps of a schedule."""


class Transport(Protocol):
    """Carries messages between the ranks of a group; failures name `label`, the collective.

    Attributes: underway: whether messages of a schedule are left, of this call or of one that failed.
    """

    label: str
    underway: bool

    def run(self, exchanges: Iterator[Exchange]) -> None:
        """Carry the messages of all steps."""


class FutureWork(Work):  # type: ignore[misc]
    """A call that is in progress; waiting for it raises its failure.

    Args:
        name: of the collective, for messages.
        future: completed with the tensors of the result, or with an exception.
    """

    def __init__(self, name: str, future: Future) -> None:
        super().__init__()
        self._name, self._future = name, future

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the result.

        Args: timeout: longest time; the call goes on after it. None, or 0 from callers in C++: messages have that of the group.
        Raises: ExecutionError, ParameterError: the call failed, or is not done in time.
        """
        if timeout:
            done = threading.Event()
            self._future.add_done_callback(lambda _: done.set())
            if not done.wait(timeout.total_seconds()):
                raise ExecutionError(f"{self._name}: not done within {timeout.total_seconds():g} s; it goes on")
        self._future.wait()
        return True

    def result(self) -> list[torch.Tensor]:
        """The tensors of the result, once the call is done."""
        return list(self._future.wait())

    def is_completed(self) -> bool:
        """Whether the call is done."""
        return bool(self._future.done())

    def exception(self) -> BaseException | None:
        """The failure of a call that is done; None if it has none."""
        if self._future.done():
            try:
                self._future.wait()
            except Exception as error:
                return error
        return None

    def is_success(self) -> bool:
        """Whether the call is done without a failure."""
        return self.is_completed() and self.exception() is None

    def get_future(self) -> Future:
        """A future of the result whose failure callers in C++ see too: that of `Future.set_exception` is a value to them."""
        return self._future.then(lambda done: done.value())


class DoneWork(Work):  # type: ignore[misc]
    """A call that was done before its caller got this.

    Args: tensors: of the result.
    """

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        self._tensors = tensors

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Whether the call is done."""
        return True

    def result(self) -> list[torch.Tensor]:
        """The tensors of the result."""
        return list(self._tensors)

    def is_completed(self) -> bool:
        """Whether the call is done."""
        return True

    def exception(self) -> BaseException | None:
        """The failure of the call: none."""
        return None

    def is_success(self) -> bool:
        """Whether the call is done without a failure."""
        return True

    def get_future(self) -> Future:
        """A future of the result."""
        future: Future = Future()
        future.set_result(self._tensors)
        return future


class TableLayout(NamedTuple):
    """The tables of a rank that executes a schedule.

    Args:
        length: elements of the whole message [count].
        width: elements of a row [count].
        stage_rows: rows of the staging table [count].
        in_result: whether the state is the memory of the result: the chunks divide the message, which is all the rank's.
    """

    length: int
    width: int
    stage_rows: int
    in_result: bool

    @classmethod
    def of(cls, schedule: RankSchedule, result: torch.Tensor | None, length: int) -> TableLayout:
        """The tables for a message.

        Args:
            schedule: of this rank.
            result: flat; None if the rank gets nothing.
            length: elements of the whole message [count].
        """
        width = chunk_width(schedule, length)
        in_result = (
            result is not None
            and schedule.slots == schedule.num_chunks
            and len(result) == length == schedule.num_chunks * width
            and schedule.final is None
            and bool(schedule.after.all())
        )
        return cls(length, width, schedule.stage_rows, in_result)


class TorchExecutor:
    """Executes rank schedules on tensors, one call after the other: on a worker thread, or on that of a caller who waits.

    Args:
        transport: of the group.
        device: CUDA device of all tensors; None: they are in the memory of the CPU.
    """

    def __init__(self, transport: Transport, device: torch.device | None = None) -> None:
        self._transport, self._device = transport, device
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future] | None] = queue.SimpleQueue()
        self._order, self._turn = threading.Lock(), threading.Lock()
        self._waiting = 0
        self._failed: Exception | None = None
        self._closed = False
        self._scratch: dict[tuple[str, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}
        self._thread = threading.Thread(target=self._work, name="opticcl-worker", daemon=True)
        self._thread.start()
        _executors.add(self)

    def submit(self, name: str, call: Callable[[], Any], *, waits: bool = False) -> Any:
        """Run a call after those before it: on the worker, or here if there are none before it and the caller waits.

        Args:
            name: of the collective, for messages.
            call: returns the tensors of the result.
            waits: whether the caller waits for the call before it does anything else.
        Returns: a torch Work.
        """
        if self._closed:
            raise ExecutionError(f"{name}: the process group has been destroyed")
        if self._device is not None:
            call = self._after(torch.cuda.current_stream(self._device).record_event(), call)
        with self._order:
            here = waits and not self._waiting and self._turn.acquire(blocking=False)
            if not here:
                future: Future = Future()
                self._waiting += 1
                self._calls.put((call, future))
                return FutureWork(name, future)
        grad = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        try:
            return DoneWork(self._result(call))
        except Exception as error:
            return FutureWork(name, _failed(error))
        finally:
            torch._C._set_grad_enabled(grad)
            self._turn.release()

    def _after(self, event: Any, call: Callable[[], Any]) -> Callable[[], Any]:
        """A call that begins on the device after an event, and returns when the device has finished it."""

        def on_device() -> Any:
            torch.cuda.set_device(self._device)
            stream = torch.cuda.current_stream()
            stream.wait_event(event)
            result = call()
            stream.synchronize()
            return result

        return on_device

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
                with self._turn:
                    try:
                        result = self._result(call)
                    except Exception as error:
                        _failed(error, future)
                    else:
                        future.set_result(result)
                del call, future, entry
                with self._order:
                    self._waiting -= 1

    def _result(self, call: Callable[[], list[torch.Tensor]]) -> list[torch.Tensor]:
        """Run a call.

        Raises: Exception: its failure, or that of an earlier call that ended the group.
        """
        if self._failed is not None:
            raise self._failed
        try:
            return call()
        except ParameterError as error:  # the same on all ranks; the group stays usable
            remember_failure(error)
            raise
        except OpticclError as error:
            remember_failure(error)
            self._failed = error
            raise
        except Exception as error:  # messages that other ranks wait for are left, or none
            self._failed = error if self._transport.underway else None
            raise

    def execute(
        self,
        schedule: RankSchedule,
        given: torch.Tensor | None,
        result: torch.Tensor | None,
        layout: TableLayout,
        reduce: Reduction,
        carry: Carry | None = None,
    ) -> None:
        """Execute a rank schedule, in a call that was submitted.

        Args:
            schedule: of this rank.
            given: what the rank holds at the start, flat and contiguous; None if nothing.
            result: filled with its result, flat and contiguous; None if it gets nothing. It may be `given`.
            layout: of the tables.
            reduce: reduces one table of rows into another.
            carry: carries the messages of all steps; None: the transport.
        """
        some = given if given is not None else result
        assert some is not None
        length, width, stage_rows, in_result = layout
        staging = self._table("staging", stage_rows, width, some)
        if in_result:
            assert result is not None
            state = result.view(schedule.num_chunks, width)
            if given is not None and given is not result:
                (result if given.numel() == length else result.view(schedule.blocks, -1)[schedule.rank]).copy_(given)
        else:
            state = self._table("state", schedule.slots, width, some)
            fill_state(schedule, given, length, state)
        (carry or self._transport.run)(play(schedule, state, staging, reduce))
        if result is not None and not in_result:
            store_table(schedule, state, length, result)

    def _table(self, name: str, rows: int, width: int, like: torch.Tensor) -> torch.Tensor:
        """A table of a kind of memory that only grows; the last one again where its shape is the same."""
        key, size = (name, like.dtype), rows * width
        buffer, table = self._scratch.get(key, (like[:0], like[:0]))
        if table.shape != (rows, width):
            if buffer.numel() < size:
                buffer = torch.empty(size, dtype=like.dtype, device=like.device)
            table = buffer[:size].view(rows, width)
            self._scratch[key] = buffer, table
        return table


def _failed(error: Exception, future: Future | None = None) -> Future:
    """A future with a failure; one of OptiCCL is a line of text, and keeps no frames."""
    future = Future() if future is None else future
    future.set_exception(error.with_traceback(None) if isinstance(error, OpticclError) else error)
    return future


_executors: weakref.WeakSet[TorchExecutor] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End all workers before the interpreter ends; a thread that is left would abort the process."""
    for executor in list(_executors):
        executor.close()
