"""Schedulers of dynamic traffic: which cells of an epoch carry which requests.

Every sender, receiver and channel has a word with a bit for each cell (slot, plane) of the epoch, set while the cell is free. A
request is granted where the three words of its circuit agree. A plane is a group of b transceivers with one laser and one
instruction (RAMP section 3.1), so that a cell of a plane carries up to b cells of one request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics.ramp import Ramp, wavelength_between
from opticcl.ir import Circuits, IntArray
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.operations.dynamic_traffic._scheduler_kernels import (
    Ended,
    FreeWords,
    Granted,
    Waiting,
    Words,
    grant_iteratively,
    grant_oldest_first,
)
from opticcl.operations.dynamic_traffic.demand import Channels
from opticcl.operations.dynamic_traffic.flows import run_values
from opticcl.registry import Registry, convert_arguments, parse_call

__all__ = [
    "FreeCells",
    "Scheduler",
    "WordScheduler",
    "all_free",
    "make_scheduler",
    "register_scheduler",
    "slot_circuits",
]

System = TypeVar("System", bound="Scheduler")

SCHEDULERS: Registry[type[Scheduler]] = Registry("scheduler", "opticcl.operations.dynamic_traffic")


@dataclass(frozen=True, slots=True, eq=False)
class FreeCells:
    """Cells of an epoch that nothing else occupies, as words of bits.

    Args:
        send, receive: of the nodes, uint64 (nodes, parts).
        channel: of the channels, uint64 (channels, parts).
    """

    send: Words
    receive: Words
    channel: Words

    def copy(self) -> FreeCells:
        """Words that may be changed."""
        return FreeCells(self.send.copy(), self.receive.copy(), self.channel.copy())


def bit_words(bits: IntArray, parts: int) -> Words:
    """A word with these bits set, uint64 (parts,)."""
    word = np.zeros(parts, np.uint64)
    np.bitwise_or.at(word, np.asarray(bits) // 64, np.uint64(1) << (np.asarray(bits) % 64).astype(np.uint64))
    return word


def all_free(machine: Ramp) -> FreeCells:
    """Every cell of an epoch."""
    bits = run_values()["slots"] * machine.groups
    full = bit_words(np.arange(bits), -(-bits // 64))
    counts = (machine.num_nodes, machine.num_nodes, Channels(machine).count)
    return FreeCells(*(np.tile(full, (count, 1)) for count in counts))


class Scheduler(ABC):
    """Protocol of the schedulers: it keeps the requests, and returns what is sent in each epoch.

    Class attributes:
        lead: epochs between the one of a request and the one in which it is sent.
        maximal: whether no request waits while its sender, its receiver and its channel have a free cell in common.
        hops: of a cell, at most.
    """

    lead: int = run_values()["lead"]
    maximal: bool = False
    hops: int = 1

    def __init__(self, machine: Ramp) -> None:
        """Args: machine: RAMP."""
        self.machine = machine

    @abstractmethod
    def add(self, requests: EpochRequest) -> None:
        """Take over requests that are due."""

    @abstractmethod
    def schedule(self, epoch: int, free: FreeCells) -> EpochGrants:
        """Circuits of an epoch. Args: epoch: its number; free: cells that may be used."""

    @property
    @abstractmethod
    def pending_cells(self) -> int:
        """Cells that were added and have not reached their receivers [count]."""


def register_scheduler(name: str) -> Callable[[type[System]], type[System]]:
    """Decorator that registers a class of schedulers, made from a machine and keyword arguments."""

    def register(made: type[System]) -> type[System]:
        SCHEDULERS.register(name)(made)
        return made

    return register


def make_scheduler(text: str, machine: Ramp) -> Scheduler:
    """The scheduler "name:key=value,..." for a machine.

    Raises: UnknownNameError, ParameterError: no such scheduler or parameter.
    """
    name, given = parse_call(text)
    made: Any = SCHEDULERS.get(name)
    scheduler: Scheduler = made(machine, **convert_arguments(made.__init__, given, name, positional=2))
    return scheduler


def slot_circuits(machine: Ramp, grants: EpochGrants) -> tuple[Circuits, ...]:
    """Circuits of each slot of the epoch; the b transceivers of a plane have the same light.

    The column `transfer` is the row of the grant.
    """
    b = machine.transceivers_per_group
    slot, plane = np.divmod(grants.bit.astype(np.int64), machine.groups)
    by_slot = []
    for number in range(run_values()["slots"]):
        rows = np.repeat(np.flatnonzero(slot == number), b)
        port = plane[rows] * b + np.tile(np.arange(b), len(rows) // b)
        src, dst = grants.src[rows], grants.dst[rows]
        gates = np.stack([dst // machine.nodes_per_group, src // machine.nodes_per_group], axis=1)
        wavelength = wavelength_between(machine.subnet, machine.wavelengths, src, dst)
        by_slot.append(Circuits.of(rows, src, dst, port, wavelength, 1, gates))
    return tuple(by_slot)


class WordScheduler(Scheduler):
    """Schedulers with one queue: requests that wait, as columns that grow. Kernels move those that are left to the front.

    Attributes:
        count: rows in use.
        waiting: columns.

    Args: machine: RAMP.
    """

    def __init__(self, machine: Ramp) -> None:
        super().__init__(machine)
        channels = Channels(machine)
        self.count = self._pending = 0
        self.waiting = Waiting(*(np.zeros(1 << 12, np.int32) for _ in range(5)))
        self.parts = channels.send_part, channels.receive_part
        self.slots = run_values()["slots"]
        self.bits = self.slots * machine.groups
        self._granted = Granted(*(np.zeros(machine.num_nodes * self.bits, np.int32) for _ in range(5)))

    def add(self, requests: EpochRequest) -> None:
        """Put requests at the end of the queue."""
        end = self.count + len(requests)
        if end > len(self.waiting.src):
            more = np.zeros(max(end, 2 * len(self.waiting.src)) - self.count, np.int32)
            self.waiting = Waiting(*(np.concatenate([column[: self.count], more]) for column in self.waiting))
        cells = requests.cells
        for column, new in zip(self.waiting, (requests.arrival, requests.src, requests.dst, cells, cells), strict=True):
            column[self.count : end] = new
        self.count = end
        self._pending += int(cells.sum())

    @property
    def pending_cells(self) -> int:
        """Cells in the queue [count]."""
        return self._pending

    def grants(self, found: tuple[int, ...], ended: Ended) -> EpochGrants:
        """Grants from the numbers that a kernel returns, of which the first is that of the grants."""
        number, done, self.count, cells, *rounds = found
        self._pending -= cells
        columns = (column[:number] for column in self._granted)
        return EpochGrants(*columns, *(column[:done] for column in ended), rounds=rounds[0] if rounds else 1)


@register_scheduler("native")
class Native(WordScheduler):
    """Any plane of any slot: the lowest cell that sender, receiver and channel have free, oldest request first."""

    def __init__(self, machine: Ramp, *, iterations: int = 0) -> None:
        """Scheduler with any plane.

        Args:
            machine: RAMP.
            iterations: rounds of proposals by an arbiter for each pair of racks, which read the words as they were at the
                start of the round; 0: one request after the other.
        """
        super().__init__(machine)
        if not 0 <= iterations <= 64:
            raise ParameterError(f"native: iterations={iterations}; give 1 to 64, or 0 for one request after the other")
        self.iterations = iterations
        self.maximal = not iterations
        self._masks = np.full((1, -(-self.bits // 64)), ~np.uint64(0))
        self._rack = np.zeros(machine.num_nodes, np.int64)

    def schedule(self, epoch: int, free: FreeCells) -> EpochGrants:
        """Grant in the order of the queue, or in rounds of proposals."""
        copied = free.copy()
        words = FreeWords(copied.send, copied.receive, copied.channel, *self.parts)
        ended = Ended(*(np.zeros(self.count, np.int32) for _ in range(3)))
        m, b = self.machine, self.machine.transceivers_per_group
        start = epoch * self.slots
        columns, out = (tuple(self.waiting), self.count, tuple(words)), (tuple(self._granted), tuple(ended))
        if not self.iterations:
            numbers = grant_oldest_first(*columns, self._masks, self._rack, m.groups, b, start, *out)
            return self.grants(numbers, ended)
        rack, turn = np.arange(m.num_nodes) // m.wavelengths, epoch * self.bits
        racks = m.groups * m.racks
        pair = rack[self.waiting.src[: self.count]] * racks + rack[self.waiting.dst[: self.count]]
        order = np.argsort(pair, kind="stable")
        numbers = grant_iteratively(
            *columns, rack, order, racks, m.groups, self.bits, m.groups, b, start, turn, self.iterations, *out
        )
        return self.grants(numbers, ended)


@register_scheduler("rack")
class RackRestricted(Native):
    """The same on one plane for each pair of racks, (j_src + j_dst) mod x, as a transceiver fixed to a rack."""

    def __init__(self, machine: Ramp) -> None:
        super().__init__(machine)
        self.maximal = False
        x, parts = machine.groups, self._masks.shape[1]
        planes = (np.arange(self.slots) * x + plane for plane in range(x))
        self._masks = np.stack([bit_words(bits, parts) for bits in planes])
        self._rack = np.arange(machine.num_nodes) // machine.wavelengths % machine.racks
