"""Light on rings and lines of fibres: direction and wavelength of every transfer. A ring is a torus with one row.

WRHT, a group on its level: from the side that the sender is on. With members counted along the ring, the wavelength is
|member(src) - member(dst)| - 1: all light of a side shares the segment beside the representative, so no fewer would do.

WRHT, R representatives each to each, and any exchange of all with all: a wavelength for each lap round the ring, by
the construction of `schedule.wavelength_exchange`. On a line of a mesh, intervals from left to right.

OpTree, sets of R nodes at a distance: the laps of an exchange, or the intervals of a line, each set on wavelengths of its own.

Any other schedule: the shorter way round, first fit on the segments, long ways first, one wavelength a transfer.

Source: WRHT sections 4.1.1, 4.1.2.
Reading: the paper leaves both to first fit. For the exchange that takes more than ceil(R^2 / 8) wavelengths from R = 8
on (over 70 instead of 61 for 22 representatives), so steps that fit would be refused; the construction attains it.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._around import around
from opticcl.circuits._hold import hold, standing
from opticcl.circuits._order import farthest_first, recalled
from opticcl.circuits._standing_rings import CLOSED_FORMS, Family, all_of
from opticcl.collective import Request
from opticcl.errors import TooLargeError, UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, concatenate_circuits
from opticcl.ir.limits import ROUTES_AT_ONCE, limit
from opticcl.ir.phases import TransferEnds
from opticcl.kernels import njit
from opticcl.routing.assign import first_fit, width_that_fits
from opticcl.schedule.circulant_rings import folded_ring
from opticcl.schedule.optree import stages_of
from opticcl.schedule.wavelength_exchange import (
    CLOCKWISE,
    COUNTER_CLOCKWISE,
    channels,
    exchange_wavelengths,
    lap_of,
)
from opticcl.schedule.wrht import Tree, WrhtPhase, sides, stripes, tree, wraps
from opticcl.units import counted, format_bytes

MAX_SEGMENTS = limit("terarack.MAX_SEGMENTS")
BYTES_A_SEGMENT = 16  # of a path, twice as numbers of 32 bits and once as one of 64


@register_rule("terarack_torus")
@register_rule("terarack")
def terarack(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Closed forms for WRHT and exchanges of all with all, first fit for any other schedule, around what has failed.

    Raises: UnsupportedError: a step of another schedule uses too many fibre segments.
    """
    rounds = _in_order(fabric, schedule)
    wide = stripes(fabric) or schedule.name in CLOSED_FORMS or schedule.name == "optree"
    return around(fabric, rounds, widens=wide) if fabric.conditions else rounds


