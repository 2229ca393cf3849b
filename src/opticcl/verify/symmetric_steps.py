"""Checks of steps that are defined by the transfers of rank 0 and symmetries (`opticcl.ir.symmetric_steps`), without a list.

The moves must be what the definition says: permutations of ranks that commute and are at their start again after their orders,
whose products take rank 0 to each rank once, and permutations of chunks with the same relations. Then

    data    the history of the image of a chunk is the image of its history. So one chunk of each orbit is followed through the
            rows that carry it, provided that holders of chunks are mapped onto holders. Chunks of a bundle, which no row cuts
            and which have the same holders, have one history: the first of them is followed for all
    light   moves of the machine that commute with those of the ranks map the step onto itself, since a permutation that
            commutes with a transitive commutative group belongs to it. Every circuit of a round is the image of a listed one
            under exactly one product h. A unit of a resource is occupied by the image of a use u under |H| / |orbit of u|
            products, so its load is the sum of this number over the listed uses in its orbit: exact, for all units. The fabric
            gives the images of units; those of listed circuits are compared with what their images occupy
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations
from math import lcm, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import (
    Circuits,
    Fabric,
    IntArray,
    Op,
    Resource,
    Schedule,
    Transfers,
    Violation,
    concatenate_circuits,
    concatenate_transfers,
)
from opticcl.ir.collective import Holders
from opticcl.ir.symmetric_steps import LightMove, Moves, SymmetricRounds, SymmetricStep, SymmetricSteps, first_of_orbit
from opticcl.ir.symmetry import Bundles, power
from opticcl.verify.circuit_rows import RULE_OF_KIND, out_of_range, part_faults, transfers_without_circuit
from opticcl.verify.symmetry import claims_of, orbits

__all__ = [
    "Loads",
    "first_wrong",
    "images_of_machine",
    "light_violations",
    "moves_wrong",
    "orbits_of_chunks",
    "with_chunks_alone",
]


# --- the definition ---------------------------------------------------------------------------------------------------


def moves_wrong(moves: Moves) -> Violation | None:
    """Why the moves define no step, or None.

    Args: moves: of ranks and chunks.
    """
    try:
        reached, _ = moves.reached, moves.bundles
    except ParameterError as error:
        return _wrong("moves", "as many products of powers as ranks", str(error))
    if (np.bincount(reached, minlength=moves.num_ranks) != 1).any():
        return _wrong("moves", "each rank reached once from rank 0", "some twice")
    for one, other in combinations(range(len(moves.orders)), 2):
        for both in (moves.ranks, moves.bundles):
            if (both[one][both[other]] != both[other][both[one]]).any():
                return _wrong(f"moves {one} and {other}", "permutations that commute", "they do not")
    size = np.diff(moves.first_chunk)
    for number, order in enumerate(moves.orders):
        if (size[moves.bundles[number]] != size).any():
            return _wrong(f"move {number}", "bundles that take the place of others as large", "of larger ones")
        for images in (moves.ranks[number], moves.bundles[number]):
            if (power(images, order) != np.arange(len(images))).any():
                return _wrong(f"move {number}", f"the identity after {order} turns", "another permutation")
    return None


def _wrong(where: str, expected: str, found: str) -> Violation:
    return Violation("moves_wrong", -1, -1, where, expected, found, 1)


def first_wrong(step: SymmetricStep) -> Violation | None:
    """Why rows are no transfers from rank 0 to other ranks, or None.

    Args: step: which rank 0 defines.
    """
    first, n = step.first, step.moves.num_ranks
    cut = np.flatnonzero(_cuts_bundles(first, step.moves))
    if len(cut):
        where = f"transfer {cut[0]}"
        return Violation("moves_wrong", -1, -1, where, "bundles of chunks that go together", "a part of one", len(cut))
    for rule, bad, expected in (
        ("moves_wrong", first.src != 0, "transfers of rank 0"),
        ("rank_unknown", (first.dst < 1) | (first.dst >= n), f"ranks 1..{n - 1}"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            found = f"{first.src[rows[0]]} -> {first.dst[rows[0]]}"
            return Violation(rule, -1, -1, f"transfer {rows[0]}", expected, found, len(rows))
    return None


def _cuts_bundles(first: Transfers, moves: Moves) -> npt.NDArray[np.bool_]:
    """Transfers that carry a part of a bundle, bool (n,); not those of chunks that there are not, which the data show.

    Args:
        first: of rank 0.
        moves: with the bundles.
    """
    lo, edges = first.chunk_lo.astype(np.int64), moves.first_chunk
    ends = np.clip([lo, lo + first.chunk_n], 0, moves.num_chunks)
    cut: npt.NDArray[np.bool_] = (edges[np.searchsorted(edges, ends)] != ends).any(axis=0)
    return cut | (first.chunk_step is not None and len(edges) <= moves.num_chunks)


# --- data -------------------------------------------------------------------------------------------------------------


def orbits_of_chunks(schedule: Schedule, moves: Moves) -> tuple[IntArray, int, list[str]]:
    """Chunks that represent all, ascending, the size of the largest orbit, and notes on moves that do not map holders.

    No transfer cuts a bundle (`first_wrong`), so its chunks have one history, and the first of them is judged for all.

    Args:
        schedule: with its collective.
        moves: of ranks and chunks.
    """
    c, symmetries = schedule.collective, moves.symmetries
    if moves.runs != ((moves.num_chunks, 1),):
        before, after = (_holders_of_bundles(holders, moves) for holders in (c.before, c.after))
        if before is None or after is None:
            return np.arange(c.num_chunks), 1, ["claim refused: chunks of a bundle have different holders"]
        symmetries = tuple(
            replace(one, chunks=one.chunks.inner) for one in moves.symmetries if isinstance(one.chunks, Bundles)
        )
        c = replace(c, num_chunks=len(moves.first_chunk) - 1, before=before, after=after, owner=None)
    claims, notes = claims_of(replace(schedule, collective=c, symmetries=symmetries, step=_no_step, num_steps=0))
    first, largest = orbits(claims, c.num_chunks)
    return moves.first_chunk[first], largest, notes


def _holders_of_bundles(holders: Any, moves: Moves) -> Holders | None:
    """Holders of each bundle, or None where those of its chunks differ, or are not known to be the same."""
    if not isinstance(holders, Holders) or holders.owners is None:
        return holders if isinstance(holders, Holders) else None
    of_bundle = holders.owners[moves.first_chunk[:-1]]
    same = np.array_equal(np.repeat(of_bundle, np.diff(moves.first_chunk)), holders.owners)
    return replace(holders, owners=of_bundle) if same else None


def _no_step(i: int) -> Transfers:
    raise IndexError(f"step {i} of 0")


def with_chunks_alone(schedule: Schedule, steps: SymmetricSteps, chunks: IntArray) -> Schedule:
    """The schedule with the rows alone that carry these chunks, one chunk a row.

    Args:
        schedule: with steps that are not listed.
        steps: its definition.
        chunks: ascending.
    """

    def step(i: int) -> Transfers:
        return concatenate_transfers(steps.of(i).carrying(int(chunk)) for chunk in chunks)

    return replace(schedule, step=step, symmetries=(), classes=())


# --- light ------------------------------------------------------------------------------------------------------------


def light_violations(
    fabric: Fabric, step: SymmetricStep, rounds: SymmetricRounds, number: int
) -> tuple[list[Violation], int]:
    """Violations of the circuits of a step that is not listed, and their number.

    Args:
        fabric: the machine, which must map its resources itself (`Fabric.resource_images`).
        step: its transfers.
        rounds: its circuits.
        number: of the step.
    """
    wrong = moves_wrong(step.moves) or first_wrong(step)
    images = images_of_machine(fabric, step.moves, rounds) if wrong is None else wrong
    if isinstance(images, Violation):
        return [replace(images, step=number)], 0
    senders, each = rounds.senders, len(step.first)
    src, row = np.repeat(senders, each), np.tile(np.arange(each), len(senders))
    dst = step.moves.rank_images(src, step.first.dst[row])
    transfers = Transfers.of(src, dst, 0, 1, Op.COPY)  # whatever the chunks
    found = list(transfers_without_circuit(fabric, transfers, rounds.rounds, number))
    count = step.moves.num_ranks // len(senders)
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


def images_of_machine(fabric: Fabric, moves: Moves, rounds: SymmetricRounds) -> list[tuple[IntArray, ...]] | Violation:
    """Images of the units of all resources under each move of light, or why the rounds define no circuits.

    Args:
        fabric: the machine.
        moves: of ranks and chunks.
        rounds: with moves of light.
    """
    n = fabric.num_machine_nodes
    sizes = (n, fabric.ports_per_node, fabric.num_wavelengths)
    if fabric.node_of_rank is not None or n != moves.num_ranks:
        return _wrong("light moves", "ranks that are the nodes of the machine", "a job on part of it")
    plain = all(r.capacity == 1 and not (r.shared or r.once_per_job or r.one_setting) for r in fabric.resources)
    if not plain or any(r.in_wavelengths for r in fabric.resources):
        return _wrong("light moves", "resources of one circuit", "others, which are counted from lists alone")
    found, orders = [], []
    for at, move in enumerate(rounds.moves):
        for columns, due in zip(move.columns, (*sizes, len(move.hops)), strict=True):
            if not _is_permutation(columns, due):
                return _wrong(f"light move {at}", f"a permutation of {due} elements", "another table")
        if any((move.nodes[ranks] != ranks[move.nodes]).any() for ranks in moves.ranks):
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
