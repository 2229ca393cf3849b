r"""Elements of RAMP.

::

    laser ~> modulator ~> 1:x ~> TX gates ==fibre==> core ==fibre==> filters ~> RX gates ~> x:1 ~> photodiode

    core   broadcast         star of J L ports
           route_broadcast   J routers of L ports, L stars of J ports
           route_switch      J routers of L ports; L crossbars: splitters 1:J, gates, combiners J:1
           ecs, eps          an electrical switch of J L ports, a transceiver at each; no filters

Laser, gates and filters of the b planes of a transceiver group are ganged: "same tunable light source and the same control
instruction". So a plane without data has light and open gates too.

Filters are fixed to the device's wavelength, tunable, or left out, as the machine's `receiver` says.

Source: RAMP sections 3.1, 4.1; the former counts b x^3 subnets and 2 b J x^3 fibres. Reading: those are ribbons with a fibre
for each device of a rack, since a subnet has J L ports on each side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from opticcl.fabrics._ring_settings import ON
from opticcl.ir import IntArray
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = ["Filters", "RampShape", "Switches", "ramp_netlist", "ramp_states"]

SOURCE = "RAMP sections 3.1, 4.1"

Filters = Literal["fixed", "tunable", "none"]
Switches = Literal["ecs", "eps"]


@dataclass(frozen=True, slots=True)
class RampShape:
    """What the number of elements follows from.

    Args:
        groups: communication groups x [count].
        racks: of a group, J [count].
        devices: of a rack, L [count].
        planes: transceivers of a transceiver group, b [count].
        subnet: kind of subnet.
        filters: before the photodiodes.
        switches: electrical ones in place of star couplers; None: none.
        stages: star couplers that light passes in a subnet [count].
        line_rate: of a transceiver [bit/s].
    """

    groups: int
    racks: int
    devices: int
    planes: int
    subnet: str
    filters: Filters
    switches: Switches | None
    stages: float
    line_rate: float

    @property
    def members(self) -> int:
        """Nodes of a communication group [count]."""
        return self.racks * self.devices

    @property
    def nodes(self) -> int:
        """All nodes [count]."""
        return self.groups * self.members

    @property
    def ports(self) -> int:
        """Transceivers of a node [count]."""
        return self.groups * self.planes

    @property
    def subnets(self) -> int:
        """Subnets: one for each pair of groups and transceiver [count]."""
        return self.groups * self.groups * self.ports

    def crossbar_input(self, input_port: IntArray) -> IntArray:
        """Crossbar inputs from their number in `Ramp.resources`, (group, rack, other group, port, devices), to (..., rack)."""
        subnet_of_rack, device = np.divmod(input_port, self.devices)
        origin, rest = np.divmod(subnet_of_rack, self.groups * self.ports)
        group, rack = np.divmod(origin, self.racks)
        row = (group * (self.groups * self.ports) + rest) * self.devices + device
        inputs: IntArray = row * self.racks + rack
        return inputs


def ramp_netlist(shape: RampShape) -> Netlist:
    """Elements of all nodes and subnets."""
    x, b, num_ports = shape.groups, shape.planes, shape.nodes * shape.ports
    fans, ganged = num_ports * x, shape.nodes * x

    def port(element: int) -> str:
        return f"node {element // shape.ports} port {element % shape.ports}"

    def fan(element: int) -> str:
        return f"{port(element // x)} group {element % x}"

    def gang(element: IntArray) -> IntArray:
        return element // b

    def gang_of_fan(element: IntArray) -> IntArray:
        return element // (x * b) * x + element % x

    def gang_of_receiver(element: IntArray) -> IntArray:
        return element // (x * b)

    def each(devices: int) -> Callable[[IntArray], IntArray]:
        return lambda device: device // devices

    ribbon = BillLine("fibre_ribbon", shape.devices, shape.devices)
    tunable = shape.filters == "tunable"
    wavelength = {} if tunable else {"fixed": lambda element: element // (x * shape.ports) % shape.devices}
    filters = [
        ElementGroup(
            "filter", "filter", fans, control=gang_of_receiver, devices=ganged, parameters=wavelength, loss={"filter": 1},
            bill=BillLine("tunable_filter") if tunable else None, place=fan, source=SOURCE, node_of=each(x),
        )
    ] if shape.filters != "none" and not shape.switches else []  # fmt: skip
    groups = (
        ElementGroup(
            "laser", "laser", num_ports, 0, 1, control=gang, devices=ganged,
            bill=BillLine("tunable_transceiver", rate_bits_per_s=shape.line_rate), place=port, source=SOURCE, node_of=each(x),
        ),
        ElementGroup(
            "modulator", "modulator", num_ports, loss={"modulator": 1}, place=port, source=SOURCE, node_of=each(shape.ports)
        ),
        ElementGroup("splitter", "splitter", num_ports, 1, x, loss={"splitter": 1}, place=port, source=SOURCE),
        ElementGroup(
            "tx_gate", "gate", fans, control=gang_of_fan, devices=ganged * x, loss={"soa_gate": 1}, place=fan, source=SOURCE,
            node_of=each(x * x),
        ),
        ElementGroup("fibre_up", "fibre", fans, loss={"fibre": 1}, bill=ribbon, place=fan, source=SOURCE),
        *_core(shape),
        ElementGroup("fibre_down", "fibre", fans, loss={"fibre": 1}, bill=ribbon, place=fan, source=SOURCE),
        *filters,
        ElementGroup(
            "rx_gate", "gate", fans, control=gang_of_fan, devices=ganged * x, loss={"soa_gate": 1}, place=fan, source=SOURCE,
            node_of=each(x * x),
        ),
        ElementGroup("combiner", "combiner", num_ports, x, 1, loss={"combiner": 1}, place=port, source=SOURCE),
        ElementGroup("photodiode", "photodiode", num_ports, 1, 0, place=port, source=SOURCE, node_of=each(shape.ports)),
    )  # fmt: skip

    def bundles() -> Iterator[Bundle]:
        port_number, fan_out = np.arange(num_ports), np.arange(fans)
        yield Bundle("laser", port_number, "modulator", port_number)
        yield Bundle("modulator", port_number, "splitter", port_number)
        yield Bundle("splitter", fan_out, "tx_gate", fan_out)
        yield Bundle("tx_gate", fan_out, "fibre_up", fan_out)
        yield from _core_links(shape, fan_out)
        received = ["fibre_down", *(group.name for group in filters), "rx_gate"]
        for before, behind in pairwise(received):
            yield Bundle(before, fan_out, behind, fan_out)
        yield Bundle("rx_gate", fan_out, "combiner", fan_out)
        yield Bundle("combiner", port_number, "photodiode", port_number)

    ends = f"ramp: switches={shape.switches}: light ends at electrical switches and is not followed; leave switches out"
    return Netlist("ramp", groups, shape.devices, bundles, "modulator", ends if shape.switches else "")


def _core(shape: RampShape) -> Iterator[ElementGroup]:
    """Elements of the subnets."""
    x, racks, devices = shape.groups, shape.racks, shape.devices

    def between(number: int, rack: str = "", outputs: str = "") -> str:
        pair, port = divmod(number, shape.ports)
        return f"group {pair // x}{rack} -> group {pair % x} (port {port}{outputs})"

    def star(number: int) -> str:
        return f"star coupler {between(number)}"

    if shape.switches:
        ports, rate = shape.subnets * shape.members, shape.line_rate
        kind = {"ecs": "electrical_circuit_switch", "eps": "electrical_switch"}[shape.switches]
        yield ElementGroup(
            "switch", "control", shape.subnets, 0, 0, bill=BillLine(kind, 1, shape.members, rate),
            place=lambda number: f"switch {between(number)}", source=SOURCE,
        )  # fmt: skip
        yield ElementGroup("switch_port", "control", ports, 0, 0, bill=BillLine("transceiver", rate_bits_per_s=rate))
        return
    if shape.subnet == "broadcast":
        yield ElementGroup(
            "star", "splitter", shape.subnets, shape.members, shape.members, loss={"star": shape.stages},
            bill=BillLine("star_coupler", 1, shape.members), place=star, source=SOURCE,
        )  # fmt: skip
        return

    def router(element: int) -> str:
        return f"router {between(element // racks, f' rack {element % racks}')}"

    def behind(element: int, rack: str = "") -> str:
        return between(element // devices, rack, f", outputs to devices {element % devices}")

    def star_behind(element: int) -> str:
        return f"star coupler {behind(element)}"

    yield ElementGroup(
        "awgr", "awgr", shape.subnets * racks, devices, devices, loss={"awgr": 1}, bill=BillLine("awgr", 1, devices),
        place=router, source=SOURCE,
    )  # fmt: skip
    stars = shape.subnets * devices
    if shape.subnet == "route_broadcast":
        yield ElementGroup(
            "star", "splitter", stars, racks, racks, loss={"star": shape.stages},
            bill=BillLine("star_coupler", 1, racks), place=star_behind, source=SOURCE,
        )  # fmt: skip
        return

    def side(element: int) -> str:
        return f"crossbar {behind(element // racks, f' rack {element % racks}')}"

    def output(element: int) -> str:
        return f"crossbar {behind(element // racks)} to rack {element % racks}"

    def crosspoint(element: int) -> str:
        return f"{side(element // racks)} to rack {element % racks}"

    yield ElementGroup("core_splitter", "splitter", stars * racks, 1, racks, loss={"core_splitter": 1}, place=side)
    yield ElementGroup("crossbar", "gate", stars * racks**2, loss={"soa_gate": 1}, place=crosspoint, source=SOURCE)
    yield ElementGroup(
        "core_combiner", "combiner", stars * racks, racks, 1, loss={"core_combiner": 1},
        bill=BillLine("soa_crossbar", racks, racks), place=output, source=SOURCE,
    )  # fmt: skip


def _core_links(shape: RampShape, fan: IntArray) -> Iterator[Bundle]:
    """Links of the subnets, from and to the fibres of all nodes.

    Args:
        shape: of the machine.
        fan: (node, port, other group) as one number, all of them.
    """
    x, racks, devices = shape.groups, shape.racks, shape.devices
    port_of_node, other = np.divmod(fan, x)
    node, port = np.divmod(port_of_node, shape.ports)
    group, member = np.divmod(node, shape.members)
    rack, device = np.divmod(member, devices)
    sent, received = (group * x + other) * shape.ports + port, (other * x + group) * shape.ports + port
    if shape.subnet == "broadcast":
        yield Bundle("fibre_up", fan, "star", sent * shape.members + member)
        yield Bundle("star", received * shape.members + member, "fibre_down", fan)
        return
    yield Bundle("fibre_up", fan, "awgr", (sent * racks + rack) * devices + device)
    router = (received * racks + rack) * devices + device
    behind = (received * devices + device) * racks + rack  # (subnet, devices, rack)
    if shape.subnet == "route_broadcast":
        yield Bundle("awgr", router, "star", behind)
        yield Bundle("star", behind, "fibre_down", fan)
        return
    yield Bundle("awgr", router, "core_splitter", behind)
    points = np.arange(len(fan) * racks)
    row, into, out = points // racks**2, points // racks % racks, points % racks
    yield Bundle("core_splitter", points, "crossbar", points)
    yield Bundle("crossbar", points, "core_combiner", (row * racks + out) * racks + into)
    yield Bundle("core_combiner", behind, "fibre_down", fan)


def ramp_states(shape: RampShape, uses: Iterable[SettingUse]) -> Iterator[SettingUse]:
    """States of lasers, gates and tunable filters, whose settings are wavelengths.

    Args:
        shape: of the machine.
        uses: settings, as `Ramp.settings` yields them.
    """
    x, b, racks = shape.groups, shape.planes, shape.racks
    for use in uses:
        on = np.full(len(use.index), ON)
        if use.kind == "tx_gate":
            yield SettingUse("tx_gate", use.index // (x * b) * x + use.index % x, on, use.circuit)
        elif use.kind == "rx_gate":
            yield SettingUse("rx_gate", use.index // b * x + use.setting, on, use.circuit)
        elif use.kind == "crossbar":
            yield SettingUse("crossbar", shape.crossbar_input(use.index) * racks + use.setting, on, use.circuit)
        else:
            yield replace(use, index=use.index // b)
