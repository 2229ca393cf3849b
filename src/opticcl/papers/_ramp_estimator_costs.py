"""Formulas of RAMP's MPI estimator: steps, latency, transfer and reductions of rings in stages, and of RAMP itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import isqrt, prod, sqrt
from operator import mul
from typing import NamedTuple

from opticcl.errors import ParameterError
from opticcl.papers._ramp_estimator_setting import Setting

__all__ = ["RankTime", "Stage", "ramp", "ramp_steps", "rings", "stages"]


class RankTime(NamedTuple):
    """Time of a rank in a collective: sequential steps [count]; head to head, head to tail and reductions [s]."""

    steps: float
    h2h_s: float
    h2t_s: float
    compute_s: float

    def then(self, other: RankTime) -> RankTime:
        """This collective followed by another."""
        return RankTime(*(a + b for a, b in zip(self, other, strict=True)))


class Stage(NamedTuple):
    """Parallel rings of equal size: nodes of a ring [count], rate of a node's link [bit/s], latency of a step [s]."""

    nodes: float
    rate_bits_per_s: float
    latency_s: float


# --- rings in stages --------------------------------------------------------------------------------------------------


def stages(system: str, strategy: str, collective: str, made: Setting) -> Iterator[Stage]:
    """Stages of a strategy on a rival, in the order of a reduce_scatter.

    Args:
        system: fat_tree, torus or topoopt.
        strategy: of that system.
        collective: name.
        made: the assumptions.
    Raises: ParameterError: a torus of another size than the other systems.
    """
    n = made.num_nodes
    if system == "topoopt":
        yield Stage(n, made.topoopt_rate, made.topoopt_latency + made.io)
    elif system == "torus":
        if prod(made.torus_shape) != n or len(made.torus_shape) != 2:
            shape = "x".join(map(str, made.torus_shape))
            raise ParameterError(f"estimator: torus_shape={shape} has not two sides that make num_nodes={n}")
        rate, hops = made.torus_share * made.torus_rate, (made.torus_row_hop, made.torus_column_hop)
        if strategy == "ring":
            yield Stage(n, rate, max(hops) + made.io)
        else:
            yield from (Stage(side, rate, hop + made.io) for side, hop in zip(made.torus_shape, hops, strict=True))
    else:
        span = 1.0
        for size in _sizes(strategy, collective, made):
            span *= size
            within = span <= made.hierarchy[0]
            yield Stage(size, made.fast_rate if within else made.card_rate, path_s(span, made))


def _sizes(strategy: str, collective: str, made: Setting) -> Iterator[float]:
    """Group sizes of a strategy on a fat tree, stage by stage; their product is N."""
    firsts: Sequence[int] = {
        "torus2d": made.hierarchy[:1],
        "square": (isqrt(made.num_nodes),),
        "hierarchical": made.hierarchy[: 1 if collective == "all_to_all" else None],
    }.get(strategy, ())
    left = float(made.num_nodes)
    for size in firsts:
        if 1 < size < left:
            yield size
            left /= size
    yield left


def path_s(span: float, made: Setting) -> float:
    """Latency between the farthest two of `span` neighbouring nodes of a fat tree [s]."""
    reach = (*accumulate(made.hierarchy, mul), float("inf"))
    level = next(k for k, nodes in enumerate(reach) if span <= nodes)
    links = sum((made.tier_1, made.tier_2, made.tier_3, made.tier_4)[: level + 1])
    switches = made.switches[level] * (made.switch if level else made.nvswitch)
    nvswitches = made.nvswitches * made.nvswitch if level else 0.0
    return made.io + switches + nvswitches + made.crossings * links


