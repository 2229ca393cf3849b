r"""SiPAC: comb lasers and passive wavelength-selective switches (WSS) in levels; nothing is ever switched.

::

    CU x, x_l = i                 WSS of level l, r x r micro-rings                    CU y, y_l = j
    comb ~w lines~> modulators ==port l==> --o-------o-------o--  input bus i
                                             |       |       |    ring (i, j) drops group γ(i, j)
                                             v       v       v
                                           bus 0   bus 1   bus 2  output buses  ==port l==> photodiodes, one a line

A CU has L digits x_0 ... x_{L-1} below r and the number Σ x_l r^l. Its port l leads to a WSS of level l, shared with
the r - 1 CUs that differ from it in digit l alone. The w lines of a link fall into interleaved groups; the ring from
input i to output j drops one group and lets the others pass, so a wavelength chooses its receiver. An output bus takes
a different group from every input.

    channels    groups        γ(i, j)            bandwidth of a pair
    published   k mod r       (j - i) mod r      B/r; γ = 0 leads back to the sender and carries nothing
    retuned     k mod (r-1)   (j - i - 1) mod r  B/(r-1); there is no ring for i = j

Reading: section III-B gives B/r, the times of section V-A need B/(r-1); hence the two kinds of channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Resource, Usage
from opticcl.units import Rate, Seconds

SHEET = datasheet("sipac")

MAX_NODES = 2**31  # node numbers are int32

Channels = Literal["published", "retuned"]


def shape_at_scale(num_nodes: int) -> tuple[int, int]:
    """Radix and levels of a SiPAC with that many nodes; every number has one, if only a single switch.

    Reading: the paper takes r <= 32 and few levels. We take the fewest levels that allow such a radix; where none does
    (a prime above 32), the most levels, which is the smallest radix.

    >>> shape_at_scale(1024), shape_at_scale(7), shape_at_scale(37)
    ((32, 2), (7, 1), (37, 1))
    """
    shapes = [(num_nodes, 1)]
    for levels in range(2, num_nodes.bit_length()):
        radix = round(num_nodes ** (1 / levels))
        if radix**levels == num_nodes:
            shapes.append((radix, levels))
    return next((shape for shape in shapes if shape[0] <= SHEET["largest_radix"]), shapes[-1])


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes."""
    radix, levels = shape_at_scale(num_nodes)
    return {"radix": radix, "levels": levels}


