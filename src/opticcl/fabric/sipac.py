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
a different group from every input. In an irregular SiPAC the switches of each level have a radix r_l of their own: a
digit x_l is below r_l and counts r_0 ... r_{l-1} in the number.

    channels    groups        γ(i, j)            bandwidth of a pair
    published   k mod r       (j - i) mod r      B/r; γ = 0 leads back to the sender and carries nothing
    retuned     k mod (r-1)   (j - i - 1) mod r  B/(r-1); there is no ring for i = j

Reading: section III-B gives B/r, the times of section V-A need B/(r-1); hence the two kinds of channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import lcm, prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._light_sipac import sipac_light
from opticcl.fabric.oddl import ring_order
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.units import Rate, Seconds, Shape

__all__ = ["num_groups", "radices_of", "sipac", "strides_of"]

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


@register_fabric("sipac", at_scale, rate="node_rate", own="sipco")
def sipac(
    *,
    radix: int = SHEET["radix"],
    levels: int = SHEET["levels"],
    radices: Shape | None = None,
    node_rate: Rate = SHEET["node_rate"],
    wavelengths: int | None = None,
    channels: Channels = SHEET["channels"],
    latency: Seconds = SHEET["latency"],
) -> Fabric:
    """SiPAC of radix**levels nodes, or an irregular one of as many as its radices make together.

    Args:
        radix: ports of a switch r [count].
        levels: levels L, and ports of a node [count].
        radices: ports of the switches of each level, level 0 first, such as 4x8x2; None: `radix` at all `levels`. Where
            given, it stands in place of both.
        node_rate: of all ports of a node together, L B [bit/s].
        wavelengths: lines w of a link [count]; None: as many of the comb's 160 as fill the groups of every level alike;
            where 160 are too few for that, all 160, and at least one a group. A number that the groups do not divide
            leaves channels of ⌊⌋ and ⌈⌉ wavelengths.
        channels: published (B/r a pair) or retuned (B/(r-1) a pair).
        latency: from the first bit sent to the first bit received [s].
    Raises: FabricError: no such shape.
    Source: SiPAC sections III-A, III-B, VI-A.
    Reading: section VI-A does not say whether passing a WSS is one hop of 1 us or two; we take one. Section III-A has
        switches of different radices without details; we give all links the same comb and the same rate.
    """
    sides = _checked_radices(radix, levels, radices)
    levels, num_nodes = len(sides), prod(sides)
    of_level = [num_groups(side, channels) for side in sides]
    if wavelengths is None:
        alike = lcm(*of_level)
        wavelengths = SHEET["comb_lines"] // alike * alike or max(SHEET["comb_lines"], *of_level)
    if wavelengths < max(of_level):
        raise FabricError(
            f"sipac: wavelengths={wavelengths} are too few for the {max(of_level)} groups of radix={max(sides)}, "
            f"channels={channels}; try wavelengths={max(of_level)}"
        )
    if node_rate <= 0 or latency < 0:
        raise FabricError(f"sipac: node_rate={node_rate:g} must be positive, latency={latency:g} not negative")

    ports, groups = np.array(sides, np.int64), np.array(of_level, np.int64)
    strides = strides_of(sides)
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
        level = np.where(astray, 0, level)
        stride, r, apart = strides[level], ports[level], groups[level]
        i, j = circuits.src // stride % r, circuits.dst // stride % r
        astray |= (i == j) | (circuits.dst - circuits.src != (j - i) * stride)
        yield Fault("path_broken", np.flatnonzero(astray), "port and hop at the one level whose digit differs")
        gap = 1 if channels == "retuned" else 0
        of_group = circuits.wavelength_lo % apart == (j - i - gap) % r
        leaves = (circuits.wavelength_step % apart != 0) | (circuits.wavelength_step < 1)  # with its second wavelength
        of_group &= ~leaves | (circuits.wavelength_n == 1)
        distances = " or ".join(map(str, sorted(set(of_level))))
        expected = f"wavelengths of the one group that this ring drops, {distances} apart"
        yield Fault("wavelength_unheard", np.flatnonzero(~of_group & ~astray), expected)

    @cache
    def digits() -> tuple[IntArray, ...]:
        """Of every node, one array a level: looked up millions of times, which is quicker than dividing."""
        nodes = np.arange(num_nodes)
        return tuple(
            (nodes // stride % r).astype(np.min_scalar_type(r)) for stride, r in zip(strides, sides, strict=True)
        )

    def linked(src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        differing = np.zeros(np.broadcast(src, dst).shape, np.int8)
        for digit in digits():
            differing += digit[src] != digit[dst]
        alone: npt.NDArray[np.bool_] = differing == 1
        return alone

    def coordinates(node: int) -> str:
        digits = (f"x{level}={node // stride % sides[level]}" for level, stride in enumerate(strides.tolist()))
        return "(" + ", ".join(digits) + ")"

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
        ring_order=lambda: ring_order(sides[::-1]),  # there the last side varies fastest, here level 0
        coordinates=coordinates,
        source="SiPAC sections III-A, III-B, VI-A",
        light_path=sipac_light(sides, strides, wavelengths, tuple(of_level)),
        parts=(
            Part("comb_transceiver", num_nodes * levels, ports=wavelengths, rate_bits_per_s=node_rate / levels),
            *(Part("mrr_switch", num_nodes // r, ports=r) for r in sides),
            Part("fibre", 2 * num_nodes * levels),
        ),
    )


def radices_of(fabric: Fabric) -> tuple[int, ...]:
    """Ports of the switches of each level of a SiPAC, level 0 first."""
    p = fabric.parameters
    radices: tuple[int, ...] = p["radices"] or (p["radix"],) * p["levels"]
    return radices


def strides_of(radices: tuple[int, ...]) -> IntArray:
    """By how much a node's number grows with each of its digits, int64 (levels,).

    >>> strides_of((4, 8, 2)).tolist()
    [1, 4, 32]
    """
    return np.array([prod(radices[:level]) for level in range(len(radices))], np.int64)


def num_groups(radix: int, channels: str) -> int:
    """Groups that the lines of a link fall into.

    >>> num_groups(8, "published"), num_groups(8, "retuned")
    (8, 7)
    """
    return radix if channels == "published" else max(1, radix - 1)


def _checked_radices(radix: int, levels: int, radices: tuple[int, ...] | None) -> tuple[int, ...]:
    """Radix of each level, level 0 first.

    Raises: FabricError: levels without nodes or switches, or too many nodes.
    """
    if radices is not None:
        written = "x".join(map(str, radices))
        if 1 in radices and len(radices) > 1:
            near = "x".join(str(r) for r in radices if r > 1) or "1"
            raise FabricError(f"sipac: radices={written} has switches of one port; try radices={near}")
        if prod(radices) >= MAX_NODES:
            near = "x".join(map(str, radices[: _most_levels(radices)])) or str(SHEET["largest_radix"])
            raise FabricError(f"sipac: radices={written} make 2**31 nodes or more; try radices={near}")
        return radices
    if min(radix, levels) < 1:
        raise FabricError(f"sipac: radix={radix}, levels={levels}; both are 1 or more")
    if radix == 1 and levels > 1:
        raise FabricError(f"sipac: levels={levels} with radix=1 is a single node; try levels=1 or radix=2")
    if levels > 30 or radix**levels >= MAX_NODES:
        most = _most_levels((radix,) * 31)
        near = f"levels={most}" if most else f"radix={SHEET['largest_radix']}"
        raise FabricError(f"sipac: radix={radix} to the power levels={levels} is 2**31 nodes or more; try {near}")
    return (radix,) * levels


def _most_levels(radices: tuple[int, ...]) -> int:
    """How many of the levels, from level 0 on, make fewer than MAX_NODES nodes."""
    return sum(prod(radices[: level + 1]) < MAX_NODES for level in range(len(radices)))
