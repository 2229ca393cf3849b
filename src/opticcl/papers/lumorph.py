"""LUMORPH's claims: the alpha-beta times of section 5, the pieces of appendix B, waveguides.

The electrical rival of section 5 is the ideal switch with the same 300 GB/s a GPU and an alpha of 0.7 us.
"""

from __future__ import annotations

import numpy as np

import opticcl
from opticcl.fabric import fabric
from opticcl.papers import claim
from opticcl.plan import Plan
from opticcl.schedule.lumorph import digits, rank_of_node

MB = 1_000_000
SIXTEEN_GPUS = "lightpath:shape=4x4"


def plan(algorithm: str, size: float = MB, where: str = "lightpath", collective: str = "all_reduce") -> Plan:
    """A plan for 256 GPUs on LIGHTPATH, or elsewhere."""
    return opticcl.compile(where, collective, size, algorithm=algorithm)


def rival() -> str:
    """The ideal switch with the nodes, node rate and alpha of LIGHTPATH."""
    wafer = fabric("lightpath")
    return f"ideal:nodes={wafer.num_nodes},rate={wafer.node_rate_bits_per_s},latency={wafer.latency_s}"


def time_s(algorithm: str, size: float, where: str = "lightpath") -> float:
    """By the paper's model: alpha with reconfiguration on every round, nothing for sums [s]."""
    return plan(algorithm, size, where).simulate(preset="lumorph").total_s


def saved(algorithm: str, against: str, size: float) -> float:
    """Part of the rival's time that LIGHTPATH saves."""
    return 1 - time_s(algorithm, size) / time_s(against, size, rival())


def wins_at_25_us(algorithm: str) -> bool:
    """Whether it beats the ring at any of 4, 16 and 64 MB with that reconfiguration."""
    slow = "lightpath:reconfiguration=25 us"
    return any(time_s(algorithm, size, slow) < time_s("ring", size, rival()) for size in (4 * MB, 16 * MB, 64 * MB))


def sent(made: Plan) -> float:
    """What the busiest GPU sends, in buffers."""
    schedule = made.schedule
    total = np.zeros(schedule.collective.num_ranks)
    for steps in schedule.step_classes():
        step = schedule.step(steps.start)
        total += len(steps) * np.bincount(step.src, step.chunk_n, minlength=len(total))
    return float(total.max()) / schedule.collective.num_chunks


def pieces(collective: str) -> list[float]:
    """Part of the buffer that GPU 1 of 16 sends to each peer in the two steps, radix 4."""
    made = plan("lumorph:radix=4", where=SIXTEEN_GPUS, collective=collective)
    made.verify().raise_if_bad()
    return [int(made.schedule.step(i).chunk_n[0]) / made.schedule.collective.num_chunks for i in range(2)]


def rounds(made: Plan) -> int:
    """Rounds of a verified plan."""
    made.verify().raise_if_bad()
    return made.simulate(preset="lumorph").num_rounds


def congestion(made: Plan) -> list[int]:
    """Most circuits on an edge in each round of the plan."""
    rounds = (circuits for i in range(made.schedule.num_steps) for circuits in made.circuits.rounds(i))
    return [int(np.bincount(circuits.hops).max()) for circuits in rounds]


@claim("lumorph", "L1")
def node_rate() -> float:
    """Rate of a GPU in GB/s."""
    return fabric("lightpath").node_rate_bits_per_s / 8e9


@claim("lumorph", "L1.laser")
def laser_rate() -> float:
    """Rate of a laser in GB/s."""
    return fabric("lightpath").rate_bits_per_s / 8e9


@claim("lumorph", "L3")
def alpha() -> float:
    """Fixed time of a round in us: LUMORPH-2 with an empty buffer, over its rounds."""
    empty = plan("lumorph", 0).simulate(preset="lumorph")
    return empty.total_s / empty.num_rounds * 1e6


@claim("lumorph", "L4")
def bytes_sent() -> float:
    """The most of the three algorithms."""
    return max(sent(plan(a)) for a in ("ring", "lumorph:radix=2", "lumorph:radix=4"))


@claim("lumorph", "L5")
def divide_and_conquer() -> float:
    """Where two straight lines cross, in MB: time is linear in the buffer."""

    def line(algorithm: str, where: str) -> tuple[float, float]:
        fixed = time_s(algorithm, 0, where)
        return fixed, time_s(algorithm, MB, where) - fixed

    (conquer_s, conquer_s_per_mb), (ring_s, ring_s_per_mb) = (
        line("divide_and_conquer", "lightpath"),
        line("ring", rival()),
    )
    return (ring_s - conquer_s) / (conquer_s_per_mb - ring_s_per_mb)


@claim("lumorph", "L6")
def faster() -> float:
    """Time saved at 4 MB."""
    return saved("lumorph", "ring", 4 * MB)


@claim("lumorph", "L7")
def four_times() -> float:
    """Ratio of times at 4 MB."""
    return time_s("ring", 4 * MB, rival()) / time_s("lumorph", 4 * MB)


