"""Messages of rank schedules by the sends and receives of a group: Gloo for CPU tensors, NCCL for CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch

from opticcl.errors import ExecutionError
from opticcl.execute.loop import Exchange

__all__ = ["OWN_TAGS", "GlooTransport", "NcclTransport"]

OWN_TAGS = 1 << 30
"""Tags of schedules begin here; those of user messages are below."""


class GlooTransport:
    """Messages by the sends and receives of a Gloo group.

    Args:
        p2p: group with `send` and `recv`.
        rank, size: of this process in it.
        timeout: longest duration of a message, where the group has no options that say it.
    """

    def __init__(self, p2p: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._p2p, self._rank, self._size, self._timeout = p2p, rank, size, timeout
        self._has_options = hasattr(p2p, "options")
        self._calls = 0
        self.label = "collective"
        self.underway = False

    def run(self, exchanges: Iterator[Exchange], tag: int | None = None) -> None:
        """Carry the messages of all steps.

        Args:
            exchanges: of this rank.
            tag: 0 to OWN_TAGS - 1, the same on all ranks; None: the number of this call.
        Raises: ExecutionError: a rank does not answer, or its connection is closed.
        """
        if tag is None:
            self._calls = (self._calls + 1) % OWN_TAGS
            tag = self._calls
        self.underway = True
        for exchange in exchanges:
            self.post(exchange, tag)()
        self.underway = False

    def post(self, exchange: Exchange, tag: int) -> Callable[[], None]:
        """Begin to receive and to send the messages of one step; returns a function that waits for them.

        Args:
            exchange: of this rank.
            tag: 0 to OWN_TAGS - 1, the same on all ranks.
        Raises: ExecutionError: by that function, where a rank does not answer, or its connection is closed.
        """
        tag += OWN_TAGS
        try:
            peer = -1
            works = []
            for peer, buffer in exchange.recvs:
                works.append((peer, self._p2p.recv([buffer], peer, tag)))
            for peer, buffer in exchange.sends:
                works.append((peer, self._p2p.send([buffer.contiguous()], peer, tag)))
        except RuntimeError as error:
            raise self._failure(exchange.step, peer, error) from None

        def wait() -> None:
            peer = -1
            try:
                timeout = self._p2p.options._timeout if self._has_options else self._timeout  # callers may change it
                for each in works:
                    peer, work = each
                    work.wait(timeout)
            except RuntimeError as error:
                raise self._failure(exchange.step, peer, error) from None

        return wait

    def _failure(self, step: int, peer: int, error: RuntimeError) -> ExecutionError:
        reason = str(error).splitlines()[0].rpartition("] ")[2].partition(". ")[0]
        where = "before step 0" if step < 0 else f"step {step}"
        failure = ExecutionError(f"rank {self._rank} of {self._size}: {self.label}, {where}: rank {peer}: {reason}")
        failure.failed_rank = peer
        return failure


class NcclTransport:
    """Messages by the sends and receives of an NCCL group, those of a step in one group call, on the current stream.

    Every rank of the group makes one.

    Args:
        p2p: NCCL group.
        rank, size: of this process in it.
        device: CUDA device of this rank.
    """

    def __init__(self, p2p: Any, rank: int, size: int, device: torch.device) -> None:
        self._p2p, self._rank, self._size, self._device = p2p, rank, size, device
        self.label = "collective"
        self.underway = False
        token = torch.zeros(1, device=device)
        p2p.allreduce([token]).wait()  # connects all ranks, which a step among some of them would not

    def run(self, exchanges: Iterator[Exchange]) -> None:
        """Carry the messages of all steps.

        Raises: ExecutionError: NCCL reports an error.
        """
        self.underway = True
        for exchange in exchanges:
            if not exchange.sends and not exchange.recvs:
                continue
            try:
                self._p2p._start_coalescing(self._device)
                for peer, buffer in exchange.recvs:
                    self._p2p.recv([buffer], peer, 0)
                for peer, buffer in exchange.sends:
                    self._p2p.send([buffer.contiguous()], peer, 0)
                self._p2p._end_coalescing(self._device).wait()  # the stream waits, not this thread
            except RuntimeError as error:
                reason = str(error).splitlines()[0]
                raise ExecutionError(
                    f"rank {self._rank} of {self._size}: {self.label}, step {exchange.step}: {reason}"
                ) from None
        self.underway = False
