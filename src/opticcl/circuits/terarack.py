"""Light on a ring of fibres: direction and wavelength of every transfer.

WRHT, a group on its level: from the side that the sender is on. With members counted along the ring, the wavelength is
|member(src) - member(dst)| - 1: all light of a side shares the segment beside the representative, so no fewer would do.

WRHT, R representatives each to each: pair c_0 with its antipode c_h; they and one node of either side close the circle
in four arcs, a wavelength clockwise and one counter-clockwise. Remove the pair, go on with the rest.

Any other schedule: the shorter way round, first fit on the segments, one wavelength a transfer.

Source: WRHT sections 4.1.1, 4.1.2.
Reading: the paper leaves both to first fit. For the exchange that takes more than ceil(R^2 / 8) wavelengths from R = 8
on (over 70 instead of 61 for 22 representatives), so steps that fit would be refused; the construction attains it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits.assign import first_fit, width_that_fits
from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, concatenate_circuits
from opticcl.schedule.wrht import Tree, channels, tree

CLOCKWISE, COUNTER_CLOCKWISE = 0, 1
MAX_SEGMENTS = 1 << 22  # lit in one step; first fit looks at each of them for each wavelength


@register_rule("terarack")
def terarack(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Closed forms for WRHT, first fit for any other schedule.

    Raises: UnsupportedError: a step of another schedule lights too many fibre segments.
    """
    if schedule.name == "wrht":
        plan = tree(fabric, **schedule.parameters)

        def colour(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
            direction, wavelength = _wrht(plan, step, transfers)
            width = channels(fabric) // (int(wavelength.max()) + 1) if fabric.parameters["striping"] else 1
            return (_lit(fabric, transfers, np.arange(len(transfers)), direction, wavelength * width, width),)

        return colour

    for steps in schedule.step_classes():
        transfers = schedule.step(steps.start)
        lit = int(_distance(fabric.num_nodes, transfers, _shorter_way(fabric.num_nodes, transfers)).sum())
        if lit > MAX_SEGMENTS:
            where = f"{schedule.name} on terarack: step {steps.start}"
            raise UnsupportedError(f"{where} lights {lit:,} fibre segments; first fit is for {MAX_SEGMENTS:,} at most")

    def fit(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        return _first_fit(fabric, transfers)

    return fit


def _wrht(plan: Tree, step: int, transfers: Transfers) -> tuple[IntArray, IntArray]:
    """Direction and wavelength of each transfer of a step."""
    level = plan.level_of_step(step)
    nodes = plan.levels[level]
    member_src, member_dst = np.searchsorted(nodes, transfers.src), np.searchsorted(nodes, transfers.dst)
    if level == plan.num_collects:
        direction, wavelength = exchange(len(nodes))
        return direction[member_src, member_dst], wavelength[member_src, member_dst]
    return np.where(member_src < member_dst, CLOCKWISE, COUNTER_CLOCKWISE), np.abs(member_src - member_dst) - 1


@cache
def exchange(num_nodes: int) -> tuple[IntArray, IntArray]:
    """Directions and wavelengths in which all nodes of a ring talk to each other at once.

    Only their order on the ring matters. The number of wavelengths is `schedule.wrht.exchange_wavelengths`.

    Args: num_nodes: R >= 2.
    Returns: direction and wavelength from member i to member j, int64 (R, R) each; the diagonals mean nothing.
    """
    direction, wavelength = np.zeros((2, num_nodes, num_nodes), np.int64)
    used = [0, 0]

    def lap(way: int, *stops: IntArray) -> None:
        """Once round the ring with these stops on one wavelength; with columns of stops, on one for each row."""
        fresh = used[way] + np.arange(np.broadcast(*stops).size)
        for here, there in zip(stops, stops[1:] + stops[:1], strict=True):
            direction[here, there], wavelength[here, there] = way, fresh
        used[way] += len(fresh)

    left = np.arange(num_nodes)
    while len(left) > 1:
        half = len(left) // 2
        a, b = left[:1], left[half : half + 1]
        x, rest = left[1:half], left[half + 1 :]  # between a and b, between b and a
        y, single = rest[: len(x)], rest[len(x) :]
        lap(CLOCKWISE, a, x, b, y)
        lap(COUNTER_CLOCKWISE, b, x, a, y)
        if len(single):
            lap(CLOCKWISE, a, b, single)
            lap(COUNTER_CLOCKWISE, b, a, single)
        else:  # antipodes, both arcs on one wavelength
            lap(int(np.argmin(used)), a, b)
        left = np.concatenate([x, rest])
    return direction, wavelength


def _first_fit(fabric: Fabric, transfers: Transfers) -> tuple[Circuits, ...]:
    """Any transfers: the shorter way, the first wavelength that is free on all of it."""
    direction = _shorter_way(fabric.num_nodes, transfers)
    hops, offsets = _walk(fabric.num_nodes, transfers, direction)
    segments, colours = 2 * fabric.num_nodes, channels(fabric)
    width = width_that_fits(hops, offsets, segments, colours) if fabric.parameters["striping"] else 1
    colour, number = first_fit(hops, offsets, segments, colours, width)
    while width > 1 and number.any():  # narrower in one round beats wider in two
        width //= 2
        colour, number = first_fit(hops, offsets, segments, colours, width)
    rows = (np.flatnonzero(number == r) for r in range(int(number.max()) + 1))
    return tuple(_lit(fabric, transfers, row, direction[row], colour[row], width) for row in rows)


def _lit(
    fabric: Fabric, transfers: Transfers, row: IntArray, direction: IntArray, colour: IntArray, width: int
) -> Circuits:
    """Circuits of the given transfers on colours colour, ..., colour + width - 1; each ring has the next w of them."""
    w, parts = fabric.num_wavelengths, []
    for ring in range(fabric.ports_per_node // 2):
        lo = np.maximum(colour - ring * w, 0)
        hi = np.minimum(colour - ring * w + width, w)
        mine = np.flatnonzero(lo < hi)
        chosen = _take(transfers, row[mine])
        way, n = direction[mine], (hi - lo)[mine]
        path = _walk(fabric.num_nodes, chosen, way)
        parts.append(Circuits.of(row[mine], chosen.src, chosen.dst, 2 * ring + way, lo[mine], n, path))
    return parts[0] if len(parts) == 1 else concatenate_circuits(parts)


def _take(transfers: Transfers, row: IntArray) -> Transfers:
    return Transfers(*(getattr(transfers, column)[row] for column in Transfers.__slots__))


def _shorter_way(num_nodes: int, transfers: Transfers) -> IntArray:
    """Direction of each transfer; opposite nodes take turns, so that neither fibre is idle."""
    clockwise = (transfers.dst - transfers.src) % num_nodes
    opposite = 2 * clockwise == num_nodes
    return np.where(opposite, transfers.src % 2, (2 * clockwise > num_nodes).astype(np.int32))


def _distance(num_nodes: int, transfers: Transfers, direction: IntArray) -> IntArray:
    """Segments of each transfer in its direction, int64 (n,)."""
    return ((transfers.dst.astype(np.int64) - transfers.src) * (1 - 2 * direction)) % num_nodes


def _walk(num_nodes: int, transfers: Transfers, direction: IntArray) -> tuple[IntArray, IntArray]:
    """Segments of all transfers end to end, and where each transfer's begin."""
    count = _distance(num_nodes, transfers, direction)
    offsets = np.concatenate([[0], np.cumsum(count)])
    done = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
    src, way = np.repeat(transfers.src, count), np.repeat(direction, count)
    node = (src + done * (1 - 2 * way)) % num_nodes  # that the light is at
    return np.where(way == CLOCKWISE, node, num_nodes + (node - 1) % num_nodes), offsets
