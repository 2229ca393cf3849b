r"""Elements of LIGHTPATH where a switch moves a whole waveguide: every wavelength of it goes the same way.

::

    laser k ~>[1 : 4 W]~> in of the other lasers ~>[L : 1]~>[4 : 1]==waveguide m==>[1 : 4]~> next tile, same m   (three sides)
                                                       ^ light from three sides       \~>[4 W : 1]~> demux ~> photodiodes

At the start of waveguide m of an edge a select lets in the light of one side or of the tile's own lasers; at its end an MZI
sends everything to one side, where it goes on on waveguide m, or to the tile's photodiodes. So a circuit keeps its waveguide
from end to end, and circuits share one only if their paths are the same: on a common edge the MZI gives them the same next
edge, and the select the same edge before.

Source: LUMORPH section 2.1. Reading: the switch behind each laser and what joins the lasers are in no formula of losses; each
hop passes two switches, the select at its start and the MZI at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.fabrics._lightpath_netlist import TileGrid
from opticcl.ir import Circuits, IntArray
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = ["FROM_LASER", "TO_PHOTODIODES", "Passages", "passages", "waveguide_netlist", "waveguide_states"]

SOURCE = "LUMORPH section 2.1"
FROM_LASER = 4
"""Side of a select: light of the tile's own lasers; 0 to 3: light that came to the tile in that direction."""
TO_PHOTODIODES = 4
"""Side of an MZI: the tile's photodiodes; 0 to 3: light leaves the tile in that direction."""


class Passages(NamedTuple):
    """Waveguides that circuits pass: rows of `hops` of those circuits that have one.

    Args:
        circuit: int64 (m,).
        edge: 4 tile + direction, int64 (m,).
        waveguide: number on the edge, int64 (m,).
        before: side of the select at its start, int64 (m,).
        after: side of the MZI at its end, int64 (m,).
        first: whether the path begins here, bool (m,).
    """

    circuit: IntArray
    edge: IntArray
    waveguide: IntArray
    before: IntArray
    after: IntArray
    first: npt.NDArray[np.bool_]


def passages(circuits: Circuits, waveguides: int) -> Passages:
    """Waveguides that circuits pass; circuits without a number of 0 to `waveguides` - 1 pass none.

    Args:
        circuits: of a round, or of several.
        waveguides: of an edge [count].
    """
    guide = np.full(len(circuits), -1) if circuits.waveguide is None else circuits.waveguide.astype(np.int64)
    some = circuits.num_hops() > 0
    first, last = np.zeros(len(circuits.hops), bool), np.zeros(len(circuits.hops), bool)
    first[circuits.hop_offsets[:-1][some]] = True
    last[circuits.hop_offsets[1:][some] - 1] = True
    hops = circuits.hops.astype(np.int64)
    before = np.where(first, FROM_LASER, np.roll(hops % 4, 1))
    after = np.where(last, TO_PHOTODIODES, np.roll(hops % 4, -1))
    owner = circuits.hop_owner()
    kept = (guide[owner] >= 0) & (guide[owner] < waveguides)
    return Passages(owner[kept], hops[kept], guide[owner][kept], before[kept], after[kept], first[kept])


def _port(side: IntArray, way: IntArray) -> IntArray:
    """Port of a select or an MZI of an edge in direction `way`: three sides, for light does not go straight back, then 3."""
    return np.where(side == FROM_LASER, 3, side - (side > (way ^ 1)))


def waveguide_states(wafer: TileGrid, circuits: Circuits) -> Iterator[SettingUse]:
    """States of the switches behind the lasers, of the selects and of the MZIs on the paths.

    Args:
        wafer: with the edges.
        circuits: of a round.
    """
    w = wafer.waveguides
    passed = passages(circuits, w)
    inner = np.sort(np.concatenate([edges for _, edges in wafer.edges]))
    place = np.searchsorted(inner, passed.edge)
    exists = inner[np.minimum(place, len(inner) - 1)] == passed.edge if len(inner) else np.zeros(len(place), bool)
    way = passed.edge % 4
    begins = np.flatnonzero(passed.first)
    nth, wavelength = circuits.each_wavelength(passed.circuit[begins])
    row = begins[nth]
    circuit = passed.circuit[row]
    laser = passed.edge[row] // 4 * wafer.lasers + wavelength
    yield SettingUse("laser_switch", laser, way[row] * w + passed.waveguide[row], circuit)
    number = (place * w + passed.waveguide)[exists]
    for name, side in (("select", passed.before), ("mzi", passed.after)):
        yield SettingUse(name, number, _port(side, way)[exists], passed.circuit[exists])


