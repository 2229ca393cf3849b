"""What engines record: bytes of links, times of transfers, the critical path; and the names of links."""

import dataclasses
import importlib

import numpy as np
import pytest
from tests.engines import flow, flow_result, packet_result

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.fabrics import FABRICS, fabric
from opticcl.ir import Circuits, Op, Schedule, Transfers
from opticcl.simulate import link_bytes, link_names
from opticcl.simulate.links import Links
from opticcl.simulate.traffic import Recorder

traffic_module = importlib.import_module("opticcl.simulate.traffic")
LIGHT = assumptions("published", compute="none", control="none")
PACKETS = [
    name for name in FABRICS.names() if fabric(name, **FABRICS.get(name).parameters_at_scale(16)).is_packet_switched
]
PLANS = [
    ("fat_tree:nodes=24,radix=8,routing=ecmp", "all_reduce", "ring"),
    ("torus:shape=4x4", "all_to_all", "bruck:radix=16"),
    ("superpod:nodes=16", "all_reduce", "halving_doubling"),
    ("oddl:shape=4x4", "all_reduce", "halving_doubling"),
    ("terarack:nodes=15,wavelengths=2", "all_reduce", "wrht"),
]


@pytest.mark.parametrize("run", [flow_result, packet_result])
@pytest.mark.parametrize("mode", ["barrier", "asynchronous"])
@pytest.mark.parametrize(("specification", "name", "algorithm"), PLANS)
def test_what_is_recorded_fits_the_timeline(specification, name, algorithm, mode, run):
    """Recording changes no time; links carry the bytes of their routes; the last transfer ends when the plan does."""
    plan = opticcl.compile(specification, name, "1MB", algorithm=algorithm).circuits
    result = run(plan, 10**6, LIGHT, mode=mode)
    bare = run(plan, 10**6, LIGHT, mode=mode, record=False)
    assert bare.traffic is None
    assert bare.timeline.total_s == result.timeline.total_s
    traffic, total_s = result.traffic, result.timeline.total_s
    runs = traffic.transfers
    ends = runs.end_s + (runs.repeats - 1) * runs.period_s
    assert ends.max() == pytest.approx(total_s, rel=1e-9)
    assert (runs.end_s >= runs.start_s).all()
    moved = sum(
        int(plan.schedule.step(steps.start).size_chunks().sum()) * len(steps) for steps in plan.schedule.step_classes()
    )
    assert (runs.size_bytes * runs.repeats).sum() == pytest.approx(moved * 1e6 / plan.schedule.collective.num_chunks)
    if plan.fabric.is_packet_switched:
        carried = np.zeros(len(Links(plan.fabric).capacity))
        carried[traffic.link] = traffic.carried_bytes
        assert carried == pytest.approx(link_bytes(plan, 10**6))
        assert (traffic.busy_s <= total_s).all()
    else:
        assert len(traffic.link) == 0
    if mode == "barrier":
        assert len(traffic.critical) == 0
    else:
        chain = traffic.critical
        assert chain.end_s[-1] == pytest.approx(total_s)
        assert (chain.start_s[1:] >= chain.end_s[:-1] - 1e-15).all()  # one after the other, without sums
        assert (np.diff(chain.step) > 0).all()


@pytest.mark.parametrize("run", [flow_result, packet_result])
def test_many_transfers_are_told_by_step(run, monkeypatch):
    """Beyond the limit a class of steps is one row with the same bytes, start and end."""
    plan = opticcl.compile("torus:shape=4x4", "all_reduce", "1MB", algorithm="ring").circuits
    plan = dataclasses.replace(
        plan, schedule=dataclasses.replace(plan.schedule, classes=tuple(range(i, i + 1) for i in range(30)))
    )
    for mode in ("barrier", "asynchronous"):
        whole = run(plan, 10**6, LIGHT, mode=mode).traffic.transfers
        with monkeypatch.context() as patch:
            patch.setattr(traffic_module, "MAX_ROWS", 100)
            short = run(plan, 10**6, LIGHT, mode=mode).traffic.transfers
        assert len(short) < len(whole) == 16 * 30
        assert short.src[-1] == -1
        assert short.size_bytes.sum() == pytest.approx(whole.size_bytes.sum())
        assert (short.start_s.min(), short.end_s.max()) == (whole.start_s.min(), whole.end_s.max())


def test_flows_result_as_one_have_their_own_ends():
    """The times of a quotient reach all flows that it stands for."""
    where = fabric("fat_tree:nodes=72,preset=wrht")
    src, dst = np.divmod(np.arange(72 * 72), 72)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    plan = lower(where, Schedule("pairs", collective("all_to_all", 72, 72), 1, lambda i: transfers))
    runs = flow_result(plan, 72 * 10**6, LIGHT).traffic.transfers
    assert len(runs) == 72 * 71
    inside = runs.src // 32 == runs.dst // 32
    assert runs.end_s.max() == pytest.approx(flow(plan, 72 * 10**6, LIGHT).total_s)
    assert len(np.unique(np.round(runs.end_s[inside], 12))) <= 4  # full leaves and the last one, inside and across


