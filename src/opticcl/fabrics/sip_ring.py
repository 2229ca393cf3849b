r"""SiP-Ring: micro-rings on a ring of fibre, and one tunable transmitter and receiver a node and direction.

::

    node i                                                     node i + 1
    transmitter ~~ one wavelength ~> ))                       (( ~~> receiver takes one wavelength off
                                     --- fibre segment i, w wavelengths --->
                                              (a second fibre runs the other way if directions = 2)

A circuit is the segments from its sender on, in the direction of its port, up to its receiver; its light passes the
nodes between untouched, and its wavelength is free again behind the receiver. Port 0 is clockwise: segment i joins node
i to node i + 1. Port 1 is counter-clockwise: segment N + i joins node i + 1 to node i (modulo N).

The fibres are those of `terarack`. The node differs: TeraRack uses all wavelengths of a port in a round, a NIC of SiP-Ring one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._packet import at_least, not_too_large, positive_rates
from opticcl.fabrics._ring_light import ring_light
from opticcl.fabrics._ring_settings import ring_settings
from opticcl.fabrics.terarack import ring_cuts, ring_faults, ring_fibre_name
from opticcl.ir import Circuits, ControlPlane, Fabric, FabricNumbers, Fault, IntArray, Part, Resource, Usage
from opticcl.ir.capacity import Cut
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import LightPath, Limit, Optics, count_in_words
from opticcl.optics.limits import reach
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds

__all__ = ["SipRing"]

SHEET = datasheet("sip_ring")


@register_fabric("sip_ring")
@dataclass(frozen=True, kw_only=True, repr=False)
class SipRing(Fabric):
    """Ring of wavelength-routed silicon-photonic nodes.

    Args:
        nodes: nodes N on the ring, >= 1 [count].
        wavelengths: wavelengths w of a fibre [count].
        nic_rate: of a transmitter, on the one wavelength that it is tuned to [bit/s].
        directions: 1, or 2 for a second fibre the other way with transmitters and receivers of its own.
        reconfiguration: to tune to another wavelength and another partner [s].
    Raises: FabricError: no such ring.
    Source: ODDL sections 2, 5.A, figure 9b, table 2.
    Reading: ODDL says only that the ring needs N/2 - 1 wavelengths for halving-doubling (they are N/2, or N/4 with two
        directions) and runs a ring all-reduce on it; the number of wavelengths and the node are as above.
    """

    nodes: int = SHEET["nodes"]
    wavelengths: int = SHEET["wavelengths"]
    nic_rate: Rate = SHEET["nic_rate"]
    directions: int = SHEET["directions"]
    reconfiguration: Seconds = SHEET["reconfiguration"]

    rate_parameter = "nic_rate"
    source = "ODDL sections 2, 5.A, figure 9b, table 2"
    about = (
        "Micro-rings on a fibre that runs round one way: a node tunes its transmitter to a wavelength that is free on "
        "the whole path to its partner, and light for other nodes passes by untouched."
    )

    def __post_init__(self) -> None:
        at_least("sip_ring", 1, nodes=self.nodes, wavelengths=self.wavelengths, directions=self.directions)
        at_least("sip_ring", 0, reconfiguration=self.reconfiguration)
        positive_rates("sip_ring", nic_rate=self.nic_rate)
        not_too_large("sip_ring", self.nodes)
        if self.directions > 2:
            raise FabricError(f"sip_ring: directions={self.directions}; light runs round a ring in 1 or 2")

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Eight nodes with four wavelengths."""
        return cls(nodes=8, wavelengths=4), "halving_doubling"

    @cached_property
    def numbers(self) -> FabricNumbers:
        """A port a direction, with one wavelength at a time."""
        return FabricNumbers(
            num_nodes=self.nodes,
            num_wavelengths=self.wavelengths,
            ports_per_node=self.directions,
            rate_bits_per_s=self.nic_rate,
            reconfiguration_s=self.reconfiguration,
            double_ring_bits_per_s=self.wavelengths * self.nic_rate if self.directions == 2 else 0.0,
        )

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Fibre segments; transmitters and receivers, each tuned to one wavelength at a time."""
        count = self.nodes * self.directions
        return (
            Resource("fibre", count),
            Resource("tx_port", count, per_wavelength=False),
            Resource("rx_port", count, per_wavelength=False),
        )

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Every segment between, and the transmitter and the receiver of the port."""
        fibre, tx, rx = self.resources
        yield Usage(fibre, circuits.hops, circuits.hop_owner())
        yield Usage(tx, circuits.src * np.int64(self.directions) + circuits.port)
        yield Usage(rx, circuits.dst * np.int64(self.directions) + circuits.port)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The laser of every port, and its drop ring of every wavelength."""
        ports = self.nodes * self.directions
        return (
            Device("laser", ports, self.reconfiguration),
            Device("ring", ports * self.wavelengths, self.reconfiguration),
        )

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """The sender's laser at its wavelength, the rings of the nodes between, the receiver's ring."""
        laser = circuits.src * np.int64(self.directions) + circuits.port
        yield SettingUse("laser", laser, circuits.wavelength_lo.astype(np.int64))
        way, segment = np.divmod(circuits.hops.astype(np.int64), self.nodes)
        reached = (segment + 1 - way) % self.nodes
        uses = ring_settings(circuits, reached, self.directions, self.wavelengths)
        yield from (use for use in uses if use.kind == "ring")

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Segments that do not lead to the receiver, and more wavelengths than a transmitter has."""
        yield from ring_faults(circuits, self.nodes)
        yield Fault("wavelength_unheard", np.flatnonzero(circuits.wavelength_n > 1), "one wavelength a transmitter")

    def distance(self, src: IntArray, dst: IntArray) -> IntArray:
        """Segments, the shorter way round where light runs both ways."""
        ahead = (np.asarray(dst, np.int64) - src) % self.nodes
        return ahead if self.directions == 1 else np.minimum(ahead, self.nodes - ahead)

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Fibre of each segment: clockwise, then counter-clockwise."""
        node = np.arange(self.nodes)
        return Passage(fibre_m=np.tile(floor.segments_m(self.nodes, node, (node + 1) % self.nodes), 2))

    def cuts(self, nodes: IntArray) -> Iterator[Cut]:
        """Through the fibres at the ends of an arc."""
        rate = self.wavelengths * self.rate_bits_per_s
        yield from ring_cuts(nodes, out=rate, back=rate if self.directions == 2 else 0.0)

    def control_plane(self) -> ControlPlane:
        """None."""
        return control_plane("sip_ring", "nothing", "nothing: retuning is a reconfiguration")

    @cached_property
    def light_path(self) -> LightPath:
        """Modulator and the interfaces of the nodes passed."""
        return ring_light(optics_of("sip_ring"), (self.nodes,), self.distance, directions=self.directions)

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Interfaces that light may pass, and the largest ring of which every node can reach every other."""
        everything = np.ones(len(self.light_path.elements), bool)
        hops = reach(chain_of(self.light_path, values, everything), self.light_path, {"interface": 1})
        nodes = 1 + self.directions * (hops or 0)
        return (
            Limit("reach_interfaces", hops, f"by power light passes {count_in_words(hops, 'interface')}"),
            Limit(
                "largest_ring_nodes",
                nodes,
                f"largest ring whose light reaches every node: {count_in_words(nodes, 'node')}",
            ),
        )

    def parts(self) -> tuple[Part, ...]:
        """A tunable transceiver and a fibre segment a port."""
        count = self.nodes * self.directions
        return Part("tunable_transceiver", count, rate_bits_per_s=self.nic_rate), Part("fibre", count)

    def place_name(self, resource: Resource, index: int) -> str:
        """A fibre segment by its ends."""
        return ring_fibre_name(self.nodes, 1, index)
