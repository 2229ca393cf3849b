"""The least time in which every vertex that computes can have the data of all, with the cut that proves it.

What is on one side of a cut and needed on the other must cross it. With weight w(S) of the data on the side S, which lacks
one of the vertices that compute, and capacity b(S) of the arcs that leave S,

    time = largest over all S of w(S) / b(S)

No schedule is faster; schedules as fast exist (`packing`). A cut is better than the time T found so far exactly if, with
capacities T b and a supply of w(v) at every vertex v, less than all supplies together can flow into some vertex that
computes. So vertices are tried one after the other, the ratio of each cut that is found is the next T, and a vertex that has
passed need not be tried again, since T only grows. The answer is a fraction, and exact.

Source: Edmonds 1973; Bang-Jensen, Frank and Jackson 1995; Zhao et al. 2024 (ForestColl) for this ratio; Dinkelbach 1967 for
ratios by their own cuts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray
from opticcl.routing.forest._flows import least_cut
from opticcl.routing.forest.graph import CapacityGraph

__all__ = ["Optimum", "optimum", "weights_of"]


class Optimum(NamedTuple):
    """The least time, and a cut that proves it.

    Args:
        time: weight that leaves the cut over its capacity [weight of one vertex / unit of capacity].
        inside: vertices from which it leaves, bool (vertices,).
    """

    time: Fraction
    inside: npt.NDArray[np.bool_]


def weights_of(graph: CapacityGraph, root: int | None = None) -> IntArray:
    """Weight of the data of each vertex, int64 (vertices,).

    Args:
        graph: the network.
        root: vertex that alone has data; None: all that compute have as much.
    """
    weights = np.zeros(graph.num_vertices, np.int64)
    weights[: graph.num_compute] = root is None
    if root is not None:
        weights[root] = 1
    return weights


def optimum(graph: CapacityGraph, root: int | None = None) -> Optimum | None:
    """The least time of an all-gather, or of a broadcast from one root; None where nothing moves.

    A reduce-scatter and a reduce take as long with all arcs turned round.

    Args:
        graph: the network.
        root: of a broadcast; None: an all-gather.
    Raises: UnsupportedError: there is no way to some vertex that computes.
    """
    weights = weights_of(graph, root)
    targets = np.array([v for v in range(graph.num_compute) if v != root])
    if graph.num_compute < 2:
        return None
    best = _behind_one(graph, weights, targets)
    whole = int(weights.sum())
    while len(targets):
        time = best.time
        flow, passed, side = least_cut(
            graph.num_vertices,
            graph.tail,
            graph.head,
            graph.capacity * time.numerator,
            weights * time.denominator,
            targets,
            whole * time.denominator,
            False,
        )
        targets = targets[passed:]
        if flow < whole * time.denominator:
            best = _ratio(graph, weights, ~side)
    return best


def _behind_one(graph: CapacityGraph, weights: IntArray, targets: IntArray) -> Optimum:
    """The most that the cut of all vertices but one of the targets proves.

    Raises: UnsupportedError: no arc leads to one of them.
    """
    arrives = graph.tail != graph.head
    arriving = np.zeros(graph.num_vertices, np.int64)
    np.add.at(arriving, graph.head[arrives], graph.capacity[arrives])
    ratios, which = np.unique(
        np.stack([weights.sum() - weights[targets], arriving[targets]]), axis=1, return_inverse=True
    )
    times = [Fraction(*ratio) if ratio[1] else Fraction(int(weights.sum()) + 1) for ratio in ratios.T.tolist()]
    most = max(times)
    slowest = np.array([time == most for time in times])[which.ravel()]
    return _ratio(graph, weights, np.arange(graph.num_vertices) != targets[slowest][0])


def _ratio(graph: CapacityGraph, weights: IntArray, inside: npt.NDArray[np.bool_]) -> Optimum:
    """The time that a cut proves.

    Raises: UnsupportedError: no arc leaves it.
    """
    if not (capacity := graph.leaving(inside)):
        cut_off = int(np.flatnonzero(~inside[: graph.num_compute])[0])
        raise UnsupportedError(
            f"no links lead from the others to node {cut_off}; every node needs a way to every other"
        )
    return Optimum(Fraction(int(weights[inside].sum()), capacity), inside)
