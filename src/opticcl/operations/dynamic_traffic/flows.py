"""Flow sizes and gaps between arrivals: each distribution as its 65,536 quantiles, all equally likely.

The mean of such a table is exact, so that gaps are scaled to a load without an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import erf, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.files import read_toml
from opticcl.ir import IntArray
from opticcl.registry import canonical, known_name

__all__ = ["FlowMix", "flow_mix", "run_values"]

QUANTILES = 1 << 16
"""Values of a table [count]."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FlowMix:
    """Sizes of flows and gaps between their arrivals.

    Args:
        name: of the sizes.
        gap: name of the gaps.
        size_bytes: equally likely sizes, float64 (65536,), or (1,) where all are one cell [bytes].
        gaps: equally likely gaps over their mean, float64 (65536,); (1,) for exponential ones.
        between_racks: share of the flows that leaves its rack; None: any other node is as likely as its weight.
        skew: weight of a hot node over that of another.
        hot_nodes: share of the nodes that is hot.
    """

    name: str
    gap: str
    size_bytes: FloatArray
    gaps: FloatArray
    between_racks: float | None
    skew: float
    hot_nodes: float

    def cells(self, payload_bytes: float) -> IntArray:
        """Sizes in cells, int32, one or more each. Args: payload_bytes: of a cell [bytes]."""
        return np.maximum(1, np.ceil(self.size_bytes / payload_bytes)).astype(np.int32)


def run_values() -> dict[str, Any]:
    """Values of the tables `epoch` and `run` by key."""
    return {key: entry["value"] for table in ("epoch", "run") for key, entry in _file()[table].items()}


def flow_mix(
    name: str, gap: str | None = None, skew: float | None = None, between_racks: float | None = None
) -> FlowMix:
    """The flows of that name.

    Args:
        name: of the sizes, a table `flows` of traffic.toml.
        gap: other gaps than those of the mix, a table `gaps` of it.
        skew: another skew.
        between_racks: another share between racks; 1 or more: any other node as likely as its weight.
    Raises: UnknownNameError: no such sizes or gaps.
    """
    file = _file()
    entry = _entry(file["flows"], name, "flows")
    hot = file["hot"]["nodes"]
    if skew is None and "hot_share" in entry:
        skew = entry["hot_share"] / hot / ((1 - entry["hot_share"]) / (1 - hot))
    gap = canonical(gap or entry["gap"])
    share = entry.get("between_racks") if between_racks is None else between_racks
    one_cell = entry["size"]["kind"] == "cell"
    gaps = _quantiles(_frozen(_entry(file["gaps"], gap, "gaps")))
    return FlowMix(
        canonical(name),
        gap,
        np.ones(1) if one_cell else np.maximum(1, np.round(_quantiles(_frozen(entry["size"])))),
        gaps / gaps.mean(),
        None if share is None or share >= 1 else share,
        entry.get("skew", 1.0) if skew is None else skew,
        hot,
    )


def _file() -> dict[str, Any]:
    return read_toml("opticcl.operations.dynamic_traffic", "traffic.toml")


def _entry(table: dict[str, Any], name: str, kind: str) -> dict[str, Any]:
    entry: dict[str, Any] = table[known_name(kind, name, table)]
    return entry


def _frozen(entry: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Parameters of a distribution as a key of a cache."""
    return tuple(
        sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in entry.items() if k not in ("source", "about"))
    )


@cache
def _quantiles(parameters: tuple[tuple[str, Any], ...]) -> FloatArray:
    of = dict(parameters)
    share = (np.arange(QUANTILES) + 0.5) / QUANTILES
    kind = of["kind"]
    if kind == "exponential":
        return np.ones(1)
    if kind == "uniform":
        return of["low"] + share * (of["high"] - of["low"])
    if kind == "weibull":
        gaps = of["scale"] * (-np.log1p(-share)) ** (1 / of["shape"])
        return np.minimum(gaps, of.get("most", np.inf))
    if kind == "lognormal":
        normal = NormalDist()
        place = np.array([normal.inv_cdf(s) for s in share.tolist()])
        return np.minimum(np.exp(of["mu"] + of["sigma"] * place), of.get("most", np.inf))
    return _modes(of, share)


def _modes(of: dict[str, Any], share: FloatArray) -> FloatArray:
    """Skewed normal distributions side by side over an even background, on whole values."""
    value = np.arange(of["low"], of["high"] + 1, dtype=float)
    density = np.zeros(len(value))
    for place, skew, scale, count in zip(of["places"], of["skews"], of["scales"], of["counts"], strict=True):
        z = (value - place) / scale
        near = np.flatnonzero(np.abs(z) < 40)
        side = np.array([1 + erf(skew * x / sqrt(2)) for x in z[near].tolist()])
        mode = np.zeros(len(value))
        mode[near] = np.exp(-(z[near] ** 2) / 2) * side
        density += count * mode / mode.sum()
    density = density / density.sum() * (1 - of["background"]) + of["background"] / len(value)
    return value[np.minimum(np.searchsorted(np.cumsum(density), share), len(value) - 1)]
