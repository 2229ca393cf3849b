"""Assumptions of RAMP's MPI estimator by name; values and sources are in ramp_estimator.toml."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.registry import convert_arguments, known_name
from opticcl.units import ByteRate, Rate, Seconds, Shape

__all__ = ["Setting", "matched", "setting"]

SHEET = read_toml("opticcl.papers", "ramp_estimator.toml")
PRESETS = ("p", "literal", "once")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Assumptions of an estimate; ramp_estimator.toml has the source of each value.

    Args:
        num_nodes: of every system [count].
        transceivers: of a RAMP node, x [count].
        ramp_rate: of a RAMP node, all transceivers together [bit/s].
        ramp_propagation: between two RAMP nodes [s].
        io: input and output of a node, on every system [s].
        slot_efficiency: fraction of a RAMP slot that carries data.
        peer_transceivers: towards each of d - 1 peers: all = floor(x / (d - 1)), printed = equations 3 to 5, or one.
        broadcast_depth: depth of RAMP's pipelined tree [count].
        fast_rate, card_rate: of a fat-tree node within its server and outside [bit/s].
        hierarchy: nodes of a server, and subtrees of each tier above; the last tier has the remaining factor.
        switches: on the path at each level [count]; within a server, the first level, NVSwitches.
        nvswitches: besides them on a path between servers [count].
        nvswitch, switch: latency of one [s].
        tier_1 to tier_4: links of a server, and of each tier of switches, one way [s].
        crossings: how often a path crosses the links of each of its tiers: 2, up and down, or 1 [count].
        torus_shape: rows and columns; product num_nodes.
        torus_rate: of a torus node, all links together [bit/s].
        torus_share: fraction of it that a ring along one dimension uses.
        torus_row_hop, torus_column_hop: propagation [s].
        topoopt_rate: of a node towards its neighbour [bit/s].
        topoopt_latency: of a circuit [s].
        memory: bandwidth of the device that reduces [byte/s].
        bytes_factor: bytes moved by a reduction over bytes sent.
        all_to_all: of the fat tree: flat (pairwise), or hierarchical.
        ring_all_to_all: of TopoOpt: forwarding, or flat, with circuits to all nodes.
        forwarded: fraction of the nodes that a forwarded block passes on average, 1/2; 1 charges the whole ring.
        broadcast: of the rivals: scatter_all_gather, or pipeline: chunks along one ring of all nodes.
    """

    num_nodes: int
    transceivers: int
    ramp_rate: Rate
    ramp_propagation: Seconds
    io: Seconds
    slot_efficiency: float
    peer_transceivers: Literal["all", "printed", "one"]
    broadcast_depth: int
    fast_rate: Rate
    card_rate: Rate
    hierarchy: Shape
    switches: Shape
    nvswitches: int
    nvswitch: Seconds
    switch: Seconds
    tier_1: Seconds
    tier_2: Seconds
    tier_3: Seconds
    tier_4: Seconds
    crossings: int
    torus_shape: Shape
    torus_rate: Rate
    torus_share: float
    torus_row_hop: Seconds
    torus_column_hop: Seconds
    topoopt_rate: Rate
    topoopt_latency: Seconds
    memory: ByteRate
    bytes_factor: float
    all_to_all: Literal["flat", "hierarchical"]
    ring_all_to_all: Literal["forwarding", "flat"]
    forwarded: float
    broadcast: Literal["scatter_all_gather", "pipeline"]


_POSITIVE = ("ramp_rate", "fast_rate", "card_rate", "torus_rate", "topoopt_rate", "memory", "bytes_factor")
_SHARES = ("slot_efficiency", "torus_share", "forwarded")
_SECONDS = (
    "ramp_propagation", "io", "nvswitch", "switch", "tier_1", "tier_2", "tier_3", "tier_4", "torus_row_hop",
    "torus_column_hop", "topoopt_latency",
)  # fmt: skip
_COUNTS = {"num_nodes": 1, "transceivers": 1, "crossings": 1, "nvswitches": 0}  # with the least value of each


def setting(preset: str = "p", **given: object) -> Setting:
    """Values of a preset, with some of them replaced.

    Args:
        preset: p (nearest to most printed numbers: a fit), literal (as the text has it) or once (a candidate: section 7.5's
            delays once each).
        given: replaced fields of `Setting`; texts are converted.
    Raises: UnknownNameError: no such preset. ParameterError: no such field, or a value out of range.

    >>> setting("literal", memory="2.039TB/s").slot_efficiency
    0.95
    """
    key = known_name("preset", preset, PRESETS)
    sheet = {name: entry["value"] for name, entry in SHEET.items() if name not in PRESETS}
    made = Setting(**convert_arguments(Setting, {**sheet, **SHEET[key]["value"], **given}, "estimator"))
    for name in _POSITIVE:
        if not getattr(made, name) > 0:
            raise ParameterError(f"estimator: {name}={getattr(made, name):g}; it must be above 0")
    for name in _SHARES:
        if not 0 < getattr(made, name) <= 1:
            raise ParameterError(f"estimator: {name}={getattr(made, name):g}; it is a fraction, above 0 and up to 1")
    for name in _SECONDS:
        if not getattr(made, name) >= 0:
            raise ParameterError(f"estimator: {name}={getattr(made, name):g}; 0 or more")
    for name, least in _COUNTS.items():
        if getattr(made, name) < least:
            raise ParameterError(f"estimator: {name}={getattr(made, name)}; at least {least}")
    if made.broadcast_depth < 3:
        raise ParameterError(f"estimator: broadcast_depth={made.broadcast_depth}; the tree of RAMP has 3 or more")
    if len(made.switches) != 4 or len(made.hierarchy) != 3:
        raise ParameterError("estimator: a SuperPod has four levels; write hierarchy=8x20x20, switches=1x3x5x7")
    return made


def matched(made: Setting, rate_bits_per_s: float) -> Setting:
    """The same assumptions with one node rate on every system, and no oversubscription.

    Raises: ParameterError: a rate that is not positive.
    Source: RAMP sections 8.3, 8.4.
    """
    rate = rate_bits_per_s
    if not rate > 0:
        raise ParameterError(f"estimator: rate={rate:g} bit/s; it must be more than 0")
    return replace(made, ramp_rate=rate, fast_rate=rate, card_rate=rate, torus_rate=rate, topoopt_rate=rate)
