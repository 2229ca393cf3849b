"""Direct exchanges on a RAMP in two steps, without a scheduler: racks are skewed against each other.

A node is (group g, rack j, place l), with x groups, J racks a group and L places a rack. If node (g, j, l) sends to
(g + j + a, j + b, l + c) for x labels (a, b, c) that differ in a alone, a pair of groups meets one rack for each label, since J
is at most x, and a wavelength meets one place. So every label has a plane of its own, and all x transceivers of all nodes
send at once. With blocks of p racks, p a divisor of J, two families of peers reach every node exactly once:

    A    all groups, the racks of the own block, the same place          x p peers    p rounds
    B    (g + l' - l, j + p b, l') for every place l' and block b        L J / p      (J / p) (L / x) rounds

    reduce_scatter      A adding, B adding                     2 steps
    all_gather          B, A                                   2
    all_to_all          A, B, or every node at once            2, or 1
    all_reduce          everything over A, over B              2
                        A into x p chunks, B exchanged, A      3
                        A, B, B, A                             4
    broadcast           from the root to every node: plane t lights the wavelengths t, t + x, ... in turn     1

Nodes that B joins agree in g - l and in j modulo p, so their chunks are next to each other. A step of too many transfers to
list is defined by those of node 0 and the symmetries (`opticcl.ir.symmetric_steps`): on 65,536 nodes all at once are 4.3e9.

Source: RAMP sections 3.1 and 4.1 for the hardware. Direct exchanges in turn are known from Sirius (Ballani et al. 2020) and
RotorNet (Mellette et al. 2017), the exchange in two phases from Bruck et al. 1997; the skew by the rack is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.symmetric_steps import MOST_LISTED, Moves, SymmetricSteps
from opticcl.ir.symmetry import Digits, Permutation, Symmetry, Table
from opticcl.schedule import needs_whole, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS

__all__ = ["exchange_phases", "racks_of_a_block", "skewed_exchange"]

_STEPS = {
    "all_reduce": (4, 3, 2),
    "reduce_scatter": (2,),
    "all_gather": (2,),
    "all_to_all": (2, 1),
    "barrier": (2,),
    "broadcast": (1,),
}
"""Numbers of steps that each collective can take, the usual one first."""

_PHASES = {
    ("all_reduce", 4): "ABBA",
    ("all_reduce", 3): "ABA",
    ("all_reduce", 2): "AB",
    ("reduce_scatter", 2): "AB",
    ("all_gather", 2): "BA",
    ("all_to_all", 2): "AB",
    ("all_to_all", 1): "N",
    ("barrier", 2): "AB",
    ("broadcast", 1): "R",
}
"""Peers in every step: those of A or B, all nodes, or all nodes from the root."""


def accepts(collective: Request, fabric: Fabric, block: int | None = None, steps: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        block: racks of a block [count].
        steps: of the schedule [count].
    """
    if reason := needs_whole(fabric, "ramp"):
        return reason
    if collective.name not in _STEPS:
        return "it does " + ", ".join(_STEPS)
    known = _STEPS[collective.name]
    if steps is not None and steps not in known:
        return f"steps={steps}: {collective.name} takes {' or '.join(map(str, known))}"
    racks = fabric.machine_as(Ramp).racks
    if block is not None and (block < 1 or racks % block):
        return f"block={block} does not divide racks={racks}; try one of {', '.join(map(str, _divisors(racks)))}"
    most = max(_peers(fabric, racks_of_a_block(fabric, block), phase) for phase in exchange_phases(collective, steps))
    rows = most * (1 if collective.name == "broadcast" else fabric.num_nodes)
    if rows <= MOST_TRANSFERS or _has_symmetric_light(fabric):
        return None
    return f"{rows:,} transfers a step are more than {MOST_TRANSFERS:,}"


