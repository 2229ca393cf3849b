"""Load of the parts of a machine, the bottleneck, busy times, and names of parts."""

import dataclasses
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.engines import flow_result
from tests.images import Made, not_listed
from tests.profiles import examples
from tests.signals import signals
from tests.simulate.plans import by_hand
from tests.strategies import fabrics

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale
from opticcl.ir import CircuitPlan, Circuits, Op, Transfers
from opticcl.plans.compare import compare_plans
from opticcl.simulate import simulate
from opticcl.simulate.bottleneck import _repeated_signals, bottleneck, loads, loads_of_traffic
from opticcl.simulate.over_time import busy_over_time
from opticcl.simulate.traffic import TransferTimes

MB = 1_000_000
PACKETS = [
    name for name in FABRICS.names() if fabric(name, **FABRICS.get(name).parameters_at_scale(8)).is_packet_switched
]


def plan_of(specification, collective, algorithm="auto", size=MB):
    """A plan and the loads of it."""
    plan = opticcl.compile(specification, collective, size, algorithm=algorithm)
    return plan, loads(plan.circuits, plan.size_bytes)


def bottleneck_of(plan, found, **how):
    """The bottleneck of a plan."""
    return bottleneck(plan.fabric, found, plan.simulate(**how, assumptions="published").total_s)


def counted(plan):
    """Bytes on each part of each kind by name, transfer by transfer and hop by hop."""
    schedule, machine = plan.schedule, plan.fabric
    chunk_bytes = plan.size_bytes / schedule.collective.num_chunks
    carried = Counter()
    for step in range(schedule.num_steps):
        transfers = schedule.step(step)
        for circuits in plan.circuits.rounds(step):
            wavelengths = Counter()
            for transfer, n in zip(circuits.transfer.tolist(), circuits.wavelength_n.tolist(), strict=True):
                wavelengths[transfer] += 1 if machine.is_packet_switched else n
            for usage in machine.usage(circuits):
                kind = next(i for i, r in enumerate(machine.resources) if r is usage.resource)
                for row, index in enumerate(usage.index.tolist()):
                    circuit = row if usage.circuit is None else int(usage.circuit[row])
                    transfer = int(circuits.transfer[circuit])
                    mine = 1 if machine.is_packet_switched else int(circuits.wavelength_n[circuit])
                    sent = int(transfers.size_chunks()[transfer]) * chunk_bytes
                    carried[kind, index] += sent * mine / wavelengths[transfer]
    return carried


@pytest.mark.parametrize("name", PACKETS)
@pytest.mark.parametrize("algorithm", ["ring", "mesh", "halving_doubling"])
def test_bytes_on_links_are_those_of_transfers_times_hops(name, algorithm):
    """Added up over all links: every transfer as often as its route has hops, by the fabric's own routing."""
    made = fabric_at_scale(name, 8)
    plan, found = plan_of(made, "all_reduce", algorithm)
    chunk_bytes = MB / plan.schedule.collective.num_chunks
    due = 0.0
    for step in range(plan.schedule.num_steps):
        transfers = plan.schedule.step(step)
        _, offsets = made.route(transfers.src, transfers.dst)
        due += float((np.diff(offsets) * transfers.size_chunks()).sum()) * chunk_bytes
    assert due > 0
    assert sum(float(load.carried_bytes.sum()) for load in found) == pytest.approx(due)


