"""Messages of rank schedules by the sends and receives of another group: Gloo for CPU tensors, NCCL for CUDA tensors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch

from opticcl.errors import ExecutionError
from opticcl.execute.loop import Exchange

__all__ = ["GlooTransport", "NcclTransport"]

OWN_TAGS = 1 << 30
"""Tags of schedules begin here; those of user messages are below."""


class GlooTransport:
    """Messages by the sends and receives of a Gloo group.

    Args:
        p2p: group with `send` and `recv`.
        rank, size: of this process in it.
        timeout: longest duration of a message.
    """

    def __init__(self, p2p: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._p2p, self._rank, self._size, self._timeout = p2p, rank, size, timeout
        self._tag = OWN_TAGS
        self.label = "collective"
        self.underway = False

    def run(self, exchanges: Iterator[Exchange]) -> None:
        """Carry the messages of all steps.

        Raises: ExecutionError: a rank does not answer, or its connection is closed.
        """
        self._tag = OWN_TAGS + (self._tag + 1) % OWN_TAGS
        self.underway = True
        for step, sends, recvs in exchanges:
            peer = -1
            try:
                works = []
                for peer, buffer in recvs:
                    works.append((peer, self._p2p.recv([buffer], peer, self._tag)))
                for peer, buffer in sends:
                    works.append((peer, self._p2p.send([buffer.contiguous()], peer, self._tag)))
                for each in works:
                    peer, work = each
                    work.wait(self._timeout)
            except RuntimeError as error:
                raise self._failure(step, peer, error) from None
        self.underway = False

    def _failure(self, step: int, peer: int, error: RuntimeError) -> ExecutionError:
        reason = str(error).splitlines()[0].rpartition("] ")[2].partition(". ")[0]
        failure = ExecutionError(f"rank {self._rank} of {self._size}: {self.label}, step {step}: rank {peer}: {reason}")
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
