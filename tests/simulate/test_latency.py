"""Latency by one law: the parts, the floor plan, messages, rounds in line, and the judge's own computation of it."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from opticcl.assumptions import LATENCY_KEYS, assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import ParameterError, UnknownNameError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job
from opticcl.ir import Circuits, Op, Transfers
from opticcl.plans.compare import compare_plans
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.simulate import latency, profile, simulate
from opticcl.simulate.latency import path_latency
from opticcl.verify.time._rows import path_latency_s

COMMON = assumptions("common")
NS = 1e-9


def latency_of(spec, algorithm="mesh", collective="all_to_all", **changed):
    """Latencies of the circuits of the first round of a plan, by the law [ns]."""
    where = fabric(spec)
    plan = lower(where, generate(algorithm, collective, where))
    circuits = plan.rounds(0)[0]
    return circuits, path_latency(where, assumptions("common", **changed)).of_circuits(circuits) / NS


def test_the_floor_plan_by_hand():
    """1,024 nodes are 16 racks in rows of 9, in snake order; the ring through all of them has 1,088 m."""
    floor = COMMON.floor
    assert floor.racks(1024) == 16
    places = floor.places_m(16)
    assert places[8].tolist() == pytest.approx([4.8, 0.0])
    assert places[9].tolist() == pytest.approx([4.8, 3.0])  # the next row runs back
    assert floor.through_centre_m(64) == 4.0
    assert floor.through_centre_m(1024) == pytest.approx(2 * (4 + 2.4 + 1.5))
    node = np.arange(1024)
    assert floor.segments_m(1024, node, (node + 1) % 1024).sum() == pytest.approx(1088, abs=0.5)


@pytest.mark.parametrize(("nodes", "expected_us"), [(64, 0.82), (1024, 0.88)])
def test_ramp_waits_for_whole_slots(nodes, expected_us):
    """0.7 us endpoint, 0.1 us receiver, fibre through the centre, rounded up to slots of 20 ns."""
    assert path_latency(fabric_at_scale("ramp", nodes), COMMON).base_s == pytest.approx(expected_us * 1e-6)


def test_a_latency_of_whole_slots_is_not_rounded_up():
    """0.7 us are 35 slots of 20 ns, whatever the quotient of the two floats is."""
    alone = assumptions("common", transceiver=0.0, fibre=0.0)
    assert path_latency(fabric_at_scale("ramp", 64), alone).base_s == pytest.approx(0.7e-6)


def test_the_least_latency_is_that_of_the_shortest_path():
    """Neighbours on a torus, over one link; as published, that of the fabric, and messages take no time."""
    circuits, late = latency_of("torus:shape=4x4")
    where = fabric("torus:shape=4x4")
    assert path_latency(where, COMMON).least_s / NS == pytest.approx(late[np.diff(circuits.hop_offsets) == 1].min())
    printed = path_latency(where, assumptions("published"))
    assert (printed.base_s, printed.least_s, printed.message_gap_s) == (where.latency_s, where.latency_s, 0.0)
    assert printed.of_hops(circuits.hops).tolist() == where.hop_latency_s(circuits.hops).tolist()


def test_levels_and_dimensions_have_lengths_of_their_own():
    """A line in one rack has 4 m of fibre, one through several racks goes through the centre."""
    circuits, late = latency_of("sipac:radix=32,levels=2", "sipco", "all_reduce")
    level = circuits.hops[circuits.hop_offsets[:-1]]
    assert np.unique(late[level == 0]).tolist() == pytest.approx([800 + 4 * 4.9])
    _, late = latency_of("oddl:shape=32x32", "halving_doubling", "all_reduce")
    assert np.unique(late).tolist() == pytest.approx([800 + 15.8 * 4.9])


def test_paths_add_up_hop_by_hop():
    """Segments of a ring, tiles of a wafer, the fibre between two wafers."""
    circuits, late = latency_of("terarack:nodes=8", "ring", "all_gather")
    assert late.tolist() == pytest.approx([804.9] * 8)
    circuits, late = latency_of("lightpath:shape=4x16,lasers=4", "ring", "all_gather")
    seams = {4 * (row * 16 + column) + way for row in range(4) for column, way in ((7, 0), (8, 1))}
    paths = np.split(circuits.hops, circuits.hop_offsets[1:-1])
    crosses = np.array([bool(seams & set(path.tolist())) for path in paths])
    tiles = circuits.num_hops() * 0.03 * 14
    assert crosses.any()
    assert (late - 800 - tiles).tolist() == pytest.approx(np.where(crosses, 4.9, 0.0).tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "assumed"),
    [
        ("lightpath", "common"),
        ("terarack", "common"),
        ("torus", "common"),
        ("torus", "published"),
        ("dragonfly", "published"),
    ],
)
def test_a_hop_that_does_not_exist_is_refused(name, assumed):
    """By the law of all fabrics or that of the fabric; the longest latency is that of one of the circuits."""
    where = fabric_at_scale(name, 36)
    plan = lower(where, generate("ring", Request("all_gather"), where))
    circuits, law = plan.rounds(0)[0], path_latency(where, assumptions(assumed))
    assert law.longest_s(circuits) == pytest.approx(law.of_circuits(circuits).max(), rel=1e-12)
    with pytest.raises(IndexError):
        law.of_circuits(replace(circuits, hops=circuits.hops + 10**6))


def test_a_fat_tree_pays_links_and_switches():
    """Within a leaf two links of 2 m, through a spine of another rack four links and three switches."""
    where = fabric("fat_tree:nodes=1024")
    plan = lower(where, generate("mesh", "all_to_all", where))
    circuits = plan.rounds(0)[0]
    late = path_latency(where, COMMON).of_circuits(circuits) / NS
    near = circuits.src // 32 == circuits.dst // 32
    assert np.unique(late[near].round(6)).tolist() == pytest.approx([700 + 2 * 100 + 150 + 4 * 4.9])
    assert late.max() == pytest.approx(700 + 4 * 100 + 3 * 150 + (2 + 7.9 + 7.9 + 2) * 4.9)


def test_servers_have_a_latency_of_their_own():
    """An NVSwitch costs `server_hop` and no receiver."""
    _, late = latency_of("superpod:nodes=8", "mesh")
    assert np.unique(late).tolist() == pytest.approx([700 + 100 + 4 * 4.9])


@pytest.mark.parametrize("key", LATENCY_KEYS)
def test_each_part_is_linear(key):
    """What a part costs more is paid as often as the part is passed, by every fabric."""
    value = getattr(COMMON, key)
    once, twice, thrice = (assumptions("common", **{key: k * value}) for k in (1, 2, 3))
    moved = 0
    for name, nodes in [(name, 64) for name in ("sipac", "terarack", "lightpath", "oddl", "ideal")] + [("superpod", 8)]:
        plan = compile(fabric_at_scale(name, nodes), "all_gather", "1KB", algorithm="ring")
        times = [plan.simulate(assumptions=one).total_s for one in (once, twice, thrice)]
        assert times[2] - times[1] == pytest.approx(times[1] - times[0], abs=1e-15)
        assert times[1] >= times[0]
        moved += times[1] > times[0]
    assert moved


@pytest.mark.parametrize("name", FABRICS.names())
@pytest.mark.parametrize("nodes", [16, 64])
def test_the_judge_computes_the_same_latency(name, nodes):
    """By code of its own, on a whole machine and on a part of it."""
    whole, compared = fabric_at_scale(name, nodes), []
    for where in (whole, job(whole, range(0, nodes, 4))):
        with suppress(UnsupportedError):  # some systems cannot carry a ring on such a part
            plan = lower(where, generate("ring", "all_gather", where))
            compared.append(plan)
    assert compared
    for plan in compared:
        for circuits in plan.rounds(0):
            ours = path_latency(plan.fabric, COMMON).of_circuits(circuits)
            assert path_latency_s(plan, circuits, COMMON) == pytest.approx(ours, rel=1e-12)
            assert (ours > 0.7e-6).all()


def test_messages_of_a_node_follow_each_other():
    """63 messages of 5 ns before the last one leaves, in all engines."""
    plan = compile("ideal:nodes=64", "all_to_all", "64KB", algorithm="mesh")
    with_gap, without = (simulate(plan.circuits, 64_000, assumptions("common", message_gap=g)) for g in (5e-9, 0.0))
    assert with_gap.timeline.total_s - without.timeline.total_s == pytest.approx(63 * 5e-9)
    for engine in ("flow", "flow:mode=asynchronous", "packet"):
        found = simulate(plan.circuits, 64_000, COMMON, engine=engine).timeline
        assert found.total_s == pytest.approx(with_gap.timeline.total_s, rel=0.02)


def test_messages_of_a_round_by_hand():
    """Node 0 sends two, node 1 one; an idle circuit has none and adds none, and a round without circuits is no wait."""
    where = fabric("ideal:nodes=4")
    transfers = Transfers.of([0, 0, 1, 3], [1, 2, 2, 0], [0, 0, 0, 0], 1, Op.COPY)
    circuits = Circuits.of(np.array([0, 1, 2, -1]), np.array([0, 0, 1, 3]), np.array([1, 2, 2, 0]))
    law = path_latency(where, COMMON)
    assert (law.gaps_s(transfers, circuits) / NS).tolist() == pytest.approx([10, 10, 5, 0])
    assert law.gap_s(transfers, circuits) / NS == pytest.approx(10)
    none = circuits.take(np.zeros(0, int))
    assert law.gap_s(transfers, none) == 0 == latency.most_messages(transfers, none)
    assert len(law.gaps_s(transfers, none)) == 0


def test_latencies_of_rounds_by_hand():
    """In line where nothing is set between rounds: the longest once; else each; messages always add."""
    still, set_between = fabric("sipac:radix=2,levels=2"), fabric("oddl:shape=4")
    for where, assumed, due in (
        (still, COMMON, 2.5), (still, assumptions("common", rounds="apart"), 3.5), (set_between, COMMON, 3.5),
    ):  # fmt: skip
        assert latency.in_line_on(where, assumed) is (due == 2.5)
        assert latency.step_latency_s(where, assumed, [1.0, 2.0], [0.25, 0.25]) == due
        assert latency.step_latency_s(where, assumed, [], []) == 0
    wide = replace(COMMON, floor=replace(COMMON.floor, in_rack_m=20.0))
    network = fabric("torus:shape=4x4")
    longer = path_latency(network, wide).least_s - path_latency(network, COMMON).least_s
    assert longer / NS == pytest.approx(18 * 4.9)
    gates = Circuits.of(np.arange(1), np.array([16]), np.array([31]), 0, 3, 1, np.array([[3, 2]]))
    law = path_latency(fabric("ramp:groups=4,racks=2,wavelengths=4"), COMMON)
    assert law.longest_s(gates) == law.base_s  # gates are no hops that take time


def test_a_round_without_circuits():
    """No circuit waits for the base alone."""
    plan = compile("terarack:nodes=4", "all_gather", "1KB", algorithm="ring").circuits
    law = path_latency(plan.fabric, COMMON)
    none = plan.rounds(0)[0].take(np.zeros(0, int))
    assert not law.constant
    assert law.longest_s(none) == law.base_s
    assert len(law.of_circuits(none)) == 0


def test_rounds_in_line_wait_for_the_latency_once():
    """SiPAC sets nothing between rounds; LIGHTPATH does, so its rounds stay apart."""
    plan = compile("sipac:radix=4,levels=1,wavelengths=4", "all_to_all", "4KB", algorithm="mesh")
    wafer = compile("lightpath:shape=4x4,lasers=2", "all_to_all", "16KB", algorithm="mesh")
    for made, saves in ((plan, True), (wafer, False)):
        one, two = (
            profile(made.circuits, assumptions("common", rounds=way)).timeline(4096) for way in ("in_line", "apart")
        )
        rounds = two.num_rounds / two.num_steps
        if saves and rounds > 1:
            assert one.total_s < two.total_s
        if not saves:
            assert rounds > 1
            assert one.total_s == two.total_s


def test_control_messages_where_circuits_change():
    """A ring on ODDL keeps its circuits: one exchange, not one a step; beside the setting it hides behind it."""
    plan = compile("oddl:shape=4x4", "all_gather", "16KB", algorithm="ring")
    every, change = (
        plan.simulate(assumptions="common", control_charge=way).totals()["control_s"]
        for way in ("every_step", "on_change")
    )
    assert every == pytest.approx(15 * change)
    beside = plan.simulate(assumptions="common", control_order="beside_setting").totals()["control_s"]
    assert beside == pytest.approx(change - plan.fabric.reconfiguration_s)
    slow = plan.simulate("flow", assumptions="common", mode="asynchronous").totals()["control_s"]
    assert slow == pytest.approx(change)


def test_named_sets_and_values():
    """Names, values with names, and what is refused in one line."""
    assert assumptions("common", endpoint="nic").endpoint == 2.7e-6
    with pytest.raises(ParameterError, match="endpoint=card is not a time and none of memory, nic, gpu_nic"):
        assumptions("common", endpoint="card")
    assert assumptions("common", endpoint="gpu-nic").endpoint == 8.35e-6
    assert assumptions("common", fibre="9.8ns/m").fibre == pytest.approx(9.8e-9)
    assert assumptions("common", hop=COMMON.hop).name == "common"
    assert assumptions("common", hop=0).name == "common, changed"
    with pytest.raises(UnknownNameError, match="unknown assumptions 'comon'; did you mean 'common'"):
        assumptions("comon")
    with pytest.raises(ParameterError, match="unknown assumption 'endpiont'; did you mean 'endpoint'"):
        assumptions("common", endpiont=1)
    with pytest.raises(
        ParameterError, match="endpoint=1us has no effect with latency=published; try --assumptions common"
    ):
        assumptions("published", endpoint="1us")
    with pytest.raises(ParameterError, match="hop=-1 is negative"):
        assumptions("common", hop=-1)


def test_a_node_rate_above_the_bound_is_never_faster_than_the_bound():
    """Every fabric at 16 nodes, both sets: no time is below its bound."""
    for name in ("common", "published"):
        found = compare_plans(
            [fabric_at_scale(one, 16) for one in FABRICS.names()], "all_reduce", [1000], assumptions=name
        )
        assert all(entry.total_s >= entry.lower_bound_s * (1 - 1e-9) for entry in found.entries)


ENGINES = ("closed_form", "flow", "flow:mode=asynchronous", "packet", "packet:mode=asynchronous", "device")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("spec", "algorithm", "collective"),
    [
        ("torus:shape=4x4", "torus_all_ports", "all_gather"),  # to each receiver two ranges at once
        ("terarack_torus:shape=4x4", "torus_all_ports", "all_reduce"),
        ("lightpath:shape=4x4", "two_sided_ring", "all_gather"),
        ("sipac:radix=4,levels=2", "two_sided_ring", "reduce_scatter"),  # in two rounds
        ("oddl:shape=16", "bruck", "all_to_all"),
        ("sip_ring:nodes=12", "bruck", "all_gather"),
        ("ocs:nodes=12", "bruck", "all_gather"),
        ("fat_tree:nodes=12", "bruck", "all_to_all"),
    ],
)
def test_ranges_of_chunks_are_one_message(engine, spec, algorithm, collective):
    """A gap for each (step, sender, receiver, operation), in all engines; senders whose messages begin in different rounds wait
    for each other's."""
    plan = compile(spec, collective, 0, algorithm=algorithm).circuits
    messages, gaps, ranges = 0, 0, 0
    for i in range(plan.schedule.num_steps):
        t = plan.schedule.step(i)
        first = {}
        for row, message in enumerate(zip(t.src.tolist(), t.dst.tolist(), t.op.tolist(), strict=True)):
            first.setdefault(message, row)
        messages += max(Counter(src for src, _, _ in first).values())
        ranges += max(Counter(t.src.tolist()).values())
        for circuits in plan.rounds(i):
            begun = [src for (src, _, _), row in first.items() if row in circuits.transfer]
            gaps += max(Counter(begun).values(), default=0)
    assert ranges > messages <= gaps
    with_gaps, none = (
        simulate(plan, 0, assumptions("common", message_gap=gap), engine=engine).timeline for gap in (5e-9, 0)
    )
    found = (with_gaps.total_s - none.total_s) / 5e-9
    if engine in ("closed_form", "flow", "packet"):
        assert found == pytest.approx(gaps, abs=1e-6)
    else:
        assert messages - 1e-6 <= found <= gaps + 1e-6