def _has_symmetric_light(fabric: Fabric) -> bool:
    """Whether the circuits of some nodes are those of all: each label has a plane of its own, and all parts work."""
    machine = fabric.machine_as(Ramp)
    shared = machine.signals_meet or machine.transceivers_per_group > 1
    return machine.subnet == "broadcast" and not shared and not fabric.conditions


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Every number of steps with every block, unless a step has too many transfers to list, or to define by symmetries."""
    if needs_whole(fabric, "ramp") or collective.name not in _STEPS or collective.name == "barrier":
        return []
    if collective.name == "broadcast":
        return [{}]
    tried: list[dict[str, int]] = []
    for steps in _STEPS[collective.name]:
        phases = exchange_phases(collective, steps)
        for block in _divisors(fabric.machine_as(Ramp).racks) if steps > 1 else (1,):
            rows = fabric.num_nodes * max(_peers(fabric, block, phase) for phase in phases)
            if rows <= MOST_LISTED or _has_symmetric_light(fabric):
                tried.append({"block": block, "steps": steps})
    return tried


@register_algorithm("skewed_exchange", accepts, variants)
def skewed_exchange(
    collective: Request, fabric: Fabric, *, block: int | None = None, steps: int | None = None
) -> Schedule:
    """Exchanges with x p and then with L J / p nodes at once, in at most four steps.

    Args:
        collective: all_reduce, reduce_scatter, all_gather, all_to_all, barrier or broadcast.
        fabric: a RAMP.
        block: racks p of a block, a divisor of those of a group [count]; None: about as many peers in both families.
        steps: of the schedule: 2, 3 or 4 for all_reduce, 1 or 2 for all_to_all [count]; None: 4 for all_reduce, 1 for
            broadcast, else 2.
    """
    phases = exchange_phases(collective, steps)
    classes = _Classes(fabric, racks_of_a_block(fabric, block))
    n, whole = fabric.num_nodes, collective.name == "barrier" or (phases == "AB" and collective.name == "all_reduce")
    if n == 1:
        return Schedule("skewed_exchange", collective.on(1, 1), 0, lambda i: Transfers.of([], [], [], 1, Op.COPY))
    if collective.name == "broadcast":
        others = np.delete(np.arange(n), collective.root)
        first = Transfers.of(np.full(n - 1, collective.root), others, 0, 1, Op.COPY)
        return Schedule("skewed_exchange", collective.on(n, 1), 1, lambda i: first)
    if whole or phases == "ABA":
        chunk, count = (classes.key, classes.num_keys) if phases == "ABA" else (np.zeros(n, np.int64), 1)
        owner = None
    else:
        chunk, count = classes.rank, n
        owner = np.argsort(chunk)

    def transfers(i: int, ends: tuple[IntArray, IntArray]) -> Transfers:
        """Of step i between these senders and receivers."""
        src, dst = ends
        gathers = collective.name == "all_gather" or (
            2 * i >= len(phases) and collective.name == "all_reduce" and not whole
        )
        if whole:
            return Transfers.of(src, dst, 0, 1, Op.REDUCE)
        if count != n:  # three steps: what B exchanges is the chunk of all whom it joins
            gathers = i == 2
            return Transfers.of(src, dst, chunk[src if gathers else dst], 1, Op.COPY if gathers else Op.REDUCE)
        at = src if gathers else dst
        wide = classes.num_joined if phases[i] == "A" else 1
        lo = chunk[at] // wide * wide
        if collective.name == "all_to_all":
            met = classes.num_block if phases[i] == "B" else 1
            return Transfers.of(src, dst, lo, wide, Op.MOVE, met)
        return Transfers.of(src, dst, lo, wide, Op.COPY if gathers else Op.REDUCE)

    def listed(i: int) -> Transfers:
        return transfers(i, classes.pairs(phases[i]))

    symmetries = classes.symmetries(chunk, count)
    step: Callable[[int], Transfers] = listed
    if _has_symmetric_light(fabric) and n * max(_peers(fabric, classes.block, p) for p in phases) > MOST_LISTED:
        moves = Moves(symmetries, n, count)
        step = SymmetricSteps(moves, lambda i: transfers(i, classes.of_first(phases[i])), listed, MOST_LISTED)
    chunks = collective.on(n, count) if owner is None else collective.on(n, count, owner=owner)
    return Schedule("skewed_exchange", chunks, len(phases), step, symmetries=symmetries)


def exchange_phases(collective: Request, steps: int | None) -> str:
    """Which peers each step has: A, B, N (all nodes) or R (all nodes, from the root).

    Args:
        collective: requested.
        steps: of the schedule [count]; None: the usual number.
    """
    return _PHASES[collective.name, _STEPS[collective.name][0] if steps is None else steps]


def racks_of_a_block(fabric: Fabric, block: int | None) -> int:
    """Racks of a block: as given, or the divisor of all for which x p and L J / p differ least [count]."""
    if block is not None:
        return block
    machine = fabric.machine_as(Ramp)
    ideal = max(1, isqrt(machine.wavelengths * machine.racks // machine.groups))
    return min(_divisors(machine.racks), key=lambda p: (abs(p - ideal), p))


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(p for p in range(1, number + 1) if number % p == 0)


def _peers(fabric: Fabric, block: int, phase: str) -> int:
    """Peers of a node, itself included [count].

    Args:
        fabric: a RAMP.
        block: racks of a block [count].
        phase: A, B, N or R.
    """
    machine = fabric.machine_as(Ramp)
    of_block = machine.groups * block
    return {"A": of_block, "B": fabric.num_nodes // of_block}.get(phase, fabric.num_nodes)


class _Classes:
    """Nodes that A joins, and nodes that B joins.

    Args:
        fabric: a RAMP.
        block: racks of a block [count].
    """

    def __init__(self, fabric: Fabric, block: int) -> None:
        machine = fabric.machine_as(Ramp)
        self.groups, self.racks, self.places, self.block = machine.groups, machine.racks, machine.wavelengths, block
        n = fabric.num_nodes
        node = np.arange(n)
        self.g, self.j, self.l = (
            node // (self.racks * self.places),
            node // self.places % self.racks,
            node % self.places,
        )
        self.num_keys = self.num_block = self.groups * block
        self.num_joined = n // self.num_keys
        self.key: IntArray = (self.g - self.l) % self.groups * block + self.j % block
        self.rank: IntArray = self.key * self.num_joined + self.j // block * self.places + self.l

    def pairs(self, phase: str) -> tuple[IntArray, IntArray]:
        """Senders and receivers, int32 (transfers,) each.

        Args: phase: A, B or N.
        """
        n = len(self.g)
        if phase == "N":
            joined = np.arange(n, dtype=np.int32)[None, :]
        elif phase == "A":  # nodes of a block of racks and a place
            label = (self.j // self.block) * self.places + self.l
            joined = np.argsort(label, kind="stable").astype(np.int32).reshape(-1, self.num_block)
        else:
            joined = np.argsort(self.rank).astype(np.int32).reshape(-1, self.num_joined)
        size = joined.shape[1]
        src = np.broadcast_to(joined[:, :, None], (len(joined), size, size))[:, ~np.eye(size, dtype=bool)]
        dst = np.broadcast_to(joined[:, None, :], (len(joined), size, size))[:, ~np.eye(size, dtype=bool)]
        return src.ravel(), dst.ravel()

    def of_first(self, phase: str) -> tuple[IntArray, IntArray]:
        """Node 0 and its peers, int64 (transfers,) each.

        Args: phase: A, B or N.
        """
        if phase == "N":
            joined = np.ones(len(self.g), bool)
        elif phase == "A":
            joined = (self.j < self.block) & (self.l == 0)
        else:
            joined = self.key == self.key[0]
        peers = np.flatnonzero(joined)[1:]  # the first is node 0
        return np.zeros_like(peers), peers

    def symmetries(self, chunk: IntArray, count: int) -> tuple[Symmetry, ...]:
        """The next group; the next rack of a block; the next block; the next place of the next group.

        Args:
            chunk: of each node.
            count: chunks [count].
        """
        n, radices = len(self.g), (self.groups, self.racks // self.block, self.block, self.places)
        beside = (self.g + 1) % self.groups * self.racks * self.places + self.j * self.places
        moves: list[Permutation] = [Digits(radices, digit, 1) for digit in range(3) if radices[digit] > 1]
        moves.append(Table(beside + (self.l + 1) % self.places))
        found = []
        for ranks in moves:
            images = np.empty(count, np.int64)
            images[chunk] = chunk[ranks.images(n)]
            found.append(Symmetry(ranks, Table(images)))
        return tuple(found)
