"""Times of trusted simulators, to the digits that they printed; where each comes from stands with it."""

import dataclasses

import numpy as np
import pytest
from tests.altered import altered
from tests.engines import flow

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Fabric, Op, Schedule, Transfers
from opticcl.schedule import generate

LIGHT = assumptions("published", compute="none")  # SimGrid's runs add nothing up

# SimGrid 3.32, exact model, the tree of WRHT's table 2; seconds for 25, 62.3, 138 and 307 million parameters of 4 bytes
MILLIONS = (25, 62.3, 138, 307)
ALL_REDUCE = {
    (64, "ring"): (0.048825, 0.107573, 0.226800, 0.492975),
    (64, "recursive_doubling"): (0.120200, 0.299240, 0.662600, 1.473800),
    (64, "halving_doubling"): (0.039775, 0.098523, 0.217750, 0.483925),
    (256, "ring"): (0.078094, 0.137541, 0.258188, 0.527531),
    (256, "recursive_doubling"): (0.160350, 0.399070, 0.883550, 1.965150),
    (256, "halving_doubling"): (0.040544, 0.099991, 0.220638, 0.489981),
    (1024, "ring"): (0.193411, 0.253033, 0.374034, 0.644170),
    (1024, "recursive_doubling"): (0.200500, 0.498900, 1.104500, 2.456500),
    (1024, "halving_doubling"): (0.040961, 0.100583, 0.221584, 0.491720),
}
# 1 MB a pair: (nodes, mode): seconds, N - 1 shift rounds without and with a barrier
SHIFTS = {
    (256, "asynchronous"): 0.068575,
    (1024, "asynchronous"): 0.279775,
    (256, "barrier"): 0.070125,
    (1024, "barrier"): 0.281325,
}
# all pairs at once; 512 and 1024 by our formula, since SimGrid gave no answer in 420 s
PAIRS = {64: 0.012625, 128: 0.025425, 256: 0.051025}
MB = 10**6


def prints_as(seconds: float, printed: float) -> bool:
    """Whether a time rounds to the six printed decimals; some of them end in an exact 5, which may go either way."""
    return abs(seconds - printed) <= 0.5e-6 * (1 + 1e-6)


def wrht_tree(nodes: int) -> Fabric:
    """32 hosts a leaf, 32 spines, 40 Gb/s, 25 us a router."""
    return fabric("fat_tree", nodes=nodes, preset="wrht")


def shift_rounds(where: Fabric) -> CircuitPlan:
    """All-to-all: in step i everyone sends to the rank i + 1 further on."""
    n = where.num_nodes
    node = np.arange(n, dtype=np.int32)

    def step(i: int) -> Transfers:
        to = (node + i + 1) % n
        return Transfers.of(node, to, to, 1, Op.MOVE)

    return lower(where, Schedule("shift", collective("all_to_all", n, n), n - 1, step))


def all_pairs(where: Fabric) -> CircuitPlan:
    """All-to-all in one step."""
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n), n)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    return lower(where, Schedule("pairs", collective("all_to_all", n, n), 1, lambda i: transfers))


@pytest.mark.parametrize(("nodes", "algorithm"), ALL_REDUCE)
def test_all_reduce_of_simgrid(nodes, algorithm):
    """36 runs, with a barrier a step; the critical path is uniform, so the asynchronous times are the same."""
    where = wrht_tree(nodes)
    plan = lower(where, generate(algorithm, "all_reduce", where))
    for millions, seconds in zip(MILLIONS, ALL_REDUCE[nodes, algorithm], strict=True):
        size = round(4 * millions * MB)
        assert prints_as(flow(plan, size, LIGHT).total_s, seconds)
        if nodes == 64 or algorithm != "ring":
            assert prints_as(flow(plan, size, LIGHT, mode="asynchronous").total_s, seconds)


@pytest.mark.parametrize(("nodes", "mode"), SHIFTS)
def test_shifts_of_simgrid(nodes, mode):
    """Without a barrier a rank goes on as soon as its own send has ended."""
    time = flow(shift_rounds(wrht_tree(nodes)), nodes * MB, LIGHT, mode=mode).total_s
    assert prints_as(time, SHIFTS[nodes, mode])


@pytest.mark.parametrize("nodes", [64, 128, 256, 512])
def test_all_pairs_of_simgrid(nodes):
    """Every port is busy from the first 25 us on: 25 us + (N - 1) MB at 5 GB/s; SimGrid printed the first three."""
    time = flow(all_pairs(wrht_tree(nodes)), nodes * MB, LIGHT).total_s
    assert prints_as(time, PAIRS.get(nodes, 25e-6 + (nodes - 1) * MB / 5e9))


