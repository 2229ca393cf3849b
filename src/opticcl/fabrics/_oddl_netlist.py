r"""Elements of ODDL.

::

    transmitter ==fibre==> input i  [ switch of n ports ]  output j [~ amplifier] ==fibre==> demux ~> photodiodes

A switch sends each wavelength of an input to one output, and an output selects one input for each wavelength: both are set
once a job. Above 32 ports it is a Clos of three stages of such modules; a wavelength takes the first middle module that is
free at both ends, for the whole job. Modules of a Clos of five stages are counted, and light is not followed through them.
Laser and clock recovery of a NIC hold one partner at a time: control without light.

Source: ODDL sections 3.B, 3.C, figure 6: a switch of more ports than modules have is a Clos of them; one of 8 ports needs no
amplifier, one of 32 does. Reading: a module of unequal sides is bought as one of its larger side; links between modules are
inside the switch; an amplifier follows every output of a switch of more than 8 ports; the 200 m of fibre from end to end count
once, at the sender.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist
from opticcl.optics.clos import clos_modules

__all__ = ["Switches", "oddl_netlist", "oddl_states", "pieces_passed", "switches_of"]

_FIBRE = MappingProxyType({"fibre": 1.0})
SOURCE = "ODDL sections 3.B, 3.C, figure 6"


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches of one dimension.

    Args:
        dimension: number of it.
        side: ports of a switch [count].
        stride: by how much a node's number grows with its coordinate.
        module: ports of a module [count].
        stages: modules that light passes: 1, 3, 5, ...
        amplified: whether an amplifier follows every output.
    """

    dimension: int
    side: int
    stride: int
    module: int
    stages: int
    amplified: bool

    @property
    def unlinked(self) -> str:
        """Why the modules are not linked, "" if they are."""
        if self.stages <= 3:
            return ""
        return (
            f"oddl: a switch of {self.side} ports has {self.stages} stages; light is followed through up to 3, "
            f"try sides of at most {self.module**2}"
        )

    @property
    def edges(self) -> int:
        """Ingress modules of a switch, and egress modules [count]."""
        return -(-self.side // self.module)

    @property
    def middles(self) -> int:
        """Middle modules of a switch [count]."""
        return 2 * self.module

    def line(self, node: IntArray) -> IntArray:
        """Switch of each node."""
        return node // (self.side * self.stride) * self.stride + node % self.stride

    def port(self, node: IntArray) -> IntArray:
        """Port of each node at its switch."""
        return node // self.stride % self.side


def oddl_netlist(switches: tuple[Switches, ...], nodes: int, wavelengths: int, nic_rate: float) -> Netlist:
    """Elements of all NICs and switches.

    Args:
        switches: of each dimension.
        nodes: of the machine [count].
        wavelengths: that a NIC can tune to [count].
        nic_rate: of one wavelength [bit/s].
    """
    sides, w = len(switches), wavelengths
    nics = nodes * sides

    def nic(element: int) -> str:
        return f"node {element // sides} NIC {element % sides}"

    def diode(element: int) -> str:
        return f"{nic(element // w)} wavelength {element % w}"

    def node_of(device: IntArray) -> IntArray:
        return device // sides

    groups = [
        ElementGroup(
            "transmitter", "emitter", nics, 0, 1, per_wavelength=True,
            bill=BillLine("tunable_transceiver", rate_bits_per_s=w * nic_rate), place=nic, node_of=node_of, source=SOURCE,
        ),
        ElementGroup(
            "laser", "control", nics, 0, 0, parameters={"tunes": np.array}, place=nic, node_of=node_of,
            source="ODDL section 3.A",
        ),
        ElementGroup(
            "receiver", "control", nics, 0, 0, parameters={"receives": lambda diode: diode // w}, place=nic, node_of=node_of,
            source="ODDL section 3.A",
        ),
        ElementGroup(
            "fibre_up", "fibre", nics, loss=_FIBRE, bill=BillLine("fibre"), place=nic,
            hops=lambda element: element % sides, source=SOURCE,
        ),
        *(group for one in switches for group in _modules(one, nodes)),
        ElementGroup("fibre_down", "fibre", nics, bill=BillLine("fibre"), place=nic, source=SOURCE),
        ElementGroup("demux", "demux", nics, 1, w, place=nic, source=SOURCE),
        ElementGroup(
            "photodiode", "photodiode", nics * w, 1, 0, place=diode, node_of=lambda device: device // (sides * w),
            source=SOURCE,
        ),
    ]  # fmt: skip

    def bundles() -> Iterator[Bundle]:
        each = np.arange(nics)
        yield Bundle("transmitter", each, "fibre_up", each)
        for one in switches:
            yield from _links(one, np.arange(nodes), sides)
        yield Bundle("fibre_down", each, "demux", each)
        diodes = np.arange(nics * w)
        yield Bundle("demux", diodes, "photodiode", diodes)

    unlinked = next((one.unlinked for one in switches if one.unlinked), "")
    return Netlist("oddl", tuple(groups), w, bundles, "transmitter", unlinked)


def _modules(one: Switches, nodes: int) -> Iterator[ElementGroup]:
    """Modules and amplifiers of the switches of a dimension."""
    d, lines, n = one.dimension, nodes // one.side, one.module
    loss = {f"wss{n}": 1.0}

    def module(name: str, count: int, n_in: int, n_out: int) -> ElementGroup:
        each = count // lines

        def place(element: int) -> str:
            within = f" module {element % each}" if each > 1 else ""
            return f"dimension {d} switch {element // each}{within}"

        return ElementGroup(
            f"{name}{d}", "wss", count, n_in, n_out, parameters={"selects": np.ones_like}, per_wavelength=True,
            once_per_job=True, device="wss", loss=loss, bill=BillLine("wss", 1, max(n_in, n_out)), place=place, source=SOURCE,
        )  # fmt: skip

    stages = clos_modules(one.side, n)
    names = {1: ("wss",), 3: ("ingress", "middle", "egress")}.get(one.stages)
    for name, (count, n_in, n_out) in zip(names or [f"stage{k}_" for k in range(len(stages))], stages, strict=True):
        yield module(name, lines * count, n_in, n_out)
    if one.amplified:
        name = f"edfa{d}"
        yield ElementGroup(name, "edfa", nodes, loss={"edfa": 1}, bill=BillLine("edfa"), place=_behind, source=SOURCE)


def pieces_passed(switches: tuple[Switches, ...], nodes: int) -> tuple[Counter[str], ...]:
    """Elements of a light path that light passes in each dimension: a fibre, a module of every stage, an amplifier.

    Args:
        switches: of each dimension.
        nodes: of the machine [count].
    """
    passed = tuple(Counter[str](_FIBRE) for _ in switches)
    for pieces, one in zip(passed, switches, strict=True):
        for group in _modules(one, nodes):
            pieces.update(group.loss)
    return passed


def _behind(node: int) -> str:
    return f"output for node {node}"


def _links(one: Switches, node: IntArray, sides: int) -> Iterator[Bundle]:
    """Links of the switches of a dimension.

    Args:
        one: the switches.
        node: all nodes, int64 (nodes,).
        sides: dimensions of the machine [count].
    """
    d, n, e, m = one.dimension, one.module, one.edges, one.middles
    nic, line, port = node * sides + d, one.line(node), one.port(node)
    if one.stages == 1:
        first, last, place = f"wss{d}", f"wss{d}", line * one.side + port
    else:
        first, last, place = f"ingress{d}", f"egress{d}", (line * e + port // n) * n + port % n
        lines = np.arange(len(node) // one.side)[:, None, None]
        edge, middle = np.arange(e)[:, None], np.arange(m)
        at_edge, at_middle = (lines * e + edge) * m + middle, (lines * m + middle) * e + edge
        yield Bundle(f"ingress{d}", at_edge.ravel(), f"middle{d}", at_middle.ravel())
        yield Bundle(f"middle{d}", at_middle.ravel(), f"egress{d}", at_edge.ravel())
    yield Bundle("fibre_up", nic, first, place)
    if one.amplified:
        yield Bundle(last, place, f"edfa{d}", node)
        yield Bundle(f"edfa{d}", node, "fibre_down", nic)
    else:
        yield Bundle(last, place, "fibre_down", nic)


def oddl_states(switches: tuple[Switches, ...], uses: Iterable[SettingUse], wavelengths: int) -> Iterator[SettingUse]:
    """States of controls and modules.

    Args:
        switches: of each dimension.
        uses: settings of lasers, receivers and switches, as `Oddl.settings` yields them.
        wavelengths: that a NIC can tune to [count].
    """
    for use in uses:
        if use.kind != "wss":
            yield use
            continue
        assert use.circuit is not None
        nic, wavelength = np.divmod(use.index, wavelengths)
        node, dimension = np.divmod(nic, len(switches))
        for one in switches:
            rows = np.flatnonzero(dimension == one.dimension)
            yield from _paths(one, node[rows], use.setting[rows], wavelength[rows], wavelengths, use.circuit[rows])


def _paths(
    one: Switches, src: IntArray, dst: IntArray, wavelength: IntArray, wavelengths: int, circuit: IntArray
) -> Iterator[SettingUse]:
    """States of the modules of one dimension.

    Args:
        one: the switches.
        src, dst: nodes, int64 (n,) each.
        wavelength: of each path, int64 (n,).
        wavelengths: that a NIC can tune to [count].
        circuit: that each path belongs to, int64 (n,).
    Raises: UnsupportedError: more than three stages.
    """
    if one.unlinked:
        raise UnsupportedError(one.unlinked)
    d, n, e, m = one.dimension, one.module, one.edges, one.middles
    line, i, o = one.line(src), one.port(src), one.port(dst)

    def joined(name: str, number: IntArray, into: IntArray, out: IntArray, n_in: int) -> Iterator[SettingUse]:
        yield SettingUse(f"{name}{d}", number, out, circuit, within=into * wavelengths + wavelength)
        yield SettingUse(f"{name}{d}", number, into, circuit, within=(n_in + out) * wavelengths + wavelength)

    if one.stages == 1:
        yield from joined("wss", line, i, o, one.side)
        return
    middle = _middles(one, line * wavelengths + wavelength, i, o)
    yield from joined("ingress", line * e + i // n, i % n, middle, n)
    yield from joined("middle", line * m + middle, i // n, o // n, e)
    yield from joined("egress", line * e + o // n, middle, o % n, m)


def _middles(one: Switches, plane: IntArray, i: IntArray, o: IntArray) -> IntArray:
    """Middle module of each path: the first that is free at both ends, for each (switch, wavelength) apart.

    Args:
        one: the switches.
        plane: switch and wavelength of each path, int64 (n,).
        i, o: input and output, int64 (n,) each.
    """
    from opticcl.routing.assign import first_fit

    paths, which = np.unique(np.stack([plane, i, o]), axis=1, return_inverse=True)
    planes, at = np.unique(paths[0], return_inverse=True)
    ends = np.stack([2 * at * one.edges + paths[1] // one.module, (2 * at + 1) * one.edges + paths[2] // one.module])
    offsets = np.arange(0, ends.size + 1, 2)
    middle, _ = first_fit(ends.T.ravel(), offsets, 2 * len(planes) * one.edges, one.middles)
    return middle[np.ravel(which)].astype(np.int64)


def switches_of(shape: tuple[int, ...], modules: Iterable[tuple[int, int]], passive: int) -> tuple[Switches, ...]:
    """The switches of each dimension.

    Args:
        shape: sides of the grid.
        modules: ports of a module and modules passed, by dimension.
        passive: ports of the largest switch without amplifiers [count].
    """
    return tuple(
        Switches(d, side, prod(shape[d + 1 :]), module, stages, side > passive)
        for d, (side, (module, stages)) in enumerate(zip(shape, modules, strict=True))
    )
