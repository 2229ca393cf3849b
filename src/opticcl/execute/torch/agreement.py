"""The calls of all ranks of a group, compared before results are written."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch

from opticcl.errors import ExecutionError, OpticclError, ParameterError
from opticcl.execute.loop import Exchange
from opticcl.execute.torch.transport import OWN_TAGS, GlooTransport

__all__ = ["Agreement"]

TEXT_S = 30.0
"""Longest wait for the words of another rank whose call differs; it writes them when it sees the same [s]."""


class Agreement:
    """Compares what the ranks of a group call, by one message of four numbers between every pair, the same for all calls.

    The numbers are a digest of the call, whether this rank cannot execute it, and for all_to_all the size of all its parts, if
    it is one, and of that for the receiver.

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
        transport: GlooTransport,
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
        given, found = (torch.zeros((size, 4), dtype=torch.int64) for _ in range(2))
        self._given, self._found = given.numpy(), found.numpy()
        others = [other for other in range(size) if other != rank]
        sends, recvs = ([(other, table[other]) for other in others] for table in (given, found))
        self._exchange = Exchange(-1, sends, recvs)

    def begin_call(self, name: str) -> None:
        """Number the next call; all ranks make their calls in one order.

        Args: name: of the collective, for messages.
        """
        self._calls += 1
        self._transport.label = name

    @property
    def calls(self) -> int:
        """Calls that have begun [count]."""
        return self._calls

    def agree(self, name: str, call: str, problem: str | None, first: Exchange | None = None) -> int:
        """Compare the call of all ranks, and carry the messages of its first step meanwhile.

        The tag of these messages is a digest of the call, so that they never reach a rank that calls something else.

        Args:
            name: of the collective.
            call: collective, operation, type and length, in words.
            problem: why this rank cannot execute it; None: it can.
            first: messages of the first step, into memory that is no result.
        Returns: the tag for the messages of this call.
        Raises: ParameterError: on every rank, where calls differ or one of them is invalid.
        """
        digest = _digest(call, problem)
        tag = self._tag(digest)
        if self._check:
            compared = self._compare(name, call, problem, digest, (0, 0))
            wait_for_first = self._transport.post(first, tag) if first is not None else None
            compared()
            if wait_for_first is not None:
                wait_for_first()
        elif problem is not None:
            raise self._named(f"{name}: rank {self._rank}: {problem}", self._nodes[self._rank])
        elif first is not None:
            self._transport.post(first, tag)()
        return tag

    def agree_on_parts(
        self, name: str, call: str, problem: str | None, common: int, parts: Sequence[int]
    ) -> tuple[int, list[int], list[int]]:
        """Compare the call of all ranks, and send each its part of this one; also where calls are not compared.

        Args:
            name, call, problem: as for `agree`.
            common: elements of each part that this rank sends or receives; -1: they differ [count].
            parts: elements that it sends to each rank [count].
        Returns: the tag for the messages of this call; `common` of each rank; what each rank sends to this one.
        Raises: ParameterError: as `agree`.
        """
        digest = _digest(call, problem)
        found = self._compare(name, call, problem, digest, [(common, part) for part in parts])()
        return self._tag(digest), [values[2] for values in found], [values[3] for values in found]

    def _tag(self, digest: bytes) -> int:
        by_call = hashlib.blake2b(digest, digest_size=4, key=self._calls.to_bytes(8, "little")).digest()
        return 2 * (int.from_bytes(by_call, "little") % (OWN_TAGS // 2)) + 1

    def _compare(
        self, name: str, call: str, problem: str | None, digest: bytes, parts: Any
    ) -> Callable[[], list[list[int]]]:
        """Send each rank the digest of this call and two numbers; returns a function that waits for those of all ranks."""
        head = int.from_bytes(digest, "little"), int(problem is not None)
        self._given[:, :2], self._given[:, 2:] = head, parts
        self._found[self._rank] = self._given[self._rank]
        wait = self._transport.post(self._exchange, 2 * self._calls % OWN_TAGS)

        def all_of_them() -> list[list[int]]:
            wait()
            rows: list[list[int]] = self._found.tolist()
            for row in rows:
                if row[1] or row[0] != head[0]:
                    raise self._difference(name, call, problem)
            return rows

        return all_of_them

    def _difference(self, name: str, call: str, problem: str | None) -> OpticclError:
        """What differs, by the texts of all ranks in the store; each writes its own when it sees the difference."""
        place = f"call{self._calls}"
        self._store.set(f"{place}/{self._rank}", pickle.dumps((name, call, problem)))
        keys = [f"{place}/{rank}" for rank in range(self._size)]
        try:
            self._store.wait(keys, min(self._timeout, timedelta(seconds=TEXT_S)))
        except RuntimeError:
            silent = next((rank for rank, key in enumerate(keys) if not self._store.check([key])), self._rank)
            failure = ExecutionError(
                f"rank {self._rank} of {self._size}: {call}: rank {silent} calls something else and does not say what"
            )
            failure.failed_rank = silent
            return failure
        calls = [pickle.loads(self._store.get(key)) for key in keys]
        for rank, (of_rank, _, why) in enumerate(calls):
            if why is not None:
                return self.common(f"{of_rank}: rank {rank}: {why}")
        other = next(rank for rank, made in enumerate(calls) if made[1] != calls[0][1])
        return self.common(f"rank 0 calls {calls[0][1]}, rank {other} calls {calls[other][1]}; all must be equal")

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


def _digest(call: str, problem: str | None) -> bytes:
    return hashlib.blake2b(f"{call}{problem}".encode(), digest_size=7).digest()
