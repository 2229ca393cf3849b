"""Pieces that spread from those who hold them to those who want them, as a task of the search.

straight    every piece straight from a holder. R rounds of L wavelengths are then one round of R L wavelengths, and
            what is left is to colour circuits, for which the solver needs a second
passed on   the whole of Algorithm 1, where ranks hand on what they got; no solution here is a proof
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.alike import alike_draft
from opticcl.synthesis.bounds import highest, spread_bounds
from opticcl.synthesis.draft import Draft, Send
from opticcl.synthesis.gap import Answer, Gap, Told
from opticcl.synthesis.hints import candidates, straight
from opticcl.synthesis.light import coloured_by_solver, lit
from opticcl.synthesis.model import MOST_VARIABLES, num_variables, spread_in
from opticcl.synthesis.packing import Wish, pack
from opticcl.synthesis.product import product_draft
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.wafer import Wafer

__all__ = ["Spread"]

SEARCHED = "searched in full: no schedule of {} rounds on the given routes, if no rank passes on what it does not want"


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Copies and moves.

    Args:
        wafer: the light.
        before, after: who holds which piece at the start and at the end, bool (pieces, ranks).
        seed: of everything that is drawn.
    """

    wafer: Wafer
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]
    seed: int

    def start(self, clock: Clock, told: Told) -> Gap:
        """The best constructed schedule."""
        bound = highest(list(spread_bounds(self.wafer, self.before, self.after)))
        gap = Gap([], "nothing to do", bound)
        if not (self.after & ~self.before).any():
            return gap
        for name, make in self._constructions(bound.rounds):
            if gap.draft and (gap.closed or clock.left_s <= 0):
                break
            told(f"{name}: {gap}")
            draft = make(len(gap.draft) - 1 if gap.draft else 1 << 30)
            if draft is not None:
                gap.draft, gap.how = draft, name
        return gap

    def _constructions(self, bound: int) -> Iterator[tuple[str, Callable[[int], Draft | None]]]:
        """Their names, and functions that make them unless they take more than so many rounds."""
        held, wanted = self.before, self.after
        yield "rows and columns", lambda most: product_draft(self.wafer, held, wanted)
        for name, wishes in candidates(self.wafer, held, wanted, self.seed, bound):
            yield name, partial(_packed, self.wafer, held, wishes)
        yield "all alike", lambda most: alike_draft(self.wafer, held, wanted, self.seed, bound, most)

    def ask(self, rounds: int, effort: float, clock: Clock, gap: Gap) -> Iterator[Answer]:
        """Straight, then passed on."""
        sends = [self._on_first_route(wish) for wish in straight(self.wafer, self.before, self.after)]
        busiest = np.bincount([send.src for send in sends], minlength=self.wafer.num_ranks)
        if self.wafer.side_by_side and (busiest <= rounds * self.wafer.sends.sum(axis=1)).all():
            draft = self._straight(sends, rounds, effort, clock)
            yield Answer("straight", "found" if draft else "unknown", draft or [])
        passes_on = rounds > 1 and bool(((self.after & ~self.before).sum(axis=1) > 1).any())
        if num_variables(self.before, self.after, rounds, not passes_on) > MOST_VARIABLES:
            return
        answer, draft = spread_in(
            rounds, self.wafer, self.before, self.after, clock,
            effort=effort, seed=self.seed, direct=not passes_on, hint=gap.draft,
        )  # fmt: skip
        light = lit(self.wafer, draft, clock, self.seed, effort) if answer else None
        said = {None: "unknown", False: "none", True: "found" if light else "no light"}[answer]
        yield Answer("passed on" if passes_on else "straight", said, light or [], SEARCHED.format(rounds))

    def _straight(self, sends: list[Send], rounds: int, effort: float, clock: Clock) -> Draft | None:
        """All sends in one round of so many times as many wavelengths, cut into rounds afterwards."""
        stretched = replace(
            self.wafer, sends=np.tile(self.wafer.sends, rounds), hears=np.tile(self.wafer.hears, rounds)
        )
        light = coloured_by_solver(stretched, sends, clock, self.seed, effort)
        if light is None:
            return None
        draft: Draft = [[] for _ in range(rounds)]
        for send in light:
            number, wavelength = divmod(send.wavelength, self.wafer.num_wavelengths)
            draft[number].append(send._replace(wavelength=wavelength))
        return draft

    def _on_first_route(self, wish: Wish) -> Send:
        src = wish.senders[0]
        return Send(wish.piece, src, wish.dst, path=self.wafer.routes[src, wish.dst][0])


def _packed(wafer: Wafer, holds: npt.NDArray[np.bool_], wishes: list[Wish], most: int) -> Draft | None:
    return pack(wafer, holds, wishes, most=most)