@pytest.mark.parametrize("hop", ["150ns", "5us"])
@pytest.mark.parametrize("spec", ["torus:shape=4x4", "bcube:radix=4,levels=2", "topoopt:nodes=16,degree=2"])
@pytest.mark.parametrize(("algorithm", "collective"), [("mesh", "all_to_all"), ("ring", "all_reduce")])
def test_nodes_that_forward_longer_than_a_message_takes_to_start(spec, hop, algorithm, collective):
    """The same law in all engines, and no time below its bound, also where the base of a path is below 0."""
    plan = compile(spec, collective, 0, algorithm=algorithm).circuits
    slow = assumptions("common", endpoint=0, hop=hop, compute="none")
    times = [simulate(plan, 0, slow, engine=engine).timeline for engine in ENGINES]
    assert [one.total_s for one in times] == pytest.approx([times[0].total_s] * len(times), rel=1e-6)
    for size in (1000, 10**6):
        for engine in ENGINES:
            found = simulate(plan, size, slow, engine=engine).timeline
            assert found.total_s >= found.lower_bound_s * (1 - 1e-9) > 0


def test_messages_of_a_step_in_rounds():
    """0 copies two ranges to 1 and adds one, and sends one to 2; a message counts in the round of its first range."""
    where = fabric("ideal:nodes=4")
    transfers = Transfers.of(
        [0, 0, 0, 0, 3], [1, 2, 1, 1, 2], [0, 0, 4, 2, 0], 1, [Op.COPY, Op.COPY, Op.REDUCE, Op.COPY, Op.COPY]
    )
    every = Circuits.of(np.arange(5), transfers.src, transfers.dst)
    law = path_latency(where, COMMON)
    for rows, due in (
        ([0, 1, 2, 3, 4], [15, 15, 15, 15, 5]), ([0, 2], [10, 10]), ([1, 3, 4], [5, 5, 5]), ([3], [0]),
    ):  # fmt: skip
        circuits = every.take(np.array(rows))
        for fresh in (transfers, transfers.take(np.arange(5))):
            assert (law.gaps_s(fresh, circuits) / NS).tolist() == pytest.approx(due)
            assert law.gap_s(fresh, circuits) / NS == pytest.approx(max(due))


def test_messages_of_few_circuits_and_of_many(monkeypatch):
    """Counted by sorting or in a table: the messages of each sender that have circuits, however many they have."""
    plan = compile("ocs:nodes=24", "all_to_all", 10**6, algorithm="mesh").circuits
    transfers = plan.schedule.step(0)
    for circuits in plan.rounds(0):
        due = max(Counter(transfers.src[sorted(set(circuits.transfer.tolist()))].tolist()).values())
        for few in (0, 10**9):
            monkeypatch.setattr(latency, "FEW", few)
            assert latency.most_messages(transfers, circuits) == due
