"""The packet engine: formulas by hand, another simulator, bytes and bounds, buffers, and the three engines side by side."""

import dataclasses
import heapq
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.engines import closed_form, flow, packet, packet_result
from tests.profiles import examples
from tests.simulate.plans import all_pairs, by_hand

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import BoundError, OpticclError, ParameterError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric
from opticcl.ir import CircuitPlan
from opticcl.schedule import generate
from opticcl.simulate import engine_options, link_bytes
from opticcl.simulate.flow import rounds as flow_rounds_module
from opticcl.simulate.links import Links
from opticcl.simulate.packet import _rounds as rounds_module
from opticcl.simulate.packet import cells as cells_module

LIGHT = assumptions("published", compute="none", control="none")
TREES = [  # links in one direction only: buffers cannot wait for each other in a circle
    "ideal:nodes=16",
    "fat_tree:nodes=16,radix=8,routing=ecmp",
    "leaf_spine:nodes=16,nodes_per_leaf=4,spines=2",
    "superpod:nodes=16",
]
PACKETS = [
    *TREES,
    "torus:shape=4x4",
    "bcube:radix=4,levels=2",
    "dragonfly:nodes=16,nodes_per_router=2,routers_per_group=4,global_links=2",
]
OPTICAL = {
    "ramp": ("ramp:groups=3,racks=3,wavelengths=6", "ramp", "ring"),
    "sipac": ("sipac:radix=4,levels=2", "sipco", "ring"),
    "terarack": ("terarack:nodes=15,wavelengths=2", "wrht", "ring"),
    "oddl": ("oddl:shape=4x4", "halving_doubling", "recursive_doubling"),
    "lightpath": ("lightpath:shape=4x4", "lumorph", "ring"),
}


def incast(where, senders):
    """Nodes 1 .. senders send everything to node 0."""
    return by_hand(where, [(0, s, 0, 0, 8, 1) for s in range(1, senders + 1)])


# --- one transfer, and two --------------------------------------------------------------------------------------------

LATENCY, ROUTER = 1e-6, 0.5e-6
LEAF_SPINE = f"leaf_spine:nodes=8,nodes_per_leaf=2,spines=2,link_latency={LATENCY}s,router_latency={ROUTER}s"


@pytest.mark.parametrize(
    ("size", "cells", "last"), [(0, 1, 0), (1, 1, 1), (1000, 1, 1000), (1001, 2, 1), (64_500, 65, 500)]
)
@pytest.mark.parametrize("forwarding", ["store_and_forward", "cut_through"])
def test_one_transfer_alone(size, cells, last, forwarding):
    """Latency of the path; k - 1 full cells and the last; stored on each link, or passing through three of four.

    A last cell that is shorter catches up with the one before it.
    """
    where = fabric(LEAF_SPINE, rate=8e9, uplink_rate=8e9)  # a byte a nanosecond
    plan = by_hand(where, [(0, 0, 7, 0, 8, 1)])
    path_s = 4 * LATENCY + 3 * ROUTER
    stored_s = (4 * last if cells == 1 else (cells + 2) * 1000 + last) * 1e-9
    sent_s = size * 1e-9 if forwarding == "cut_through" else stored_s
    time = packet(plan, size, LIGHT, cell_bytes=1000, forwarding=forwarding)
    assert time.total_s == pytest.approx(path_s + sent_s, rel=1e-12)
    assert time.totals()["latency_s"] == pytest.approx(path_s, rel=1e-12)


@pytest.mark.parametrize("mode", ["barrier", "asynchronous"])
def test_nothing_takes_no_transfer_time(mode):
    """A message of no bytes is latency and no rest of ticks, also where a latency is no whole tick."""
    where = fabric(LEAF_SPINE.replace(f"{LATENCY}s", "0.1234567890123456us"))
    totals = packet(by_hand(where, [(0, 0, 7, 0, 8, 1)]), 0, LIGHT, mode=mode).totals()
    assert totals["transfer_s"] == 0
    assert totals["latency_s"] == pytest.approx(4 * 0.1234567890123456e-6 + 3 * ROUTER, rel=1e-6)


def test_one_transfer_over_links_of_different_rates():
    """A slow link sets the pace; a cell cuts through into a faster link no earlier than its tail can follow."""
    where = fabric(LEAF_SPINE, rate=8e9, uplink_rate=2e9, link_latency=0, router_latency=0)
    plan = by_hand(where, [(0, 0, 7, 0, 8, 1)])
    times = {
        f: packet(plan, 10_000, LIGHT, cell_bytes=1000, forwarding=f).total_s
        for f in ("store_and_forward", "cut_through")
    }
    # 1 us on the first link, 4 us a cell on the slow ones, 1 us on the last; through: 4 us a cell, and 1 us is caught up
    assert times["store_and_forward"] == pytest.approx((1 + 10 * 4 + 4 + 1) * 1e-6, rel=1e-12)
    assert times["cut_through"] == pytest.approx(10 * 4e-6, rel=1e-12)