@pytest.mark.parametrize(
    ("specification", "collective", "algorithm"),
    [
        ("superpod:nodes=24", "all_to_all", "mesh"),
        ("fat_tree:nodes=20,radix=8,routing=ecmp", "all_reduce", "ring"),
        ("bcube:radix=3,levels=2", "all_gather", "auto"),
        ("sipac:radix=3,levels=2", "all_reduce", "sipco"),
        ("terarack:nodes=13,wavelengths=4", "all_reduce", "wrht"),
        ("terarack_torus:shape=3x4", "all_to_all", "auto"),
        ("lightpath:shape=3x4", "reduce_scatter", "auto"),
        ("oddl:shape=4x4", "all_reduce", "halving_doubling"),
        ("sip_ring:nodes=7", "all_reduce", "ring"),
    ],
)
def test_the_bottleneck_is_the_fullest_by_another_count(specification, collective, algorithm):
    """Every part's bytes, and that none is busier than the one that is named, counted circuit by circuit."""
    plan, found = plan_of(specification, collective, algorithm)
    carried = counted(plan)
    loaded = {
        (load.resource, index): sent
        for load in found
        for index, sent in zip(load.index.tolist(), load.carried_bytes.tolist(), strict=True)
    }
    assert loaded == pytest.approx({part: sent for part, sent in carried.items() if sent})
    named = bottleneck_of(plan, found)
    rates = {}
    for i, resource in enumerate(plan.fabric.resources):
        wavelengths = plan.fabric.num_wavelengths if resource.per_wavelength else plan.fabric.lasers_per_port
        light = plan.fabric.rate_bits_per_s / 8 * wavelengths * resource.capacity
        rates[i] = resource.capacity / 8 if resource.shared else light
    busy = {part: sent / rates[part[0]] for part, sent in carried.items()}
    mine = (named.place.resource, named.place.index)
    assert busy[mine] == pytest.approx(max(busy.values()))
    assert named.busy_s == pytest.approx(busy[mine])
    assert named.carried_bytes == pytest.approx(carried[mine])
    as_busy = [p for p, s in busy.items() if p[0] == mine[0] and s == pytest.approx(busy[mine])]
    assert named.num_equal == len(as_busy)
    assert min(as_busy) == mine


@examples(15)
@given(
    fabrics(20), st.sampled_from(["all_reduce", "all_to_all", "broadcast"]), st.sampled_from(["closed_form", "flow"])
)
def test_no_part_is_busy_longer_than_the_plan_takes(made, collective, engine):
    """Whatever the fabric, its size, the collective and the engine."""
    try:
        plan, found = plan_of(made, collective)
    except (UnsupportedError, FabricError):
        return
    named = bottleneck_of(plan, found, engine=engine)
    if made.num_nodes == 1:
        assert named is None
    else:
        assert 0 < named.utilisation <= 1 + 1e-9


def test_a_ring_on_a_fat_tree_fills_the_links_of_the_nodes():
    """Each of the 2 (N - 1) steps sends M / N over both links of every node, and over few links between switches."""
    plan, found = plan_of("fat_tree:nodes=64,radix=16", "all_reduce", "ring", 64 * MB)
    named = bottleneck_of(plan, found)
    assert named.name == "link node 0 (leaf 0) -> leaf 0"
    assert named.carried_bytes == pytest.approx(2 * 63 * MB)
    assert (
        named.num_equal == 128 + 16
    )  # to and from every node, and the one link to and from each leaf that the ring takes


def test_the_card_of_a_superpod_fills_up_in_an_all_to_all():
    """Of 64 nodes 56 are in other servers: 56 / 64 of a message leave over the card, and NVLink waits."""
    plan, found = plan_of("superpod:nodes=64", "all_to_all", "mesh")
    named = bottleneck_of(plan, found, engine="flow")
    assert named.name == "link node 0 (server 0, rail 0) -> leaf 0"
    assert named.carried_bytes == pytest.approx(MB * 56 / 64)
    assert named.busy_s == pytest.approx(MB * 56 / 64 * 8 / 200e9)
    assert named.utilisation > 0.95


def test_sipac_fills_its_ports():
    """Two halves of the message go round both levels of radix 4: each port sends 3/4 of each half."""
    plan, found = plan_of("sipac:radix=4,levels=2", "all_to_all", "sipco")
    named = bottleneck_of(plan, found)
    assert named.name == "lasers of port 0 of node 0 (x0=0, x1=0)"
    assert named.carried_bytes == pytest.approx(0.75 * MB)
    assert named.num_equal == 32
    assert str(named).startswith(f"bottleneck: {named.name}, one of 32 equally busy ones, 750 KB, busy for ")


