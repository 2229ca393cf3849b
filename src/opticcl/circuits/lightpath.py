"""LIGHTPATH's circuits: lasers by offset or by edge colouring, routes by one of three rules, rounds by waveguides.

    lasers      D peers of a node share L lasers: floor(L / D) neighbouring ones each. More than L peers take a round
                for every L of them: ceil(D / L) rounds, the minimum for any rule (see `_lasers`). Pairs that stand keep
                theirs; the order in which a step lists its transfers has no effect.
    routes      dimension_order, the default: row first, then column. For digit exchanges on grids whose sides are powers
                of two no routes load the edges less, as the middle cut shows (16 circuits for LUMORPH-4 on 16 x 16, 8 for
                LUMORPH-2). random, least_overlap: see the package `routing`. All go around what is dead.
    waveguides  where an edge is overloaded, circuits with the same lasers spread over other sets if that helps; then
                they go to rounds, as few as can be found, at least the ceiling of load / waveguides. With
                switch_unit=waveguide each path gets one waveguide for all its edges; see `routing.end_to_end`.

Source: LUMORPH equations 4 to 6, section 5, appendices A and C.
Reading: appendix C repeatedly splits a round that exceeds the waveguides into two; here the number of rounds is about
as many as load / waveguides, rounded up. A circuit has whole lasers: three peers of 16 leave one unused. To divide it,
the three would have to use one wavelength one after the other, in further rounds: there is no such mode.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._around import around
from opticcl.circuits._by_senders import BySenders
from opticcl.circuits._chessboard import Chessboard, fits_chessboard
from opticcl.circuits._hold import standing, union_of
from opticcl.circuits._lasers import (
    Lasers,
    PairSets,
    lasers_by_colour,
    lasers_by_number,
    lasers_by_offset,
    only_alive,
    relit,
    usable_first,
)
from opticcl.circuits._order import Recalled, as_listed, by_pair
from opticcl.errors import TooLargeError, UnsupportedError
from opticcl.fabrics.damage import Damage
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.routing.dimension_order import dimension_order as row_column_routes
from opticcl.routing.end_to_end import end_to_end
from opticcl.routing.grid import Grid
from opticcl.routing.least_overlap import least_overlap
from opticcl.routing.paths import open_dimension_order, random_shortest
from opticcl.routing.sharing import balance_laser_sets
from opticcl.routing.split import loads, split
from opticcl.schedule.de_bruijn import circuit_colours, degrees
from opticcl.schedule.lumorph import digit_of_step, digits
from opticcl.units import format_bytes

__all__ = ["row_column_routes", "split_by_waveguides"]

MOST_HOPS = limit("lightpath.MOST_HOPS")
BYTES_A_HOP = 12  # of a path, and the circuit that it belongs to
MOST_KEPT = 64  # steps whose routes are remembered
MOST_DIVIDED = 8  # steps whose rounds are remembered, 8 bytes a circuit
LONG_HOPS = limit("lightpath.LONG_HOPS")
MOST_CLASSES = limit("lightpath.MOST_CLASSES")
MOST_SPREAD = limit("lightpath.MOST_SPREAD")

STANDING = ("disjoint_trees", "de_bruijn")
"""Trees whose circuits are set once."""

Route = Callable[[IntArray, IntArray], tuple[IntArray, IntArray]]


@register_rule("lightpath")
def lightpath(fabric: Fabric, schedule: Schedule) -> Rounds:
    """As `_on_grid`; circuits that a stuck switch does not pass are chosen again."""
    machine, stuck = fabric.machine_as(Lightpath), any(condition.mode == "stuck" for condition in fabric.conditions)
    plain = machine.switch_unit == "wavelength" and machine.numbering == "row" and machine.routing == "dimension_order"
    plain &= fabric.node_of_rank is None and not fabric.conditions
    if schedule.name == "chessboard_exchange" and plain and fits_chessboard(machine):
        return Chessboard(fabric, schedule)
    if schedule.name == "lumorph" and plain:
        blocks = _Blocks(machine, schedule)
        return BySenders(fabric, schedule.steps, _on_grid(fabric, schedule, blocks), blocks.moved)
    rounds = _on_grid(fabric, schedule)
    return around(fabric, rounds, widens=True) if stuck else rounds


class _Blocks:
    """Rows, columns and blocks of rows within which circuits of an exchange of digits stay, and which are all identical.

    They are taken to each other by translations of digits that number the rows, or the columns. There are none where laser
    sets may be spread, which is done for all together.

    Args:
        machine: a whole grid whose nodes are numbered row by row.
        schedule: LUMORPH.
    """

    def __init__(self, machine: Lightpath, schedule: Schedule) -> None:
        self._machine, self._collective, self._space = machine, schedule.collective.name, schedule.steps.space
        self._ks = digits(machine.num_nodes, **schedule.parameters)

    def moved(self, step: int) -> npt.NDArray[np.bool_]:
        """Digits whose translations take the blocks of a step to each other, bool (digits,)."""
        k, stride = digit_of_step(self._ks, self._collective, step)
        radices, strides, columns = np.array(self._space.radices), np.array(self._space.strides), self._machine.shape[1]
        peers_of_last_turn = (k - 2) % self._machine.lasers + 1
        if self._machine.num_nodes * peers_of_last_turn <= MOST_SPREAD:
            return np.zeros(len(radices), bool)
        if stride % columns:  # along a row, or from row to row of a block
            rows: npt.NDArray[np.bool_] = (strides > stride) & (strides % columns == 0)
            return rows
        return np.asarray(columns % (strides * radices) == 0)

    def first(self, step: int) -> IntArray | None:
        """The node of the first block that is taken to each node, int64 (nodes,); None where there are no blocks."""
        moved, nodes = self.moved(step), np.arange(self._machine.num_nodes)
        first: IntArray = nodes - (self._space.digits(nodes) * moved) @ np.array(self._space.strides)
        return first if moved.any() else None


def _on_grid(fabric: Fabric, schedule: Schedule, blocks: _Blocks | None = None) -> Rounds:
    """Lasers by offset for LUMORPH and the direct exchange, by formula for de Bruijn graphs, else by edge colouring."""
    machine = fabric.machine_as(Lightpath)
    tile, damage = machine.tile, machine.damage
    whole = fabric.node_of_rank is None
    ks = digits(fabric.num_nodes, **schedule.parameters) if schedule.name == "lumorph" and whole else ()
    rooted = schedule.collective.name in ("broadcast", "reduce")
    degree = 0
    if schedule.name == "de_bruijn" and whole and not rooted:
        degree = schedule.parameters.get("degree") or degrees(fabric.num_nodes)[0]
    _refuse_too_many_hops(fabric, schedule)
    _refuse_dark_tiles(fabric, damage, tile)
    route, divided = _router(machine.routing, machine.grid, machine.seed), _remembered_rounds(fabric)
    coloured = _StandingLasers(fabric, schedule)
    real = usable_first(damage, fabric.lasers_per_port)

    last = Recalled[tuple[Circuits, ...]](most=1)

    def joined(transfers: Transfers, lasers: Lasers, row: IntArray) -> Circuits:
        src, dst = transfers.src[row], transfers.dst[row]
        return Circuits.of(row, src, dst, 0, lasers.lo[row], lasers.width[row], route(tile[src], tile[dst]))

    def routed(
        transfers: Transfers, lasers: Lasers, images: int, first: IntArray | None, order: IntArray
    ) -> list[Circuits]:
        rounds: list[Circuits] = []
        for row in _by_turn(lasers.turn):
            if first is None:
                rounds += divided(joined(transfers, lasers, row), images)
            else:  # joined once, in the order of the step: paths of very many circuits take the memory of all else
                own = row[first[transfers.src[row]] == transfers.src[row]]
                for rows in _divided_as_first(fabric, joined(transfers, lasers, own), transfers.src[row], first):
                    rounds.append(joined(transfers, lasers, row[rows][np.argsort(order[row[rows]])]))
        return [only_alive(damage, circuits, tile, real) for circuits in rounds] if damage.dark else rounds

    def rounds(step: int, given: Transfers) -> tuple[Circuits, ...]:
        order, images, first = by_pair(given), 1, None
        transfers = given.take(order)
        if ks:
            images = schedule.steps.num_transfers(step) // len(given)
            first = blocks.first(step) if blocks is not None and images == 1 else None
            k, stride = digit_of_step(ks, schedule.collective.name, step)
            lasers = lasers_by_offset(fabric, k, stride, transfers)
        elif schedule.name == "mesh" and whole:
            lasers = lasers_by_offset(fabric, fabric.num_nodes, 1, transfers)
        elif degree:
            numbers = circuit_colours(fabric.num_nodes, degree, transfers.src, transfers.dst)
            lasers = lasers_by_number(fabric, degree, numbers)
        else:
            lasers = coloured.of_step(step, transfers)
        if damage.dark:
            lasers = relit(damage, transfers, tile, real, lasers)
        columns = (order, transfers.src, transfers.dst, *lasers[:3])
        return last.value(
            columns,
            lambda: tuple(as_listed(circuits, order) for circuits in routed(transfers, lasers, images, first, order)),
        )

    if schedule.name in STANDING and rooted and not damage.dark:
        return _all_at_once(fabric, schedule, rounds)
    return rounds


def _all_at_once(fabric: Fabric, schedule: Schedule, assign: Rounds) -> Rounds:
    """Circuits of all pairs of a schedule in every round, if they fit; else of the pairs of a step.

    Args:
        fabric: a LIGHTPATH.
        schedule: between nodes of the machine.
        assign: circuits of each round of a step.
    """
    chosen: list[Rounds] = []

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        if not chosen:
            pairs = union_of(schedule, fabric.num_machine_nodes)
            lasers = lasers_by_colour(fabric, pairs)
            stand: tuple[Circuits, ...] = ()
            if not lasers.turn.any():
                machine = fabric.machine_as(Lightpath)
                routes = _router(machine.routing, machine.grid, machine.seed)(
                    machine.tile[pairs.src], machine.tile[pairs.dst]
                )
                every = Circuits.of(np.arange(len(pairs)), pairs.src, pairs.dst, 0, lasers.lo, lasers.width, routes)
                stand = tuple(split_by_waveguides(fabric, every))
            chosen.append(standing(fabric.num_machine_nodes, list(stand)) if len(stand) == 1 else assign)
        return chosen[0](step, transfers)

    return rounds


class _StandingLasers:
    """Lasers of the steps of a schedule by colour, where pairs that stand keep theirs.

    A class of steps follows from the one before, the first from nothing: the result does not depend on which steps are
    requested, nor in which order.

    Args:
        fabric: a LIGHTPATH.
        schedule: between nodes of the machine.
    """

    def __init__(self, fabric: Fabric, schedule: Schedule) -> None:
        self.fabric, self.schedule = fabric, schedule
        self.starts = [steps.start for steps in schedule.step_classes()]
        self.known: OrderedDict[int, PairSets | None] = OrderedDict()

    def of_step(self, step: int, transfers: Transfers) -> Lasers:
        """Lasers of a step.

        Args:
            step: its index.
            transfers: of the step, in canonical order.
        """
        number = bisect_right(self.starts, step) - 1
        lasers = lasers_by_colour(self.fabric, transfers, self._after(number - 1))
        self._keep(number, lasers.sets)
        return lasers

    def _after(self, number: int) -> PairSets | None:
        """Sets of a class of steps."""
        if number < 0 or len(self.starts) > MOST_CLASSES:
            return None
        first = next((k for k in range(number, -1, -1) if k in self.known), -1)
        for k in range(first + 1, number + 1):
            transfers = self.schedule.step(self.starts[k])
            before = self.known[k - 1] if k else None
            sets = None
            if len(transfers):
                sets = lasers_by_colour(self.fabric, transfers.take(by_pair(transfers)), before).sets
            self._keep(k, sets)
        return self.known[number]

    def _keep(self, number: int, sets: PairSets | None) -> None:
        self.known[number] = sets
        if len(self.known) > MOST_KEPT:
            self.known.popitem(last=False)


def _refuse_too_many_hops(fabric: Fabric, schedule: Schedule) -> None:
    """A path crosses a third of each side on average.

    Raises: UnsupportedError: the paths of a step cannot be listed.
    """
    n, length = fabric.num_machine_nodes, sum(fabric.machine_as(Lightpath).shape) // 3
    if n * (n - 1) * length <= MOST_HOPS:  # all pairs could
        return
    for steps in schedule.step_classes():
        transfers = schedule.steps.num_transfers(steps.start)
        if transfers * length > MOST_HOPS:
            raise TooLargeError(
                f"{schedule.name} on lightpath: {transfers:,} transfers cross about {transfers * length:,} edges, which take "
                f"{format_bytes(BYTES_A_HOP * transfers * length)}; at most {format_bytes(BYTES_A_HOP * MOST_HOPS)} are used; "
                "try algorithm=ring, or a number of nodes with smaller prime factors"
            )


def _by_turn(turn: IntArray) -> list[IntArray]:
    """Rows of each turn that has any, in order."""
    rows = np.argsort(turn, kind="stable")
    return [each for each in np.split(rows, np.cumsum(np.bincount(turn))[:-1]) if len(each)]


def _refuse_dark_tiles(fabric: Fabric, damage: Damage, tile: IntArray) -> None:
    """Raises: UnsupportedError: a node of the job has no laser that works."""
    tiles, count = np.unique(damage.laser_tile, return_counts=True)
    dark = tiles[count >= fabric.lasers_per_port]
    nodes = fabric.machine_nodes(np.arange(fabric.num_nodes)) if len(dark) else dark
    unlit = nodes[np.isin(tile[nodes], dark)]
    if len(unlit) and fabric.num_nodes > 1:
        where = fabric.coordinates(int(unlit[0]))
        raise UnsupportedError(f"lightpath: all lasers of node {where} are dead; leave it out, such as by dead_tiles")


def _router(routing: str, grid: Grid, seed: int) -> Route:
    """The routes of all pairs of tiles, by the rule of that name; what takes long is remembered."""

    def routes_of(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        if routing == "random":
            return random_shortest(grid, src, dst, seed)
        if routing == "least_overlap":
            routes = least_overlap(grid, src, dst, seed=seed)
            return routes.hops, routes.offsets
        return open_dimension_order(grid, src, dst)

    if routing == "dimension_order" and grid.whole:
        return routes_of
    kept: OrderedDict[tuple[bytes, bytes], tuple[IntArray, IntArray]] = OrderedDict()

    def remembered(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        key = (src.tobytes(), dst.tobytes())
        if key not in kept:
            kept[key] = routes_of(src, dst)
            if len(kept) > MOST_KEPT:
                kept.popitem(last=False)
        return kept[key]

    return remembered


def split_by_waveguides(fabric: Fabric, circuits: Circuits, images: int = 1) -> list[Circuits]:
    """Rounds in which no edge carries more than its waveguides do: one if they all fit, else as few as can be found.

    Args:
        fabric: a LIGHTPATH.
        circuits: one a transfer, none of which share a laser or a photodiode.
        images: circuits that each of them stands for, on edges of their own [count].
    Raises: UnsupportedError: no waveguide works on all edges of a path.
    """
    machine = fabric.machine_as(Lightpath)
    if machine.switch_unit == "waveguide":
        return _split_end_to_end(machine, circuits)
    return _divided(circuits, *_division(fabric, machine, circuits, images))


def _divided_as_first(fabric: Fabric, own: Circuits, src: IntArray, first: IntArray) -> list[IntArray]:
    """Rows of each round of circuits that are identical in all blocks: those of the first block, and their images in the rounds
    of these.

    Args:
        fabric: a whole LIGHTPATH.
        own: circuits of the first block.
        src: sender of each of all circuits, as many of every node, in the order of senders and receivers.
        first: node of the first block that is taken to each node.
    """
    images, each = len(src) // len(own), len(src) // len(first)
    _, round_of = _division(fabric, fabric.machine_as(Lightpath), own, images)
    if round_of is None:
        return [np.arange(len(src))]
    number = np.cumsum(first == np.arange(len(first))) - 1  # of a node among those of the first block
    rounds = round_of[number[first[src]] * each + np.arange(len(src)) % each]
    return [np.flatnonzero(rounds == r) for r in range(int(rounds.max()) + 1)]


def _division(fabric: Fabric, machine: Lightpath, circuits: Circuits, images: int) -> tuple[IntArray, IntArray | None]:
    """(lasers of each circuit, its round); None for the second if one round is enough.

    Args:
        fabric: of the circuits.
        machine: the whole of it.
        circuits: of a round.
        images: as of `split_by_waveguides`.
    """
    capacity, damage = machine.waveguides, machine.damage
    if len(circuits) <= capacity and not len(damage.edge):
        return circuits.wavelength_lo, None
    alive = damage.waveguides(fabric.num_machine_nodes, capacity)
    if images > 1:  # those of one block use few edges
        edges, place = np.unique(circuits.hops, return_inverse=True)
        circuits, alive = replace(circuits, hops=place.astype(np.int32)), alive[edges]
    if (loads(circuits.hops, len(alive)) <= alive).all():
        return circuits.wavelength_lo, None
    if not damage.dark and images * len(circuits) <= MOST_SPREAD:  # dead ones are left dark where they are
        circuits = _spread(fabric, circuits, alive)
    division = split(*_waveguides_wanted(fabric, circuits, alive))
    return circuits.wavelength_lo, division.round_of if division.num_rounds > 1 else None


def _divided(circuits: Circuits, lo: IntArray, round_of: IntArray | None) -> list[Circuits]:
    """The circuits of each round.

    Args:
        circuits: of all.
        lo: first laser of each.
        round_of: of each; None for one round.
    """
    if lo is not circuits.wavelength_lo:
        circuits = replace(circuits, wavelength_lo=lo)
    return [circuits] if round_of is None else [circuits.take(round_of == r) for r in range(int(round_of.max()) + 1)]


def _remembered_rounds(fabric: Fabric) -> Callable[[Circuits, int], list[Circuits]]:
    """`split_by_waveguides` for the steps of a plan: equal circuits on equal routes, such as those of a reduce-scatter and its
    all-gather, are divided once."""
    machine = fabric.machine_as(Lightpath)
    kept: OrderedDict[bytes, tuple[IntArray, IntArray | None]] = OrderedDict()

    def rounds(circuits: Circuits, images: int) -> list[Circuits]:
        if len(circuits.hops) < LONG_HOPS or machine.switch_unit == "waveguide":
            return split_by_waveguides(fabric, circuits, images)
        digest = blake2b()
        for column in (circuits.src, circuits.dst, circuits.wavelength_lo, circuits.wavelength_n):
            digest.update(np.ascontiguousarray(column).data)
        key = digest.digest()
        if key not in kept:
            kept[key] = _division(fabric, machine, circuits, images)
            if len(kept) > MOST_DIVIDED:
                kept.popitem(last=False)
        return _divided(circuits, *kept[key])

    return rounds


def _spread(fabric: Fabric, circuits: Circuits, alive: IntArray) -> Circuits:
    """The same circuits with laser sets that load edges evenly, where they are equally wide and do not fit as they are."""
    width = int(circuits.wavelength_n[0])
    sets = fabric.num_wavelengths // width
    if sets < 2 or (circuits.wavelength_n != width).any():
        return circuits
    if (circuits.wavelength_lo % width).any():
        return circuits
    chosen = circuits.wavelength_lo // width
    load = np.bincount(circuits.hops * np.int64(sets) + chosen[circuits.hop_owner()], minlength=len(alive) * sets)
    if (load <= np.repeat(alive, sets)).all():
        return circuits
    spread = balance_laser_sets(circuits.src, circuits.dst, chosen, sets, circuits.hops, circuits.hop_offsets)
    return replace(circuits, wavelength_lo=(spread * width).astype(np.int32))


def _split_end_to_end(machine: Lightpath, circuits: Circuits) -> list[Circuits]:
    """Rounds in which every circuit has one waveguide from end to end, shared by circuits of the same path alone.

    Args:
        machine: the whole machine.
        circuits: of a round, without waveguides.
    Raises: UnsupportedError: no waveguide works on all edges of a path.
    """
    by_pair = np.lexsort((circuits.dst, circuits.src))
    begins = np.ones(len(circuits), bool)
    begins[1:] = ~circuits.same_path(by_pair[:-1], by_pair[1:])
    bundle = np.empty(len(circuits), np.int64)
    bundle[by_pair] = np.cumsum(begins) - 1
    paths = circuits.take(by_pair[begins])
    works = np.ones((4 * machine.num_machine_nodes, machine.waveguides), bool)
    works.ravel()[machine.damage.guide] = False
    assignment = end_to_end(paths.hops, paths.hop_offsets, works)
    guide, number = assignment.waveguide[bundle], assignment.round_of[bundle]
    if len(closed := np.flatnonzero(guide < 0)):
        ends = (machine.coordinates(int(end[closed[0]])) for end in (circuits.src, circuits.dst))
        raise UnsupportedError(
            f"lightpath: no waveguide works on all edges from node {' to node '.join(ends)}; try switch_unit=wavelength"
        )
    assigned = replace(circuits, waveguide=guide)
    return (
        [assigned.take(number == r) for r in range(assignment.num_rounds)] if assignment.num_rounds > 1 else [assigned]
    )


def _waveguides_wanted(fabric: Fabric, circuits: Circuits, alive: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """What each circuit takes of the waveguides: edges, (edge, wavelength) pairs, or, where all are equally wide and side by
    side, (edge, laser set) pairs; end to end, with offsets, and how many each of them can bear.

    Args: alive: waveguides of each edge.
    """
    width, lo = int(circuits.wavelength_n[0]), circuits.wavelength_lo
    if (circuits.wavelength_n == width).all() and not (lo % width).any():
        sets = -(-fabric.num_wavelengths // width)
        pairs = circuits.hops * np.int32(sets)
        pairs += np.repeat(lo // width, circuits.num_hops())
        return pairs, circuits.hop_offsets, np.repeat(alive, sets)
    hop, wavelength = circuits.each_wavelength(circuits.hop_owner())
    taken = circuits.hops[hop] * np.int64(fabric.num_wavelengths) + wavelength
    offsets = np.concatenate([[0], np.cumsum(circuits.num_hops() * circuits.wavelength_n)])
    return taken, offsets, np.repeat(alive, fabric.num_wavelengths)