def test_two_transfers_share_a_link():
    """Into one port: the port is busy from the first cell to the last. Out of one port: cells alternate or not."""
    where = fabric("ideal:nodes=3,rate=8Gb/s,latency=0s")
    into = packet(by_hand(where, [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)]), 16_000, LIGHT, cell_bytes=1000)
    assert into.total_s == pytest.approx((1 + 16) * 1e-6, rel=1e-12)
    out = by_hand(where, [(0, 0, 1, 0, 2, 1), (0, 0, 2, 0, 6, 1)])
    for order, first_s in (("interleaved", (4 + 3 + 1) * 1e-6), ("sequential", (4 + 1) * 1e-6)):
        result = packet_result(out, 16_000, LIGHT, cell_bytes=1000, order=order)
        assert result.timeline.total_s == pytest.approx(17e-6, rel=1e-12)
        ends = dict(zip(result.traffic.transfers.dst.tolist(), result.traffic.transfers.end_s, strict=True))
        assert ends[1] == pytest.approx(first_s, rel=1e-12)


def test_input_queues_block_what_is_behind():
    """Node 0 sends to a busy and then to an idle receiver: with queues at the inputs the second waits for the first."""
    where = fabric("leaf_spine:nodes=6,nodes_per_leaf=6,spines=1,rate=8Gb/s,link_latency=0s,router_latency=0s")
    rows = [(0, 0, 4, 0, 8, 1), (0, 1, 4, 0, 8, 1), (0, 2, 4, 0, 8, 1), (0, 0, 5, 0, 8, 1)]
    ends = {}
    for queue in ("output", "input"):
        result = packet_result(by_hand(where, rows), 8000, LIGHT, cell_bytes=1000, queue=queue)
        runs = result.traffic.transfers
        ends[queue] = float(runs.end_s[(runs.src == 0) & (runs.dst == 5)][0])
        assert result.timeline.total_s >= 24e-6
    assert ends["output"] == pytest.approx(17e-6, rel=1e-9)  # its 8 cells take turns with 8 others, then one link more
    assert ends["input"] > 1.3 * ends["output"]


# --- the kernel, the formula and another simulator --------------------------------------------------------------------


@examples(60)
@given(
    st.sampled_from(PACKETS), st.integers(1, 15), st.integers(0, 40_000), st.sampled_from([1, 512, 4096]),
    st.sampled_from(["store_and_forward", "cut_through"]), st.sampled_from(["output", "input"]),
)  # fmt: skip
def test_the_formula_is_what_the_simulation_gives(specification, shift, size, cell, forwarding, queue):
    """Transfers one by one, and each row of a shift that shares nothing: to the tick."""
    where = fabric(specification)
    size = size if cell > 1 else size % 500
    n = where.num_nodes
    plan = by_hand(where, [(0, s, (s + shift) % n, 0, 1 + s % 8, 1) for s in range(0, n, 5)])
    options = {"cell_bytes": cell, "forwarding": forwarding, "queue": queue}
    hops = plan.rounds(0)[0].hops
    if np.bincount(hops).max() > 1:
        plan = by_hand(where, [(0, 3, (3 + shift) % n, 0, 5, 1)])
    formula = packet_result(plan, size, LIGHT, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds_module, "share_no_link", lambda hops: False)
        result = packet_result(plan, size, LIGHT, **options)
    assert result.traffic.transfers.end_s == pytest.approx(formula.traffic.transfers.end_s, rel=1e-13, abs=1e-18)
    assert result.traffic.carried_bytes == pytest.approx(formula.traffic.carried_bytes)
    assert result.traffic.busy_s == pytest.approx(formula.traffic.busy_s, rel=1e-6, abs=1e-12)


