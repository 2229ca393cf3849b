"""LUMORPH's claims: the alpha-beta times of section 5, the pieces of appendix B, waveguides.

The electrical rival of section 5 is the ideal switch with the same 300 GB/s a GPU and an alpha of 0.7 us.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.papers import Found, claim, found
from opticcl.papers._inverse import argument_of
from opticcl.plans.plan import Plan, compile
from opticcl.schedule.lumorph import digits, rank_of_node
from opticcl.simulate import Profile, profile
from opticcl.studies.lumorph import counted_by_circuits

KB, MB = 1_000, 1_000_000
SHARED_LASERS = "lightpath:lasers=15,laser_rate=160 Gb/s"  # the node rate of 16 lasers, in three equal parts
EVERY = 256  # waveguides, one for every node: no step is split for want of them
SIXTEEN_GPUS = "lightpath:shape=4x4"


@cache
def plan(algorithm: str, where: str = "lightpath", collective: str = "all_reduce") -> Plan:
    """A plan for a message of 1 MB, on the 256 GPUs of LIGHTPATH by default; results are cached.

    Args:
        algorithm: with parameters.
        where: fabric.
        collective: canonical name.
    """
    return compile(where, collective, MB, algorithm=algorithm)


def rival() -> str:
    """The ideal switch with the nodes, node rate and alpha of LIGHTPATH."""
    wafer = fabric("lightpath")
    return f"ideal:nodes={wafer.num_nodes},rate={wafer.node_rate_bits_per_s},latency={wafer.latency_s}"


@cache
def _profile(algorithm: str, where: str) -> Profile:
    """Times by the paper's model: alpha with reconfiguration on every round, reductions are free."""
    return profile(plan(algorithm, where).circuits, assumptions("lumorph"))


def time_s(algorithm: str, size: float, where: str = "lightpath") -> float:
    """Time of an all-reduce by the paper's model [s].

    Args:
        algorithm: with parameters.
        size: of the buffer [bytes].
        where: fabric.
    """
    return _profile(algorithm, where).timeline(round(size), bounded=False).total_s


def saved(algorithm: str, against: str, size: float, where: str = "lightpath") -> float:
    """Fraction of the rival's time that LIGHTPATH saves.

    Args:
        algorithm: on LIGHTPATH.
        against: algorithm on the ideal switch.
        size: of the buffer [bytes].
        where: LIGHTPATH, with parameters.
    """
    return 1 - time_s(algorithm, size, where) / time_s(against, size, rival())


def break_even_us(algorithm: str, size: float) -> float:
    """Reconfiguration at which it takes as long as the ring; times are linear in the reconfiguration [us]."""
    spare_s = time_s("ring", size, rival()) - time_s(algorithm, size, "lightpath:reconfiguration=0 us")
    return spare_s / _profile(algorithm, "lightpath").timeline(0).num_rounds * 1e6


def equal_size(algorithm: str, against: str, against_where: str) -> float:
    """Size of the buffer at which two algorithms take the same time; times are linear in the size [bytes].

    Args:
        algorithm: on LIGHTPATH.
        against: the other algorithm.
        against_where: fabric of the other algorithm.
    """
    (fixed_s, per_mb_s), (other_s, other_per_mb_s) = (
        (time_s(name, 0, where), time_s(name, MB, where) - time_s(name, 0, where))
        for name, where in ((algorithm, "lightpath"), (against, against_where))
    )
    return (other_s - fixed_s) / (per_mb_s - other_per_mb_s) * MB


def sent(made: Plan) -> float:
    """Most data that a GPU sends, in buffers."""
    schedule = made.schedule
    total = np.zeros(schedule.collective.num_ranks)
    for steps in schedule.step_classes():
        step = schedule.step(steps.start)
        total += len(steps) * np.bincount(step.src, step.chunk_n, minlength=len(total))
    return float(total.max()) / schedule.collective.num_chunks


@claim("lumorph", "L13.scatter", "reduce_scatter")
@claim("lumorph", "L13.gather", "all_gather")
def pieces(collective: str) -> list[float]:
    """Fraction of the buffer that GPU 1 of 16 sends to each peer in the two steps, radix 4."""
    made = plan("lumorph:radix=4", SIXTEEN_GPUS, collective)
    made.verify().raise_if_bad()
    return [int(made.schedule.step(i).chunk_n[0]) / made.schedule.collective.num_chunks for i in range(2)]


@claim("lumorph", "L15", "bruck")
@claim("lumorph", "L16", "mesh", "lightpath:shape=2x4,lasers=8")
def all_to_all_rounds(algorithm: str, where: str = "lightpath") -> int:
    """Rounds of a verified plan."""
    made = plan(algorithm, where, "all_to_all")
    made.verify().raise_if_bad()
    return made.simulate(assumptions="lumorph").num_rounds