@register_fabric("sipac", at_scale, rate="node_rate")
def sipac(
    *,
    radix: int = SHEET["radix"],
    levels: int = SHEET["levels"],
    node_rate: Rate = SHEET["node_rate"],
    wavelengths: int | None = None,
    channels: Channels = SHEET["channels"],
    latency: Seconds = SHEET["latency"],
) -> Fabric:
    """SiPAC of radix**levels nodes.

    Args:
        radix: ports of a switch r [count].
        levels: levels L, and ports of a node [count].
        node_rate: of all ports of a node together, L B [bit/s].
        wavelengths: lines w of a link [count]; None: as many of the comb's 160 as fill all groups alike, or one a group
            where 160 are too few. A number that the groups do not divide leaves channels of ⌊⌋ and ⌈⌉ wavelengths.
        channels: published (B/r a pair) or retuned (B/(r-1) a pair).
        latency: from the first bit sent to the first bit received [s].
    Raises: FabricError: no such shape.
    Source: SiPAC sections III-A, III-B, VI-A.
    Reading: section VI-A does not say whether passing a WSS is one hop of 1 us or two; we take one.
    """
    r = radix
    if min(r, levels) < 1:
        raise FabricError(f"sipac: radix={r}, levels={levels}; both are 1 or more")
    if r == 1 and levels > 1:
        raise FabricError(f"sipac: levels={levels} with radix=1 is a single node; try levels=1 or radix=2")
    if levels > 30 or r**levels >= MAX_NODES:
        near = f"levels={_most_levels(r)}" if r < MAX_NODES else f"radix={SHEET['largest_radix']}"
        raise FabricError(f"sipac: radix={r} to the power levels={levels} is 2**31 nodes or more; try {near}")
    groups = _num_groups(r, channels)
    if wavelengths is None:
        wavelengths = max(groups, SHEET["comb_lines"] // groups * groups)
    if wavelengths < groups:
        raise FabricError(
            f"sipac: wavelengths={wavelengths} are too few for the {groups} groups of radix={r}, channels={channels}; "
            f"try wavelengths={groups}"
        )
    if node_rate <= 0 or latency < 0:
        raise FabricError(f"sipac: node_rate={node_rate:g} must be positive, latency={latency:g} not negative")

    num_nodes = r**levels
    strides = np.array([r**level for level in range(levels)], np.int64)
    laser = Resource("laser", num_nodes * levels)  # modulators of a port, one a line
    photodiode = Resource("photodiode", num_nodes * levels)  # of a port, one a line; as many as its output bus carries

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Modulators of the sender's port and photodiodes of the receiver's."""
        port = circuits.port.astype(np.int64)
        yield Usage(laser, circuits.src * np.int64(levels) + port)
        yield Usage(photodiode, circuits.dst * np.int64(levels) + port)

    def faults(circuits: Circuits) -> Iterator[Fault]:
        bad_path = circuits.num_hops() != 1
        yield Fault("path_broken", np.flatnonzero(bad_path), "one hop: a switch of the port's level")
        if bad_path.any():
            return
        level = circuits.hops
        astray = (level < 0) | (level >= levels) | (level != circuits.port)
        stride = strides[np.where(astray, 0, level)]
        i, j = circuits.src // stride % r, circuits.dst // stride % r
        astray |= (i == j) | (circuits.dst - circuits.src != (j - i) * stride)
        yield Fault("path_broken", np.flatnonzero(astray), "port and hop at the one level whose digit differs")
        gap = 1 if channels == "retuned" else 0
        of_group = circuits.wavelength_lo % groups == (j - i - gap) % r
        if circuits.wavelength_step < 1 or circuits.wavelength_step % groups:  # then the second one is of another group
            of_group &= circuits.wavelength_n == 1
        expected = f"wavelengths of the one group that this ring drops, {groups} apart"
        yield Fault("wavelength_unheard", np.flatnonzero(~of_group & ~astray), expected)

    def linked(src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        differing = np.zeros(np.broadcast(src, dst).shape, np.int8)
        for stride in strides.tolist():
            differing += src // stride % r != dst // stride % r
        alone: npt.NDArray[np.bool_] = differing == 1
        return alone

    def ring_order() -> IntArray:
        """Modular Gray code: neighbours differ by one in one digit, the last and the first too."""
        position = np.arange(num_nodes)
        digits = [position // stride % r for stride in strides] + [np.zeros_like(position)]
        return sum(
            ((digits[level] - digits[level + 1]) % r * strides[level] for level in range(levels)),
            np.zeros_like(position),
        )

    def coordinates(node: int) -> str:
        return "(" + ", ".join(f"x{level}={node // r**level % r}" for level in range(levels)) + ")"

    return Fabric(
        name="sipac",
        num_nodes=num_nodes,
        num_wavelengths=wavelengths,
        ports_per_node=levels,
        lasers_per_port=wavelengths,
        rate_bits_per_s=node_rate / (levels * wavelengths),
        latency_s=latency,
        resources=(laser, photodiode),
        usage=usage,
        faults=faults,
        linked=linked,
        ring_order=ring_order,
        coordinates=coordinates,
        source="SiPAC sections III-A, III-B, VI-A",
    )


def _num_groups(radix: int, channels: str) -> int:
    """Groups that the lines of a link fall into.

    >>> _num_groups(8, "published"), _num_groups(8, "retuned")
    (8, 7)
    """
    return radix if channels == "published" else max(1, radix - 1)


def _most_levels(radix: int) -> int:
    """The most levels that make fewer than MAX_NODES nodes."""
    levels = 1
    while radix ** (levels + 1) < MAX_NODES:
        levels += 1
    return levels