def simulated(plan, size_bytes, cell_bytes):
    """When each transfer of step 0 ends: output queues, cells stored, unlimited buffers; in exact fractions.

    Written apart from the engine: one event a cell and link, a plain heap, plain lists. At one time, ends of sending and
    arrivals of a link before those of the next.
    """
    transfers, (circuits,) = plan.schedule.step(0), plan.rounds(0)
    links = Links(plan.fabric)
    per_byte = [Fraction(1) / Fraction(float(c)) for c in links.capacity]
    hop_s = plan.fabric.hop_latency_s
    late = [Fraction(float(x)) for x in (hop_s(np.arange(len(per_byte))) if hop_s else np.zeros(len(per_byte)))]
    paths = [circuits.path(i).tolist() for i in range(len(circuits))]
    amount = [Fraction(int(n) * size_bytes, plan.schedule.collective.num_chunks) for n in transfers.chunk_n]
    sizes = [
        [min(Fraction(cell_bytes), a - k * cell_bytes) for k in range(max(1, ceil(a / cell_bytes)))] for a in amount
    ]

    turns = {}  # first link -> transfers whose turn it is, next first
    for s in range(plan.fabric.num_nodes):
        mine = sorted((i for i in range(len(paths)) if transfers.src[i] == s), key=lambda i: int(transfers.dst[i]))
        for link in {paths[i][0] for i in mine}:
            k = [i for i in mine if paths[i][0] == link]
            turns[link] = k[(s % len(k)) :] + k[: s % len(k)]
    queues, busy, done = {}, {}, [Fraction(0)] * len(paths)
    sent, arrived = [0] * len(paths), [0] * len(paths)
    heap, count = [], 0

    def enqueue(link, cell, now):
        queues.setdefault(link, []).append(cell)
        if link not in busy:
            send(link, now)

    def ask_for_next(link, now):
        if turns.get(link):
            i = turns[link].pop(0)
            cell = (i, 0, sizes[i][sent[i]])
            sent[i] += 1
            if sent[i] < len(sizes[i]):
                turns[link].append(i)
            enqueue(link, cell, now)

    def send(link, now):
        nonlocal count
        cell = queues[link].pop(0)
        busy[link] = cell
        end = now + cell[2] * per_byte[link]
        heapq.heappush(heap, (end, 2 * link, count, cell))
        heapq.heappush(heap, (end + late[link], 2 * link + 1, count, cell))
        count += 1

    base = Fraction(float(plan.fabric.latency_s))
    for link in sorted(turns, key=lambda k: min(turns[k])):
        ask_for_next(link, base)
    while heap:
        now, what, _, (i, hop, size) = heapq.heappop(heap)
        link = what // 2
        if what % 2 == 0:
            del busy[link]
            if hop == 0:
                ask_for_next(link, now)
            if link not in busy and queues.get(link):
                send(link, now)
        elif hop + 1 < len(paths[i]):
            enqueue(paths[i][hop + 1], (i, hop + 1, size), now)
        else:
            arrived[i] += 1
            done[i] = now
    assert arrived == [len(s) for s in sizes]
    return np.array([float(t) for t in done])


