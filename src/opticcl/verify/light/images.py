"""Light of steps that are not listed: circuits of some senders, and moves of the machine that make those of all others of them.

The moves must be translations of the phase that the step belongs to: then they map its transfers onto themselves. They commute,
and take the senders to every node once; so every circuit of a round is the image of a listed one under exactly one product h of
their powers. A unit of a resource is occupied by the image of a use u under |H| / |orbit of u| products, so its load is the sum
of this number over the listed uses in its orbit: exact, for all units. The fabric gives the images of units; those of listed
circuits are compared with what their images occupy. A hop or a unit may be without an image under a move; a listed circuit that
uses one which some product has no image of is refused. Where several sets of senders have moves of their own, these take the
senders of all sets together to every node once, and the loads of a unit by each of them add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations
from math import lcm

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray, Resource, Violation, concatenate_circuits
from opticcl.ir.limits import ROUTES_AT_ONCE
from opticcl.ir.orbits import first_of_orbit, orbits_of_units
from opticcl.ir.phases import Steps
from opticcl.ir.representatives import LightMove, RoutedStep, StepImages, SymmetricRounds
from opticcl.ir.signals import divides_ports
from opticcl.verify.light.circuit_rows import (
    RULE_OF_KIND,
    circuit_name,
    out_of_range,
    part_faults,
    transfers_without_circuit,
    violation_of,
)
from opticcl.verify.sweep import Cells, cells_of

__all__ = [
    "Loads",
    "counts_by_orbits",
    "images_of_machine",
    "light_violations",
    "loads_by_orbits",
    "order_of",
    "routed_violations",
]


def light_violations(
    fabric: Fabric, step: StepImages, sets: Sequence[SymmetricRounds], number: int
) -> tuple[list[Violation], int]:
    """Violations of the circuits of a step that is not listed, and their number.

    Args:
        fabric: the machine, which must map its resources itself (`Fabric.resource_images`).
        step: its transfers.
        sets: its circuits, by senders whose circuits have the same moves.
        number: of the step.
    """
    images = images_of_machine(fabric, step.steps, number, sets)
    if any((circuits.transfer < 0).any() for one in sets for circuits in one.rounds):
        images = _wrong("circuits", "transfers that they carry", "idle ones")
    if len({len(one.rounds) for one in sets}) > 1:
        images = _wrong("rounds", "as many of all senders", "other numbers")
    if isinstance(images, Violation):
        return [replace(images, step=number)], 0
    violations = [
        broken
        for one in sets
        for broken in transfers_without_circuit(fabric, step.sent_by(one.senders), one.rounds, number)
    ]
    loads = [loads_by_orbits(fabric, one.moves) for one in sets]
    for at, every in enumerate(zip(*(one.rounds for one in sets), strict=True)):
        broken: list[Violation] = []
        for one, circuits in zip(sets, every, strict=True):
            broken += _impossible(fabric, circuits, one.moves)
        usages = [] if broken else [fabric.usage(circuits) for circuits in every]
        for of_sets in zip(*usages, strict=True):
            cells = [
                cells_of(use, circuits, fabric.num_wavelengths) for use, circuits in zip(of_sets, every, strict=True)
            ]
            resource = of_sets[0].resource
            broken += _over([of[resource] for of in loads], cells, resource.capacity, RULE_OF_KIND[resource.kind])
        violations += [replace(violation, round=at) for violation in broken]
    if not violations:
        for one, of in zip(sets, images, strict=True):
            violations += _other_units(fabric, one.moves, concatenate_circuits(one.rounds), of)
    violations = [replace(violation, step=number) for violation in violations]
    return violations, sum(one.images * sum(map(len, one.rounds)) for one in sets)


def routed_violations(fabric: Fabric, steps: Steps, routed: RoutedStep, number: int) -> tuple[list[Violation], int]:
    """Violations of the routes of a step of packets that is too large to list, those of each rule as one, and their number.

    Args:
        fabric: the machine, whose links are shared, so that routes need no counting.
        steps: of the schedule.
        routed: its routes.
        number: of the step.
    """
    images: list[tuple[IntArray, ...]] = []
    if routed.moves or not np.array_equal(routed.senders, np.arange(steps.space.num_ranks)):
        of_sets = images_of_machine(fabric, steps, number, (routed,))
        if isinstance(of_sets, Violation):
            return [replace(of_sets, step=number)], 0
        (images,) = of_sets
    by_rule: dict[str, Violation] = {}
    counted = 0
    for ends in steps.ends(number, ROUTES_AT_ONCE, routed.senders):
        circuits = routed.circuits(ends)
        counted += len(circuits)
        wrong = list(transfers_without_circuit(fabric, ends, (circuits,), number))
        wrong += [replace(violation, round=0) for violation in _impossible(fabric, circuits, routed.moves)]
        if not wrong:
            wrong = list(_other_units(fabric, routed.moves, circuits, images))
        for violation in wrong:
            before = by_rule.get(violation.rule)
            count = violation.count + (before.count if before else 0)
            by_rule[violation.rule] = replace(before or violation, step=number, count=count)
    return list(by_rule.values()), counted * fabric.num_nodes // len(routed.senders)


def images_of_machine(
    fabric: Fabric, steps: Steps, number: int, sets: Sequence[SymmetricRounds | RoutedStep]
) -> list[list[tuple[IntArray, ...]]] | Violation:
    """Images of the units of all resources under each move of light of each set, or why these define no circuits.

    Args:
        fabric: the machine.
        steps: of the schedule.
        number: of the step.
        sets: of senders, with moves of light.
    """
    n = fabric.num_machine_nodes
    if fabric.node_of_rank is not None or n != steps.space.num_ranks:
        return _wrong("light moves", "ranks that are the nodes of the machine", "a job on part of it")
    if not counts_by_orbits(fabric) and not all(resource.shared for resource in fabric.resources):
        return _wrong(
            "light moves", "resources whose circuits are counted", "others, which are counted from lists alone"
        )
    images, reached = [], np.zeros(n, np.int64)
    for one in sets:
        moved = _moved_machine(fabric, one.moves)
        if isinstance(moved, Violation):
            return moved
        of_moves, products = moved
        for at, move in enumerate(one.moves):
            if not steps.joins_all(number) and not _is_translation(steps, number, move.nodes):
                return _wrong(f"light move {at}", "nodes that move as ranks may", "a permutation that changes the step")
        if len(one.senders) and not 0 <= one.senders.min() <= one.senders.max() < n:
            return _wrong("senders", f"ranks 0..{n - 1}", f"{one.senders.min()} to {one.senders.max()}")
        joined = first_of_orbit([move.nodes for move in one.moves], n)
        each = np.bincount(joined[one.senders], minlength=n)[joined]
        reached += each
        if (joined_nodes := int(np.count_nonzero(each))) != products * len(one.senders):
            found_text = f"{products} for {joined_nodes // len(one.senders)} nodes"
            return _wrong("light moves", "one product of powers for each node that a sender is moved to", found_text)
        images.append(of_moves)
    if (reached != 1).any():
        return _wrong("senders", "one of each set of nodes that the moves join", "others")
    return images


def counts_by_orbits(fabric: Fabric) -> bool:
    """Whether each resource is for a number of circuits at a time, whatever it was set to before."""
    plain = not any(r.shared or r.once_per_job or r.one_setting for r in fabric.resources)
    return plain and not divides_ports(fabric)


@lru_cache(4)
def _moved_machine(fabric: Fabric, moves: tuple[LightMove, ...]) -> tuple[list[tuple[IntArray, ...]], int] | Violation:
    """Images of the units of all resources under each move, and products of powers of the moves; or why they are no moves.

    Args:
        fabric: the machine.
        moves: of its nodes, ports, wavelengths and hops; those of the last steps are kept, as most steps have the same.
    """
    sizes = (fabric.num_machine_nodes, fabric.ports_per_node, fabric.num_wavelengths)
    of_moves, products = [], 1
    for at, move in enumerate(moves):
        for column, due in zip((move.nodes, move.ports, move.wavelengths), sizes, strict=True):
            if not _is_once_each(column, due) or (column < 0).any():
                return _wrong(f"light move {at}", f"a permutation of {due} elements", "another table")
        if not _is_once_each(move.hops, len(moves[0].hops)):
            return _wrong(f"light move {at}", "each hop at most once", "another table")
        images = fabric.resource_images(move)
        if images is None:
            return _wrong(f"light move {at}", "a machine that is what it was", "another one")
        if not all(_is_once_each(one, r.count) for one, r in zip(images, fabric.resources, strict=True)):
            return _wrong(f"light move {at}", "each unit of a resource at most once", "some twice")
        of_moves.append(images)
        products *= lcm(*map(order_of, move.columns))
    with_none = [[np.append(column, -1) for column in move.columns] for move in moves]
    for one, other in combinations(with_none, 2):
        for a, b in zip(one, other, strict=True):
            if (a[b] != b[a]).any():
                return _wrong("light moves", "permutations that commute", "they do not")
    return of_moves, products


def _other_units(
    fabric: Fabric, moves: tuple[LightMove, ...], listed: Circuits, images: list[tuple[IntArray, ...]]
) -> Iterator[Violation]:
    """Moves under which listed circuits occupy other units than the fabric says, or cannot be made.

    Args:
        fabric: the machine.
        moves: of light.
        listed: circuits that exist.
        images: of the units of all resources under each move.
    """
    before = [usage.index for usage in fabric.usage(listed)] if moves else []
    for at, (move, of) in enumerate(zip(moves, images, strict=True)):
        moved = move.of(listed)
        faults = [fault for fault in fabric.faults(moved) if len(fault.circuits)]
        if faults:
            yield _wrong(f"light move {at}", faults[0].expected, faults[0].rule)
        for image, index, usage in zip(of, before, fabric.usage(moved), strict=True):
            other = np.flatnonzero(image[index] != usage.index)
            if len(other):
                kind, row = usage.resource.kind, other[0]
                yield _wrong(f"light move {at}", f"{kind} {image[index[row]]}", f"{kind} {usage.index[row]}")


def _is_translation(steps: Steps, number: int, nodes: IntArray) -> bool:
    """Whether a permutation of nodes is a translation of digits that the phase of a step moves.

    Args:
        steps: of the schedule.
        number: of the step.
        nodes: image of each node, int64 (nodes,).
    """
    by, moves = steps.space.translation(nodes), steps.phases[steps.phase_of(number)[0]].moves
    return by is not None and not (by[~np.array(moves)] if moves else by).any()


def _wrong(where: str, expected: str, found: str) -> Violation:
    return violation_of("moves_wrong", where, expected, found, 1)


def _is_once_each(column: IntArray, count: int) -> bool:
    """Whether a table has each of its elements at most once, and -1 for others."""
    inside = len(column) == count and bool(((column >= -1) & (column < count)).all())
    return inside and bool((np.bincount(column[column >= 0]) <= 1).all())


def order_of(images: IntArray) -> int:
    """Turns after which each element that always has an image is where it was [count].

    Args: images: of all elements, each at most once, -1 for none, (count,).

    >>> order_of(np.array([1, 0, 3, 4, 2, -1]))
    6
    """
    first = first_of_orbit([images], len(images))
    return lcm(*np.unique(np.unique(first[first >= 0], return_counts=True)[1]).tolist())


def _impossible(fabric: Fabric, circuits: Circuits, moves: tuple[LightMove, ...]) -> Iterator[Violation]:
    """Circuits that do not exist, or that the hardware cannot make; their images are as impossible.

    Args:
        fabric: the machine.
        circuits: listed, of a round.
        moves: of light: of hops that they have, and of one wavelength where they do not keep wavelengths.
    """
    outside = out_of_range(fabric, circuits)
    if outside:
        yield outside
        return
    several = np.flatnonzero(circuits.wavelength_n != 1)
    for move in moves:
        num_hops = len(move.hops)
        far = np.flatnonzero((circuits.hops < 0) | (circuits.hops >= num_hops))
        if len(far):
            yield violation_of("path_broken", "a path", f"hops 0..{num_hops - 1}", str(circuits.hops[far[0]]), len(far))
            return
        if len(several) and not np.array_equal(move.wavelengths, np.arange(fabric.num_wavelengths)):
            where, text = f"circuit {several[0]}", f"{circuits.wavelength_n[several[0]]}"
            yield violation_of("wavelength_unknown", where, "one wavelength", text, len(several))
            return
    for fault in chain(fabric.faults(circuits), part_faults(fabric, circuits)):
        if len(fault.circuits):
            row = int(fault.circuits[0])
            where, count = circuit_name(circuits, row), len(fault.circuits)
            yield violation_of(fault.rule, where, fault.expected, "another setting", count)


@lru_cache(4)
def loads_by_orbits(fabric: Fabric, moves: tuple[LightMove, ...]) -> dict[Resource, Loads]:
    """Units of all resources by orbits of moves that `images_of_machine` accepts.

    Args:
        fabric: the machine.
        moves: of light.
    """
    moved, orbits = _moved_machine(fabric, moves), orbits_of_units(fabric, moves)
    assert not isinstance(moved, Violation)
    assert orbits is not None  # there are images
    of_moves, products = moved
    return {
        resource: Loads(resource, [of[at] for of in of_moves], orbits[at], moves, fabric, products)
        for at, resource in enumerate(fabric.resources)
    }


class Loads:
    """Units of a resource, and of its wavelengths, by orbits.

    Args:
        resource: that circuits occupy.
        images: of its units under each move, int64 (count,) each.
        orbits: first unit of the orbit of each, int (count,).
        moves: of light.
        fabric: the machine.
        products: of powers of the moves [count].
    """

    def __init__(
        self,
        resource: Resource,
        images: list[IntArray],
        orbits: IntArray,
        moves: tuple[LightMove, ...],
        fabric: Fabric,
        products: int,
    ) -> None:
        self.depth, self.products = fabric.num_wavelengths if resource.per_wavelength else 1, products
        light = np.arange(self.depth)
        keep_light = self.depth == 1 or all(np.array_equal(move.wavelengths, light) for move in moves)
        self._apart = self.depth if keep_light else 1  # wavelengths of a unit that are in orbits of their own
        self._first = orbits  # of units; of cells where moves change wavelengths
        if not keep_light:
            tables = [
                np.maximum(-1, image * self.depth + move.wavelengths[:, None]).T.ravel()
                for image, move in zip(images, moves, strict=True)
            ]
            self._first = first_of_orbit(tables, resource.count * self.depth)
        size = np.bincount(self._first[self._first >= 0], minlength=len(self._first))
        self._size = np.append(size, 0).astype(np.int32)  # and of those without images

    def orbits(self, cell: IntArray) -> IntArray:
        """First cell of the orbit of each cell; negative where some product has no image, int64 (n,).

        Args: cell: units on their wavelengths.
        """
        unit, wavelength = np.divmod(cell, self._apart)
        return self._first[unit].astype(np.int64) * self._apart + wavelength

    def sizes(self, orbits: IntArray) -> IntArray:
        """Cells of orbits, int32 (n,).

        Args: orbits: as of `orbits`.
        """
        return self._size[orbits // self._apart]

    def occupied(self, orbits: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Orbits that circuits of a round occupy, cells of each, and circuits on each of these, int (orbits,) each.

        Args: orbits: of the cells of listed circuits, as of `orbits`.
        """
        orbit, uses = np.unique(orbits, return_counts=True)
        size = self.sizes(orbit)
        return orbit, size, uses * self.products // size

    def of_cells(self, orbit: IntArray, load: IntArray) -> IntArray:
        """Circuits on each cell, int (cells,).

        Args: orbit, load: as of `occupied`.
        """
        table = np.zeros((len(self._size), self._apart), np.int32)
        table.ravel()[orbit] = load
        return table[self._first].ravel()