def test_transmitters_of_circuit_switches_send_at_the_rate_of_their_port():
    """Two planes, two links of each node at half of the node's rate: 15/16 of two messages at that rate."""
    plan, found = plan_of("ocs:nodes=16,planes=2,rate=400Gb/s", "all_reduce", "two_sided_ring", 64 * MB)
    named = bottleneck_of(plan, found)
    assert named.name.startswith("transmitter of")
    assert named.busy_s == pytest.approx(named.carried_bytes * 8 / 400e9)
    assert named.utilisation > 0.5


def test_one_global_link_of_a_dragonfly_holds_up_everybody():
    """Two groups of eight nodes are joined by one link each way; over it goes what each of them sends to the others."""
    plan, found = plan_of(fabric_at_scale("dragonfly", 16), "all_to_all", "mesh")
    named = bottleneck_of(plan, found)
    assert named.name == "link router 0 (group 0) -> router 4 (group 1)"
    assert named.carried_bytes == pytest.approx(8 * 8 * MB / 16)
    assert named.num_equal == 2


def test_light_that_is_split_counts_once():
    """RAMP's root sends 1/32 of a broadcast on each transmitter, however many nodes hear it."""
    plan, found = plan_of("ramp:groups=4,racks=1,wavelengths=4,transceivers_per_group=8", "broadcast", "ramp:stages=1")
    root = found[0]
    assert plan.fabric.resources[root.resource].kind == "tx_port"
    assert root.carried_bytes[root.index < 32].max() == pytest.approx(MB / 32)
    heard = sum(
        float(load.carried_bytes.sum()) for load in found if plan.fabric.resources[load.resource].kind == "rx_port"
    )
    assert heard > root.carried_bytes.sum()


# --- bottlenecks computed by hand ------------------------------------------------------------------------------------


def test_nothing_sent_has_no_bottleneck():
    """One node alone, and a barrier, which carries nothing."""
    for specification, collective in (("ideal:nodes=1", "all_reduce"), ("ideal:nodes=4", "barrier")):
        plan, found = plan_of(specification, collective)
        assert found == ()
        assert bottleneck_of(plan, found) is None


def test_a_comparison_names_the_bottleneck_of_each():
    """Rows have its name, its bytes over all messages and its share of the time; other engines have other shares."""
    made = [fabric("superpod:nodes=16"), fabric("sipac:radix=4,levels=2")]
    rows = {
        engine: {
            row["fabric"]: row
            for row in compare_plans(made, "all_to_all", [MB, 3 * MB], engine=engine, assumptions="published").rows()
        }
        for engine in ("closed_form", "flow")
    }
    row = rows["flow"]["superpod"]
    assert row["bottleneck"] == "link node 0 (server 0, rail 0) -> leaf 0"
    assert row["bottleneck_bytes"] == pytest.approx(4 * MB / 2)  # half of the nodes are in the other server
    assert row["bottleneck_utilisation"] == pytest.approx(2 * MB * 8 / 200e9 / row["total_s"])
    assert rows["closed_form"]["sipac"]["bottleneck"].startswith("lasers of port 0 of node 0")
    assert row["bus_bytes_per_s"] == pytest.approx(row["algorithm_bytes_per_s"] * 15 / 16)


def carried_by(plan, size_bytes):
    """Bytes on the parts of each kind: (kind, part) -> bytes."""
    found = loads(plan, size_bytes)
    for load in found:
        assert load.largest_queue_bytes.tolist() == load.dropped_bytes.tolist() == [0] * len(load.index)
    return {
        (load.resource, k): n
        for load in found
        for k, n in zip(load.index.tolist(), load.carried_bytes.tolist(), strict=True)
    }


def repeated(rounds):
    """Each circuit twice, so that each carries half of its transfer."""
    doubled = tuple(one.take(np.repeat(np.arange(len(one)), 2)) for one in rounds.rounds)
    return dataclasses.replace(rounds, rounds=doubled)