def waveguide_netlist(wafer: TileGrid) -> Netlist:
    """Elements of all tiles and edges."""
    tiles, lasers, w = wafer.tiles, wafer.lasers, wafer.waveguides
    counts = wafer.counts()
    guides = sum(counts.values()) * w

    def inner() -> IntArray:
        return np.sort(np.concatenate([edges for _, edges in wafer.edges]))

    def on_edge(element: int) -> str:
        return f"waveguide {element % w} {wafer.edge_name(int(inner()[element // w]))}"

    def start(element: IntArray) -> IntArray:
        return inner()[element // w] // 4

    def end(element: IntArray) -> IntArray:
        edge = inner()[element // w]
        return edge // 4 + wafer.onward[edge % 4]

    def alive(tile_of: Callable[[IntArray], IntArray]) -> Callable[[IntArray], npt.NDArray[np.bool_]]:
        return lambda element: ~np.isin(tile_of(element), wafer.dead_tiles)

    def works(element: IntArray) -> npt.NDArray[np.bool_]:
        return ~np.isin(element, wafer.dead_lasers)

    def node_of_laser(device: IntArray) -> IntArray:
        return wafer.node_on(device // lasers)

    def waveguide(name: str, count: int) -> ElementGroup:
        def edges() -> IntArray:
            return dict(wafer.edges)[name]

        def guide_works(element: IntArray) -> npt.NDArray[np.bool_]:
            return ~np.isin(edges()[element // w] * w + element % w, wafer.dead_guides)

        def place(element: int) -> str:
            return f"waveguide {element % w} {wafer.edge_name(int(edges()[element // w]))}"

        seam = "board_fibre" if name.endswith("_board") else "stitch"
        loss = {name.removesuffix("_board"): 1.0, seam: 1.0}
        return ElementGroup(
            name, "waveguide", count * w, loss=loss, parameters={"works": guide_works}, place=place,
            hops=lambda element: edges()[element // w], source=SOURCE,
        )  # fmt: skip

    groups = (
        ElementGroup(
            "transmitter", "emitter", tiles * lasers, 0, 1, per_wavelength=True, loss={"modulator": 1},
            parameters={"works": works, "emits": lambda laser: laser % lasers}, place=wafer.laser_name,
            node_of=node_of_laser, source=SOURCE,
        ),
        ElementGroup(
            "laser_switch", "mzi", tiles * lasers, 1, 4 * w, place=wafer.laser_name, node_of=node_of_laser, source=SOURCE,
        ),
        ElementGroup("lasers_mux", "mux", guides, lasers, 1, place=on_edge, source=SOURCE),
        ElementGroup(
            "select", "select", guides, 4, 1, loss={"mzi": 1}, parameters={"works": alive(start)}, place=on_edge,
            node_of=lambda device: wafer.node_on(start(device)), source=SOURCE,
        ),
        *(waveguide(name, count) for name, count in counts.items()),
        ElementGroup(
            "mzi", "mzi", guides, 1, 4, loss={"mzi": 1}, parameters={"works": alive(end)}, place=on_edge,
            node_of=lambda device: wafer.node_on(end(device)), source=SOURCE,
        ),
        ElementGroup("sides_mux", "mux", tiles, 4 * w, 1, place=wafer.tile_name, source=SOURCE),
        ElementGroup(
            "demux", "demux", tiles, 1, lasers, bill=BillLine("integrated_tile", 1, lasers, wafer.laser_rate),
            place=wafer.tile_name, source=SOURCE,
        ),
        ElementGroup(
            "photodiode", "photodiode", tiles * lasers, 1, 0, place=wafer.photodiode_name, node_of=node_of_laser, source=SOURCE,
        ),
    )  # fmt: skip
    return Netlist("lightpath", groups, lasers, lambda: _links(wafer, inner()), "transmitter")


def _links(wafer: TileGrid, inner: IntArray) -> Iterator[Bundle]:
    """Links of all tiles and edges.

    Args:
        wafer: with the edges.
        inner: edges that do not leave the grid, ascending.
    """
    tiles, lasers, w = wafer.tiles, wafer.lasers, wafer.waveguides
    member = np.arange(w)
    k = np.arange(tiles * lasers)
    start, way = inner // 4, inner % 4
    end = start + wafer.onward[way]
    guide = np.arange(len(inner) * w)
    yield Bundle("transmitter", k, "laser_switch", k)
    every = np.arange(lasers)
    outputs = ((start[:, None] * lasers + every) * 4 * w + (way * w)[:, None])[:, None] + member[:, None]
    inputs = (np.arange(len(inner))[:, None] * w + member)[:, :, None] * lasers + every
    yield Bundle("laser_switch", outputs.ravel(), "lasers_mux", inputs.ravel())
    yield Bundle("lasers_mux", guide, "select", 4 * guide + 3)
    for name, edges in wafer.edges:
        mine = (np.searchsorted(inner, edges)[:, None] * w + member).ravel()
        yield Bundle("select", mine, name, np.arange(len(mine)))
        yield Bundle(name, np.arange(len(mine)), "mzi", mine)
    for onward in range(4):
        leaves = 4 * end + onward
        there = np.searchsorted(inner, leaves)
        goes = (way != onward ^ 1) & (inner[np.minimum(there, len(inner) - 1)] == leaves)
        mine = (np.flatnonzero(goes)[:, None] * w + member).ravel()
        its = (there[goes][:, None] * w + member).ravel()
        sides = np.repeat(way[goes], w)
        yield Bundle(
            "mzi",
            4 * mine + _port(np.full(len(mine), onward), sides),
            "select",
            4 * its + _port(sides, np.full(len(its), onward)),
        )
    received = (end * 4 * w + way * w)[:, None] + member
    yield Bundle("mzi", 4 * guide + 3, "sides_mux", received.ravel())
    each = np.arange(tiles)
    yield Bundle("sides_mux", each, "demux", each)
    yield Bundle("demux", k, "photodiode", k)
