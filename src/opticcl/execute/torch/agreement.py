"""The calls of all ranks of a group, compared before results are written."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opticcl.errors import ExecutionError, ParameterError
from opticcl.execute.loop import Exchange
from opticcl.execute.torch.transport import OWN_TAGS, GlooTransport

__all__ = ["Agreement"]


class Agreement:
    """Compares what the ranks of a group call, by a digest that every pair exchanges.

    Args:
        transport: of the group.
        store: of torch, for this group.
        rank, size: of this process in the group.
        nodes: global rank of each rank of the group.
        check: whether calls are compared.
    """

    def __init__(
        self, transport: GlooTransport, store: Any, rank: int, size: int, nodes: Sequence[int], check: bool = True
    ) -> None:
        self._transport, self._store, self._nodes = transport, store, nodes
        self._rank, self._check = rank, check and size > 1
        self._others = [other for other in range(size) if other != rank]
        self._calls = 0

    def begin_call(self, name: str) -> None:
        """Number the next call; all ranks make their calls in one order.

        Args: name: of the collective, for messages.
        """
        self._calls += 1
        self._transport.label = name

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
        digest = hashlib.blake2b(f"{call}{problem}".encode(), digest_size=7).digest()
        by_call = hashlib.blake2b(digest, digest_size=4, key=self._calls.to_bytes(8, "little")).digest()
        tag = 2 * (int.from_bytes(by_call, "little") % (OWN_TAGS // 2)) + 1
        if self._check:
            wait = self._post([int.from_bytes(digest, "little"), int(problem is not None)])
            wait_for_first = self._transport.post(first, tag) if first is not None else None
            found = wait()
            if problem is not None or any(values != found[0] for values in found):
                raise self._difference(name, call, problem)
            if wait_for_first is not None:
                wait_for_first()
        elif problem is not None:
            raise self._named(f"{name}: rank {self._rank}: {problem}", self._nodes[self._rank])
        elif first is not None:
            self._transport.post(first, tag)()
        return tag

    def compare(self, values: list[int]) -> list[list[int]]:
        """The values of all ranks; every pair exchanges them directly.

        Args: values: of this rank, as many on every rank.
        """
        return self._post(values)()

    def _post(self, values: list[int]) -> Callable[[], list[list[int]]]:
        found = torch.empty((len(self._others) + 1, len(values)), dtype=torch.int64)
        found[self._rank] = torch.tensor(values)
        rows = found.unbind()
        sends, recvs = ([(rank, rows[at]) for rank, at in pairs] for pairs in self._pairs())
        wait = self._transport.post(Exchange(-1, sends, recvs), 2 * self._calls % OWN_TAGS)

        def all_of_them() -> list[list[int]]:
            wait()
            return found.tolist()

        return all_of_them

    def _pairs(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        return [(rank, self._rank) for rank in self._others], [(rank, rank) for rank in self._others]

    def _difference(self, name: str, call: str, problem: str | None) -> ParameterError:
        """What differs, by the texts of all ranks in the store."""
        key = f"call{self._calls}"
        self._store.set(f"{key}/{self._rank}", pickle.dumps((call, problem)))
        ranks = range(len(self._others) + 1)
        calls = [pickle.loads(self._store.get(f"{key}/{rank}")) for rank in ranks]
        for rank, (_, why) in enumerate(calls):
            if why is not None:
                return self.common(f"{name}: rank {rank}: {why}")
        other = next(rank for rank, made in enumerate(calls) if made[0] != calls[0][0])
        return self.common(f"rank 0 calls {calls[0][0]}, rank {other} calls {calls[other][0]}; all must be equal")

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