def test_the_formulas_that_simgrid_follows():
    """The closed forms that all of SimGrid's runs equal; 1e-12 apart, not 1e-6."""
    where, size, rate = wrht_tree(256), 10**8, 5e9
    exact = {
        "ring": 2 * 255 * (size / (256 * rate) + 75e-6),
        "recursive_doubling": 8 * size / rate + 5 * 25e-6 + 3 * 75e-6,
        "halving_doubling": 2 * size / rate * 255 / 256 + 2 * (5 * 25e-6 + 3 * 75e-6),
    }
    for algorithm, seconds in exact.items():
        plan = lower(where, generate(algorithm, "all_reduce", where))
        assert flow(plan, size, LIGHT).total_s == pytest.approx(seconds, rel=1e-12)


# --- ODDL's fat tree, section 3 of our notes: 1024 hosts, radix 16, three layers, max-min fair ------------------------


def slow_down(nodes: int, routing: str, mode: str = "barrier", seed: int = 0) -> float:
    """Transfer time of halving-doubling over that of an ideal network."""
    where = fabric("fat_tree", nodes=nodes, preset="oddl", routing=routing, seed=seed, router_latency=0)
    plan = lower(where, generate("halving_doubling", "all_reduce", where))
    return flow(plan, 10**8, LIGHT, mode=mode).total_s / (2 * 1e8 * (1 - 1 / nodes) / 12.5e9)


@pytest.mark.parametrize("mode", ["barrier", "asynchronous"])
@pytest.mark.parametrize(
    ("routing", "printed"), [("dmodk", "1.00"), ("smodk", "1.00"), ("dstedge", "7.95"), ("single", "60.5")]
)
def test_contention_of_halving_doubling(routing, printed, mode):
    """1 everywhere; 8 in seven steps; 64 in four and 8 in three."""
    digits = len(printed.partition(".")[2])
    assert f"{slow_down(1024, routing, mode):.{digits}f}" == printed


def test_contention_step_by_step():
    """One fixed path: 64 64 64 64 8 8 8 1 1 1; one path a leaf: 8 in seven steps, then 1."""
    steps = {"single": [64] * 4 + [8] * 3 + [1] * 3, "dstedge": [8] * 7 + [1] * 3}
    for routing, expected in steps.items():
        where = fabric("fat_tree", nodes=1024, preset="oddl", routing=routing, router_latency=0)
        plan = lower(where, generate("halving_doubling", "all_reduce", where))
        alone = 1e8 / 12.5e9 / 2.0 ** np.arange(1, 11)
        assert flow(plan, 10**8, LIGHT).transfer_s[:10] / alone == pytest.approx(expected)


@pytest.mark.parametrize(("nodes", "printed"), [(128, 7.61), (256, 7.81), (512, 7.90)])
def test_contention_in_a_part_filled_tree(nodes, printed):
    """One path a destination leaf."""
    assert slow_down(nodes, "dstedge") == pytest.approx(printed, abs=0.005)


def test_contention_under_ecmp():
    """About 5.33 (standard deviation 0.2 over 5 seeds) with a barrier, 4.7 to 4.9 asynchronously."""
    with_barrier = [slow_down(1024, "ecmp", seed=seed) for seed in range(5)]
    assert np.mean(with_barrier) == pytest.approx(5.33, abs=0.3)
    assert 4.5 < slow_down(1024, "ecmp", "asynchronous") < 5.1


# --- ASTRA-sim and Harvest --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "mebibytes", "nanoseconds"),
    [(8, 1, 43_025), (64, 1, 104_590), (512, 1, 561_599), (8, 1024, 36_768_756), (64, 1024, 41_420_935),
     (512, 1024, 42_450_824), (4096, 1024, 46_162_945)],
)  # fmt: skip
def test_rings_of_astra_sim(nodes, mebibytes, nanoseconds):
    """2(n-1)(alpha + c/B + 10 ns + 1.5 c/1600 ns) with whole nanoseconds of c/B and of c/1600, and 10 ns at the end.

    The memory's part of a step is the same on every rank, so it may stand with the latency.
    """
    piece = mebibytes * 2**20 // nodes
    link, memory = int(piece / (50 * 2**30) * 1e9), piece // 1600
    where = fabric("ideal", nodes=nodes, rate=8e9 * piece / link, latency=(500 + 10 + 1.5 * memory) * 1e-9)
    time = flow(lower(where, generate("ring", "all_reduce", where)), mebibytes * 2**20, LIGHT).total_s
    assert time * 1e9 + 10 == pytest.approx(nanoseconds, abs=0.5)


def test_circuits_of_harvest():
    """Six steps of 1000 ns to set circuits and 1000 ns on the way, and 1792 of 1024 bytes at 200 B/ns: 12,008.96 ns.

    Harvest's swing and halving-doubling send the same halves; only the partners differ.
    """
    made = fabric("oddl", shape="8", nic_rate=1.6e12, reconfiguration=1e-6, control_switch_delay=0)
    made = altered(made, latency_s=1e-6)
    plan = lower(made, generate("halving_doubling", "all_reduce", made))
    every = dataclasses.replace(LIGHT, reconfiguration_charge="every_step")
    assert f"{flow(plan, 1024, every).total_s * 1e9:.2f}" == "12008.96"
