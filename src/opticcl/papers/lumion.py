"""Lumion's claims, by the group of LUMORPH: spare chips of a rack take the place of failed ones; the abstract alone is at hand.

A rack is a torus of 4 x 4 x 4 chips. Where a chip of a slice fails and a free chip elsewhere in the rack takes its place, the
messages to and from it pass other chips and share links. On an optical fabric circuits join it as they joined the failed one.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.plans.plan import compile

SLICES = ((0, 1, 2, 3), (0, 1, 4, 5), (0, 1, 4, 5, 16, 17, 20, 21))
"""A row of the rack, a square and a cube; the last chip fails."""
EVERY = 4  # of the free chips in the order of their numbers


@cache
def slow_downs(where: str) -> tuple[float, ...]:
    """Of the all-reduce of each slice, mean over spare chips of the rack: the fastest plan after over that before."""
    rules = assumptions("lumorph")  # bytes over rate, without costs of messages or sums

    def time_s(chips: tuple[int, ...]) -> float:
        plan = compile(where, "all_reduce", "1 GB", nodes=chips, assumptions=rules, ignore_light=True)
        plan.verify().raise_if_bad()
        return plan.simulate(assumptions=rules).total_s

    ratios = []
    for chips in SLICES:
        spares = [chip for chip in range(64) if chip not in chips][::EVERY]
        ratios.append(float(np.mean([time_s((*chips[:-1], spare)) for spare in spares])) / time_s(chips))
    return tuple(ratios)


def messages_gain() -> tuple[float, ...]:
    """By which an optical rack beats the torus after the replacement, by slice; both were as fast before."""
    torus, optical = slow_downs("torus:shape=4x4x4"), slow_downs("lightpath:shape=8x8")
    return tuple(a / b for a, b in zip(torus, optical, strict=True))


@claim("lumion", "N1", "N1")
@claim("lumion", "N1.share", "N1.share")
def fine_tuning_rate(id: str) -> Found:
    """Of an iteration of which the messages are the row's share before the failure."""
    share = printed_claims("lumion")[id]["share"]
    gains = [1 - share + share * gain for gain in messages_gain()]
    return found(float(np.mean(gains)), least=min(gains), most=max(gains))
