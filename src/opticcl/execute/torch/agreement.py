"""The calls of all ranks of a group, compared before results are written."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import torch

from opticcl.errors import ExecutionError, OpticclError, ParameterError
from opticcl.execute.loop import Exchange
from opticcl.execute.torch.connections import Connections, bytes_of

__all__ = ["Agreement", "GroupCall"]

HEAD = 4
"""Words before the room in a message [count]."""
ROOM_BYTES = 1 << 14
"""Room for data in the messages of a rank to all others together [bytes]."""
SHARE_BYTES = 1 << 11
"""Most room in one of them [bytes]."""
TEXT_S = 30.0
"""Longest wait for the words of another rank whose call differs; it writes them when it sees the same [s]."""


class GroupCall(NamedTuple):
    """What a rank calls.

    Args:
        name: of the collective.
        call: collective, operation, type and length, in words.
        problem: why this rank cannot execute it; None: it can.
        digest: of both.
        head: what is sent: the digest, whether there is a problem, and two numbers for all_to_all, int64 (HEAD,).
    """

    name: str
    call: str
    problem: str | None
    digest: int
    head: np.ndarray

    @classmethod
    def of(cls, name: str, call: str, problem: str | None) -> GroupCall:
        """A call, with its digest.

        Args: name, call, problem: as those of the class.
        """
        digest = int.from_bytes(hashlib.blake2b(f"{call}{problem}".encode(), digest_size=7).digest(), "little")
        return cls(name, call, problem, digest, np.array([digest, problem is not None, 0, 0]))


class Agreement:
    """Compares what the ranks of a group call, by one message between every pair, of one size for all calls.

    It has a digest of the call, whether this rank cannot execute it, and for all_to_all the size of all its parts, if it is
    one, and of that for the receiver. It has room for what a rank sends to the other in the first step of a call of few
    bytes: the receiver takes it once all ranks agree.

    Args:
        transport: of the group.
        store: of torch, for this group.
        rank, size: of this process in the group.
        timeout: longest wait for another rank.
        nodes: global rank of each rank of the group.
        check: whether calls are compared; the same on all ranks.
    """

    def __init__(
        self,
        transport: Connections,
        store: Any,
        rank: int,
        size: int,
        timeout: timedelta,
        nodes: Sequence[int],
        check: bool = True,
    ) -> None:
        self._transport, self._store, self._nodes, self._timeout = transport, store, nodes, timeout
        self._rank, self._size, self._check = rank, size, check and size > 1
        self._calls = 0
        room = 2 * (min(SHARE_BYTES, ROOM_BYTES // max(1, size - 1)) // 16)  # in words; rows stay aligned to 16 bytes
        self._words = torch.zeros((2, size, HEAD + room), dtype=torch.int64)
        self._given, self._found = self._words[:, :, :HEAD].numpy()
        others = [other for other in range(size) if other != rank]
        sends, recvs = ([(other, bytes_of(table[other])) for other in others] for table in self._words)
        self._exchange = Exchange(-1, sends, recvs)

    def room(self, peer: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Tensors of that shape in the messages to and from a rank; None if there is no room.

        Args:
            peer: the other rank.
            like: rows that are sent or received.
        """
        if not self._check or like.nbytes > 8 * (self._words.shape[2] - HEAD):
            return None
        to, of = (words[peer, HEAD:].view(torch.uint8)[: like.nbytes].view(like.dtype) for words in self._words)
        return to.view(like.shape), of.view(like.shape)

    def begin_call(self, name: str) -> None:
        """Number the next call; all ranks make their calls in one order.

        Args: name: of the collective, for messages.
        """
        self._calls += 1
        self._transport.label, self._transport.call = name, self._calls

    @property
    def calls(self) -> int:
        """Calls that have begun [count]."""
        return self._calls

    def agree(self, asked: GroupCall, first: Exchange | None = None) -> int:
        """Compare the call of all ranks, and carry the messages of its first step meanwhile.

        They are received once the calls are the same.

        Args:
            asked: by this rank.
            first: messages of the first step, into memory that is no result.
        Returns: the tag for the messages of this call.
        Raises: ParameterError: on every rank, where calls differ or one of them is invalid.
        """
        tag = asked.digest + 1
        if self._check:
            self._given[:] = asked.head
            self._compare(asked, first, tag)
        elif asked.problem is not None:
            raise self._named(f"{asked.name}: rank {self._rank}: {asked.problem}", self._nodes[self._rank])
        elif first is not None:
            self._transport.post(first, tag)()
        return tag

    def agree_on_parts(self, asked: GroupCall, common: int, parts: Sequence[int]) -> tuple[int, list[int], list[int]]:
        """Compare the call of all ranks, and send each its part of this one; also where calls are not compared.

        Args:
            asked: by this rank.
            common: elements of each part that this rank sends or receives; -1: they differ [count].
            parts: elements that it sends to each rank [count].
        Returns: the tag for the messages of this call; `common` of each rank; what each rank sends to this one.
        Raises: ParameterError: as `agree`.
        """
        tag = asked.digest + 1
        self._given[:] = asked.head
        self._given[:, 2:] = [(common, part) for part in parts]
        self._compare(asked, None, tag)
        announced: list[list[int]] = self._found.tolist()
        return tag, [values[2] for values in announced], [values[3] for values in announced]

    def _compare(self, asked: GroupCall, first: Exchange | None, tag: int) -> None:
        """Send each rank what is given to it, and receive what is given to this one; messages of a first step meanwhile."""
        self._found[self._rank] = self._given[self._rank]
        waits = [self._transport.post(self._exchange, 0)]
        if first is not None and (first.sends or first.recvs):
            waits.append(self._transport.post(first, tag))
        for number, wait in enumerate(waits):
            wait()
            if number == 0 and (asked.problem or self._found[:, :2].tobytes() != self._given[:, :2].tobytes()):
                self._transport.ordered = True  # what others send for this call may be left
                raise self._difference(asked)

    def _difference(self, asked: GroupCall) -> OpticclError:
        """What differs, by the texts of all ranks in the store; each writes its own when it sees the difference."""
        place = f"call{self._calls}"
        self._store.set(f"{place}/{self._rank}", pickle.dumps(asked))
        keys = [f"{place}/{rank}" for rank in range(self._size)]
        try:
            self._store.wait(keys, min(self._timeout, timedelta(seconds=TEXT_S)))
        except RuntimeError:
            silent = next((rank for rank, key in enumerate(keys) if not self._store.check([key])), self._rank)
            failure = ExecutionError(
                f"rank {self._rank} of {self._size}: {asked.call}: rank {silent} calls something else and does not say what"
            )
            failure.failed_rank = silent
            return failure
        calls: list[GroupCall] = [pickle.loads(self._store.get(key)) for key in keys]
        for rank, made in enumerate(calls):
            if made.problem is not None:
                return self.common(f"{made.name}: rank {rank}: {made.problem}")
        other = next(rank for rank, made in enumerate(calls) if made.call != calls[0].call)
        return self.common(f"rank 0 calls {calls[0].call}, rank {other} calls {calls[other].call}; all must be equal")

    def common(self, text: str) -> ParameterError:
        """An error that all ranks of the group raise, and its first rank prints."""
        return self._named(text, self._nodes[0])

    def _named(self, text: str, printed_by: int) -> ParameterError:
        error = ParameterError(text)
        error.printed_by = printed_by
        return error

    def with_first_failure(self, error: ExecutionError) -> ExecutionError:
        """A failure, with the first one of the group where that names another rank: a rank that fails leaves the others too.

        It is read from the store that torchrun's agent holds, which no rank takes with it.
        """
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            return error
        text = str(error)
        rank, _, first = self._store.compare_set("failure", "", f"{error.failed_rank} {text}").decode().partition(" ")
        return error if rank == str(error.failed_rank) else ExecutionError(f"{text}; the first failure: {first}")
