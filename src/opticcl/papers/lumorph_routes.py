"""LUMORPH's claims about routes, waveguides, rounds of arbitrary transfers and the rate of a laser."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from opticcl.data import load
from opticcl.evaluate.studies._lumorph import RADICES, rounds_of
from opticcl.evaluate.studies.overlap import most_by_chance
from opticcl.evaluate.studies.reconfigurations import rounds_needed
from opticcl.evaluate.studies.transfers import busiest_sender, random_transfers
from opticcl.fabric.lightpath import near_square
from opticcl.papers import claim
from opticcl.physics.modulation import line_rate_bits_per_s
from opticcl.plan import Plan, compile
from opticcl.routing.grid import Grid
from opticcl.routing.least_overlap import least_overlap
from opticcl.routing.transfer_rounds import greedy_rounds

GRID = (16, 16)
DRAWS = 3


@cache
def by_chance(radix: int, numbering: str, shape: tuple[int, int] = GRID, draws: int = DRAWS) -> float:
    """Circuits on the fullest edge, mean of random shortest paths."""
    return float(np.mean(most_by_chance(shape, radix, numbering, draws, 0)))


@cache
def least(radix: int, numbering: str) -> float:
    """Circuits on the fullest edge of least-overlap routes."""
    found = [least_overlap(Grid(*GRID), src, dst) for src, dst in rounds_of(GRID, radix, numbering, 0)]
    return max(routes.max_overlap for routes in found)


@cache
def on_random_routes(radix: int, waveguides: int) -> Plan:
    """A judged all-reduce of 256 GPUs at random places."""
    where = f"lightpath:waveguides={waveguides},waveguide_sharing=circuit,numbering=random,routing=random"
    made = compile(where, "all_reduce", 0, algorithm=f"lumorph:radix={radix}")
    made.verify().raise_if_bad()
    return made


def reconfigurations(radix: int, waveguides: int) -> int:
    """One a round."""
    return on_random_routes(radix, waveguides).simulate(preset="lumorph").num_rounds


@claim("lumorph", "L2")
def pam4() -> list[float]:
    """In Gb/s."""
    widths_hz = load("papers/lumorph_routes.toml")["L2"]["spectral_width_hz"]
    return [line_rate_bits_per_s(width, 4) / 1e9 for width in widths_hz]


@claim("lumorph", "L18")
def routes_in_time() -> bool:
    """CPU seconds, the first call with what has to be compiled included."""
    started = time.process_time()
    for nodes in (16, 32, 64, 128):
        shape = near_square(nodes)
        rounds = (pair for radix in RADICES for pair in rounds_of(shape, radix, "random", 0))
        if not all(least_overlap(Grid(*shape), src, dst).optimal for src, dst in rounds):
            return False
    return time.process_time() - started < 100


@claim("lumorph", "L19")
def chance_is_worse() -> bool:
    """By at least a half."""
    return all(by_chance(radix, "random") > 1.5 * least(radix, "random") for radix in RADICES)


@claim("lumorph", "L19.squares")
def chance_is_worse_on_squares() -> bool:
    """LUMORPH-2."""
    return by_chance(2, "squares") > least(2, "squares")


@claim("lumorph", "L19.radix")
def quadrupling_overlaps_more() -> bool:
    """Both ways."""
    return by_chance(4, "random") > by_chance(2, "random") and least(4, "random") > least(2, "random")


@claim("lumorph", "L20.random")
def waveguides_for_random_routes() -> float:
    """LUMORPH-4, mean of ten draws."""
    return by_chance(4, "squares", draws=10)


@claim("lumorph", "L20.chain")
def thirty_are_enough_for_a_chain() -> bool:
    """LUMORPH-4."""
    return by_chance(4, "random", (32, 8)) <= 30


@claim("lumorph", "L21")
def more_waveguides_fewer_rounds() -> bool:
    """LUMORPH-4."""
    return reconfigurations(4, 40) < reconfigurations(4, 20)


@claim("lumorph", "L21.radix2")
def more_waveguides_fewer_rounds_radix2() -> bool:
    """LUMORPH-2."""
    return reconfigurations(2, 40) < reconfigurations(2, 20)


@claim("lumorph", "L28.bound")
def rounds_over_bound() -> float:
    """LUMORPH-4 on 10 waveguides."""
    return reconfigurations(4, 10) / rounds_needed(on_random_routes(4, 10))


@claim("lumorph", "L29")
def lasers_asked_for() -> int:
    """By the busiest sender in any round."""
    src, dst = random_transfers(256, 0.5, 0)
    return busiest_sender(src, greedy_rounds(src, dst, 1, 16, variant="printed"))