@pytest.mark.parametrize(("collective", "steps"), [("all_to_all", 2), ("all_reduce", 4)])
def test_steps_that_are_not_listed_have_the_loads_of_their_rows(monkeypatch, collective, steps):
    """By the moves of the machine; where they are not known, no load is."""
    where = fabric("ramp:groups=3,racks=2,wavelengths=6")
    algorithm = f"skewed_exchange:block=2,steps={steps}"
    listed, defined = (plan.circuits for plan in not_listed(monkeypatch, where, collective, algorithm))
    due, found = carried_by(listed, MB), carried_by(defined, MB)
    assert found == pytest.approx(due, rel=1e-12)
    together = [
        dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, classes=(range(steps),)))
        for plan in (listed, defined)
    ]
    assert carried_by(together[1], MB) == pytest.approx(carried_by(together[0], MB), rel=1e-12)
    twice = SimpleNamespace(
        on_routes=False,
        symmetric=lambda i: tuple(map(repeated, defined.symmetric(i))),
        represents=lambda i: True,
        routed=lambda i: None,
    )
    assert carried_by(dataclasses.replace(defined, rounds=Made(defined, twice)), MB) == pytest.approx(due, rel=1e-12)
    rule = defined.rounds.lowered_by.rule

    def on(machine):
        return dataclasses.replace(defined, fabric=machine, rounds=Made(defined, rule, machine))

    # where no part has another image, the listed circuits carry everything
    alone = altered(
        where, resource_images=lambda self, move: [np.arange(len(one)) for one in where.resource_images(move)]
    )
    total = [sum(n for part, n in carried.items() if part[0] == 0) for carried in (due, carried_by(on(alone), MB))]
    assert total[0] == pytest.approx(total[1], rel=1e-12)
    moves = iter([None, *[np.arange(3)] * 9])
    unknown = altered(where, resource_images=lambda self, move: next(moves))
    with pytest.raises(UnsupportedError, match="step 0 on ramp: its moves do not keep the machine"):
        loads(on(unknown), MB)


def test_steps_of_equal_circuits_or_equal_sizes_are_counted_apart():
    """Half of eight bytes, half of it over another link, and a quarter over the first one."""
    plan = by_hand(fabric("ideal:nodes=3"), [(0, 0, 1, 0, 4, 0), (1, 1, 2, 0, 4, 0), (2, 1, 2, 0, 2, 0)], num_steps=3)
    assert carried_by(plan, 8) == {(0, 0): 4, (0, 1): 4 + 2, (1, 1): 4, (1, 2): 4 + 2}


@pytest.mark.parametrize(("specification", "wavelengths"), [("ideal:nodes=3", (1, 1)), ("lightpath:shape=2x2", (1, 3))])
def test_routes_and_circuits_of_a_transfer_share_its_bytes(specification, wavelengths):
    """Equally on routes of packets, in proportion to their wavelengths on circuits; alone each of them carries everything."""
    plan = by_hand(fabric(specification), [(0, 0, 1, 0, 8, 0), (0, 1, 2, 0, 4, 0)])
    (circuits,) = plan.rounds(0)
    only = {part: n for part, n in carried_by(plan, 8).items() if part[0] < 2}
    assert only == {(0, 0): 8, (0, 1): 4, (1, 1): 8, (1, 2): 4}
    columns = (np.array([getattr(circuits, name)[k] for k in (0, 0, 1)]) for name in ("transfer", "src", "dst", "port"))
    hops = (
        np.concatenate([circuits.path(k) for k in (0, 0, 1)]),
        np.cumsum([0, *(len(circuits.path(k)) for k in (0, 0, 1))]),
    )
    split = Circuits.of(*columns, np.array([0, 1, 0]), np.array([*wavelengths, 2]), hops)
    assert {
        part: n
        for part, n in carried_by(CircuitPlan(plan.fabric, plan.schedule, lambda i: (split,)), 8).items()
        if part[0] < 2
    } == only


PLAIN = SimpleNamespace(resources=(), wavelengths_carried=lambda circuits: circuits.wavelength_n)


