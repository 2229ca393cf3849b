"""Times that no schedule can beat: a result below its bound is an error, never a good result."""

from __future__ import annotations

from math import ceil, log

from opticcl.ir import Collective, Fabric

__all__ = ["lower_bound_s"]


def lower_bound_s(collective: Collective, fabric: Fabric, size_bytes: int) -> float:
    """Alpha-beta lower bound of a collective on a fabric [s].

    Latency: with p partners at once the ranks that a contribution can have reached multiply by at most p + 1 a step.
    Bandwidth: every rank must send all but its own share twice (an all-reduce is a reduce-scatter and an all-gather).

    Source: Chan et al. 2007; LUMORPH section 4 for p partners at once.
    """
    n = collective.num_ranks
    if n == 1:
        return 0.0
    partners = n - 1 if fabric.is_packet_switched else min(n - 1, fabric.ports_per_node * fabric.lasers_per_port)
    steps = max(1, ceil(log(n) / log(partners + 1) - 1e-9))
    moved_bytes = 2 * (n - 1) / n * size_bytes
    return steps * fabric.latency_s + moved_bytes * 8 / fabric.node_rate_bits_per_s
