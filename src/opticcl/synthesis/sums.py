"""Pieces whose sum several ranks want, as a task of the search.

hubs              up, exchange, down; each part closed by itself
symmetric sums    the reduction model with all ranks alike; what it finds is a schedule, what it does not find may exist
sums              the whole reduction model; no solution here is a proof
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
from opticcl.synthesis.symmetric import all_alone, translations
from opticcl.synthesis.wafer import Wafer

__all__ = ["Sums"]


@dataclass(slots=True, eq=False)
class _Parts:
    """What is known of one way by hubs."""

    hubs: Hubs
    up: Gap
    middle: Draft
    down: Gap

    @property
    def rounds(self) -> int:
        return len(self.up.draft) + len(self.middle) + len(self.down.draft)

    @property
    def least(self) -> int:
        return self.up.bound.rounds + len(self.middle) + self.down.bound.rounds


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

    def start(self, clock: Clock, told: Told) -> Gap:
        """The best way by hubs, each part constructed."""
        bound = highest(list(sum_bounds(self.wafer, self.before, self.after)))
        best, how = None, "nothing to do"
        others = (self.before.sum(axis=1)[:, None] - self.before) > 0
        if not (self.after & others).any():
            return Gap([], how, bound)
        for hubs in ways(self.wafer, self.before, self.after):
            if best is not None and (hubs.least >= len(best) or len(best) <= bound.rounds or clock.left_s <= 0):
                break
            told(f"{hubs.name}: bound {bound.rounds}" + (f", best {len(best)} ({how})" if best is not None else ""))
            parts = self._tried(hubs, clock)
            if parts is None:
                continue
            self._parts.append(parts)
            if best is None or parts.rounds < len(best):
                best, how = self._draft(parts), hubs.name
        return Gap(best or [], how, bound)

    def _tried(self, hubs: Hubs, clock: Clock) -> _Parts | None:
        """Each part constructed; None if one cannot be."""
        middle = exchanged(self.wafer, hubs, 1 << 30)
        up, down = self._tasks(hubs)
        gaps = [task.start(clock, lambda text: None) for task in (up, down)]
        if middle is None or any(gap.bound.rounds and not gap.draft for gap in gaps):
            return None
        return _Parts(hubs, gaps[0], middle, gaps[1])

    def _tasks(self, hubs: Hubs) -> tuple[Spread, Spread]:
        """What spreads from the hubs, with time turned round and straight on."""
        holds = hubs.flags(self.wafer.num_ranks)
        up = Spread(self.wafer.backwards(), holds, holds | self.before, self.seed)
        return up, Spread(self.wafer, holds, holds | self.after, self.seed)

    def _draft(self, parts: _Parts) -> Draft:
        """One after the other."""
        return in_turn(turned_round(parts.up.draft, self.wafer.backwards()), parts.middle, parts.down.draft)

    def ask(self, rounds: int, effort: float, clock: Clock, gap: Gap) -> Iterator[Answer]:
        """By hubs, symmetric, whole."""
        for parts in self._parts:
            if parts.least <= rounds < parts.rounds:
                for task, open_gap in zip(self._tasks(parts.hubs), (parts.up, parts.down), strict=True):
                    close(task, open_gap, clock, lambda text: None, effort)
                found = parts.rounds <= rounds
                yield Answer(parts.hubs.name, "found" if found else "unknown", self._draft(parts) if found else [])
        pieces, ranks = self.before.shape
        alone = all_alone(pieces, ranks)
        alike = translations(pieces, ranks) if self.before.all() and self.after.all() else None
        for how, orbits in (("symmetric sums", alike), ("sums", alone)):
            if orbits is None or num_products(rounds, orbits) > MOST_PRODUCTS:
                continue
            answer, draft = sums_in(
                rounds, self.wafer, self.before, self.after, clock, orbits, effort=effort, seed=self.seed
            )
            light = lit(self.wafer, draft, clock, self.seed, effort) if answer else None
            said = {None: "unknown", False: "none", True: "found" if light else "no light"}[answer]
            if how == "symmetric sums" and said == "none":
                said = "none that is symmetric"
            yield Answer(how, said, light or [], SEARCHED.format(rounds))