def _in_order(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The same where nothing has failed."""
    if schedule.name == "wrht":
        return _wrht(fabric, schedule)
    if schedule.name == "optree":
        return _optree(fabric, schedule)
    if schedule.name == "wavelength_exchange":
        return _laps(fabric)
    if schedule.name in CLOSED_FORMS:
        return _standing(fabric, schedule)
    ranks = np.arange(schedule.steps.space.num_ranks)
    for steps in schedule.step_classes():
        if schedule.steps.num_transfers(steps.start) * max(sides(fabric)) <= MAX_SEGMENTS:
            continue
        ends = schedule.steps.ends(steps.start, ROUTES_AT_ONCE, ranks)
        segments = sum(int(_shortest(fabric, some).sum()) for some in ends)
        if segments > MAX_SEGMENTS:
            where = f"{schedule.name} on {fabric.name}: step {steps.start}"
            raise TooLargeError(
                f"{where} uses {segments:,} fibre segments, {format_bytes(BYTES_A_SEGMENT * segments)}; first fit is for "
                f"{format_bytes(BYTES_A_SEGMENT * MAX_SEGMENTS)} at most"
            )

    fit = recalled(lambda step, transfers: _first_fit(fabric, transfers))
    return hold(fabric, schedule, recalled(farthest_first(fabric.num_machine_nodes, partial(fit, 0))))


def _standing(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Circuits in closed form that stand all the time, or for the steps of a level."""
    if schedule.collective.num_ranks == 1:
        return lambda step, transfers: ()
    if schedule.parameters.get("folded"):
        return _folded(fabric)
    ring = _ring_of(fabric)

    def light(pairs: Transfers, family: Family) -> Circuits:
        return _circuits(fabric, pairs, family.direction, family.colour, family.width)

    sets = CLOSED_FORMS[schedule.name](ring, schedule)
    firsts = _first_colours(fabric, ring)
    every = [all_of([family.on(fabric, firsts) for family in families], light) for families in sets]
    return recalled(standing(fabric.num_machine_nodes, every, partial(_walk_of, fabric)))


def _walk_of(fabric: Fabric, circuits: Circuits) -> tuple[IntArray, IntArray]:
    """Segments of circuits that have no paths, as `_walk` returns them."""
    return _walk(fabric, circuits, circuits.port % (2 if sides(fabric)[1] == 1 else 4))


def _folded(fabric: Fabric) -> Rounds:
    """Folded rings, each way out on one fibre and back on the other; groups that stand apart have the same wavelengths.

    Args: fabric: a TeraRack, a job on it or groups.
    Raises: UnsupportedError: too few wavelengths.
    """
    members = fabric.machine_nodes(np.arange(fabric.num_nodes)).reshape(fabric.num_members, -1)
    share = _share_of_groups(members, fabric.num_machine_nodes)
    width = channels(fabric) // (2 * (int(share.max()) + 1) * fabric.share)
    if not width:
        raise UnsupportedError(
            f"{fabric.name}: folded rings of {counted(int(share.max()) + 1, 'group')} that overlap need two wavelengths each, "
            f"of {channels(fabric)}; try fewer groups"
        )
    order, many = folded_ring(members.shape[1]), len(members)
    lowest = 0 if fabric.share == 1 else int(_first_colours(fabric, _ring_of(fabric))[0])
    parts = []
    for number, way in enumerate((1, -1)):
        to = np.roll(order, -way)
        ends = Transfers.of(members[:, order].ravel(), members[:, to].ravel(), 0, 1, 0)
        direction = np.tile(np.where(to > order, CLOCKWISE, COUNTER_CLOCKWISE), many)
        colour = np.repeat((2 * share + number) * width + lowest, len(order))
        parts.append(_circuits(fabric, ends, direction, colour, width))
    return recalled(standing(fabric.num_machine_nodes, [concatenate_circuits(parts)], partial(_walk_of, fabric)))


def _share_of_groups(members: IntArray, num_nodes: int) -> IntArray:
    """Number of the share of the wavelengths of each group: groups whose nodes stand apart on the ring have equal ones.

    Args:
        members: nodes of each group, in the order of the ring, int (groups, n).
        num_nodes: of the ring [count].
    """
    first, length = members[:, 0].astype(np.int64), (members[:, -1] - members[:, 0]).astype(np.int64) % num_nodes
    share = np.zeros(len(members), np.int64)
    ends: list[int] = []  # of the light of each share, the ring cut open where the first group begins
    start = first.min()
    for group in np.argsort((first - start) % num_nodes, kind="stable").tolist():
        begin = int(first[group] - start) % num_nodes
        end = begin + int(length[group])
        free = (at for at, last in enumerate(ends) if last <= begin and end <= num_nodes)
        share[group] = number = next(free, len(ends))
        ends[number : number + 1] = [end]
    return share


def _first_colours(fabric: Fabric, ring: Fabric) -> IntArray:
    """The first wavelength of each group: shares of groups follow each other, that of a job lies where its first node does.

    Args:
        fabric: a ring, a job on it or groups.
        ring: of one group, with the wavelengths that it has.
    """
    if fabric.share == 1:
        return np.arange(fabric.num_members) * channels(ring)
    lowest = int(fabric.machine_nodes(np.arange(fabric.num_nodes)).min())
    last = channels(fabric) - channels(ring)
    return np.array([min(last, lowest * channels(fabric) // fabric.num_machine_nodes)])


def _ring_of(fabric: Fabric) -> Fabric:
    """The ring, or the torus, of the ranks of a group; its segments are those of the machine from one of its nodes to the next.

    Raises: UnsupportedError: groups are more than the wavelengths of which each needs one.
    """
    ring = fabric.equivalent
    assert ring is not None  # else there is no such schedule
    if fabric.num_members * channels(ring) > channels(fabric):
        raise UnsupportedError(
            f"{fabric.name}: light of {fabric.num_members:,} groups passes the same fibres, which have {channels(fabric)} "
            "wavelengths; try fewer groups, or circulant_rings:folded=true"
        )
    return ring


def _wrht(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Each step in one round, on no more wavelengths than it needs."""
    wanted = Request(schedule.collective.name, schedule.collective.root)
    ring = _ring_of(fabric)
    plan, share, firsts = tree(ring, wanted, **schedule.parameters), channels(ring), _first_colours(fabric, ring)

    def colour(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        ends = fabric.ranks_in_group(transfers.src), fabric.ranks_in_group(transfers.dst)
        direction, wavelength = _in_tree(fabric, plan, step, *ends)
        width = share // (int(wavelength.max()) + 1) if stripes(fabric) else 1
        path, first = _walk(fabric, transfers, direction), firsts[fabric.groups_at(transfers.src)]
        return (_circuits(fabric, transfers, direction, first + wavelength * width, width, path),)

    return colour


def _in_tree(fabric: Fabric, plan: Tree, step: int, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
    """Direction and wavelength of each transfer of a step.

    Args:
        fabric: rings, or lines.
        plan: the tree.
        step: its number.
        src, dst: ranks.
    """
    stage, number, level = plan.steps[step]
    line = plan.lines[number]
    src, dst = line.member(level, src), line.member(level, dst)
    if stage == WrhtPhase.EXCHANGE and wraps(fabric):
        direction, wavelength = lap_of(len(line.levels[level]), src, dst)
    elif stage == WrhtPhase.EXCHANGE:
        direction, wavelength = (table[src, dst] for table in exchange_on_line(len(line.levels[level])))
    else:
        direction = np.where(src < dst, CLOCKWISE, COUNTER_CLOCKWISE)
        wavelength = np.abs(src - dst) - 1
    return 2 * number + direction, wavelength


@cache
def exchange_on_line(num_nodes: int) -> tuple[IntArray, IntArray]:
    """Directions and wavelengths in which some nodes of a line all send to each other, on floor(R^2 / 4) wavelengths.

    Intervals that take the first free colour in the order of their left ends need no more than the busiest point has.

    Args: num_nodes: R >= 2.
    Returns: direction and wavelength from member i to member j, int64 (R, R) each; the diagonals mean nothing.
    """
    direction, wavelength = np.zeros((2, num_nodes, num_nodes), np.int64)
    free_from: list[int] = []  # node from which each wavelength is free
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            colour = next((c for c, node in enumerate(free_from) if node <= i), len(free_from))
            free_from[colour : colour + 1] = [j]
            wavelength[i, j] = wavelength[j, i] = colour
            direction[i, j], direction[j, i] = CLOCKWISE, COUNTER_CLOCKWISE
    return direction, wavelength


def _laps(fabric: Fabric) -> Rounds:
    """An exchange of all nodes of a whole ring, each step in one round: a wavelength for each of its laps."""
    ring = _ring_of(fabric)
    n, w, firsts = ring.num_nodes, channels(ring), _first_colours(fabric, ring)
    width = w // min(w, exchange_wavelengths(n)) if stripes(fabric) else 1

    def colour(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        direction, lap = lap_of(n, fabric.ranks_in_group(transfers.src), fabric.ranks_in_group(transfers.dst))
        path, first = _walk(fabric, transfers, direction), firsts[fabric.groups_at(transfers.src)]
        return (_circuits(fabric, transfers, direction, first + lap % w * width, width, path),)

    return colour


def _optree(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Each stage in as many rounds as its sets need, or with as many wavelengths a transfer as they leave."""
    ring = _ring_of(fabric)
    w, firsts = channels(ring), _first_colours(fabric, ring)
    stages = stages_of(ring.num_nodes, w, **schedule.parameters)

    def colour(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        stage, column = stages[step], fabric.ranks_in_group(transfers.src)
        src, dst = (end // stage.stride % stage.radix for end in (column, fabric.ranks_in_group(transfers.dst)))
        if stage.around:
            direction, wavelength = lap_of(stage.radix, src, dst)
        else:
            direction, wavelength = (table[src, dst] for table in exchange_on_line(stage.radix))
        number, wavelength = np.divmod(column % stage.stride * stage.wavelengths + wavelength, w)
        width, path = stage.width(w), _walk(fabric, transfers, direction)
        first = firsts[fabric.groups_at(transfers.src)]
        every = _circuits(fabric, transfers, direction, first + wavelength * width, width, path)
        rounds = stage.rounds(w)
        return (every,) if rounds == 1 else tuple(every.take(number[every.transfer] == r) for r in range(rounds))

    return colour


def _first_fit(fabric: Fabric, transfers: Transfers) -> tuple[Circuits, ...]:
    """Any transfers: the shorter way, the first wavelength that is free on all of it."""
    direction = _shorter_way(fabric, transfers)
    path = _walk(fabric, transfers, direction)
    hops, offsets = path[0].astype(np.int64), path[1]
    segments, colours = fabric.resources[0].count, channels(fabric)
    width = width_that_fits(hops, segments, colours) if stripes(fabric) else 1
    colour, number = first_fit(hops, offsets, segments, colours, width)
    while width > 1 and number.any():  # narrower in one round beats wider in two
        width //= 2
        colour, number = first_fit(hops, offsets, segments, colours, width)
    every = _circuits(fabric, transfers, direction, colour, width, path)
    if not number.any():
        return (every,)
    return tuple(every.take(number[every.transfer] == r) for r in range(int(number.max()) + 1))


def _circuits(
    fabric: Fabric,
    transfers: Transfers,
    direction: IntArray,
    colour: IntArray,
    width: int,
    path: tuple[IntArray, IntArray] | None = None,
) -> Circuits:
    """Circuits on colours colour, ..., colour + width - 1; each ring has the next w of them.

    Args:
        fabric: that they are on.
        transfers: that they carry.
        direction: of each transfer.
        colour: first colour of each transfer.
        width: colours of each [count].
        path: of each transfer, as `_walk` returns them; None: they have none yet.
    """
    w, parts = fabric.num_wavelengths, []
    for ring in range(channels(fabric) // w):
        lo = np.maximum(colour - ring * w, 0)
        hi = np.minimum(colour - ring * w + width, w)
        rows = np.arange(len(transfers))
        on_ring = Circuits.of(rows, transfers.src, transfers.dst, 2 * ring + direction, lo, hi - lo, path)
        used = lo < hi
        parts.append(on_ring if used.all() else on_ring.take(used))
    return parts[0] if len(parts) == 1 else concatenate_circuits(parts)


def _steps_ahead(fabric: Fabric, transfers: Transfers | TransferEnds | Circuits) -> tuple[IntArray, IntArray, IntArray]:
    """Line of each transfer (0 its row, 1 its column), nodes of that line, and how far ahead the receiver is on it."""
    columns, rows = sides(fabric)
    src, dst = transfers.src, transfers.dst
    if rows == 1:
        return np.zeros(len(src), np.int32), np.full(len(src), columns, np.int32), dst - src
    down = dst // columns - src // columns
    line = down != 0
    side = np.where(line, np.int32(rows), np.int32(columns))
    return line.astype(np.int32), side, np.where(line, down, dst - src)


def _shorter_way(fabric: Fabric, transfers: Transfers) -> IntArray:
    """Direction of each transfer; opposite nodes alternate, so that neither fibre is idle."""
    line, side, ahead = _steps_ahead(fabric, transfers)
    back = ahead < 0
    if wraps(fabric):
        clockwise = _round(ahead, side)
        opposite = 2 * clockwise == side
        back = np.where(opposite, transfers.src // np.where(line, sides(fabric)[0], 1) % 2 == 1, 2 * clockwise > side)
    return np.asarray(2 * line + back)


def _shortest(fabric: Fabric, ends: TransferEnds) -> IntArray:
    """Segments of each transfer in the direction that has fewer, int32 (n,)."""
    _, side, ahead = _steps_ahead(fabric, ends)
    clockwise = _round(ahead, side)
    return np.minimum(clockwise, side - clockwise) if wraps(fabric) else np.abs(ahead)


def _distance(fabric: Fabric, transfers: Transfers | Circuits, direction: IntArray) -> IntArray:
    """Segments of each transfer in its direction, int32 (n,)."""
    _, side, ahead = _steps_ahead(fabric, transfers)
    return _round(np.where(direction % 2 == CLOCKWISE, ahead, -ahead), side)


def _round(ahead: IntArray, side: IntArray) -> IntArray:
    """Distances within a line of that many nodes, as distances clockwise."""
    return np.asarray(np.where(ahead < 0, ahead + side, ahead))


def _walk(fabric: Fabric, transfers: Transfers | Circuits, direction: IntArray) -> tuple[IntArray, IntArray]:
    """Segments of all transfers end to end, int32, and where each transfer's begin, int64 (n + 1,)."""
    offsets = np.concatenate([[0], np.cumsum(_distance(fabric, transfers, direction))])
    hops = np.empty(offsets[-1], np.int32)
    columns, rows = sides(fabric)
    _fill(transfers.src.astype(np.int64), np.asarray(direction, np.int64), offsets, columns, rows, hops)
    return hops, offsets


@njit
def _fill(src, direction, offsets, columns, rows, hops):  # type: ignore[no-untyped-def]
    for i in range(len(src)):
        stride, side = (1, columns) if direction[i] < 2 else (columns, rows)
        place = src[i] // stride % side  # that the light is at
        fibre = direction[i] * columns * rows + src[i] - place * stride
        for at in range(offsets[i], offsets[i + 1]):
            if direction[i] % 2 == 0:
                hops[at] = fibre + place * stride
                place = place + 1 if place + 1 < side else 0
            else:
                place = place - 1 if place else side - 1
                hops[at] = fibre + place * stride
