"""Algorithm 1 for reductions as a decision model: is there a schedule in which every part enters every sum exactly once?

    x[r, p, s, d]    rank s sends its partial sum of piece p to rank d in round r
    keep[r, p, d]    rank d adds what arrives to its own; otherwise it is replaced by the single thing that arrives
    H[r, p, d, o]    the partial sum of p on d before round r contains the part of rank o

    H[r + 1, p, d, o] = keep[r, p, d] H[r, p, d, o] + sum_s x[r, p, s, d] H[r, p, s, o]      H[0] = parts, H[R] = sums

As an equality of 0/1 variables this cannot count a part twice. Lasers, photodiodes and edges as in `model`. Variables
of one orbit (`Orbits`) are one variable.

Source: own model; LUMORPH's algorithm 1 moves chunks and has no reductions.
Reading: rank d could also replace its partial sum by the sum of several that arrive. No operation of a schedule expresses
that (`Op`), and none of the optimal schedules found needs it, so it is left out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.model import on_routes
from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.solver import Clock, run
from opticcl.synthesis.symmetric import Orbits
from opticcl.synthesis.wafer import Wafer

__all__ = ["MOST_PRODUCTS", "num_products", "solve_reduction"]

MOST_PRODUCTS = 200_000

Flags = npt.NDArray[np.bool_]


def num_products(rounds: int, orbits: Orbits) -> int:
    """Products of variables in the model [count]."""
    _, ranks, _ = orbits.part.shape
    return rounds * len(orbits.one_of_each_sum) * ranks * ranks


def solve_reduction(
    rounds: int,
    wafer: Wafer,
    before: Flags,
    after: Flags,
    clock: Clock,
    orbits: Orbits,
    *,
    effort: float,
    seed: int,
) -> tuple[bool | None, SendRounds]:
    """Solve the model for a number of rounds.

    Args:
        rounds: rounds of the schedule [count].
        wafer: optical resources of the job.
        before, after: which rank holds a part of each piece, and which needs the sum, bool (pieces, ranks).
        clock: time limit.
        orbits: variables that are equal.
        effort, seed: deterministic time and seed of the solver.
    Returns: (whether a schedule that respects the orbits exists, None if not known; sends with paths and without wavelengths).
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    sums = _ReductionModel(model, wafer, before, after, orbits)
    for r in range(rounds):
        sums.add_round(r, last=r == rounds - 1)
    counts = on_routes(model, wafer, sums.of_pair)
    for piece in range(len(before)):  # N - 1 sends until a first rank holds the sum, one for each other
        needed = int(before[piece].sum() - 1 + after[piece].sum() - (before[piece] & after[piece]).any())
        model.add(sum(x for (_, p, _, _), x in sums.sent.items() if p == piece) >= needed)
    answer, solver = run(model, clock, effort=effort, seed=seed)
    schedule: SendRounds = [[] for _ in range(rounds)]
    if answer:
        left = {key: [solver.value(count) for count in some] for key, some in counts.items()}
        for (r, piece, src, dst), x in sums.sent.items():
            if solver.value(x):
                route = next(i for i, count in enumerate(left[r, src, dst]) if count)
                left[r, src, dst][route] -= 1
                adds = bool(solver.value(sums.keep[r, piece, dst]))
                schedule[r].append(PieceSend(piece, src, dst, adds, path=wafer.routes[src, dst][route]))
    return answer, schedule


class _ReductionModel:
    """The model, built round by round."""

    def __init__(self, model: Any, wafer: Wafer, before: Flags, after: Flags, orbits: Orbits) -> None:
        self._model, self._wafer, self._orbits = model, wafer, orbits
        self._before, self._after = before, after
        self._members = before | after
        self.of_pair: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
        self.sent: dict[tuple[int, int, int, int], Any] = {}
        self.keep: dict[tuple[int, int, int], Any] = {}
        pieces, ranks = before.shape
        self._has: dict[int, Any] = {
            int(orbits.part[p, d, o]): int(d == o and before[p, d])
            for p in range(pieces)
            for d in range(ranks)
            for o in range(ranks)
        }

    def add_round(self, r: int, last: bool) -> None:
        """Variables and equalities of one round."""
        model, orbits = self._model, self._orbits
        x: dict[int, Any] = {}
        at_sender, at_receiver = defaultdict(list), defaultdict(list)
        for piece, src, dst in np.argwhere(self._members[:, :, None] & self._members[:, None, :]).tolist():
            if src == dst or not self._wafer.routes[src, dst]:
                continue
            send = int(orbits.send[piece, src, dst])
            if send not in x:
                x[send] = model.new_bool_var("")
            self.sent[r, piece, src, dst] = x[send]
            at_sender[src].append(x[send])
            at_receiver[dst].append(x[send])
            self.of_pair[r, src, dst].append(x[send])
        self._require_held_parts(x)
        for ends, light in ((at_sender, self._wafer.lasers), (at_receiver, self._wafer.photodiodes)):
            for rank, some in ends.items():
                model.add(sum(some) <= int(light[rank].sum()))
        keep = {int(k): model.new_bool_var("") if r else 1 for k in np.unique(orbits.sum)}
        for piece, dst in np.argwhere(self._members).tolist():
            self.keep[r, piece, dst] = keep[int(orbits.sum[piece, dst])]
        then: dict[int, Any] = {}
        for piece, dst in orbits.one_of_each_sum.tolist():
            if self._members[piece, dst]:
                self._add_sum(r, piece, dst, x, then, last)
        self._has = then

    def _require_held_parts(self, x: dict[int, Any]) -> None:
        """A rank sends of a piece only what it holds a part of."""
        for piece, src in self._orbits.one_of_each_sum.tolist():
            parts = [self._has.get(int(part), 0) for part in np.unique(self._orbits.part[piece, src])]
            if any(isinstance(part, int) and part for part in parts):
                continue
            some = [part for part in parts if not isinstance(part, int)]
            for send in np.unique(self._orbits.send[piece, src]).tolist():
                if send in x:
                    self._model.add_bool_or([*some, ~x[send]])

    def _add_sum(self, r: int, piece: int, dst: int, x: dict[int, Any], then: dict[int, Any], last: bool) -> None:
        """The partial sum of one piece on one rank after the round."""
        model, orbits = self._model, self._orbits
        ranks = np.flatnonzero(self._members[piece]).tolist()
        coming = {src: x[int(orbits.send[piece, src, dst])] for src in ranks if (r, piece, src, dst) in self.sent}
        keep = self.keep[r, piece, dst]
        if not isinstance(keep, int):
            model.add(sum(coming.values()) == 1).only_enforce_if(~keep)
        for origin in range(len(self._before[piece])):
            part = int(orbits.part[piece, dst, origin])
            if last and self._after[piece, dst]:
                result: Any = int(self._before[piece, origin])
            elif not self._before[piece, origin]:
                result = 0
            else:
                result = model.new_bool_var("")
            then[part] = result
            terms = [self._product(keep, self._has.get(part, 0))]
            for src, sent in coming.items():
                terms.append(self._product(sent, self._has.get(int(orbits.part[piece, src, origin]), 0)))
            model.add(sum(terms) == result)

    def _product(self, a: Any, b: Any) -> Any:
        """a b of two 0/1 variables or numbers."""
        if isinstance(a, int):
            return b if a else 0
        if isinstance(b, int):
            return a if b else 0
        both = self._model.new_bool_var("")
        self._model.add_implication(both, a)
        self._model.add_implication(both, b)
        self._model.add_bool_or(both, ~a, ~b)
        return both