@examples(30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(PACKETS), st.integers(1, 40))
def test_another_simulator_gives_the_same(seed, specification, num_flows):
    """Random transfers over links with random latencies: every end is the same."""
    rng = np.random.default_rng(seed)
    where = fabric(specification)
    src = rng.integers(0, 16, num_flows)
    dst = (src + rng.integers(1, 16, num_flows)) % 16
    kept = np.unique(src * 16 + dst)
    rows = [
        (0, p // 16, p % 16, 0, int(n), 1) for p, n in zip(kept.tolist(), rng.integers(1, 9, len(kept)), strict=True)
    ]
    plan = by_hand(where, rows)
    late = rng.integers(0, 10**9, len(Links(where).capacity)) * 1e-15  # so that no two events are at one time
    plan = CircuitPlan(altered(where, hop_latency_s=lambda self, hops: late[hops]), plan.schedule, plan.rounds)
    runs = packet_result(plan, 20_000, LIGHT, cell_bytes=1500).traffic.transfers
    expected = simulated(plan, 20_000, 1500)
    assert np.sort(runs.end_s) == pytest.approx(np.sort(expected), rel=1e-7)


# --- bytes, bounds, buffers -------------------------------------------------------------------------------------------


@st.composite
def options_for(draw, trees_only):
    """Any options that lose nothing or get it back."""
    chosen = {
        "cell_bytes": draw(st.sampled_from([256, 1500, 4096])),
        "queue": draw(st.sampled_from(["output", "input"])),
        "forwarding": draw(st.sampled_from(["store_and_forward", "cut_through"])),
        "order": draw(st.sampled_from(["interleaved", "sequential", "shuffled"])),
    }
    if chosen["order"] == "shuffled":
        chosen["seed"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        chosen |= {"transport": "windowed", "window": draw(st.sampled_from([1, 4, 64]))}
    if chosen.get("transport") == "windowed" or trees_only:
        cells = draw(st.sampled_from([None, 1, 3, 20]))
        chosen["buffer_bytes"] = cells and cells * chosen["cell_bytes"]
    return chosen


@examples(80)
@given(st.data(), st.integers(0, 2**32 - 1), st.sampled_from(PACKETS), st.integers(1, 25), st.integers(0, 60_000))
def test_bytes_are_conserved(data, seed, specification, num_flows, size):
    """Whatever the options: all bytes arrive, links carry them and no more than they can, and runs repeat to the bit."""
    options = data.draw(options_for(specification in TREES))
    rng = np.random.default_rng(seed)
    where = fabric(specification)
    src = rng.integers(0, 16, num_flows)
    dst = (src + rng.integers(1, 16, num_flows)) % 16
    rows = [(0, s, d, 0, n, 1) for s, d, n in zip(src, dst, rng.integers(1, 9, num_flows), strict=True)]
    plan = by_hand(where, rows)
    result = packet_result(plan, size, LIGHT, **options)
    traffic, total_s = result.traffic, result.timeline.total_s
    expected = link_bytes(plan, size)
    carried, dropped = np.zeros((2, len(expected)))
    carried[traffic.link], dropped[traffic.link] = traffic.carried_bytes, traffic.dropped_bytes
    if options.get("transport") == "windowed" and options["buffer_bytes"]:
        assert (carried >= expected * (1 - 1e-9)).all()
        assert dropped.sum() <= carried.sum() - expected.sum() + 1e-6
        last_links = [plan.rounds(0)[0].path(i)[-1] for i in range(num_flows)]  # nothing is lost behind them
        into_nodes = np.isin(np.arange(len(expected)), last_links) if specification in TREES else []
        assert carried[into_nodes] == pytest.approx(expected[into_nodes])
    else:
        assert not dropped.any()
        assert carried == pytest.approx(expected)
    assert (traffic.busy_s <= total_s * (1 + 1e-12)).all()
    assert traffic.busy_s == pytest.approx(
        traffic.carried_bytes / Links(where).capacity[traffic.link], rel=1e-6, abs=1e-12
    )
    assert total_s >= closed_form(plan, size, LIGHT).totals()["transfer_s"] * (1 - 1e-9)  # the busiest link
    if options.get("buffer_bytes") and options.get("transport") != "windowed":
        assert traffic.largest_queue_bytes.max(initial=0) <= options["buffer_bytes"]
    again = packet_result(plan, size, LIGHT, **options)
    assert again.timeline.total_s == total_s
    assert (again.traffic.transfers.end_s == traffic.transfers.end_s).all()


@examples(30)
@given(
    st.sampled_from(TREES[1:3]), st.sampled_from(["ring", "tree", "halving_doubling"]), st.integers(1, 10**6),
    st.floats(1, 8), st.floats(0, 1e-4), st.sampled_from(["store_and_forward", "cut_through"]),
)  # fmt: skip
def test_more_bandwidth_and_less_latency_take_no_longer(specification, algorithm, size, faster, latency, forwarding):
    """But for a cell a link and round, since cells may meet in another order."""

    def time(**changed):
        where = fabric(specification, **changed)
        plan = lower(where, generate(algorithm, "all_reduce", where))
        rounds = [circuits for i in range(plan.schedule.num_steps) for circuits in plan.rounds(i)]
        cells_s = sum(int(c.num_hops().max()) for c in rounds) * 4096 / Links(where).capacity.min()
        return packet(plan, size, LIGHT, forwarding=forwarding).total_s, cells_s

    (slow, cells_s), (quick, _) = time(), time(rate_factor=faster)
    assert quick <= slow + cells_s
    assert quick >= slow / faster - cells_s
    (late, _), (soon, _) = time(router_latency=latency), time(router_latency=latency / 2)
    assert soon <= late + cells_s


@pytest.mark.parametrize("where", ["ideal:nodes=12,latency=1us", "fat_tree:nodes=12,radix=8"])
def test_incast(where):
    """Eleven to one through a small buffer: paced nothing is lost and the port never rests; windowed cells are lost, sent
    again, and all arrive."""
    plan = incast(fabric(where), 11)
    size = 100 * 4096
    free = packet_result(plan, size, LIGHT)
    small = {"buffer_bytes": 8 * 4096}
    paced = packet_result(plan, size, LIGHT, **small)
    windowed = packet_result(plan, size, LIGHT, transport="windowed", window=16, **small)
    assert free.traffic.largest_queue_bytes.max() > 8 * 4096
    assert free.traffic.dropped_bytes.sum() == paced.traffic.dropped_bytes.sum() == 0
    assert paced.traffic.largest_queue_bytes.max() <= 8 * 4096
    assert windowed.traffic.dropped_bytes.sum() > 0
    port_s = 11 * size * 8 / plan.fabric.rate_bits_per_s
    for result in (free, paced, windowed):
        assert result.timeline.total_s >= port_s
    assert free.timeline.total_s <= port_s * 1.01 + 5e-6
    assert windowed.timeline.total_s > free.timeline.total_s


def test_a_window_sets_the_pace():
    """One cell at a time: each waits for the acknowledgement of the one before."""
    where = fabric("ideal:nodes=2,rate=8Gb/s,latency=0s")
    where = altered(where, hop_latency_s=lambda self, hops: np.full(len(hops), 5e-6))
    plan = by_hand(where, [(0, 0, 1, 0, 8, 1)])
    time = packet(plan, 10_000, LIGHT, cell_bytes=1000, transport="windowed", window=1).total_s
    trip_s = 2 * 1e-6 + 10e-6 + 10e-6  # two links, and back
    assert time == pytest.approx(9 * trip_s + 2e-6 + 10e-6, rel=1e-12)
    assert packet(plan, 10_000, LIGHT, cell_bytes=1000, transport="windowed", window=64).total_s == pytest.approx(21e-6)


def test_a_lost_cell_is_sent_again_after_the_notice():
    """Two cells meet at a buffer for one that is being sent: the second is lost, and sent again when that is noticed."""
    where = fabric("leaf_spine:nodes=4,nodes_per_leaf=4,spines=1,rate=8Gb/s,link_latency=0s,router_latency=0s")
    plan = by_hand(where, [(0, 1, 0, 0, 8, 1), (0, 2, 0, 0, 8, 1)])
    options = {"cell_bytes": 1000, "transport": "windowed", "buffer_bytes": 1000, "retransmit_s": 20e-6}
    result = packet_result(plan, 1000, LIGHT, **options)
    assert sorted(result.traffic.transfers.end_s) == pytest.approx([2e-6, (1 + 20 + 2) * 1e-6], rel=1e-12)
    assert result.traffic.dropped_bytes.sum() == 1000


def test_cells_can_wait_for_each_other():
    """A ring whose buffers all fill up is a deadlock, and is refused."""
    plan = by_hand(fabric("torus:shape=5"), [(0, s, (s + 2) % 5, 0, 8, 1) for s in range(5)])
    with pytest.raises(ParameterError, match=r"deadlock of 5 transfers.*buffer_bytes"):
        packet(plan, 10**6, LIGHT, buffer_bytes=4096)
    assert packet(plan, 10**6, LIGHT).total_s > 0
    assert packet(plan, 10**6, LIGHT, buffer_bytes=4096, transport="windowed").total_s > 0


def test_memory_is_for_the_cells_on_the_way(monkeypatch):
    """40,000 cells through buffers of eight: 4,096 rows are enough; without buffers an incast keeps what waits."""
    results = []
    run = rounds_module.run_cells
    monkeypatch.setattr(rounds_module, "run_cells", lambda *a: results.append(run(*a)) or results[-1])
    plan = incast(fabric("ideal:nodes=5"), 4)
    packet(plan, 10_000 * 64, LIGHT, cell_bytes=64, buffer_bytes=512)
    packet(plan, 10_000 * 64, LIGHT, cell_bytes=64)
    assert [p.passed for p in results] == [80_000, 80_000]
    assert results[0].rows == 4096
    assert 30_000 < results[1].rows <= 2**15 * 2


def test_the_seed_decides_the_shuffle_and_nothing_else():
    """Same seed same result, other seed another; no other order has one."""
    plan = all_pairs(fabric("torus:shape=4x4"))
    ends = [
        packet_result(plan, 10**6, LIGHT, order="shuffled", seed=s).traffic.transfers.end_s.tolist() for s in (1, 1, 2)
    ]
    assert ends[0] == ends[1] != ends[2]
    with pytest.raises(ParameterError, match="seed needs order=shuffled"):
        packet(plan, 10**6, LIGHT, seed=1)


# --- the three engines side by side -----------------------------------------------------------------------------------


@pytest.mark.parametrize("charge", ["on_change", "every_step"])
@pytest.mark.parametrize("system", OPTICAL)
def test_circuits_are_the_closed_form(system, charge):
    """On light nothing waits: all three engines agree, part by part; asynchronously flow and packet do."""
    specification, *algorithms = OPTICAL[system]
    for algorithm in algorithms:
        plan = opticcl.compile(specification, "all_reduce", "1MB", algorithm=algorithm).circuits
        assumed = assumptions("published", reconfiguration_charge=charge)
        for size in (0, 1, 10**6):
            expected, found = closed_form(plan, size, assumed), packet(plan, size, assumed)
            for part in found.PARTS:
                assert getattr(found, part) == pytest.approx(getattr(expected, part), rel=1e-9, abs=1e-15)
        free = packet(plan, 10**6, assumed, mode="asynchronous").total_s
        assert free == flow(plan, 10**6, assumed, mode="asynchronous").total_s


@pytest.mark.parametrize("specification", PACKETS)
@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "tree", "bruck", "bruck:radix=16"])
def test_engines_agree(specification, algorithm):
    """The bounds that docs/engines.md states, on steps of 16 cells a transfer or more.

    Nowhere shared: flow plus at most a cell of each link but the last, exactly flow with cut_through where all links of
    a path are equal. Shared: within 5 % of flow and two cells a link, and a path's latency either way.
    """
    name = "all_to_all" if algorithm.startswith("bruck") else "all_reduce"
    where = fabric(specification)
    plan = lower(where, generate(algorithm, name, where))
    size, cell = 16 * 16 * 4096, 4096
    steps = range(plan.schedule.num_steps)
    rounds = [circuits for i in steps for circuits in plan.rounds(i)]
    hops = max(int(c.num_hops().max()) for c in rounds)
    shared = any(np.bincount(c.hops).max() > 1 for c in rounds)
    capacity = Links(where).capacity
    cell_s = len(rounds) * cell / capacity.min()
    latency_s = closed_form(plan, size, LIGHT).totals()["latency_s"]
    for mode in ("barrier", "asynchronous"):
        fluid = flow(plan, size, LIGHT, mode=mode).total_s
        stored = packet(plan, size, LIGHT, mode=mode).total_s
        through = packet(plan, size, LIGHT, mode=mode, forwarding="cut_through").total_s
        if shared:
            for time in (stored, through):
                assert fluid * 0.95 - latency_s <= time <= fluid * 1.05 + 2 * hops * cell_s + latency_s
        else:
            assert fluid * (1 - 1e-9) <= stored <= (fluid + (hops - 1) * cell_s) * (1 + 1e-9)
            assert fluid * (1 - 1e-9) <= through <= stored * (1 + 1e-9)
            if len(set(capacity)) == 1:
                assert through == pytest.approx(fluid, rel=1e-6)