def congestion(made: Plan) -> list[int]:
    """Most circuits on an edge in each round of the plan."""
    rounds = (circuits for i in range(made.schedule.num_steps) for circuits in made.circuits.rounds(i))
    return [int(np.bincount(circuits.hops).max()) for circuits in rounds]


@claim("lumorph", "L1")
def node_rate() -> float:
    """Rate of a GPU in GB/s."""
    return fabric("lightpath").node_rate_bits_per_s / 8e9


@claim("lumorph", "L1.laser")
def laser_rate() -> Found:
    """Rate of a laser in GB/s."""
    where = fabric("lightpath")
    return found(where.rate_bits_per_s / 8e9, node=where.node_rate_bits_per_s / 8e9, lasers=where.lasers_per_port)


@claim("lumorph", "L3")
def alpha() -> float:
    """Fixed time of a round in us: LUMORPH-2 with an empty buffer, over its rounds."""
    empty = _profile("lumorph", "lightpath").timeline(0)
    return empty.total_s / empty.num_rounds * 1e6


@claim("lumorph", "L4")
def bytes_sent() -> float:
    """The most of the three algorithms."""
    return max(sent(plan(a)) for a in ("ring", "lumorph:radix=2", "lumorph:radix=4"))


@claim("lumorph", "L5")
def divide_and_conquer() -> float:
    """In MB."""
    return equal_size("divide_and_conquer", "ring", rival()) / MB


@claim("lumorph", "L6")
def faster() -> float:
    """Time saved at 4 MB."""
    return saved("lumorph", "ring", 4 * MB)


@claim("lumorph", "L7")
def four_times() -> float:
    """Ratio of times at 4 MB."""
    return time_s("ring", 4 * MB, rival()) / time_s("lumorph", 4 * MB)


@claim("lumorph", "L8", "lumorph")
@claim("lumorph", "L8.radix4", "lumorph:radix=4")
def slow_switches(algorithm: str) -> Found:
    """Whether LUMORPH gains nothing at 4, 16 and 64 MB with a reconfiguration of 25 us."""
    slow = "lightpath:reconfiguration=25 us"
    wins = any(time_s(algorithm, size, slow) < time_s("ring", size, rival()) for size in (4 * MB, 16 * MB, 64 * MB))
    return found(not wins, small=break_even_us(algorithm, 0), large=break_even_us(algorithm, 64 * MB))


@claim("lumorph", "L9.radix2")
def large_buffers() -> Found:
    """Against the ring."""
    size = argument_of(lambda kb: -saved("lumorph", "ring", kb * KB), -0.8, 1, 10_000, tolerance=5)
    return found(saved("lumorph", "ring", 64 * MB), **_times_us("lumorph"), size_kb=size)


@claim("lumorph", "L9.radix4")
def large_buffers_radix4() -> Found:
    """Against the ring, five lasers for each of three peers."""
    name = "lumorph:radix=4"
    return found(
        saved(name, "ring", 64 * MB), **_times_us(name), shared=100 * saved(name, "ring", 64 * MB, SHARED_LASERS)
    )


@claim("lumorph", "L9.tree")
def large_buffers_tree() -> Found:
    """Against the binomial tree, the whole buffer on every level."""
    part = saved("lumorph", "tree", 64 * MB)
    return found(part, percent=100 * part)


def _times_us(algorithm: str) -> dict[str, float]:
    """Times of the ring and of an algorithm at 64 MB, as facts [us]."""
    return {"ring_us": time_s("ring", 64 * MB, rival()) * 1e6, "ours_us": time_s(algorithm, 64 * MB) * 1e6}


