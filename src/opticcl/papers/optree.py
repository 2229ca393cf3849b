"""OpTree's claims: the reductions of its abstract at 1,024 nodes, from steps of one block; the text is not at hand.

A step sends one block on a wavelength. The abstract's averages over message sizes are then ratios of steps, whatever a step
takes. The abstract names no number of wavelengths; 64 are those of WRHT's paper.
"""

from __future__ import annotations

from functools import cache

from opticcl.papers import Found, claim, found, printed_claims
from opticcl.plans.plan import compile

NODES = 1024
WHERE = f"terarack:nodes={NODES},wavelengths=64"


@cache
def steps_of_a_block(algorithm: str) -> float:
    """Blocks that pass on the busiest wavelength, one after the other, of a verified all-gather with a block a node."""
    plan = compile(WHERE, "all_gather", NODES, algorithm=algorithm, ignore_light=True)
    plan.verify().raise_if_bad()
    blocks = 0.0
    for step in range(plan.schedule.num_steps):
        held = plan.schedule.step(step).chunk_n
        blocks += sum(float((held[c.transfer] / c.wavelength_n).max()) for c in plan.circuits.rounds(step))
    return blocks


@claim("optree", "T1")
def steps() -> Found:
    """With those that the printed reductions against two rings need."""
    printed = {id: entry["published"] for id, entry in printed_claims("optree").items()}
    needed = [
        steps_of_a_block(rival) * (1 - printed[id] / 100) for id, rival in (("T2", "ring"), ("T3", "two_sided_ring"))
    ]
    return found(steps_of_a_block("optree"), by_ring=needed[0], by_exchange=needed[1])


@claim("optree", "T2", "ring")
@claim("optree", "T3", "two_sided_ring")
@claim("optree", "T4", "wrht")
def reduction(rival: str) -> Found:
    """Of steps of a block [%]."""
    ours, theirs = steps_of_a_block("optree"), steps_of_a_block(rival)
    needed = ours / (1 - printed_claims("optree")["T4"]["published"] / 100)
    return found(100 * (1 - ours / theirs), steps=ours, theirs=theirs, needed=needed)