@pytest.mark.parametrize(
    "specification", ["ideal:nodes=7", "fat_tree:nodes=11,radix=8", "torus:shape=3x5", "torus:shape=13"]
)
@pytest.mark.parametrize("name", ["all_reduce", "all_to_all", "broadcast", "gather"])
def test_odd_sizes(specification, name):
    """Primes, sizes that do not divide: never below the bound, and as close to flow as the bounds say."""
    plan = opticcl.compile(specification, name, 10**7 + 1)
    circuits, where = plan.circuits, plan.fabric
    rounds = [(c, len(steps)) for steps in plan.schedule.step_classes() for c in circuits.rounds(steps.start)]
    cells_s = sum(int(c.num_hops().max()) * times for c, times in rounds) * 4096 / Links(where).capacity.min()
    latency_s = closed_form(circuits, plan.size_bytes, LIGHT).totals()["latency_s"]
    for mode in ("barrier", "asynchronous"):
        time = plan.simulate("packet", mode=mode, compute="none", assumptions="published")
        fluid = plan.simulate("flow", mode=mode, compute="none", assumptions="published").total_s
        assert time.total_s >= time.lower_bound_s * (1 - 1e-9)
        assert fluid * 0.95 - latency_s <= time.total_s <= fluid * 1.05 + 2 * cells_s + latency_s


