"""LUMORPH's claims about routes, waveguides, rounds of arbitrary transfers and the rate of a laser."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from opticcl.fabrics import near_square
from opticcl.optics.modulation import line_rate_bits_per_s
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.plans.plan import Plan, compile
from opticcl.routing.grid import Grid
from opticcl.routing.least_overlap import least_overlap
from opticcl.routing.transfer_rounds import greedy_rounds, optimal_rounds
from opticcl.studies.lumorph import RADICES, counted_by_circuits, random_overlaps, rounds_needed, rounds_of
from opticcl.studies.transfers import busiest_sender, random_transfers
from opticcl.verify.time.isolation import verify_together

GRID = (16, 16)
DRAWS = 3


@cache
def random_overlap(radix: int, numbering: str, shape: tuple[int, int] = GRID) -> float:
    """Circuits on the most congested edge with random shortest paths, mean of several draws.

    Args:
        radix: of LUMORPH.
        numbering: placement of the nodes on the tiles.
        shape: rows and columns of the grid.
    """
    return float(np.mean(random_overlaps(shape, radix, numbering, DRAWS)))


@cache
def smallest_overlap(radix: int, numbering: str) -> float:
    """Circuits on the most congested edge of least-overlap routes."""
    routings = [least_overlap(Grid(*GRID), src, dst) for src, dst in rounds_of(GRID, radix, numbering, 0)]
    return max(routes.max_overlap for routes in routings)


@cache
def on_random_routes(radix: int, waveguides: int) -> Plan:
    """A verified all-reduce of 256 GPUs on random tiles, its rounds counted in circuits."""
    where = "lightpath:waveguides=256,numbering=random,routing=random"
    made = counted_by_circuits(compile(where, "all_reduce", 0, algorithm=f"lumorph:radix={radix}"), waveguides)
    made.verify().raise_if_bad()
    return made


def reconfigurations(radix: int, waveguides: int) -> int:
    """One per round."""
    return on_random_routes(radix, waveguides).simulate(assumptions="lumorph").num_rounds


@claim("lumorph", "L2")
def pam4() -> list[float]:
    """In Gb/s."""
    widths_hz = printed_claims("lumorph")["L2"]["spectral_width_hz"]
    return [line_rate_bits_per_s(width, 4) / 1e9 for width in widths_hz]


@claim("lumorph", "L18")
def routes_in_time() -> bool:
    """CPU time, compilation of the kernels included."""
    started = time.process_time()
    for nodes in (16, 32, 64, 128):
        shape = near_square(nodes)
        rounds = (pair for radix in RADICES for pair in rounds_of(shape, radix, "random", 0))
        if not all(least_overlap(Grid(*shape), src, dst).optimal for src, dst in rounds):
            return False
    return time.process_time() - started < 100


@claim("lumorph", "L19")
def random_routes_overlap_more() -> Found:
    """By more than a half."""
    overlaps = {radix: (random_overlap(radix, "random"), smallest_overlap(radix, "random")) for radix in RADICES}
    facts = {
        f"{name}_{radix}": pair[i] for radix, pair in overlaps.items() for i, name in enumerate(("random", "least"))
    }
    return found(all(randomly > 1.5 * least for randomly, least in overlaps.values()), **facts)


@claim("lumorph", "L19.squares")
def random_routes_overlap_more_on_squares() -> Found:
    """LUMORPH-2."""
    least = smallest_overlap(2, "squares")
    return found(random_overlap(2, "squares") > least, least=least)


@claim("lumorph", "L19.radix")
def quadrupling_overlaps_more() -> bool:
    """Both ways."""
    return random_overlap(4, "random") > random_overlap(2, "random") and smallest_overlap(
        4, "random"
    ) > smallest_overlap(2, "random")


@claim("lumorph", "L20.random")
def waveguides_for_random_routes() -> Found:
    """LUMORPH-4, mean of ten draws."""
    draws = random_overlaps(GRID, 4, "squares", 10)
    bound = max(least_overlap(Grid(*GRID), src, dst).bound for src, dst in rounds_of(GRID, 4, "squares", 0))
    return found(float(np.mean(draws)), worst=max(draws), least=smallest_overlap(4, "squares"), bound=bound)


@claim("lumorph", "L20.chain")
def thirty_are_enough_for_a_chain() -> Found:
    """LUMORPH-4."""
    needed = random_overlap(4, "random", (32, 8))
    return found(needed <= 30, needed=needed, square=random_overlap(4, "random"))


@claim("lumorph", "L21", 4)
@claim("lumorph", "L21.radix2", 2)
def more_waveguides_fewer_rounds(radix: int) -> Found:
    """Rounds with 40 waveguides and with 20."""
    many, few = reconfigurations(radix, 40), reconfigurations(radix, 20)
    return found(many < few, many=many, few=few, overlap=random_overlap(radix, "random"))


@claim("lumorph", "L21.waveguide")
def more_waveguides_fewer_rounds_end_to_end() -> Found:
    """LUMORPH-4, each circuit on one waveguide."""

    def reconfigurations_of(waveguides: int) -> int:
        where = f"lightpath:waveguides={waveguides},switch_unit=waveguide,numbering=random,routing=random"
        made = compile(where, "all_reduce", 0, algorithm="lumorph:radix=4")
        made.verify().raise_if_bad()
        return made.simulate(assumptions="lumorph").num_rounds

    many, few = reconfigurations_of(40), reconfigurations_of(20)
    return found(many < few, many=many, few=few)


@claim("lumorph", "L28.bound")
def rounds_over_bound() -> float:
    """LUMORPH-4 on 10 waveguides."""
    return reconfigurations(4, 10) / rounds_needed(on_random_routes(4, 10), 10)


@claim("lumorph", "L29")
def lasers_needed() -> Found:
    """Most lasers that a sender needs in a round."""
    src, dst = random_transfers(256, 0.5, 0)
    greedy, fewest = greedy_rounds(src, dst, 16), optimal_rounds(src, dst, 16)
    needed = busiest_sender(src, greedy_rounds(src, dst, 16, variant="printed"))
    return found(needed, greedy=greedy.num_rounds, fewest=fewest.num_rounds, bound=fewest.bound)


@claim("lumorph", "L1.jobs")
def jobs_on_scattered_chips() -> bool:
    """Three jobs on chips of a 4 x 4 wafer that are no neighbours: each verifies, and they do so together in every round."""
    running: list[Plan] = []
    for nodes in ([0, 3, 12, 15], [1, 6, 8, 11, 13], [2, 5, 10]):
        running.append(compile("lightpath:shape=4x4", "all_reduce", "100 MB", nodes=nodes, beside=running))
    return all(plan.verify().ok for plan in running) and verify_together([plan.circuits for plan in running]).ok