@pytest.mark.parametrize("name", PACKETS)
def test_hops_are_links(name):
    """On every packet fabric the hops of a path are its shared links, in the order of the walk; each has its own name."""
    where = fabric(name, **FABRICS.get(name).parameters_at_scale(16))
    src, dst = np.divmod(np.arange(256), 16)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    plan = lower(where, Schedule("pairs", collective("all_to_all", 16, 16), 1, lambda i: transfers))
    (circuits,) = plan.rounds(0)
    links = Links(where)
    hops, offsets = links.routes(circuits)
    used, used_offsets = links.paths(circuits)
    assert (offsets == used_offsets).all()
    owner = circuits.hop_owner()
    assert (np.sort(owner * 10**6 + hops) == np.sort(owner * 10**6 + used)).all()
    names = link_names(where, np.unique(hops).tolist())
    assert len(set(names)) == len(names)
    assert all("node" in n or "switch" in n or "->" in n for n in names)


def test_light_has_no_shared_links():
    """Bytes a link are a question about packets."""
    plan = opticcl.compile("oddl:shape=4x4", "all_reduce", "1MB", algorithm="ring").circuits
    with pytest.raises(UnsupportedError, match="not shared"):
        link_bytes(plan, 10**6)


def test_busiest_link_of_the_closed_form():
    """The busiest link's bytes over its rate are the transfer time of a step."""
    plan = opticcl.compile("torus:shape=4x4", "all_to_all", "1MB", algorithm="bruck:radix=16")
    carried = link_bytes(plan.circuits, plan.size_bytes)
    busiest_s = (carried / Links(plan.fabric).capacity).max()
    assert plan.simulate(compute="none", assumptions="published").totals()["transfer_s"] == pytest.approx(busiest_s)


def rows_of(times):
    """The rows of a list of transfers."""
    return [tuple(row) for row in zip(*(getattr(times, name).tolist() for name in times.__slots__), strict=True)]


def test_links_add_up_and_the_largest_queue_counts():
    """Three times one round and once another; links that neither carried nor dropped anything are left out."""
    recorder = Recorder(fabric("ideal:nodes=3"))  # six links
    carried, busy, queue, dropped = np.zeros((4, 6))
    carried[1], busy[1], queue[1], dropped[2] = 0.125, 2.0, 7.0, 0.125
    recorder.add_links(carried, busy, queue, dropped, 3)
    recorder.add_links(2 * carried, busy, queue / 7, dropped)
    found = recorder.traffic()
    assert found.link.tolist() == [1, 2]
    assert found.carried_bytes.tolist() == [0.625, 0]
    assert found.busy_s.tolist() == [8, 0]
    assert found.largest_queue_bytes.tolist() == [7, 0]
    assert found.dropped_bytes.tolist() == [0, 0.5]


@pytest.mark.parametrize("limit", [5, 4])
def test_transfers_without_barriers_are_told_one_by_one_up_to_the_limit(monkeypatch, limit):
    """Five of the first and the third step; beyond the limit a row each, none for the step between. The chain is as it is."""
    monkeypatch.setattr(traffic_module, "MAX_ROWS", limit)
    recorder = Recorder(fabric("ideal:nodes=3"))
    given = [(0, 0, 1, 8.0, 1.0, 3.0), (0, 1, 2, 4.0, 0.5, 2.0)]
    given += [(2, 2, 0, 2.0, 5.0, 6.0), (2, 0, 1, 1.0, 3.0, 9.0), (2, 1, 0, 1.0, 4.0, 5.0)]
    classes = (range(1), range(1, 2), range(2, 3))
    recorder.add_transfers([np.array(column) for column in zip(*given, strict=True)], classes, np.array([1, 3]))
    found = recorder.traffic()
    each = [(step, 1, 0.0, *rest) for step, *rest in given]
    assert rows_of(found.critical) == [each[1], each[3]]
    together = [(0, 1, 0.0, -1, -1, 12.0, 0.5, 3.0), (2, 1, 0.0, -1, -1, 4.0, 3.0, 9.0)]
    assert rows_of(found.transfers) == (each if limit == 5 else together)


def test_rounds_are_told_transfer_by_transfer_up_to_the_limit(monkeypatch):
    """Two and one are three, as many as are allowed; of the next step one row is left, and an empty round has none."""
    monkeypatch.setattr(traffic_module, "MAX_ROWS", 3)
    recorder = Recorder(fabric("ideal:nodes=3"))
    transfers = Transfers.of([0, 1, 2], [1, 2, 0], 0, [1, 2, 3], Op.COPY)

    def add(steps, begin_s, rows, end_s):
        circuits = Circuits.of(rows, transfers.src[np.array(rows, int)], transfers.dst[np.array(rows, int)])
        recorder.add_round(steps, begin_s, transfers, circuits, 10.0, np.array(end_s))

    add(range(4), 1.0, [0, 1, 1], [2.0, 3.0, 4.0])  # the second transfer has two circuits
    recorder.end_step(1, 7.0)
    add(range(4, 5), 50.0, [2], [1.0])
    add(range(5, 7), 60.0, [2], [3.0])
    add(range(5, 7), 65.0, [], [])
    recorder.end_step(2, 8.0)
    assert rows_of(recorder.traffic().transfers) == [
        (0, 4, 7.0, 0, 1, 10.0, 1.0, 3.0), (0, 4, 7.0, 1, 2, 20.0, 1.0, 5.0), (4, 1, 0.0, 2, 0, 30.0, 50.0, 51.0),
        (5, 2, 8.0, -1, -1, 30.0, 60.0, 63.0),
    ]  # fmt: skip


# --- the recorder by itself -------------------------------------------------------------------------------------------