@pytest.mark.parametrize("name", FABRICS.names())
def test_one_and_two_nodes(name):
    """One has nothing to send; two agree with the closed form but for a cell a link."""
    where = fabric(name, **FABRICS.get(name).parameters_at_scale(1))
    plan = lower(where, generate("ring", "all_reduce", where))
    for mode in ("barrier", "asynchronous"):
        assert packet(plan, 10**6, assumptions("published"), mode=mode).total_s == 0
    try:
        where = fabric(name, **FABRICS.get(name).parameters_at_scale(2))
    except OpticclError:
        return
    plan = lower(where, generate("ring", "all_reduce", where))
    closed = closed_form(plan, 10**7, LIGHT).total_s
    assert closed * (1 - 1e-9) <= packet(plan, 10**7, LIGHT).total_s <= closed * 1.05


def test_sums_and_dependencies():
    """Node 0 forwards its sum as soon as it is complete; the critical path shows it."""
    where = fabric("ideal:nodes=3,rate=8Gb/s,latency=0s")
    plan = by_hand(where, [(0, 1, 0, 0, 2, 1), (0, 2, 0, 2, 3, 1), (1, 0, 1, 0, 2, 0)], num_steps=2)
    assumed = assumptions("published", memory_bytes_per_s="1 GB/s", compute="chain")
    result = packet_result(plan, 8000, assumed, mode="asynchronous", cell_bytes=1000)
    # cells of 1 and 2 take turns at the port of 0, first those of 1; 5 chunks are added, 3 bytes moved a byte
    assert result.traffic.transfers.end_s == pytest.approx([4e-6, 6e-6, (4 + 15 + 3) * 1e-6])
    assert result.timeline.totals()["compute_s"] == pytest.approx(15e-6)
    assert result.timeline.total_s == pytest.approx(22e-6)
    assert result.traffic.critical.step.tolist() == [0, 1]
    assert result.traffic.critical.src.tolist() == [1, 0]


def test_classes_are_counted():
    """Equal steps are simulated once; a schedule that hides its classes takes the same time."""
    plan = opticcl.compile("fat_tree:nodes=24,radix=8,routing=ecmp", "all_reduce", "1MB", algorithm="ring").circuits
    step_by_step = dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, classes=()))
    one, other = packet(plan, 10**6, LIGHT), packet(step_by_step, 10**6, LIGHT)
    assert one.total_s == pytest.approx(other.total_s, rel=1e-9)
    assert one.num_rounds == other.num_rounds == 46


def test_equal_rounds_are_simulated_once_and_rounds_that_share_no_link_never():
    """Each of two equal rounds has 12 transfers of 62 cells on 2 links; a ring on a torus needs no simulation."""
    mesh = opticcl.compile("fat_tree:nodes=4", "all_reduce", "1MB", algorithm="mesh").circuits
    assert packet(mesh, 10**6, LIGHT, cell_bytes=4096, max_events=12 * 62 * 2).num_rounds == 2
    with pytest.raises(ParameterError, match="about 1,488 events"):
        packet(mesh, 10**6, LIGHT, cell_bytes=4096, max_events=12 * 62 * 2 - 1)
    ring = opticcl.compile("torus:shape=4", "all_reduce", "1MB", algorithm="ring").circuits
    assert packet(ring, 10**6, LIGHT, max_events=1).num_rounds == 6