@claim("lumorph", "L8")
def slow_switches() -> bool:
    """Whether LUMORPH-2 gains nothing."""
    return not wins_at_25_us("lumorph")


@claim("lumorph", "L8.radix4")
def slow_switches_radix4() -> bool:
    """Whether LUMORPH-4 gains nothing."""
    return not wins_at_25_us("lumorph:radix=4")


@claim("lumorph", "L9.radix2")
def large_buffers() -> float:
    """Against the ring."""
    return saved("lumorph", "ring", 64 * MB)


@claim("lumorph", "L9.radix4")
def large_buffers_radix4() -> float:
    """Against the ring, five lasers for each of three peers."""
    return saved("lumorph:radix=4", "ring", 64 * MB)


@claim("lumorph", "L9.tree")
def large_buffers_tree() -> float:
    """Against the binomial tree, the whole buffer on every level."""
    return saved("lumorph", "tree", 64 * MB)


@claim("lumorph", "L10")
def always_lowest() -> bool:
    """Whether both are below ring and tree at every size."""
    return all(
        saved(algorithm, against, size) > 0
        for size in (MB // 100, MB, 16 * MB, 1000 * MB)
        for algorithm in ("lumorph:radix=2", "lumorph:radix=4")
        for against in ("ring", "tree")
    )


@claim("lumorph", "L11")
def quadrupling_sends_more() -> bool:
    """Bytes sent, not time."""
    return sent(plan("lumorph:radix=4")) > sent(plan("lumorph:radix=2"))


@claim("lumorph", "L12")
def seven_peers() -> bool:
    """Radix 8, two of 16 lasers for each peer."""
    return time_s("lumorph:radix=8", 64 * MB) >= time_s("lumorph:radix=4", 64 * MB)


@claim("lumorph", "L13.scatter")
def scattered() -> list[float]:
    """Its two steps."""
    return pieces("reduce_scatter")


@claim("lumorph", "L13.gather")
def gathered() -> list[float]:
    """Its two steps."""
    return pieces("all_gather")


@claim("lumorph", "L13.total")
def gathered_in_all() -> float:
    """To all peers."""
    return sent(plan("lumorph:radix=4", where=SIXTEEN_GPUS, collective="all_gather"))


def numbers_of_chunks(chunks: np.ndarray) -> list[int]:
    """The paper's numbers: chunk n is the one that GPU n keeps, counted from 1."""
    rank = rank_of_node(digits(16, 4))
    return [int(gpu) + 1 for gpu in np.flatnonzero(np.isin(rank, chunks))]


def sent_by_gpu_1(step: int) -> dict[int, list[int]]:
    """Chunks by receiving GPU, all numbers from 1 as in the paper."""
    made = plan("lumorph:radix=4", where=SIXTEEN_GPUS).schedule.step(step)
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
    """What GPU 1 has sent to nobody."""
    gone = {chunk for chunks in sent_by_gpu_1(0).values() for chunk in chunks}
    return sorted(set(range(1, 17)) - gone)


@claim("lumorph", "L14.peers")
def second_peers() -> list[int]:
    """Second step."""
    return list(sent_by_gpu_1(1))


@claim("lumorph", "L15")
def all_to_all_rounds() -> int:
    """Radix 2."""
    return rounds(plan("bruck", collective="all_to_all"))


@claim("lumorph", "L16")
def all_to_all_at_once() -> int:
    """The direct all-to-all."""
    return rounds(plan("mesh", where="lightpath:shape=2x4,lasers=8", collective="all_to_all"))


@claim("lumorph", "L16.rack")
def too_few_lasers() -> bool:
    """Whether the direct all-to-all of 256 takes more than one round."""
    return rounds(plan("mesh", collective="all_to_all")) > 1


@claim("lumorph", "L20")
def thirty_waveguides() -> bool:
    """Whether every step takes one round, on 30 waveguides of one circuit each, rows or squares."""
    where = (f"lightpath:waveguides=30,waveguide_sharing=circuit,numbering={n}" for n in ("row", "squares"))
    made = [plan(f"lumorph:radix={radix}", where=w) for w in where for radix in (2, 4)]
    return all(len(congestion(m)) == m.schedule.num_steps and m.verify().ok for m in made)


@claim("lumorph", "L27")
def num_gpus() -> int:
    """The default grid."""
    return fabric("lightpath").num_nodes


@claim("lumorph", "L28")
def rounds_of_an_overfull_round() -> list[int]:
    """The most congested step of LUMORPH-4 on a half and on a quarter of the waveguides that it fills."""
    needed = max(congestion(plan("lumorph:radix=4")))

    def rounds(waveguides: int) -> int:
        made = plan("lumorph:radix=4", where=f"lightpath:waveguides={waveguides},waveguide_sharing=circuit")
        made.verify().raise_if_bad()
        return max(len(made.circuits.rounds(i)) for i in range(made.schedule.num_steps))

    return [rounds(needed // 2), rounds(needed // 4)]