@claim("lumorph", "L10")
def always_lowest() -> Found:
    """Whether both are below ring and tree at every size."""
    lowest = all(
        saved(algorithm, against, size) > 0
        for size in (MB // 100, MB, 16 * MB, 1000 * MB)
        for algorithm in ("lumorph:radix=2", "lumorph:radix=4")
        for against in ("ring", "tree")
    )
    two, four = (equal_size(f"lumorph:radix={radix}", "tree", rival()) / MB for radix in (2, 4))
    return found(lowest, two_mb=two, four_mb=four)


@claim("lumorph", "L11")
def quadrupling_sends_more() -> Found:
    """Bytes sent, not time."""
    step = plan("lumorph:radix=4").circuits.rounds(0)[0]
    used = int(step.wavelength_n[step.src == 0].sum())
    more = sent(plan("lumorph:radix=4")) > sent(plan("lumorph:radix=2"))
    return found(more, used=used, lasers=fabric("lightpath").lasers_per_port)


@claim("lumorph", "L12")
def seven_peers() -> Found:
    """Radix 8, two of 16 lasers for each peer."""
    eight, four = (time_s(f"lumorph:radix={radix}", 64 * MB) for radix in (8, 4))
    equal_mb = equal_size("lumorph:radix=8", "lumorph:radix=4", "lightpath") / MB
    return found(eight >= four, eight_us=eight * 1e6, four_us=four * 1e6, equal_mb=equal_mb)


@claim("lumorph", "L13.total")
def gathered_in_all() -> float:
    """To all peers."""
    return sent(plan("lumorph:radix=4", SIXTEEN_GPUS, "all_gather"))


def numbers_of_chunks(chunks: np.ndarray) -> list[int]:
    """The paper's numbers: chunk n is the one that GPU n keeps, counted from 1."""
    rank = rank_of_node(digits(16, 4))
    return [int(gpu) + 1 for gpu in np.flatnonzero(np.isin(rank, chunks))]


def sent_by_gpu_1(step: int) -> dict[int, list[int]]:
    """Chunks by receiving GPU, all numbers from 1 as in the paper."""
    made = plan("lumorph:radix=4", SIXTEEN_GPUS).schedule.step(step)
    return {
        int(made.dst[i]) + 1: numbers_of_chunks(np.arange(made.chunk_lo[i], made.chunk_lo[i] + made.chunk_n[i]))
        for i in np.flatnonzero(made.src == 0)
    }


@claim("lumorph", "L14.chunks")
def chunks_for_gpu_4() -> list[int]:
    """First step."""
    return sent_by_gpu_1(0)[4]


@claim("lumorph", "L14.kept")
def chunks_kept() -> list[int]:
    """Chunks of GPU 1 that it sends to no peer."""
    gone = {chunk for chunks in sent_by_gpu_1(0).values() for chunk in chunks}
    return sorted(set(range(1, 17)) - gone)


@claim("lumorph", "L14.peers")
def second_peers() -> list[int]:
    """Second step."""
    return list(sent_by_gpu_1(1))


@claim("lumorph", "L16.rack")
def too_few_lasers() -> Found:
    """Whether the direct all-to-all of 256 takes more than one round."""
    needed = all_to_all_rounds("mesh")
    return found(needed > 1, rounds=needed, lasers=fabric("lightpath").lasers_per_port)


@claim("lumorph", "L20")
def thirty_waveguides() -> Found:
    """Whether every step takes one round, on 30 waveguides of one circuit each, rows or squares."""
    where = (f"lightpath:waveguides={EVERY},numbering={n}" for n in ("row", "squares"))
    made = [counted_by_circuits(plan(f"lumorph:radix={radix}", w), 30) for w in where for radix in (2, 4)]
    enough = all(len(congestion(m)) == m.schedule.num_steps and m.verify().ok for m in made)
    return found(enough, needed=max(max(congestion(m)) for m in made))


@claim("lumorph", "L20.waveguide")
def thirty_waveguides_end_to_end() -> Found:
    """The same where each circuit keeps one waveguide."""
    where = (f"lightpath:waveguides=30,switch_unit=waveguide,numbering={n}" for n in ("row", "squares"))
    made = [plan(f"lumorph:radix={radix}", w) for w in where for radix in (2, 4)]
    rounds = [m.circuits.rounds(i) for m in made for i in range(m.schedule.num_steps)]
    used = [int(c.waveguide.max(initial=-1)) + 1 for each in rounds for c in each if c.waveguide is not None]
    return found(all(len(each) == 1 for each in rounds) and all(m.verify().ok for m in made), needed=max(used))


@claim("lumorph", "L27")
def num_gpus() -> int:
    """The default grid."""
    return fabric("lightpath").num_nodes


@claim("lumorph", "L28", False)
@claim("lumorph", "L28.waveguide", True)
def rounds_of_an_overfull_round(end_to_end: bool) -> list[int]:
    """The most congested step of LUMORPH-4 on a half and on a quarter of the waveguides that it fills.

    Args: end_to_end: whether each circuit keeps one waveguide.
    """
    needed = max(congestion(plan("lumorph:radix=4")))

    def rounds(waveguides: int) -> int:
        if end_to_end:
            made = plan("lumorph:radix=4", f"lightpath:waveguides={waveguides},switch_unit=waveguide")
        else:
            made = counted_by_circuits(plan("lumorph:radix=4", f"lightpath:waveguides={EVERY}"), waveguides)
        made.verify().raise_if_bad()
        return max(len(made.circuits.rounds(i)) for i in range(made.schedule.num_steps))

    return [rounds(needed // 2), rounds(needed // 4)]
