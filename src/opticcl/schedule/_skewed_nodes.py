"""Nodes that the two steps of a skewed exchange join (`opticcl.schedule.skewed_exchange`), and the moves that keep both.

Every node is in one set of the first step and in one of the second, and a set of one step meets a set of the other in one node:

             first step                                 second step
    A, B     racks of a block and a place               (g - l) mod x and the rack's place in its block
    C, D     class h of places                          g - u(h) j, the rack and the place in its class

A move of the nodes that takes sets of both steps to sets maps the schedule onto itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray
from opticcl.ir.symmetry import Digits, Permutation, Symmetry, Table
from opticcl.schedule.galois_field import Arithmetic, galois_field, integers_modulo

__all__ = ["JoinedNodes", "class_arithmetic", "group_turns", "joined_by_block", "joined_by_class"]

Ends = tuple[IntArray, IntArray]


class _Places(NamedTuple):
    """Group, rack and place of every node, int64 (nodes,) each."""

    group: IntArray
    rack: IntArray
    place: IntArray


@dataclass(frozen=True, eq=False)
class JoinedNodes:
    """Nodes that each of two steps joins.

    Args:
        first: number of the set of each node in the first step, int64 (nodes,).
        second: the same in the second step, int64 (nodes,).
        moves: permutations of the nodes that commute and take node 0 to each node once; sets of both steps stay sets.
    """

    first: IntArray
    second: IntArray
    moves: tuple[Permutation, ...]

    @cached_property
    def num_first(self) -> int:
        """Sets of the first step, as many as nodes that the second one joins [count]."""
        return int(self.first.max()) + 1

    @cached_property
    def num_second(self) -> int:
        """Sets of the second step, as many as nodes that the first one joins [count]."""
        return int(self.second.max()) + 1

    @cached_property
    def rank(self) -> IntArray:
        """Place of each node in an order in which those that the second step joins are neighbours, int64 (nodes,)."""
        return self.second * self.num_first + self.first

    def pairs(self, number: int | None) -> Ends:
        """Senders and receivers, int32 (transfers,) each.

        Args: number: of the step, 0 or 1; None: all nodes are joined.
        """
        n = len(self.first)
        label = self.first if number == 0 else self.second
        size = n if number is None else (self.num_second, self.num_first)[number]
        order = np.arange(n) if number is None else np.argsort(label, kind="stable")
        joined = order.astype(np.int32).reshape(-1, size)
        others = ~np.eye(size, dtype=bool)
        src = np.broadcast_to(joined[:, :, None], (len(joined), size, size))[:, others]
        dst = np.broadcast_to(joined[:, None, :], (len(joined), size, size))[:, others]
        return src.ravel(), dst.ravel()

    def of_first(self, number: int | None) -> Ends:
        """Node 0 and its peers, int64 (transfers,) each.

        Args: number: as of `pairs`.
        """
        label = self.first if number == 0 else self.second
        joined = np.ones(len(label), bool) if number is None else label == label[0]
        peers = np.flatnonzero(joined)[1:]  # the first is node 0
        return np.zeros_like(peers), peers

    def symmetries(self, chunk: IntArray, count: int) -> tuple[Symmetry, ...]:
        """The moves, each with what it does to the chunks.

        Args:
            chunk: of each node.
            count: chunks [count].
        """
        found = []
        for move in self.moves:
            images = np.empty(count, np.int64)
            images[chunk] = chunk[move.images(len(chunk))]
            found.append(Symmetry(move, Table(images)))
        return tuple(found)


def _places(machine: Ramp) -> _Places:
    node = np.arange(machine.num_nodes)
    rack, place = np.divmod(node, machine.wavelengths)
    return _Places(rack // machine.racks, rack % machine.racks, place)


def joined_by_block(fabric: Fabric, block: int) -> JoinedNodes:
    """A and B. Moves: the next group; the next rack of a block; the next block; the next place of the next group.

    Args:
        fabric: a RAMP.
        block: racks of a block [count].
    """
    machine = fabric.machine_as(Ramp)
    x, racks, places = machine.groups, machine.racks, machine.wavelengths
    at = _places(machine)
    radices = (x, racks // block, block, places)
    beside = (at.group + 1) % x * racks * places + at.rack * places
    moves: list[Permutation] = [Digits(radices, digit, 1) for digit in range(3) if radices[digit] > 1]
    moves.append(Table(beside + (at.place + 1) % places))
    first = at.rack // block * places + at.place
    return JoinedNodes(first, (at.group - at.place) % x * block + at.rack % block, tuple(moves))


def joined_by_class(fabric: Fabric, classes: int) -> JoinedNodes:
    """C and D. Moves: the groups turned; the next rack, group and class so that g - u(h) j stays; the next place of a class.

    Args:
        fabric: a RAMP.
        classes: of places [count].
    """
    machine = fabric.machine_as(Ramp)
    x, racks, places = machine.groups, machine.racks, machine.wavelengths
    field, at = class_arithmetic(fabric, classes), _places(machine)
    many = places // classes
    which, place = np.divmod(at.place, many)
    key = field.sub(at.group, field.mul(which % x, at.rack)).astype(np.int64)

    def node(key: IntArray, rack: IntArray, which: IntArray, place: IntArray) -> Permutation:
        group = field.add(key, field.mul(which % x, rack)).astype(np.int64)
        return Table((group * racks + rack) * places + which * many + place)

    moves = [node(turned[key], at.rack, which, place) for turned in group_turns(x, field)]
    if racks > 1:
        moves.append(node(key, (at.rack + 1) % racks, which, place))
    moves.append(node(key, at.rack, (which + 1) % classes, place))
    if many > 1:
        moves.append(node(key, at.rack, which, (place + 1) % many))
    return JoinedNodes(which, (key * racks + at.rack) * many + place, tuple(moves))


def class_arithmetic(fabric: Fabric, classes: int) -> Arithmetic:
    """Arithmetic of groups in which differences of classes, times racks, differ: modulo x for two, else the field of order x.

    Args:
        fabric: a RAMP.
        classes: of places [count].
    """
    x = fabric.machine_as(Ramp).groups
    return integers_modulo(x) if classes == 2 else galois_field(x)


def group_turns(groups: int, arithmetic: Arithmetic) -> Sequence[IntArray]:
    """Additions that reach every group from group 0 by products of their powers in one way, int64 (groups,) each.

    Args:
        groups: x [count].
        arithmetic: of groups.
    """
    every = np.arange(groups)
    one = np.array([1 % groups])
    cyclic = groups <= 2 or int(arithmetic.add(one, one)[0]) != 0
    steps = [1] * (groups > 1) if cyclic else [1 << bit for bit in range(groups.bit_length() - 1)]
    return [arithmetic.add(every, np.full(groups, step)).astype(np.int64) for step in steps]