def _over(loads: Sequence[Loads], cells: Sequence[Cells], capacity: float, rule: str) -> Iterator[Violation]:
    """Cells that more circuits of a round occupy than they may, or that some image of a listed one does not have.

    Args:
        loads: of a resource, by the moves of each set of circuits.
        cells: that the listed circuits of each set occupy.
        capacity: of a cell [count].
        rule: that is broken then.
    """
    orbits = [of.orbits(some.cell) for of, some in zip(loads, cells, strict=True)]
    for some, of_cells in zip(cells, orbits, strict=True):
        if len(lost := np.flatnonzero(of_cells < 0)):
            yield _wrong(some.name(int(some.cell[lost[0]])), "an image under all products of the moves", "none")
            return
    occupied = [of.occupied(of_cells) for of, of_cells in zip(loads, orbits, strict=True)]
    first, size, load = occupied[0]
    if len(loads) > 1:  # a cell is in an orbit of each
        load = loads[0].of_cells(first, load)
        for of, (orbit, _, many) in zip(loads[1:], occupied[1:], strict=True):
            load += of.of_cells(orbit, many)
    if len(over := np.flatnonzero(load > capacity)):
        cell, count = (over[0], len(over)) if len(loads) > 1 else (first[over[0]], int(size[over].sum()))
        where, most = cells[0].name(int(cell)), f"at most {capacity:g} circuit(s)"
        yield violation_of(rule, where, most, f"{load[over[0]]}", count)