def test_messages_are_part_of_the_latency():
    """As in the closed form; rounding up to cells is part of the transfer."""
    mesh = opticcl.compile("fat_tree:nodes=4", "all_reduce", "1MB", algorithm="mesh").circuits
    common = assumptions("common")
    due = closed_form(mesh, 10**6, common).totals()["latency_s"]
    assert packet(mesh, 10**6, common).totals()["latency_s"] == pytest.approx(due)


def test_a_buffer_of_a_cell_is_a_wait_on_a_path_of_its_own():
    """Two links, no other transfer: the next cell leaves once the one before has left the switch."""
    plan = by_hand(fabric("torus:shape=8"), [(0, 0, 2, 0, 8, 0)])
    free, two, one = (packet(plan, 10**6, LIGHT, buffer_bytes=b, cell_bytes=4096).total_s for b in (None, 8192, 4096))
    assert one > 1.9 * two > 10 * free


# --- refusals, progress and interrupts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cell_bytes": 0}, "cell_bytes=0"), ({"cell_bytes": "1.5B"}, "cell_bytes=1.5"), ({"cell_bytes": "4 us"}, "4 us"),
        ({"buffer_bytes": 100}, "at least one cell"), ({"queue": "middle"}, "middle"), ({"window": 4}, "windowed"),
        ({"transport": "windowed", "window": 0}, "window=0"), ({"seed": -1}, "seed=-1"), ({"wndow": 1}, "'window'"),
        ({"transport": "windowed", "retransmit_s": 0}, "retransmit_s=0"), ({"seed": 1}, "order=shuffled"),
        ({"transport": "windowed", "retransmit_s": 1e30}, "retransmit_s"),
        ({"max_events": "x"}, "max_events: 'x' is not a whole number"),
        ({"mode": "fast"}, "not one of barrier, asynchronous"),
        ({"max_events": 0}, "max_events=0"), ({"max_events": 1000}, "about 23,808 events or more.*max_events="),
    ],
)  # fmt: skip
def test_bad_options_are_refused(options, words):
    """In one line that names the field and what to try."""
    plan = all_pairs(fabric("ideal:nodes=32"))
    with pytest.raises(ParameterError, match=words) as refused:
        packet(plan, 32 * 12 * 4096, LIGHT, **options)
    assert "\n" not in str(refused.value)


def test_options_belong_to_engines():
    """An option of another engine is refused, before anything is simulated."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", "1MB", algorithm="ring")
    with pytest.raises(ParameterError, match="cell_bytes is an option of engine=packet, not of flow"):
        plan.simulate("flow", cell_bytes=64, assumptions="published")
    with pytest.raises(ParameterError, match="max_events"):
        plan.simulate(max_events=3, assumptions="published")
    with pytest.raises(ParameterError, match="cell_bytes=0"):
        engine_options("packet", {"cell_bytes": 0})
    with pytest.raises(ParameterError, match="max_events=0"):
        engine_options("flow", {"max_events": 0})
    with pytest.raises(ParameterError, match="mode is an option of engine=flow and packet, not of closed_form"):
        plan.simulate(mode="asynchronous", assumptions="published")
    reports = plan.simulate("packet", cell_bytes="1KiB", buffer_bytes="64KiB", assumptions="published").assumptions
    assert (reports["cell_bytes"], reports["buffer_bytes"], reports["transport"], reports["mode"]) == (
        1024,
        65536,
        "paced",
        "barrier",
    )
    assert engine_options("packet:queue=input", {"cell_bytes": "9kB"})[1].cell_bytes == 9000


def test_too_many_repeats_are_stopped():
    """Cells that are lost again and again end with the limit, not never."""
    plan = incast(fabric("ideal:nodes=12"), 11)
    options = {"transport": "windowed", "buffer_bytes": 4096, "retransmit_s": 1e-7}
    with pytest.raises(ParameterError, match="max_events="):
        packet(plan, 400_000, LIGHT, max_events=2500, **options)


@pytest.mark.parametrize("mode", ["barrier", "asynchronous"])
def test_more_cells_than_64_bits_can_count_are_refused(mode):
    """An exabyte in cells of a byte: the estimate does not wrap around."""
    plan = all_pairs(fabric("ideal:nodes=12"))
    with pytest.raises(ParameterError, match=r"about 25,36\d,\d{3},\d{3},\d{3},\d{3},\d{3} events or more"):
        packet(plan, 2**60, LIGHT, cell_bytes=1, mode=mode)


def test_slow_links_have_coarser_ticks():
    """A cell an hour: result in picoseconds, and the same as on a fast link times the ratio of the rates."""
    times = {}
    for rate in ("8Gb/s", "8b/s"):
        plan = by_hand(fabric(f"ideal:nodes=3,rate={rate},latency=0s"), [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)])
        times[rate] = packet(plan, 40_000, LIGHT).total_s
    assert times["8b/s"] == pytest.approx(times["8Gb/s"] * 1e9, rel=1e-9)
    endless = by_hand(fabric("ideal:nodes=3,latency=0s", rate=1e-9), [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)])
    with pytest.raises(ParameterError, match="check rates"):
        packet(endless, 40_000, LIGHT)


def test_several_routes():
    """A transfer on two routes: half of it on each, with a barrier."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", "1MB", algorithm="ring").circuits

    def twice(i):
        (kept,) = plan.rounds(i)
        return (kept.take(np.repeat(np.arange(len(kept)), 2)),)

    split = CircuitPlan(plan.fabric, plan.schedule, twice)
    with pytest.raises(UnsupportedError, match="several routes"):
        packet(split, 10**6, LIGHT, mode="asynchronous")
    assert packet(split, 10**6, LIGHT).total_s == pytest.approx(packet(plan, 10**6, LIGHT).total_s, rel=0.02)


