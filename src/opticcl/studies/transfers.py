"""Rounds of algorithm 3 for random layer-to-layer transfers, as printed and corrected, and the fewest possible."""

from __future__ import annotations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, ProgressCallback
from opticcl.routing.transfer_rounds import TransferRounds, greedy_rounds, max_degree, optimal_rounds
from opticcl.studies import STUDIES, Chart, Study

__all__ = ["busiest_sender", "random_transfers", "transfers"]

FRACTIONS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
MOST_NODES = 1024


@STUDIES.register("transfers")
def transfers(progress: ProgressCallback, *, nodes: int = 256, lasers: int = 16, seed: int = 0) -> Study:
    """How far is the greedy algorithm 3 from the fewest rounds?

    Each pair of GPUs has a transfer with a certain probability; each transfer takes one laser for one round. All rounds have
    at most `lasers` transfers at a sender and at a receiver, except those of the printed form, which exceed that.

    Args:
        progress: called with (what, done, total).
        nodes: GPUs [count].
        lasers: of a GPU, and photodiodes [count].
        seed: of the transfers and of the greedy algorithm.
    Source: LUMORPH appendix C, algorithm 3.
    """
    if not 2 <= nodes <= MOST_NODES or lasers < 1 or seed < 0:
        raise ParameterError(
            f"transfers: nodes={nodes}, lasers={lasers}, seed={seed}; try 2 to {MOST_NODES} nodes, lasers of 1 or more "
            "and a seed of 0 or more"
        )
    rows = []
    for done, fraction in enumerate(FRACTIONS):
        progress("schedule", done, len(FRACTIONS))
        src, dst = random_transfers(nodes, fraction, seed)
        for name, found in (
            ("greedy, as printed", greedy_rounds(src, dst, lasers, seed=seed, variant="printed")),
            ("greedy, corrected", greedy_rounds(src, dst, lasers, seed=seed)),
            ("edge colouring", optimal_rounds(src, dst, lasers)),
        ):
            rows.append(
                {
                    "probability": fraction,
                    "transfers": len(src),
                    "algorithm": name,
                    "rounds": found.num_rounds,
                    "at_least": found.bound,
                    "lasers_asked": busiest_sender(src, found),
                }
            )
    return Study(
        f"transfers:nodes={nodes},lasers={lasers},seed={seed}",
        f"Rounds for random transfers among {nodes} GPUs of {lasers} lasers",
        "LUMORPH algorithm 3",
        rows,
        Chart("probability", "rounds", ("algorithm",), "probability that a pair has a transfer", "rounds"),
        (
            f"lasers_asked: most lasers that one sender needs in a round; a GPU has {lasers}, which is why the printed form "
            "appears to need fewer rounds than the lower bound",
        ),
    )


def random_transfers(nodes: int, probability: float, seed: int) -> tuple[IntArray, IntArray]:
    """Senders and receivers of random transfers.

    Args:
        nodes: GPUs [count].
        probability: that an ordered pair has a transfer.
        seed: of the draw.
    """
    src, dst = np.nonzero(np.random.default_rng(seed).random((nodes, nodes)) < probability)
    return src[src != dst], dst[src != dst]


def busiest_sender(src: IntArray, found: TransferRounds) -> int:
    """Most circuits of one sender in one round."""
    rounds = (src[found.round_of == r] for r in range(found.num_rounds))
    return max((max_degree(s, np.arange(len(s))) for s in rounds), default=0)
