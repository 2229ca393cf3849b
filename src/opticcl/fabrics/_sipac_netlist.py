r"""Elements of a SiPAC.

::

    comb ~> w modulators ==fibre==> input bus i   --(i, 0)--(i, 1)--(i, 2)-->     a cross of buses with a ring each
                                                     |       |       |
                                    output buses     v       v       v   ==fibre==> demux ~> w photodiodes

The ring (i, j) is resonant with the wavelengths of one group and swaps them between input bus i and output bus j, in both
directions. An output bus joins the inputs in the order of their numbers. With retuned channels there is no ring for i = j; with
channels=ring that ring leads to output i + 1 (modulo r), before the other of its input.

Source: SiPAC section III-B, figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = ["sipac_netlist"]

SOURCE = "SiPAC sections III-A, III-B, figure 4"


def sipac_netlist(
    radices: tuple[int, ...],
    strides: IntArray,
    wavelengths: int,
    channels: str,
    received: IntArray,
    port_rate: float,
) -> Netlist:
    """Elements of all nodes and switches.

    Args:
        radices: ports of the switches of each level.
        strides: by how much a node's number grows with each digit, int64 (levels,).
        wavelengths: lines of a link [count].
        channels: published, retuned or ring.
        received: rings of a receiver that are off resonance for one line, by level [count].
        port_rate: of all lines of a port [bit/s].
    """
    nodes, levels, w = int(np.prod(radices)), len(radices), wavelengths
    ports = nodes * levels

    def port(element: int) -> str:
        return f"node {element // levels} port {element % levels}"

    def diode(element: int) -> str:
        return f"{port(element // w)} wavelength {element % w}"

    groups = [
        ElementGroup(
            "comb", "comb", ports, 0, 1, bill=BillLine("comb_transceiver", 1, w, port_rate), place=port, source=SOURCE
        ),
        ElementGroup(
            "modulator", "modulator", ports, per_wavelength=True, loss={"modulator": 1, "bus_ring": w - 1, "coupler": 1},
            place=port, node_of=lambda device: device // levels, source=SOURCE,
        ),
        ElementGroup(
            "fibre_up", "fibre", ports, loss={"fibre": 1, "coupler": 1}, bill=BillLine("fibre"), place=port,
            hops=lambda element: element % levels, source=SOURCE,
        ),
        *(_rings(level, nodes // r, r, channels) for level, r in enumerate(radices)),
        ElementGroup(
            "fibre_down", "fibre", ports, loss={"coupler": 1, "fibre": 1}, bill=BillLine("fibre"), place=port, source=SOURCE
        ),
        *(
            ElementGroup(
                f"demux{level}", "demux", nodes, 1, w, loss={"coupler": 1, "bus_ring": float(received[level]), "ring_drop": 1},
                place=lambda node, level=level: f"node {node} port {level}", source=SOURCE,  # type: ignore[misc]
            )
            for level in range(levels)
        ),
        ElementGroup(
            "photodiode", "photodiode", ports * w, 1, 0, place=diode, node_of=lambda device: device // (levels * w),
            source=SOURCE,
        ),
    ]  # fmt: skip

    def bundles() -> Iterator[Bundle]:
        each = np.arange(ports)
        yield Bundle("comb", each, "modulator", each)
        yield Bundle("modulator", each, "fibre_up", each)
        node = np.arange(nodes)
        for level, (r, stride) in enumerate(zip(radices, np.asarray(strides).tolist(), strict=True)):
            yield from _switches(level, node, r, stride, levels, channels)
            yield Bundle("fibre_down", node * levels + level, f"demux{level}", node)
            line = np.arange(w)
            outputs = (node[:, None] * w + line).ravel()
            yield Bundle(f"demux{level}", outputs, "photodiode", ((node * levels + level)[:, None] * w + line).ravel())

    return Netlist("sipac", tuple(groups), w, bundles, "modulator")


def _rings(level: int, switches: int, r: int, channels: str) -> ElementGroup:
    """Crosses of the switches of a level: element (switch r + i) k + nth, k rings on an input bus.

    Args:
        level: of the switches.
        switches: of that level [count].
        r: ports of a switch [count].
        channels: published, retuned or ring.
    """
    published = channels != "retuned"  # in the places of rings, and their groups
    k = r if published else r - 1
    period = max(k, 1)

    def residue(element: IntArray) -> IntArray:
        bus, nth = np.divmod(element, period)
        i = bus % r
        return (nth - i) % r if published else (nth + (nth >= i) - i - 1) % r

    def place(element: int) -> str:
        bus, nth = divmod(element, period)
        i = bus % r
        return f"level {level} switch {bus // r} ring ({i}, {nth if published else nth + (nth >= i)})"

    return ElementGroup(
        f"ring{level}", "cross", switches * r * k, 2, 2,
        parameters={"residue": residue, "period": lambda element: np.full_like(element, period)},
        loss={"ring_pass": 1}, moved={"ring_drop": 1},
        bill=BillLine("mrr_switch", r * k, r) if k else None, place=place, source=SOURCE,
    )  # fmt: skip


def _switches(level: int, node: IntArray, r: int, stride: int, levels: int, channels: str) -> Iterator[Bundle]:
    """Links of the switches of a level.

    Args:
        level: of the switches.
        node: all nodes, int64 (nodes,).
        r: ports of a switch [count].
        stride: by how much a node's number grows with its digit.
        levels: of the machine [count].
        channels: published, retuned or ring.
    """
    name, k = f"ring{level}", r - 1 if channels == "retuned" else r
    if not k:
        return
    switch, i = node // (stride * r) * stride + node % stride, node // stride % r
    first = (switch * r + i) * k
    yield Bundle("fibre_up", node * levels + level, name, 2 * first)
    cross = np.arange(len(node) * k)
    bus, nth = np.divmod(cross, k)
    onward = cross[nth < k - 1]
    yield Bundle(name, 2 * onward, name, 2 * (onward + 1))
    of_switch, i = np.divmod(bus, r)
    if channels == "ring" and r > 1:
        j, onto = _behind_with_loops(i, nth, r)
    else:
        j = nth if channels != "retuned" else nth + (nth >= i)
        behind = i + 1 if channels != "retuned" else i + 1 + (i + 1 == j)
        onto = np.where(behind < r, behind * k + (j if channels != "retuned" else j - (j > behind)), -1)
    inside = onto >= 0
    yield Bundle(name, 2 * cross[inside] + 1, name, 2 * (of_switch[inside] * r * k + onto[inside]) + 1)
    last = ~inside
    receiver = of_switch[last] // stride * (stride * r) + of_switch[last] % stride + j[last] * stride
    yield Bundle(name, 2 * cross[last] + 1, "fibre_down", receiver * levels + level)


def _behind_with_loops(i: IntArray, nth: IntArray, r: int) -> tuple[IntArray, IntArray]:
    """Output of every ring, and the ring behind it on that bus, i r + nth within the switch, -1 where it is the last one.

    Output j joins the ring of every other input that is in place j; before that of input j - 1, that input's own place.

    Args:
        i: input of each ring, int64 (n,).
        nth: its place on the input bus, int64 (n,).
        r: ports of the switch, 2 or more [count].
    """
    looped = nth == i
    j = np.where(looped, (i + 1) % r, nth)
    behind = i + 1 + (i + 1 == j)  # input j has no ring there
    place = np.where((behind + 1) % r == j, behind, j)
    ring = np.where(behind < r, behind * r + place, -1)
    return j, np.where(looped, i * r + j, ring)