def rings(collective: str, size: float, made: Setting, of: Sequence[Stage], forwards: bool) -> RankTime:
    """Time of a collective by rings, stage by stage.

    Args:
        collective: name.
        size: of the message [bytes].
        made: the assumptions.
        of: stages in the order of a reduce_scatter.
        forwards: whether an all_to_all is forwarded by neighbours.
    """
    if collective == "broadcast" and made.broadcast == "pipeline":
        (ring,) = of
        return _pipeline(round(ring.nodes), size, ring.rate_bits_per_s, ring.latency_s)
    if collective in ("all_reduce", "reduce", "broadcast"):
        first = "scatter" if collective == "broadcast" else "reduce_scatter"
        return rings(first, size, made, of, forwards).then(rings("all_gather", size, made, of, forwards))
    steps = h2h_s = h2t_s = compute_s = 0.0
    part = float(size)  # that a ring of the stage reduces [bytes]
    for nodes, rate, latency_s in of:
        steps += nodes - 1
        h2h_s += (nodes - 1) * latency_s
        if collective == "barrier":
            continue
        if collective == "all_to_all":
            h2t_s += 8 * size * (nodes - 1) * (made.forwarded if forwards else 1 / nodes) / rate
            continue
        sent = part * (nodes - 1) / nodes
        h2t_s += 8 * sent / rate
        part /= nodes
        if collective == "reduce_scatter":  # two bytes read and one written per byte received
            compute_s += 3 * sent * made.bytes_factor / made.memory
    return RankTime(steps, h2h_s, h2t_s, compute_s)


def _pipeline(depth: int, size: float, rate_bits_per_s: float, step_s: float) -> RankTime:
    """Broadcast in equal chunks from level to level of a tree, or from node to node of a chain.

    Args:
        depth: levels of the tree, the root's included, or nodes of the chain [count].
        size: of the message [bytes].
        rate_bits_per_s: of a node [bit/s].
        step_s: latency of a step [s].
    Source: RAMP equation 1, with beta under the root.
    """
    if depth < 2:
        return RankTime(0, 0.0, 0.0, 0.0)
    data_s = 8 * size / rate_bits_per_s
    chunks = max(1, round(sqrt(data_s * (depth - 2) / step_s)))
    steps = chunks + depth - 2
    return RankTime(steps, steps * step_s, steps * data_s / chunks, 0.0)


# --- RAMP -------------------------------------------------------------------------------------------------------------


def ramp_steps(num_nodes: int, most: int) -> tuple[int, ...]:
    """Nodes that exchange in each step: the largest divisor of the remaining factor, up to the number of transceivers.

    >>> ramp_steps(65536, 32), ramp_steps(1, 32)
    ((32, 32, 32, 2), ())

    Raises: ParameterError: num_nodes has a prime factor above `most`.
    """
    sizes, left = [], num_nodes
    while left > 1:
        size = next(d for d in range(min(most, left), 0, -1) if left % d == 0)
        if size == 1:
            raise ParameterError(
                f"estimator: num_nodes={num_nodes} has the divisor {left}, and a step of RAMP joins at most {most} nodes"
            )
        sizes.append(size)
        left //= size
    return tuple(sizes)


def _towards_a_peer(peers: int, made: Setting) -> int:
    """Transceivers that a node may use towards each of d - 1 peers, n(d). Source: equations 3 to 5."""
    x = made.transceivers
    rules: dict[str, Callable[[], int]] = {
        "all": lambda: x // (peers - 1),
        "printed": lambda: 1 + (x - x // peers * (peers - 1)) // (peers - 1),
        "one": lambda: 1,
    }
    return rules[made.peer_transceivers]()


def ramp(collective: str, size: float, made: Setting) -> RankTime:
    """Time of a collective by RAMP's steps.

    Args:
        collective: name.
        size: of the message [bytes].
        made: the assumptions.
    """
    step_s = made.ramp_propagation + made.io
    one_rate = made.ramp_rate / made.transceivers * made.slot_efficiency
    if collective == "broadcast":
        depth = made.broadcast_depth if made.num_nodes > 1 else 1
        return _pipeline(depth, size, one_rate * made.transceivers, step_s)
    if collective in ("all_reduce", "reduce"):
        second = "all_gather" if collective == "all_reduce" else "gather"
        return ramp("reduce_scatter", size, made).then(ramp(second, size, made))
    h2t_s = compute_s = 0.0
    part, sizes = float(size), ramp_steps(made.num_nodes, made.transceivers)
    for d in () if collective == "barrier" else sizes:
        part /= d
        to_each = size / d if collective == "all_to_all" else part
        h2t_s += 8 * to_each / (_towards_a_peer(d, made) * one_rate)
        if collective == "reduce_scatter":
            compute_s += (d + 1) * part * made.bytes_factor / made.memory
    return RankTime(len(sizes), len(sizes) * step_s, h2t_s, compute_s)
