"""Latency under assumptions: what a paper prints, or the sum of its parts by one law for all fabrics.

    of a circuit   base + the sum of its hops, from the passages of the fabric and the floor plan
    of a round     that of its longest path + message_gap x messages of the busiest node

A message is all that a node sends to another in a step with one operation, in however many transfers and rounds; it counts in
the round of its first transfer. With time slots the base is rounded up to whole slots.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import LATENCY_KEYS, Assumptions
from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.ir.floor_plan import Passage
from opticcl.ir.path_kernels import sums_of_paths
from opticcl.pairs import first_of_equal

__all__ = [
    "PathLatency",
    "first_transfers",
    "in_line_on",
    "most_messages",
    "path_latency",
    "step_latency_s",
]

FloatArray = npt.NDArray[Any]  # float64

FEW = 16  # circuits of a round are sorted where the step has more than this many transfers for each
_ROUNDING = 1e-9  # of a slot; a latency of whole slots is not rounded up by what a float lacks


class PathLatency:
    """Latency of the circuits of a fabric.

    Args:
        fabric: that the circuits are on.
        assumed: time assumptions.

    Attributes:
        base_s: apart from hops [s].
        least_s: of the shortest path of one hop or more [s].
        message_gap_s: of each message of a node [s].
    """

    def __init__(self, fabric: Fabric, assumed: Assumptions) -> None:
        self._table: FloatArray | None = None
        if assumed.latency == "published":
            self.base_s, self.message_gap_s, self.least_s = fabric.latency_s, 0.0, fabric.latency_s
            if fabric.hop_latency_s(np.arange(0)) is not None:
                self._table = fabric.hop_latency_s(np.arange(fabric.num_hops))
            return
        base_s = assumed.endpoint + float(_seconds(fabric.passage(assumed.floor), assumed))
        if fabric.slot_s:
            base_s = ceil(base_s / fabric.slot_s - _ROUNDING) * fabric.slot_s
        self.base_s, self.message_gap_s, self.least_s = base_s, assumed.message_gap, base_s
        of_hops = fabric.hop_passages(assumed.floor)
        if of_hops is not None:
            self._table = np.atleast_1d(_seconds(of_hops, assumed))
            self.least_s += float(self._table.min(initial=np.inf)) if len(self._table) else 0.0

    def __eq__(self, other: object) -> bool:
        """Equal latencies of all hops; of those apart from hops too."""
        if not isinstance(other, PathLatency) or self._numbers != other._numbers:
            return False
        mine, its = self._table, other._table
        return mine is its or (mine is not None and its is not None and np.array_equal(mine, its))

    def __hash__(self) -> int:
        return hash(self._numbers)

    @property
    def _numbers(self) -> tuple[float, ...]:
        return self.base_s, self.least_s, self.message_gap_s, self.num_hops

    def of_hops(self, hops: IntArray) -> FloatArray | None:
        """Latency that each hop adds, float64 (hops,) [s], or None if hops add none."""
        return None if self._table is None else self._table[hops]

    @property
    def num_hops(self) -> int:
        """Numbers that a hop may have; 0 where hops add nothing [count]."""
        return 0 if self._table is None else len(self._table)

    @property
    def constant(self) -> bool:
        """Whether hops add nothing, so that all circuits have the same latency."""
        return self._table is None

    def of_circuits(self, circuits: Circuits) -> FloatArray:
        """Latency of the path of each circuit, float64 (circuits,) [s]."""
        if self.constant:
            return np.full(len(circuits), self.base_s)
        latencies_s: FloatArray = self.base_s + self._of_paths(circuits)
        return latencies_s

    def longest_s(self, circuits: Circuits) -> float:
        """Latency of the longest path of a round [s]."""
        if self.constant or not len(circuits):
            return self.base_s
        return self.base_s + float(self._of_paths(circuits).max())

    def _of_paths(self, circuits: Circuits) -> FloatArray:
        """Latency that the hops of each path add, float64 (circuits,) [s]."""
        assert self._table is not None  # hops add something
        hops = circuits.hops
        if len(hops) and not 0 <= hops.min() <= hops.max() < len(self._table):
            raise IndexError(f"hop {hops.max()}: links are numbered 0 to {len(self._table) - 1}")
        return np.asarray(sums_of_paths(hops, circuits.hop_offsets, self._table))

    def gaps_s(self, transfers: Transfers, circuits: Circuits) -> FloatArray:
        """Time that the messages of its sender in a round add to each circuit, float64 (circuits,) [s].

        A message goes to one receiver, even where one signal is split for several. An idle circuit adds and has none.

        Args:
            transfers: of the step.
            circuits: of the round.
        """
        if not self.message_gap_s:
            return np.zeros(len(circuits))
        sent = _messages_sent(transfers, circuits)
        carries = circuits.transfer >= 0
        gaps: FloatArray = np.zeros(len(circuits))
        gaps[carries] = self.message_gap_s * sent[transfers.src[circuits.transfer[carries]]]
        return gaps

    def gap_s(self, transfers: Transfers, circuits: Circuits) -> float:
        """Time that the messages of the node that sends most of them in a round add [s].

        Args:
            transfers: of the step.
            circuits: of the round.
        """
        return self.message_gap_s * most_messages(transfers, circuits) if self.message_gap_s else 0.0


def most_messages(transfers: Transfers, circuits: Circuits) -> int:
    """Messages of the node that sends most of them in a round [count].

    Args:
        transfers: of the step.
        circuits: of the round.
    """
    return int(_messages_sent(transfers, circuits).max(initial=0))


def _messages_sent(transfers: Transfers, circuits: Circuits) -> IntArray:
    """Messages of each rank whose first transfer has circuits in a round, int64 (ranks,); none where no transfer has any."""
    rows, first = circuits.transfer[circuits.transfer >= 0], first_transfers(transfers)
    if FEW * len(rows) < len(transfers):
        rows = np.unique(rows)
        return np.bincount(transfers.src[rows], None if first is None else first[rows]).astype(np.int64)
    used = np.zeros(len(transfers), bool)
    used[rows] = True
    if first is None:
        return np.bincount(transfers.src if used.all() else transfers.src[used])
    return np.bincount(transfers.src, used & first).astype(np.int64)


class _LastStep:
    """First transfers of the messages of the step that was evaluated last, as long as its columns exist."""

    def __init__(self) -> None:
        self._known: tuple[tuple[weakref.ref[IntArray], ...], npt.NDArray[np.bool_] | None] | None = None

    def first(self, transfers: Transfers) -> npt.NDArray[np.bool_] | None:
        """As `first_transfers`."""
        columns, known = (transfers.src, transfers.dst, transfers.op), self._known
        if known is not None and all(ref() is column for ref, column in zip(known[0], columns, strict=True)):
            return known[1]
        is_first = _first_transfers(*columns)
        self._known = tuple(map(weakref.ref, columns)), is_first
        return is_first


_LAST_STEP = _LastStep()


def first_transfers(transfers: Transfers) -> npt.NDArray[np.bool_] | None:
    """Which transfers are the first of their message, bool (transfers,); None where all are.

    The rounds of a step are evaluated one after the other, so that of the last step is kept.

    Args: transfers: of a step.
    """
    return _LAST_STEP.first(transfers)


def _first_transfers(src: IntArray, dst: IntArray, op: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_] | None:
    """As `first_transfers`."""
    if not len(src):
        return None
    message = (src.astype(np.int64) * (1 + int(dst.max())) + dst) * (1 + int(op.max())) + op
    first = first_of_equal(message)
    return None if first.all() else first


def path_latency(fabric: Fabric, assumed: Assumptions) -> PathLatency:
    """The law of latency under assumptions; one object for those that differ in other values alone.

    Args:
        fabric: that the circuits are on.
        assumed: time assumptions.
    """
    keys = ("latency", *LATENCY_KEYS, "floor")
    return _path_latency(fabric, Assumptions(**{key: getattr(assumed, key) for key in keys}))


@lru_cache(maxsize=16)
def _path_latency(fabric: Fabric, assumed: Assumptions) -> PathLatency:
    """Kept for the last fabrics, since those of packet networks take a table of all links."""
    return PathLatency(fabric, assumed)


def in_line_on(fabric: Fabric, assumed: Assumptions) -> bool:
    """Whether rounds of a step follow each other in line: nothing is ever set between them."""
    return assumed.rounds == "in_line" and fabric.reconfiguration_s == 0


def step_latency_s(fabric: Fabric, assumed: Assumptions, longest_s: Sequence[float], gaps_s: Sequence[float]) -> float:
    """Latency of the rounds of a step together [s].

    Apart, each round waits for its own. In line, where nothing is set between rounds, they wait for the longest once: a
    transmitter is free once its last bit has left.

    Args:
        fabric: that the rounds are on.
        assumed: time assumptions.
        longest_s: latency of the longest path of each round [s].
        gaps_s: what the messages of each round add [s].
    """
    in_line = in_line_on(fabric, assumed)
    return (max(longest_s, default=0.0) if in_line else sum(longest_s)) + sum(gaps_s)


def _seconds(passage: Passage, assumed: Assumptions) -> FloatArray:
    """Time for what a signal passes, float64 (hops,) or () [s]."""
    return np.asarray(
        assumed.transceiver * passage.receivers
        + assumed.fibre * passage.fibre_m
        + assumed.waveguide * passage.waveguide_m
        + assumed.hop * passage.switches
        + assumed.server_hop * passage.server_switches,
        np.float64,
    )