@examples(80)
@given(st.data(), st.integers(1, 7), st.booleans(), st.booleans())
def test_signals_that_are_split_are_found_row_by_row(data, count, steps, twice):
    """One signal on one part."""
    few = (0, 0, 0, 0, 1)
    column = {
        name: np.array(data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))
        for name, values in {
            "src": few, "port": few, "low": few, "number": [1 + n for n in few], "chunk": [3 * n for n in few],
            "chunks": [2 + n for n in few], "step": [1 + n for n in few], "part": few,
            "op": [int(Op.COPY)] * 3 + [int(Op.MOVE)],
        }.items()
    }  # fmt: skip
    transfers = Transfers.of(
        column["src"],
        np.full(count, 2),
        column["chunk"],
        column["chunks"],
        column["op"],
        None,
        column["step"] if steps else None,
    )
    row = np.arange(count)
    circuits = Circuits.of(
        row[::-1], column["src"][::-1], np.full(count, 2), column["port"], column["low"], column["number"]
    )
    owner = np.repeat(row, 2) if twice else row
    part = np.repeat(column["part"], 2) + np.tile([0, 1], count) if twice else column["part"]
    found = _repeated_signals(PLAIN, transfers, circuits, part, owner if twice else None)
    carried = signals(circuits, transfers)
    seen, due = set(), []
    for where, circuit in zip(part.tolist(), owner.tolist(), strict=True):
        signal = (where, carried[circuit])
        due.append(signal in seen)
        seen.add(signal)
    assert (found is None and not any(due)) or found.tolist() == due


def test_two_receivers_of_a_port_hear_one_signal():
    """The second of them adds nothing to the transmitter; with a port each, both do."""
    transfers = Transfers.of([0, 0], [1, 2], 0, 1, Op.COPY)
    for ports, due in ((0, [False, True]), ([0, 1], None)):
        circuits = Circuits.of(np.arange(2), transfers.src, transfers.dst, ports)
        found = _repeated_signals(PLAIN, transfers, circuits, np.zeros(2, np.int64), None)
        assert (None if found is None else found.tolist()) == due


# --- what engines saw -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize("mode", ["barrier", "asynchronous"])
def test_engines_see_what_the_circuits_say(engine, mode):
    """Where nothing is lost, the traffic that an engine records is that of the circuits."""
    plan, found = plan_of("superpod:nodes=16", "all_reduce", "halving_doubling")
    result = simulate(plan.circuits, MB, record=True, engine=engine, mode=mode, assumed="published")
    recorded = loads_of_traffic(plan.fabric, result.traffic)
    assert [load.resource for load in recorded] == [load.resource for load in found]
    for one, other in zip(recorded, found, strict=True):
        assert (one.index == other.index).all()
        assert one.carried_bytes == pytest.approx(other.carried_bytes)
        assert one.busy_s == pytest.approx(other.busy_s, rel=1e-6)


def test_kinds_of_links_without_traffic_are_left_out():
    """Within a server of a SuperPOD nothing crosses the cards, the first kind of its links."""
    plan = by_hand(fabric("superpod:nodes=16"), [(0, 0, 1, 0, 8, 0)])
    traffic = flow_result(plan, MB, assumptions("published")).traffic
    (found,) = loads_of_traffic(plan.fabric, traffic)
    assert found.carried_bytes.tolist() == [MB, MB]
    assert [(found.resource, *found.index.tolist())] == [
        (r, *i.index.tolist()) for i in loads(plan, MB) for r in [i.resource]
    ]


def test_what_is_sent_again_is_carried_again():
    """A window into small buffers loses cells, and the links before them carry more than the plan requires."""
    plan, found = plan_of("fat_tree:nodes=16,radix=8", "gather", "mesh")
    lossy = {"transport": "windowed", "buffer_bytes": 8192, "cell_bytes": 4096}
    result = simulate(plan.circuits, MB, record=True, engine="packet", **lossy, assumed="published")
    recorded = loads_of_traffic(plan.fabric, result.traffic)
    assert sum(load.dropped_bytes.sum() for load in recorded) > 0
    assert sum(load.carried_bytes.sum() for load in recorded) > sum(load.carried_bytes.sum() for load in found)
    assert max(load.largest_queue_bytes.max() for load in recorded) <= 8192


