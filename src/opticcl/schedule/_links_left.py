"""Links of a fabric on which light still gets through, between its ranks.

Switches that are set once a job join a port to one partner at a time. There every port keeps one partner: the next rank of its
line, the last one's is the first. Links that need a failed part are missing, so a line is a circle with gaps.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.fabrics.oddl import Oddl, coordinate, dimension_between
from opticcl.ir import Fabric, IntArray

__all__ = ["LinksLeft", "joins_all", "links_left"]


class LinksLeft(NamedTuple):
    """Links of a fabric between its ranks.

    Args:
        width: wavelengths that join each pair, int64 (ranks, ranks).
        port: of the sender and of the receiver of each pair, int64 (ranks, ranks).
        ports: of a node [count].
        port_width: wavelengths of each port that work: of the sender and of the receiver, int64 (ranks, ports) each.
    """

    width: IntArray
    port: IntArray
    ports: int
    port_width: tuple[IntArray, IntArray]


@lru_cache(maxsize=8)
def links_left(fabric: Fabric, *, one_partner: bool = False) -> LinksLeft:
    """Links between ranks on which some wavelength works, by `Fabric.options`.

    Args:
        fabric: that has them.
        one_partner: whether a port whose circuits are set once keeps one partner, if such links join all ranks.
    Raises: UnsupportedError: the fabric does not list them.
    """
    n, ports, w = fabric.num_nodes, fabric.ports_per_node, fabric.num_wavelengths
    src, dst = (side.ravel() for side in np.divmod(np.arange(n * n), n))
    apart = np.flatnonzero(src != dst)
    nodes = fabric.machine_nodes(np.arange(n))
    circuits = fabric.options(nodes[src[apart]], nodes[dst[apart]]).circuits
    pair = apart[circuits.transfer]
    works = (
        _next_of_line(fabric, nodes).ravel()[pair]
        if one_partner
        else _settings_suffice(fabric, circuits.src, circuits.dst)
    )
    for fault in fabric.part_faults(circuits):
        works[fault.circuits] = False
    circuits = circuits.take(works)
    pair = apart[circuits.transfer]
    port = np.zeros(n * n, np.int64)
    port[pair] = circuits.port
    width = np.bincount(pair, circuits.wavelength_n, n * n).astype(np.int64)
    cells = []
    row, wavelength = circuits.each_wavelength()
    for end in (src, dst):
        place = end[pair[row]] * ports + circuits.port[row]
        used = np.unique(place * w + wavelength)
        cells.append(np.bincount(used // w, minlength=n * ports).reshape(n, ports))
    left = LinksLeft(width.reshape(n, n), port.reshape(n, n), ports, (cells[0], cells[1]))
    if one_partner and not joins_all(left):
        return links_left(fabric)
    return left


def joins_all(links: LinksLeft) -> bool:
    """Whether the links lead from every rank to every other."""
    reach = (links.width > 0) | np.eye(len(links.width), dtype=bool)
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    return bool(reach.all())


def _next_of_line(fabric: Fabric, nodes: IntArray) -> npt.NDArray[np.bool_]:
    """Pairs of ranks of which the second follows the first on their line, bool (ranks, ranks); all pairs without such lines.

    Args:
        fabric: any.
        nodes: of each rank.
    """
    machine, n = fabric.machine, len(nodes)
    if not isinstance(machine, Oddl):
        return np.ones((n, n), bool)
    follows = np.zeros((n, n), bool)
    for dimension, side in enumerate(machine.shape):
        at = coordinate(machine.shape, nodes.astype(np.int64), np.full(n, dimension))
        stride = prod(machine.shape[dimension + 1 :])
        line = nodes // (stride * side) * stride + nodes % stride
        order = np.lexsort((at, line))
        starts = np.searchsorted(line[order], line[order])
        ends = np.searchsorted(line[order], line[order], side="right")
        after = np.where(np.arange(n) + 1 < ends, np.arange(n) + 1, starts)
        follows[order, order[after]] = True
    return follows


def _settings_suffice(fabric: Fabric, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
    """Pairs that switches which are set once can join all at the same time: of ODDL's, partners whose coordinates differ in one
    bit, or neighbours of a circle where sides are no powers of two, if there are fewer wavelengths than partners.

    Args:
        fabric: any.
        src, dst: nodes of each pair.
    """
    machine = fabric.machine
    if not isinstance(machine, Oddl) or machine.num_wavelengths >= max(machine.shape) - 1:
        return np.ones(len(src), bool)
    dimension = dimension_between(machine.shape, src, dst)
    at, to = (coordinate(machine.shape, end.astype(np.int64), dimension) for end in (src, dst))
    side = np.array(machine.shape)[dimension]
    bits = at ^ to
    gap = (to - at) % side
    whole = (side & (side - 1)) == 0
    suffices: npt.NDArray[np.bool_] = np.where(whole, bits & (bits - 1) == 0, (gap == 1) | (gap == side - 1))
    return suffices
