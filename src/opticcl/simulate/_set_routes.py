"""How long NICs are busy in an all-to-all whose routes are set once a job, at least.

Every wavelength of a NIC leads to one partner for the whole job, and the NIC sends to one partner at a time, on all wavelengths
that lead there. A node with few partners reaches them quickly and the others over many hops; the bound holds for every way to
divide the wavelengths, also another in every node.

For all pairs of places let d be the distance of the shortest path, a hop over w of W wavelengths counting W / w. A class is a
division of the wavelengths that a NIC sends on, and where a place has one NIC, of those that it receives on. Of each class k,
with all numbers divided by that of the places n::

    p_k(d)      pairs whose second end is of class k       p_k(0) = share of k, sum over d = n times the share
    q_kw(d)     the same for the sender at the other end of each of its links of w wavelengths
    p_k(d)      <= sum over w of q_kw(d - W / w)           the last hop of a shortest path
    sum over k of q_kw(d) = sum over k of (links of w wavelengths that k sends on) p_k(d)

The least sum of d p(d) is a linear programme. All that is sent is received, so a node of which one side is busy all the time,
on few wavelengths, leaves its other side idle: V blocks take V / w on the widest link, and no more than all are busy.

Source: the Moore bound counts partners of one number; classes and the balance of both sides are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit

__all__ = ["busy_of_routes"]

MOST_CLASSES = limit("set_routes.MOST_CLASSES")
FINENESS = (
    12  # parts of a hop over all wavelengths in which distances are counted, rounded down: exact up to 5 wavelengths
)
TOLERANCE = 1e-7  # of the solver


class _Class(NamedTuple):
    """NICs that divide their wavelengths in the same way.

    Args:
        received, sent: links of each number of wavelengths on either side; received is None where it is left open.
    """

    received: dict[int, float] | None
    sent: dict[int, float]

    @property
    def busy(self) -> float:
        """Share of the time in which both sides can be busy, of twice the time at most."""
        if self.received is None:
            return 2.0
        widest = min(max(self.received), max(self.sent))
        return min(1.0, widest / min(self.received)) + min(1.0, widest / min(self.sent))


@lru_cache(maxsize=256)
def busy_of_routes(places: float, nics: int, wavelengths: int) -> float:
    """Time in which the NICs of a place are busy at least, in blocks of one pair on all wavelengths of one NIC.

    >>> [round(busy_of_routes(n, 1, w), 3) for n, w in ((4, 2), (6, 3), (16, 4))]
    [6.0, 15.0, 76.0]

    Args:
        places: nodes, or sets of nodes among which sending takes no time [count].
        nics: of a place [count].
        wavelengths: of a NIC [count].
    """
    if places <= 1:
        return 0.0
    sent = _divisions(wavelengths)
    joint = nics == 1 and len(sent) ** 2 <= MOST_CLASSES
    classes = [_Class(received, out) for received in (sent if joint else [None]) for out in sent]
    costs = {w: FINENESS * wavelengths // w for out in sent for w in out}
    step = int(np.gcd.reduce(list(costs.values())))
    costs = {w: cost // step for w, cost in costs.items()}
    farthest = min(_filled(places, nics, out, costs) for out in sent) + max(costs[w] for w in (1, wavelengths))
    programme = _Programme()
    share, pairs = programme.columns(len(classes)), programme.columns(len(classes), farthest + 1)
    programme.equal(np.stack([pairs[:, 0], share], 1), [1.0, -1.0])
    programme.equal(np.hstack([pairs, share[:, None]]), [*np.ones(farthest + 1), -places])
    programme.add(share[None], [one.busy for one in classes], 2.0, 2.0)
    if joint:
        _last_hops(programme, classes, costs, places, share, pairs)
    else:
        _all_last_hops(programme, classes, costs, nics, pairs)
    distance = np.broadcast_to(np.arange(farthest + 1) * step / FINENESS, pairs.shape)
    return programme.least(pairs, distance) * (1 - TOLERANCE)


def _divisions(wavelengths: int) -> list[dict[int, float]]:
    """Links of each number of wavelengths of a NIC: all divisions, or if they are too many, mixtures of even ones.

    >>> _divisions(3)
    [{3: 1.0}, {2: 1.0, 1: 1.0}, {1: 3.0}]
    """

    def parts(left: int, most: int) -> Iterator[tuple[int, ...]]:
        if not left:
            yield ()
        for first in range(min(left, most), 0, -1):
            yield from ((first, *rest) for rest in parts(left - first, first))

    divisions = list[dict[int, float]]()
    for division in parts(wavelengths, wavelengths):
        divisions.append({w: float(division.count(w)) for w in dict.fromkeys(division)})
        if len(divisions) > MOST_CLASSES:
            return [{w: wavelengths / w} for w in range(wavelengths, 0, -1)]
    return divisions


def _filled(places: float, nics: int, sent: dict[int, float], costs: dict[int, int]) -> int:
    """Distance at which all places may be reached where every NIC divides its wavelengths in one way."""
    reached, total = [1.0], 1.0
    while total < places:
        at = len(reached)
        reached.append(sum(nics * n * reached[at - costs[w]] for w, n in sent.items() if costs[w] <= at))
        total += reached[-1]
    return len(reached) - 1


def _last_hops(
    programme: _Programme, classes: list[_Class], costs: dict[int, int], places: float, share: IntArray, pairs: IntArray
) -> None:
    """Rows of the last hops of shortest paths, link by link."""
    last = pairs.shape[1] - 1
    links: dict[int, list[tuple[int, IntArray]]] = {w: [] for w in costs}
    for k, one in enumerate(classes):
        assert one.received is not None
        terms = [(pairs[k, 1:last], 1.0)]
        for w, number in one.received.items():
            tails = programme.columns(1, last + 1)[0]
            links[w].append((k, tails))
            programme.equal(np.array([[tails[0], share[k]]]), [1.0, -number])
            programme.equal(np.concatenate([tails, share[k : k + 1]])[None], [*np.ones(last + 1), -number * places])
            terms.append((np.concatenate([np.full(costs[w], -1), tails])[1:last], -1.0))
        programme.at_most(terms)
    for w, received in links.items():
        into = np.stack([tails for _, tails in received], 1)
        out = [(k, one.sent[w]) for k, one in enumerate(classes) if w in one.sent]
        rows = np.hstack([into, pairs[[k for k, _ in out]].T])
        programme.equal(rows, [*np.ones(len(received)), *(-number for _, number in out)])


def _all_last_hops(
    programme: _Programme, classes: list[_Class], costs: dict[int, int], nics: int, pairs: IntArray
) -> None:
    """Rows of the last hops of shortest paths, all classes together."""
    last = pairs.shape[1] - 1
    terms = [(pairs[k, 1:last], 1.0) for k in range(len(classes))]
    for k, one in enumerate(classes):
        for w, number in one.sent.items():
            terms.append((np.concatenate([np.full(costs[w], -1), pairs[k]])[1:last], -nics * number))
    programme.at_most(terms)


class _Programme:
    """A linear programme in columns of at least 0, of rows that are added in blocks."""

    def __init__(self) -> None:
        self.num_columns = 0
        self.rows: list[tuple[IntArray, npt.NDArray[np.float64], float, float]] = []

    def columns(self, *shape: int) -> IntArray:
        """Numbers of new columns, int64 of that shape."""
        first, self.num_columns = self.num_columns, self.num_columns + int(np.prod(shape))
        return np.arange(first, self.num_columns).reshape(shape)

    def add(self, columns: IntArray, values: npt.ArrayLike, least: float, most: float) -> None:
        """Rows of columns, int64 (rows, k), -1 for none, with the values of each."""
        self.rows.append((columns, np.broadcast_to(np.asarray(values, np.float64), columns.shape), least, most))

    def equal(self, columns: IntArray, values: npt.ArrayLike) -> None:
        """Rows that are 0."""
        self.add(columns, values, 0.0, 0.0)

    def at_most(self, terms: list[tuple[IntArray, float]]) -> None:
        """Rows of at most 0: column and value of each term."""
        self.add(np.stack([columns for columns, _ in terms], 1), [value for _, value in terms], -np.inf, 0.0)

    def least(self, columns: IntArray, prices: npt.NDArray[np.float64]) -> float:
        """Least sum of columns times prices."""
        import highspy

        model = highspy.HighsLp()
        kept = [columns >= 0 for columns, *_ in self.rows]
        cost = np.zeros(self.num_columns)
        cost[columns.ravel()] = prices.ravel()
        model.num_col_, model.num_row_ = self.num_columns, sum(map(len, kept))
        model.col_cost_ = cost
        model.col_lower_, model.col_upper_ = np.zeros(self.num_columns), np.full(self.num_columns, np.inf)
        model.row_lower_ = np.concatenate([np.full(len(k), row[2]) for k, row in zip(kept, self.rows, strict=True)])
        model.row_upper_ = np.concatenate([np.full(len(k), row[3]) for k, row in zip(kept, self.rows, strict=True)])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        counts = np.concatenate([k.sum(1) for k in kept])
        model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        chosen = list(zip(kept, self.rows, strict=True))
        model.a_matrix_.index_ = np.concatenate([row[0][k] for k, row in chosen]).astype(np.int32)
        model.a_matrix_.value_ = np.concatenate([row[1][k] for k, row in chosen])
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.passModel(model)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return 0.0
        return float(solver.getInfo().objective_function_value)