@pytest.mark.parametrize(
    ("specification", "collective", "algorithm", "mode"),
    [
        ("superpod:nodes=16", "all_to_all", "mesh", "barrier"),
        ("fat_tree:nodes=20,radix=8", "all_reduce", "ring", "barrier"),
        ("fat_tree:nodes=20,radix=8", "all_reduce", "ring", "asynchronous"),
        ("terarack:nodes=13,wavelengths=2", "all_reduce", "wrht", "barrier"),
        ("lightpath:shape=3x4", "all_to_all", "auto", "asynchronous"),
        ("ramp:groups=3,racks=3,wavelengths=6", "broadcast", "ramp", "barrier"),
    ],
)
def test_what_is_busy_over_time_adds_up(specification, collective, algorithm, mode):
    """Over all slices each kind of part is busy as long as its bytes take; nothing is busy before or after."""
    plan, found = plan_of(specification, collective, algorithm)
    result = simulate(plan.circuits, MB, record=True, engine="flow", mode=mode, assumed="published")
    total_s, kinds = result.timeline.total_s, len(plan.fabric.resources)

    def row_of(resource, index):
        return np.full(len(index), resource)

    sliced = busy_over_time(plan.circuits, result.traffic.transfers, total_s, row_of, kinds, 50)
    due = np.zeros(kinds)
    for load in found:
        due[load.resource] = load.busy_s.sum()
    assert sliced.sum(axis=1) == pytest.approx(due, rel=1e-6)
    parts = np.array([resource.count for resource in plan.fabric.resources])
    assert (sliced <= parts[:, None] * (total_s / 50) * (1 + 1e-9)).all()


def test_time_that_is_told_together_is_spread_evenly():
    """A row for all transfers of a step spreads them from the first start to the last end, which may be one time."""
    plan, _ = plan_of("ideal:nodes=4", "all_to_all", "mesh")
    one_row = ([0], [1], [0.0], [-1], [-1], [4.0 * MB], [0.0], [2.0])
    together = TransferTimes(*map(np.array, one_row))
    sliced = busy_over_time(plan.circuits, together, 4.0, lambda r, i: np.zeros(len(i), int), 1, 4)
    assert sliced[0, 0] == pytest.approx(sliced[0, 1])
    assert sliced[0, 2:] == pytest.approx([0.0, 0.0])
    rate = plan.fabric.resources[0].capacity / 8
    assert sliced.sum() == pytest.approx(2 * 4 * MB / rate)  # out of a port and into another
    at_once = TransferTimes(*map(np.array, (*one_row[:6], [1.5], [1.5])))
    moment = busy_over_time(plan.circuits, at_once, 4.0, lambda r, i: np.zeros(len(i), int), 1, 4)
    assert moment[0] == pytest.approx([0.0, sliced.sum(), 0.0, 0.0])


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FABRICS.names())
def test_every_part_has_a_name_of_its_own(name):
    """Two parts of a machine are never called the same."""
    for num_nodes in (1, 2, 7, 16, 54):
        try:
            made = fabric_at_scale(name, num_nodes)
        except FabricError:
            continue
        for number, resource in enumerate(made.resources):
            names = made.place_names(number, np.arange(resource.count))
            assert len(set(names)) == resource.count
            kinds, which = made.kind_names(number, np.arange(resource.count))
            assert sorted(set(which.tolist())) == list(range(len(kinds))) or not resource.count


def test_parts_are_named_as_their_papers_do():
    """A link has its ends, a port its node, glass where it runs."""
    trees = fabric("fat_tree:nodes=128,radix=8")
    assert trees.kind_names(0, np.arange(trees.resources[0].count))[0][-1] == "core -> spine"
    assert fabric("superpod:nodes=16").place_names(0, [9])[0] == "link node 9 (server 1, rail 1) -> NVSwitch 1"
    assert fabric("terarack:nodes=5").place_names(0, [7])[0] == "fibre from node 3 to node 2 (counter-clockwise)"
    assert fabric("lightpath:shape=4x4").place_names(2, [22])[0] == "waveguides south of tile (row=1, column=1)"
    assert fabric("bcube:radix=4,levels=2").place_names(0, [32])[0] == "link node 0 (x0=0, x1=0) -> level-1 switch 0"
    stars = fabric("ramp:groups=3,racks=3,wavelengths=6")
    assert stars.place_names(2, [3])[0] == "star coupler group 0 -> group 1 (port 0)"
    assert fabric("lightpath:shape=2x2").node_name(3) == "node 3 at (row=1, column=1)"
