"""Light of steps that are not listed: circuits of some senders, and moves of the machine that make those of all others of them.

The moves must be translations of the phase that the step belongs to: then they map its transfers onto themselves. They commute,
and take the senders to every node once; so every circuit of a round is the image of a listed one under exactly one product h of
their powers. A unit of a resource is occupied by the image of a use u under |H| / |orbit of u| products, so its load is the sum
of this number over the listed uses in its orbit: exact, for all units. The fabric gives the images of units; those of listed
circuits are compared with what their images occupy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations
from math import lcm, prod

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray, Resource, Violation, concatenate_circuits
from opticcl.ir.phases import Steps
from opticcl.ir.representatives import LightMove, StepImages, SymmetricRounds, first_of_orbit
from opticcl.verify.circuit_rows import RULE_OF_KIND, out_of_range, part_faults, transfers_without_circuit

__all__ = ["Loads", "images_of_machine", "light_violations"]


def light_violations(
    fabric: Fabric, step: StepImages, rounds: SymmetricRounds, number: int
) -> tuple[list[Violation], int]:
    """Violations of the circuits of a step that is not listed, and their number.

    Args:
        fabric: the machine, which must map its resources itself (`Fabric.resource_images`).
        step: its transfers.
        rounds: its circuits.
        number: of the step.
    """
    images = images_of_machine(fabric, step.steps, number, rounds)
    if isinstance(images, Violation):
        return [replace(images, step=number)], 0
    transfers = step.sent_by(rounds.senders)
    found = list(transfers_without_circuit(fabric, transfers, rounds.rounds, number))
    count = fabric.num_nodes // len(rounds.senders)
    loads = {
        resource: Loads(resource, images_of, rounds.moves, fabric, count)
        for resource, *images_of in zip(fabric.resources, *images, strict=True)
    }
    idle = [np.flatnonzero(circuits.transfer < 0) for circuits in rounds.rounds]
    if any(map(len, idle)):
        return [_wrong("circuits", "transfers that they carry", "idle ones")], 0
    num_hops = min((len(move.hops) for move in rounds.moves), default=0)
    for at, circuits in enumerate(rounds.rounds):
        broken = list(_impossible(fabric, circuits, num_hops))
        for usage in fabric.usage(circuits) if not broken else ():
            rows = np.arange(len(circuits)) if usage.circuit is None else usage.circuit
            broken += loads[usage.resource].over(
                usage.index, circuits.wavelength_lo[rows], RULE_OF_KIND[usage.resource.kind]
            )
        found += [replace(violation, round=at) for violation in broken]
    if not found:
        found = list(_other_units(fabric, rounds, images))
    found = [replace(violation, step=number) for violation in found]
    return found, count * sum(map(len, rounds.rounds))


def images_of_machine(
    fabric: Fabric, steps: Steps, number: int, rounds: SymmetricRounds
) -> list[tuple[IntArray, ...]] | Violation:
    """Images of the units of all resources under each move of light, or why the rounds define no circuits.

    Args:
        fabric: the machine.
        steps: of the schedule.
        number: of the step.
        rounds: with moves of light.
    """
    n = fabric.num_machine_nodes
    sizes = (n, fabric.ports_per_node, fabric.num_wavelengths)
    if fabric.node_of_rank is not None or n != steps.space.num_ranks:
        return _wrong("light moves", "ranks that are the nodes of the machine", "a job on part of it")
    plain = all(r.capacity == 1 and not (r.shared or r.once_per_job or r.one_setting) for r in fabric.resources)
    if not plain or any(r.in_wavelengths for r in fabric.resources):
        return _wrong("light moves", "resources of one circuit", "others, which are counted from lists alone")
    found, orders = [], []
    for at, move in enumerate(rounds.moves):
        for columns, due in zip(move.columns, (*sizes, len(move.hops)), strict=True):
            if not _is_permutation(columns, due):
                return _wrong(f"light move {at}", f"a permutation of {due} elements", "another table")
        if not _is_translation(steps, number, move.nodes):
            return _wrong(f"light move {at}", "nodes that move as ranks may", "a permutation that changes the step")
        images = fabric.resource_images(move)
        if images is None:
            return _wrong(f"light move {at}", "a machine that is what it was", "another one")
        if not all(_is_permutation(one, r.count) for one, r in zip(images, fabric.resources, strict=True)):
            return _wrong(f"light move {at}", "each unit of a resource once", "some twice")
        found.append(images)
        orders.append(lcm(*(_order(column) for column in move.columns)))
    for one, other in combinations(rounds.moves, 2):
        for a, b in zip(one.columns, other.columns, strict=True):
            if len(a) != len(b) or (a[b] != b[a]).any():
                return _wrong("light moves", "permutations that commute", "they do not")
    if len(rounds.senders) and not 0 <= rounds.senders.min() <= rounds.senders.max() < n:
        return _wrong("senders", f"ranks 0..{n - 1}", f"{rounds.senders.min()} to {rounds.senders.max()}")
    joined = first_of_orbit([move.nodes for move in rounds.moves], n)
    senders, each = np.unique(joined[rounds.senders], return_counts=True)
    if (each != 1).any() or not np.array_equal(senders, np.unique(joined)):
        return _wrong("senders", "one of each set of nodes that the moves join", "others")
    if prod(orders) * len(senders) != n:
        found_text = f"{prod(orders)} for {n // len(senders)} nodes"
        return _wrong("light moves", "one product of powers for each node that a sender is moved to", found_text)
    return found


def _other_units(fabric: Fabric, rounds: SymmetricRounds, images: list[tuple[IntArray, ...]]) -> Iterator[Violation]:
    """Moves under which listed circuits occupy other units than the fabric says, or cannot be made.

    Args:
        fabric: the machine.
        rounds: circuits that exist.
        images: of the units of all resources under each move.
    """
    listed = concatenate_circuits(rounds.rounds)
    before = [usage.index for usage in fabric.usage(listed)]
    for at, (move, of) in enumerate(zip(rounds.moves, images, strict=True)):
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
    space, moves = steps.space, np.array(steps.phases[steps.phase_of(number)[0]].moves, bool)
    places = np.arange(space.num_ranks)
    images = nodes if space.places is None else space.places[nodes[space.ranks(places)]]
    by = (space.digits(images) - space.digits(places)) % np.array(space.radices)
    return bool((by == by[0]).all() and len(moves) and not by[0][~moves].any())


def _wrong(where: str, expected: str, found: str) -> Violation:
    return Violation("moves_wrong", -1, -1, where, expected, found)


def _is_permutation(column: IntArray, count: int) -> bool:
    inside = len(column) == count and (not count or (column.min() >= 0 and column.max() < count))
    return bool(inside and (np.bincount(column, minlength=count) == 1).all())


def _order(images: IntArray) -> int:
    """Turns after which a permutation is the identity [count]."""
    turned, turns = images, 1
    identity = np.arange(len(images))
    while not np.array_equal(turned, identity):
        turned, turns = images[turned], turns + 1
    return turns


def _impossible(fabric: Fabric, circuits: Circuits, num_hops: int) -> Iterator[Violation]:
    """Circuits that do not exist, or that the hardware cannot make; their images are as impossible.

    Args:
        fabric: the machine.
        circuits: listed, of a round.
        num_hops: numbers that a path may have, which the moves take to others [count].
    """
    outside = out_of_range(fabric, circuits)
    if outside:
        yield outside
        return
    far = np.flatnonzero((circuits.hops < 0) | (circuits.hops >= num_hops))
    if len(far):
        yield Violation(
            "path_broken", -1, -1, "a path", f"hops 0..{num_hops - 1}", str(circuits.hops[far[0]]), len(far)
        )
        return
    wide = np.flatnonzero(circuits.wavelength_n != 1)
    if len(wide):
        text = f"{circuits.wavelength_n[wide[0]]}"
        yield Violation("wavelength_unknown", -1, -1, f"circuit {wide[0]}", "one wavelength", text, len(wide))
        return
    for fault in chain(fabric.faults(circuits), part_faults(fabric, circuits)):
        if len(fault.circuits):
            row = int(fault.circuits[0])
            where = f"{circuits.src[row]} -> {circuits.dst[row]}"
            yield Violation(fault.rule, -1, -1, where, fault.expected, "another setting", len(fault.circuits))


class Loads:
    """Units of a resource, and of its wavelengths, by orbits.

    Args:
        resource: that circuits occupy.
        images: of its units under each move, int64 (count,) each.
        moves: of light.
        fabric: the machine.
        products: of powers of the moves [count].
    """

    def __init__(
        self,
        resource: Resource,
        images: list[IntArray],
        moves: tuple[LightMove, ...],
        fabric: Fabric,
        products: int,
    ) -> None:
        self.kind, self.depth = resource.kind, fabric.num_wavelengths if resource.per_wavelength else 1
        self.per_wavelength = resource.per_wavelength
        cells = resource.count * self.depth
        tables = [
            image if self.depth == 1 else (image[:, None] * self.depth + move.wavelengths).ravel()
            for image, move in zip(images, moves, strict=True)
        ]
        self.first = first_of_orbit(tables, cells).astype(np.int32)
        self.products, self.size = products, np.bincount(self.first, minlength=cells).astype(np.int32)

    def cells(self, index: IntArray, wavelength: IntArray) -> IntArray:
        """Number of each unit on its wavelength, int64 (n,).

        Args:
            index: units.
            wavelength: of each.
        """
        return index * self.depth + wavelength if self.per_wavelength else index

    def over(self, index: IntArray, wavelength: IntArray, rule: str) -> Iterator[Violation]:
        """Units that more than one circuit of a round occupies.

        Args:
            index: units that the listed circuits occupy.
            wavelength: of each.
            rule: that is broken then.
        """
        orbit, uses = np.unique(self.first[self.cells(index, wavelength)], return_counts=True)
        load = uses * self.products // self.size[orbit]
        over = np.flatnonzero(load > 1)
        if len(over):
            unit, light = divmod(int(orbit[over[0]]), self.depth)
            where = f"{self.kind} {unit}" + (f" wavelength {light}" if self.per_wavelength else "")
            count = int(self.size[orbit[over]].sum())
            yield Violation(rule, -1, -1, where, "at most 1 circuit(s)", f"{load[over[0]]}", count)
