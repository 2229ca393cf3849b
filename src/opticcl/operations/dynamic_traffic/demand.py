"""How much every node sends to every other, and the largest load that ports and channels can carry.

Node s sends w_d / (sum of the other weights) of its flows to d: to all other nodes, or a share of them to other racks and the
rest within the rack. So D(s, d) = a_s w_d between racks and c_s w_d within one, and every sum over ports and channels is a sum
over nodes; no matrix is made. Load 1 fills the busiest port.

A channel is what two cells on the same plane and slot meet in between the gates. Its number is a part of the sender plus a
part of the receiver::

    broadcast         (g_src, g_dst, l_dst)           one sender of a group on each wavelength of a star coupler
    route_broadcast   (g_src, g_dst, l_dst, l_src)    routers keep the devices of the sender apart
    route_switch      (g_src, j_src, g_dst, l_dst)    crossbars keep its racks apart

Source: RAMP section 3.1 as read in `fabrics/ramp.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import IntArray
from opticcl.operations.dynamic_traffic.flows import FlowMix

__all__ = ["Channels", "NodeDemand", "Worst", "node_weights"]

FloatArray = npt.NDArray[np.float64]

GOLDEN = 0.6180339887498949
"""A step around a circle by this share spreads any number of points evenly."""


@dataclass(frozen=True)
class Channels:
    """Numbers of the channels of a machine.

    Args: machine: RAMP with any kind of subnet.
    """

    machine: Ramp

    @cached_property
    def count(self) -> int:
        """Channels [count]."""
        m = self.machine
        inner = {"broadcast": 1, "route_broadcast": m.wavelengths, "route_switch": m.racks}[m.subnet]
        return m.groups * m.groups * m.wavelengths * inner

    @cached_property
    def send_part(self) -> IntArray:
        """Part of the sender in the number, int64 (nodes,)."""
        m, node = self.machine, np.arange(self.machine.num_nodes)
        group, device = node // m.nodes_per_group, node % m.wavelengths
        if m.subnet == "route_switch":
            return node // m.wavelengths * (m.groups * m.wavelengths)
        if m.subnet == "route_broadcast":
            return group * (m.groups * m.wavelengths**2) + device
        return group * (m.groups * m.wavelengths)

    @cached_property
    def receive_part(self) -> IntArray:
        """Part of the receiver in the number, int64 (nodes,)."""
        m, node = self.machine, np.arange(self.machine.num_nodes)
        place = node // m.nodes_per_group * m.wavelengths + node % m.wavelengths
        return place * (m.wavelengths if m.subnet == "route_broadcast" else 1)

    def name(self, channel: int) -> str:
        """The channel in words."""
        m = self.machine
        if m.subnet == "route_switch":
            rest, device = divmod(channel, m.wavelengths)
            rack, group = divmod(rest, m.groups)
            return f"channel (g_src={rack // m.racks}, j_src={rack % m.racks}, g_dst={group}, l_dst={device})"
        device_of = ""
        if m.subnet == "route_broadcast":
            channel, device = divmod(channel, m.wavelengths)
            device_of = f", l_src={device}"
        rest, device = divmod(channel, m.wavelengths)
        return f"channel (g_src={rest // m.groups}, g_dst={rest % m.groups}, wavelength of l_dst={device}{device_of})"


@dataclass(frozen=True, slots=True)
class Worst:
    """What limits the load.

    Args:
        name: of the port or channel.
        cells_per_slot: its cells at load 1.
        capacity: cells that it carries [cells a slot].
        largest_load: largest admissible load.
    """

    name: str
    cells_per_slot: float
    capacity: float
    largest_load: float


def node_weights(machine: Ramp, mix: FlowMix, placement: str) -> FloatArray:
    """Weight of every node as a sender and as a receiver, float64 (nodes,): `mix.skew` for hot ones, else 1.

    Args:
        machine: RAMP.
        mix: with skew and share of hot nodes.
        placement: spread: hot nodes all over the machine; group: side by side, in as few groups as possible.
    Raises: ParameterError: another placement.
    """
    n = machine.num_nodes
    if placement not in ("spread", "group"):
        raise ParameterError(f"placement: {placement!r} is neither spread nor group")
    hot = max(1, round(mix.hot_nodes * n))
    order = np.arange(n)
    if placement == "spread":
        order = np.argsort(np.arange(n) * GOLDEN % 1, kind="stable")
    weights = np.ones(n)
    weights[order[:hot]] = mix.skew
    return weights


@dataclass(frozen=True, eq=False)
class NodeDemand:
    """Traffic between the nodes of a machine.

    Args:
        machine: RAMP.
        weights: of the nodes, float64 (nodes,).
        between_racks: share of the flows to other racks; None: every other node by its weight.
    Raises: ParameterError: no flow can leave its node or its rack.
    """

    machine: Ramp
    weights: FloatArray
    between_racks: float | None = None

    def __post_init__(self) -> None:
        m, share = self.machine, self.between_racks
        if m.num_nodes < 2:
            raise ParameterError("traffic: one node has no other to send to; give 2 or more")
        if share is not None and share > 0 and m.groups * m.racks == 1:
            raise ParameterError(f"between_racks: {share:g}, but there is one rack; give 0")
        if share is not None and share < 1 and m.wavelengths == 1:
            raise ParameterError(f"between_racks: {share:g}, but a rack has one node; give 1")

    @cached_property
    def _rack(self) -> IntArray:
        return np.arange(self.machine.num_nodes) // self.machine.wavelengths

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """a_s and c_s, float64 (nodes,) each, at weight w_s of the sender, before the scale."""
        w = self.weights
        in_rack = np.bincount(self._rack, w)[self._rack]
        share = self.between_racks
        if share is None:
            return w / (w.sum() - w), w / (w.sum() - w)
        outside, inside = w.sum() - in_rack, in_rack - w
        return (
            np.divide(share * w, outside, out=np.zeros(len(w)), where=outside > 0),
            np.divide((1 - share) * w, inside, out=np.zeros(len(w)), where=inside > 0),
        )

    @cached_property
    def _receivers(self) -> FloatArray:
        """Received before the scale, float64 (nodes,)."""
        a, c = self._shares
        rack = self._rack
        a_rack, c_rack = np.bincount(rack, a), np.bincount(rack, c)
        return self.weights * (a.sum() - a_rack[rack] + c_rack[rack] - c)

    @cached_property
    def _scale(self) -> float:
        """Cells a slot of a weight of one at load 1."""
        return self.machine.ports_per_node / max(float(self.weights.max()), float(self._receivers.max()))

    @property
    def cells_per_slot(self) -> float:
        """Of all nodes at load 1."""
        return self._scale * float(self.weights.sum())

    @cached_property
    def channel_cells(self) -> FloatArray:
        """Cells a slot on every channel at load 1, float64 (channels,)."""
        m = self.machine
        a, c = self._shares
        shape = (m.groups, m.racks, m.wavelengths)
        a3, c3, w3 = a.reshape(shape), c.reshape(shape), self.weights.reshape(shape)
        received = w3.sum(axis=1)  # of (g_dst, l_dst)
        own = np.arange(m.groups)
        if m.subnet == "route_switch":
            cells_of_channel = a3.sum(axis=2)[:, :, None, None] * received[None, None]
            inside = (c3 - a3).sum(axis=2, keepdims=True) * w3 - c3 * w3
            cells_of_channel[own, :, own, :] += inside
        elif m.subnet == "broadcast":
            cells_of_channel = a3.sum(axis=(1, 2))[:, None, None] * received[None]
            inside = ((c3 - a3).sum(axis=2, keepdims=True) * w3 - c3 * w3).sum(axis=1)
            cells_of_channel[own, own, :] += inside
        else:
            cells_of_channel = a3.sum(axis=1)[:, None, None, :] * received[None, :, :, None]
            cells_of_channel[own, own, :, :] += np.einsum("gjs,gjd->gds", c3 - a3, w3)
            device = np.arange(m.wavelengths)
            cells_of_channel[own[:, None], own[:, None], device, device] -= (c3 * w3).sum(axis=1)
        return self._scale * cells_of_channel.ravel()

    @cached_property
    def worst(self) -> Worst:
        """The port or channel that limits the load."""
        ports = float(self.machine.ports_per_node)
        sent, received, carried = self._scale * self.weights, self._scale * self._receivers, self.channel_cells
        loads = [
            (float(sent.max()), f"sender {self.machine.coordinates(int(sent.argmax()))}"),
            (float(received.max()), f"receiver {self.machine.coordinates(int(received.argmax()))}"),
            (float(carried.max()), Channels(self.machine).name(int(carried.argmax()))),
        ]
        cells, name = max(loads, key=lambda one: one[0] * (1 + 1e-12 * (loads.index(one) == 0)))
        return Worst(name, cells, ports, min(1.0, ports / cells))
