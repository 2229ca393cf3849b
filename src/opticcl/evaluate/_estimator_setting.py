"""What RAMP's MPI estimator rests on, by name: the values stand in data/evaluation/ramp_estimator.toml with their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from opticcl.data import load
from opticcl.errors import ParameterError, UnknownNameError
from opticcl.registry import canonical, convert_arguments, nearest
from opticcl.units import ByteRate, Rate, Seconds, Shape

__all__ = ["Setting", "matched", "setting"]

SHEET = load("evaluation/ramp_estimator.toml")
PRESETS = ("p", "literal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that an estimate rests on; data/evaluation/ramp_estimator.toml says where each value is from.

    Args:
        num_nodes: of every system [count].
        transceivers: of a RAMP node, x [count].
        ramp_rate: of a RAMP node, all transceivers together [bit/s].
        ramp_propagation: between two RAMP nodes [s].
        io: in and out of a node, on every system [s].
        slot_efficiency: part of a RAMP slot that carries data.
        peer_transceivers: towards each of d - 1 peers: all = floor(x / (d - 1)), printed = equations 3 to 5, or one.
        broadcast_depth: depth of RAMP's pipelined tree [count].
        fast_rate, card_rate: of a fat-tree node within its server and outside [bit/s].
        hierarchy: nodes of a server, and subtrees of each tier above; the last tier has what is left.
        switches: on the way at each level [count].
        nvswitch, switch: latency of one [s].
        tier_1 to tier_4: links of a server, and of each tier of switches, one way [s].
        torus_shape: rows and columns; product num_nodes.
        torus_rate: of a torus node, all links together [bit/s].
        torus_share: part of it that a ring along one dimension uses.
        torus_row_hop, torus_column_hop: propagation [s].
        topoopt_rate: of a node towards its one neighbour [bit/s].
        topoopt_latency: of a circuit [s].
        memory: of the device that adds up [byte/s].
        bytes_factor: bytes moved to add up over bytes sent.
        all_to_all: what the fat tree is said to do: flat (pairwise), or hierarchical.
        ring_all_to_all: what TopoOpt is said to do: forwarding, or flat, with circuits to everyone.
        forwarded: part of the nodes that a forwarded block passes on average, 1/2; 1 charges the whole way round.
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
    nvswitch: Seconds
    switch: Seconds
    tier_1: Seconds
    tier_2: Seconds
    tier_3: Seconds
    tier_4: Seconds
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


_POSITIVE = ("ramp_rate", "fast_rate", "card_rate", "torus_rate", "topoopt_rate", "memory", "bytes_factor")
_SHARES = ("slot_efficiency", "torus_share", "forwarded")
_SECONDS = (
    "ramp_propagation", "io", "nvswitch", "switch", "tier_1", "tier_2", "tier_3", "tier_4", "torus_row_hop",
    "torus_column_hop", "topoopt_latency",
)  # fmt: skip
_COUNTS = ("num_nodes", "transceivers")


def setting(preset: str = "p", **given: object) -> Setting:
    """The values of a preset, with some of them changed.

    Args:
        preset: p (nearest to most printed numbers: a fit) or literal (as the text has it).
        given: fields of `Setting`; texts are converted.
    Raises: UnknownNameError: no such preset. ParameterError: no such field, or a value out of range.

    >>> setting("literal", memory="2.039TB/s").slot_efficiency
    0.95
    """
    key = canonical(preset)
    if key not in PRESETS:
        raise UnknownNameError(f"unknown preset {preset!r}; {nearest(key, PRESETS)}")
    sheet = {name: entry["value"] for name, entry in SHEET.items() if name not in PRESETS}
    made = Setting(**convert_arguments(Setting, {**sheet, **SHEET[key]["value"], **given}, "estimator"))
    for name in _POSITIVE:
        if not getattr(made, name) > 0:
            raise ParameterError(f"estimator: {name}={getattr(made, name):g}; it must be more than 0")
    for name in _SHARES:
        if not 0 < getattr(made, name) <= 1:
            raise ParameterError(f"estimator: {name}={getattr(made, name):g}; it is a part, above 0 and up to 1")
    for name in _SECONDS:
        if not getattr(made, name) >= 0:
            raise ParameterError(f"estimator: {name}={getattr(made, name):g}; 0 or more")
    for name in _COUNTS:
        if getattr(made, name) < 1:
            raise ParameterError(f"estimator: {name}={getattr(made, name)}; at least 1")
    if made.broadcast_depth < 3:
        raise ParameterError(f"estimator: broadcast_depth={made.broadcast_depth}; the tree of RAMP has 3 or more")
    if len(made.switches) != 4 or len(made.hierarchy) != 3:
        raise ParameterError("estimator: a SuperPod has four levels; write hierarchy=8x20x20, switches=1x3x5x7")
    return made


def matched(made: Setting, rate_bits_per_s: float) -> Setting:
    """The same with that rate a node on every system, and no oversubscription.

    Raises: ParameterError: a rate that is not positive.
    Source: RAMP sections 8.3, 8.4.
    """
    rate = rate_bits_per_s
    if not rate > 0:
        raise ParameterError(f"estimator: rate={rate:g} bit/s; it must be more than 0")
    return replace(made, ramp_rate=rate, fast_rate=rate, card_rate=rate, torus_rate=rate, topoopt_rate=rate)
