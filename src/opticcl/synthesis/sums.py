"""Pieces whose sum several ranks want, as a task of the search.

hubs                 up, exchange, down; each part closed by itself
sums, q ranks alike  the reduction model with symmetry, all ranks alike, then fewer; what it does not find may exist
sums                 the whole reduction model; no solution here is a proof
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.bounds import highest, sum_bounds
from opticcl.synthesis.draft import Draft, in_turn, turned_round
from opticcl.synthesis.gap import Answer, Gap, Told, close
from opticcl.synthesis.hubs import Hubs, exchanged, ways
from opticcl.synthesis.light import lit
from opticcl.synthesis.reduction import MOST_PRODUCTS, num_products, sums_in
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.spread import SEARCHED, Spread
from opticcl.synthesis.symmetric import translations
from opticcl.synthesis.wafer import Wafer

__all__ = ["Sums"]


@dataclass(slots=True, eq=False)
class _Parts:
    """One way by hubs, and what is known of each of its parts.

    Args:
        up: what spreads from the hubs with time turned round, and how far that is.
        middle: what the hubs exchange.
        down: what spreads from the hubs, and how far that is.
    """

    name: str
    up: tuple[Spread, Gap]
    middle: Draft
    down: tuple[Spread, Gap]

    @property
    def rounds(self) -> int:
        return len(self.middle) + sum(len(gap.draft) for _, gap in (self.up, self.down))

    @property
    def least(self) -> int:
        return len(self.middle) + sum(gap.bound.rounds for _, gap in (self.up, self.down))

    def draft(self) -> Draft:
        """One after the other."""
        task, up = self.up
        return in_turn(turned_round(up.draft, task.wafer), self.middle, self.down[1].draft)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums that several ranks want.

    Args:
        wafer: the light.
        before, after: who has a part of each piece, and who wants the sum, bool (pieces, ranks).
        seed: of everything that is drawn.
    """

    wafer: Wafer
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]
    seed: int
    _parts: list[_Parts] = field(default_factory=list)
    _ruled_out: set[tuple[int, int]] = field(default_factory=set)  # (rounds, ranks alike)

    def start(self, clock: Clock, told: Told) -> Gap:
        """The best way by hubs, each part constructed."""
        bound = highest(list(sum_bounds(self.wafer, self.before, self.after)))
        best, how = None, "nothing to do"
        others = (self.before.sum(axis=1)[:, None] - self.before) > 0
        if not (self.after & others).any():
            return Gap([], how, bound)
        backwards = self.wafer.backwards()
        for hubs in ways(self.wafer, self.before, self.after):
            if best is not None and (hubs.least >= len(best) or len(best) <= bound.rounds or clock.left_s <= 0):
                break
            told(f"{hubs.name}: bound {bound.rounds}" + (f", best {len(best)} ({how})" if best is not None else ""))
            parts = self._tried(hubs, backwards, clock)
            if parts is None:
                continue
            self._parts.append(parts)
            if best is None or parts.rounds < len(best):
                best, how = parts.draft(), hubs.name
        return Gap(best or [], how, bound)

    def _tried(self, hubs: Hubs, backwards: Wafer, clock: Clock) -> _Parts | None:
        """Each part constructed; None if one cannot be."""
        middle = exchanged(self.wafer, hubs, 1 << 30)
        holds = hubs.flags(self.wafer.num_ranks)
        up = Spread(backwards, holds, holds | self.before, self.seed)
        down = Spread(self.wafer, holds, holds | self.after, self.seed)
        gaps = [task.start(clock, lambda text: None) for task in (up, down)]
        if middle is None or any(gap.bound.rounds and not gap.draft for gap in gaps):
            return None
        return _Parts(hubs.name, (up, gaps[0]), middle, (down, gaps[1]))

    def ask(self, rounds: int, effort: float, clock: Clock, gap: Gap) -> Iterator[Answer]:
        """By hubs, symmetric, whole."""
        for parts in self._parts:
            if parts.least <= rounds < parts.rounds:
                for task, open_gap in (parts.up, parts.down):
                    close(task, open_gap, clock, lambda text: None, effort)
                found = parts.rounds <= rounds
                yield Answer(parts.name, "found" if found else "unknown", parts.draft() if found else [])
        pieces, ranks = self.before.shape
        everybody = bool(self.before.all() and self.after.all())
        for order in range(ranks if everybody else 1, 0, -1):
            if ranks % order or (rounds, order) in self._ruled_out:
                continue
            orbits = translations(pieces, ranks, order)
            if num_products(rounds, orbits) > MOST_PRODUCTS:
                continue
            answer, draft = sums_in(
                rounds, self.wafer, self.before, self.after, clock, orbits, effort=effort, seed=self.seed
            )
            light = lit(self.wafer, draft, clock, self.seed, effort) if answer else None
            said = {None: "unknown", False: "none", True: "found" if light else "no light"}[answer]
            if order > 1 and answer is False:
                self._ruled_out.add((rounds, order))
                said = "none that is symmetric"
            how = f"sums, {order} ranks alike" if order > 1 else "sums"
            yield Answer(how, said, light or [], SEARCHED.format(rounds))
