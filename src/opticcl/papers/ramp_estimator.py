"""RAMP's MPI estimator: times of collectives on 65,536 nodes by formula, for RAMP and its three rivals.

    system      strategies                              stages of a strategy: (nodes of a ring, rate, latency of a step)
    fat_tree    ring, torus2d, hierarchical             by the levels of a SuperPod: server, then tiers of switches
    torus       ring, torus2d                           rows, columns
    topoopt     ring                                    one ring of all nodes
    ramp        ramp                                    steps of 32, 32, 32 and 2 nodes

With m bytes, stages of n_1, n_2, ... nodes and M_i = m / (n_1 ... n_(i-1)):

    reduce_scatter, all_gather, scatter, gather     sum of (n_i - 1)(latency_i + M_i / n_i / rate_i)
    all_to_all    flat or in groups                 sum of (n_i - 1)(latency_i + m / n_i / rate_i)
                  forwarding, neighbours alone      sum of (n_i - 1)(latency_i + share m / rate_i), share 1/2 or 1
    RAMP, step of d nodes                           latency + M_i / d / (n(d) rate of a transceiver); all_to_all: m / d

A reduction moves 3 bytes per byte received in a ring, (d + 1) bytes per byte of the sum in RAMP, by the roofline model. Every
assumption that the paper leaves open is a field of `Setting`.

>>> made = setting("p")
>>> round(speed_up("reduce_scatter", 1e9, made).times, 2), round(speed_up("all_to_all", 1e9, made).times, 1)
(7.5, 173.9)
>>> round(speed_up("all_to_all", 1e9, made, "best").times, 1)
37.2

Source: RAMP sections 6, 7.4, 7.5, 7.6.
Reading: the paper states neither the levels of its fat tree nor the broadcast of its rivals; here that is a scatter and an
all_gather, or a pipeline along a ring. Fractions of a node (a last level of 20.48) are a mean over groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.papers._ramp_estimator_costs import ramp, rings, stages
from opticcl.papers._ramp_estimator_setting import Setting, matched, setting
from opticcl.registry import nearest

__all__ = [
    "COLLECTIVES",
    "RIVALS",
    "Choice",
    "Estimate",
    "Setting",
    "SpeedUp",
    "estimate",
    "fastest",
    "matched",
    "setting",
    "speed_up",
    "strategies",
]

RIVALS = ("fat_tree", "torus", "topoopt")
COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "scatter", "gather", "barrier",
)  # fmt: skip
Choice = Literal["published", "best"]

_RINGS = {
    "fat_tree": ("ring", "torus2d", "hierarchical"),
    "torus": ("ring", "torus2d"),
    "topoopt": ("ring",),
    "ramp": ("ramp",),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time of one collective by one strategy on one system.

    Args:
        system, strategy, collective: names.
        steps: sequential steps; a fraction where group sizes are fractions [count].
        h2h_s: head to head: propagation, switches, input and output of nodes [s].
        h2t_s: head to tail: transfer of the data [s].
        compute_s: reductions [s].
    """

    system: str
    strategy: str
    collective: str
    steps: float
    h2h_s: float
    h2t_s: float
    compute_s: float

    @property
    def total_s(self) -> float:
        """Sum of the three parts [s]."""
        return self.h2h_s + self.h2t_s + self.compute_s

    def record(self) -> dict[str, Any]:
        """The estimate as plain values."""
        return {**asdict(self), "total_s": self.total_s}


class SpeedUp(NamedTuple):
    """Time of the fastest rival over that of RAMP, and both estimates."""

    times: float
    rival: Estimate
    ramp: Estimate


def strategies(system: str, collective: str, made: Setting, choice: Choice = "best") -> tuple[str, ...]:
    """Strategies of a system: all known ones, or those that the printed numbers require.

    For all_to_all they are flat (pairwise exchange), hierarchical (within servers, then between them), square (sqrt(N)
    groups of sqrt(N) nodes) and forwarding (by neighbours; flat, if the setting gives TopoOpt circuits to all nodes).

    Args:
        system: fat_tree, torus, topoopt or ramp.
        collective: name.
        made: the assumptions.
        choice: best or published; they differ for all_to_all only.
    Raises: UnknownNameError: no such system, collective or choice.
    """
    names = (("system", system, _RINGS), ("collective", collective, COLLECTIVES), ("choice", choice, get_args(Choice)))
    for what, name, known in names:
        if name not in known:
            raise UnknownNameError(f"unknown {what} {name!r}; {nearest(name, known)}")
    if collective == "broadcast" and made.broadcast == "pipeline" and system != "ramp":
        return ("ring",)
    if collective != "all_to_all":
        return _RINGS[system]
    if system == "fat_tree":
        grouped = ("hierarchical", "square")
        return ("flat", *grouped) if choice == "best" else ("flat",) if made.all_to_all == "flat" else grouped
    return {"torus": ("forwarding",), "topoopt": (made.ring_all_to_all,), "ramp": ("ramp",)}[system]


def estimate(system: str, strategy: str, collective: str, size_bytes: float, made: Setting) -> Estimate:
    """Time of a collective.

    Args:
        system: fat_tree, torus, topoopt or ramp.
        strategy: one of `strategies`.
        collective: name.
        size_bytes: whole message of a node, m [bytes].
        made: the assumptions.
    Raises: UnknownNameError: no such system, collective or strategy. ParameterError: a negative size, or a torus of
        another size than the other systems.
    """
    known = strategies(system, collective, made)
    if strategy not in known:
        raise UnknownNameError(f"{system} has no strategy {strategy!r} for {collective}; {nearest(strategy, known)}")
    if not size_bytes >= 0:
        raise ParameterError(f"estimator: size={size_bytes:g} bytes; 0 or more")
    if system == "ramp":
        time = ramp(collective, size_bytes, made)
    else:
        of = tuple(stages(system, strategy, collective, made))
        time = rings(collective, size_bytes, made, of, forwards=strategy == "forwarding")
    return Estimate(system, strategy, collective, *time)


def fastest(system: str, collective: str, size_bytes: float, made: Setting, choice: Choice = "published") -> Estimate:
    """The fastest strategy of a system.

    Args:
        system, collective, size_bytes, made: as in `estimate`.
        choice: as in `strategies`.
    """
    estimates = (
        estimate(system, s, collective, size_bytes, made) for s in strategies(system, collective, made, choice)
    )
    return min(estimates, key=lambda e: e.total_s)


def speed_up(
    collective: str, size_bytes: float, made: Setting, choice: Choice = "published", systems: Iterable[str] = RIVALS
) -> SpeedUp:
    """RAMP against the fastest of some systems, each by its fastest strategy.

    Args:
        collective, size_bytes, made: as in `estimate`.
        choice: published: strategies that the printed numbers require; best: all known ones.
        systems: rivals.
    """
    own = fastest("ramp", collective, size_bytes, made)
    rival = min((fastest(s, collective, size_bytes, made, choice) for s in systems), key=lambda e: e.total_s)
    return SpeedUp(rival.total_s / own.total_s, rival, own)