def test_plans_without_routes_are_refused():
    """A loaded plan file may hold anything."""
    plan = opticcl.compile("torus:shape=4", "all_reduce", "1MB", algorithm="ring").circuits

    def bent(change):
        return CircuitPlan(plan.fabric, plan.schedule, lambda i: (change(plan.rounds(i)[0]),))

    for change in (
        lambda c: dataclasses.replace(c, hops=c.hops[:0], hop_offsets=c.hop_offsets * 0),
        lambda c: dataclasses.replace(c, hops=c.hops + 1000),
    ):
        for mode in ("barrier", "asynchronous"):
            with pytest.raises((UnsupportedError, ValueError, IndexError)) as refused:
                packet(bent(change), 10**6, LIGHT, mode=mode)
            assert isinstance(refused.value, UnsupportedError), refused.value
    with pytest.raises(UnsupportedError, match="a transfer on torus has no route"):
        packet(bent(lambda c: c.take(np.arange(1, len(c)))), 10**6, LIGHT, mode="asynchronous")


def test_progress_and_interruption(monkeypatch):
    """Called between slices; an exception that it raises stops the engine."""
    monkeypatch.setattr(cells_module, "SLICE", 1000)
    reports = []
    plan = all_pairs(fabric("ideal:nodes=16"))
    packet(plan, 10**6, LIGHT, progress=lambda *what: reports.append(what))
    assert reports[-1] == ("simulate steps", 1, 1)
    inside = [done for what, done, _ in reports if what == "simulate cells"]
    assert len(inside) > 5
    assert inside == sorted(inside)

    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        packet(plan, 10**6, LIGHT, progress=stop)


@pytest.mark.parametrize("where", ["ideal:nodes=3", "terarack:nodes=3"])
def test_a_time_below_the_bound_is_a_defect_of_the_engine(monkeypatch, where):
    """Of packets and of circuits."""
    plan = by_hand(fabric(where), [(0, 1, 0, 0, 4, 1)])
    for module, name in ((rounds_module, "simulate_cells"), (flow_rounds_module, "simulate_flows")):
        made = getattr(module, name)

        def below(*given, made=made):
            found = made(*given)
            return dataclasses.replace(found, lower_bound_s=2 * found.total_s)

        monkeypatch.setattr(module, name, below)
    with pytest.raises(BoundError, match="by the packet engine is below the lower bound"):
        packet(plan, 10**6, LIGHT)


@pytest.mark.parametrize(
    ("options", "due"),
    [
        ({}, {}),
        ({"mode": "asynchronous", "max_events": 7}, {}),
        ({"transport": "windowed"}, {"transport": "windowed", "window": 64}),
        ({"transport": "windowed", "window": 3}, {"transport": "windowed", "window": 3}),
        ({"order": "shuffled"}, {"order": "shuffled", "seed": 0}),
        (
            {"order": "shuffled", "seed": 5, "buffer_bytes": 8192.0},
            {"order": "shuffled", "seed": 5, "buffer_bytes": 8192},
        ),
    ],
)
def test_options_that_have_an_effect_are_recorded(options, due):
    """With the values that were left out, where they are used; bytes are whole numbers."""
    common = {"cell_bytes": 4096, "queue": "output", "forwarding": "store_and_forward", "transport": "paced"}
    found = packet(by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1)]), 8, LIGHT, **options).assumptions
    names = {"mode", *common, "order", "window", "retransmit_s", "buffer_bytes", "seed", "max_events"}
    about = {name: value for name, value in found.items() if name in names}
    assert about == {"mode": options.get("mode", "barrier"), **common, "order": "interleaved", **due}
    assert isinstance(about["cell_bytes"], int)
