"""Rounds of flows: what makes two of them equal, limits to their events, merged flows, and the thread of the kernel."""

import numpy as np
import pytest
from tests.engines import closed_form, flow, flow_result
from tests.simulate.plans import all_pairs, by_hand

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Transfers
from opticcl.simulate import _flow_rounds as rounds_module
from opticcl.simulate import programme
from opticcl.simulate._flow_rounds import Merging, _Asynchronous, _Rounds
from opticcl.simulate.dependencies import Flows, released_together
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import path_latency
from opticcl.simulate.links import Links

LIGHT = assumptions("published", compute="none", control="none")


def quiet(*_):
    """Reports nothing."""


def rounds_on(where, limit=None):
    """Rounds on a fabric, with nothing recorded."""
    return _Rounds(
        Links(where), path_latency(where, LIGHT), limit or EventLimit("flow", 1000), quiet, None, Merging(0.0)
    )


class OfGivenPaths:
    """Links of a byte a second, and paths that are told."""

    def __init__(self, paths):
        self.capacity = np.ones(1 + max(map(max, paths)))
        self.told = np.concatenate(paths), np.cumsum([0, *map(len, paths)])

    def paths(self, circuits):
        """The same whatever the circuits."""
        return self.told


# --- rounds that are equal --------------------------------------------------------------------------------------------


def test_rounds_are_equal_in_links_paths_bytes_and_latencies():
    """The same links in paths of other lengths, other bytes or other latencies are another round, simulated apart."""
    where = fabric("ideal:nodes=4,latency=0s")
    circuits = Circuits.of(np.arange(3), np.arange(3), np.full(3, 3))
    sizes = {"equal": [6, 6, 6], "other": [6, 6, 12]}
    paths = {"short": [[0, 1], [0], [1, 2]], "long": [[0, 1], [0, 1], [2]], "elsewhere": [[0, 2], [0], [2, 1]]}
    # two on link 0, two on link 1; the first holds the others to a half, or shares both links with the second
    due = {
        ("equal", "short"): 12, ("other", "short"): 18, ("equal", "long"): 12, ("other", "long"): 12,
        ("equal", "elsewhere"): 12, ("other", "elsewhere"): 18,
    }  # fmt: skip
    together = rounds_on(where)
    law = together._law
    for late in (0.0, 5.0):
        together._law = Late(law, np.array([late, 0, 0]))
        for (size, path), total in due.items():
            together._links = OfGivenPaths(paths[path])
            transfers = Transfers.of(np.arange(3), np.full(3, 3), 0, sizes[size], Op.COPY)
            end = together.run(transfers, circuits, 1.0, 1)
            apart = rounds_on(where)
            apart._links, apart._law = together._links, together._law
            assert apart.run(transfers, circuits, 1.0, 1) == end
            if not late:
                assert end.latency_s + end.transfer_s == pytest.approx(total)
    assert len(together._cached) == 2 * len(due)


class Late:
    """A law of latencies that are told."""

    def __init__(self, law, late):
        self.law, self.late = law, late

    def of_circuits(self, circuits):
        """The latencies."""
        return self.late

    def gaps_s(self, transfers, circuits):
        """As of the law."""
        return self.law.gaps_s(transfers, circuits)


def test_an_equal_round_is_simulated_once_and_one_that_shares_no_link_never():
    """Two of three starts, ends and rates, by the limit; a ring on a torus needs no event."""
    where = fabric("fat_tree:nodes=4")
    rows = [(step, s, 0, 0, 4, 1) for step in (0, 1) for s in (1, 2, 3)]
    plan = by_hand(where, rows, num_steps=2)
    assert flow(plan, 10**6, LIGHT, max_events=9).num_rounds == 2
    with pytest.raises(ParameterError, match="about 9 events"):
        flow(plan, 10**6, LIGHT, max_events=8)
    ring = opticcl.compile("torus:shape=4", "all_reduce", "1MB", algorithm="ring").circuits
    assert flow(ring, 10**6, LIGHT, max_events=1).num_rounds == 6


def test_messages_are_part_of_the_latency():
    """As in the closed form, also where flows share links."""
    mesh = opticcl.compile("fat_tree:nodes=4", "all_reduce", "1MB", algorithm="mesh").circuits
    common = assumptions("common")
    due = closed_form(mesh, 10**6, common).totals()["latency_s"]
    assert due > closed_form(mesh, 10**6, LIGHT).totals()["latency_s"]
    assert flow(mesh, 10**6, common).totals()["latency_s"] == pytest.approx(due)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_what_a_round_takes_at_least_is_required_and_what_it_took_is_spent():
    """Into one port: a start and an end each, and a rate where there are bytes; then a rate for each that is left."""
    plan = by_hand(fabric("ideal:nodes=4"), [(0, s, 0, 0, s, 1) for s in (1, 2, 3)])
    transfers, (circuits,) = plan.schedule.step(0), plan.rounds(0)
    with pytest.raises(ParameterError, match="about 9 events"):
        rounds_on(plan.fabric, EventLimit("flow", 1)).run(transfers, circuits, 1.0, 1)
    limit = EventLimit("flow", 100)
    rounds_on(plan.fabric, limit).run(transfers, circuits, 1.0, 1)
    assert limit.left == 100 - (3 + 3 + 3) - (2 + 1)
    empty = by_hand(fabric("ideal:nodes=4"), [(0, s, 0, 0, n, 1) for s, n in ((1, 0), (2, 1), (3, 1))])
    with pytest.raises(ParameterError, match="about 8 events"):
        rounds_on(plan.fabric, EventLimit("flow", 1)).run(empty.schedule.step(0), empty.rounds(0)[0], 1.0, 1)


@pytest.mark.parametrize(
    ("specification", "size", "events"),
    [("ideal:nodes=3", 8, 9), ("ideal:nodes=3", 1, 9), ("ideal:nodes=3", 0, 6), ("lightpath:shape=2x2", 8, 6)],
)
def test_what_transfers_take_at_least_without_barriers(specification, size, events):
    """A start and an end each, and on links that are shared a rate where there are bytes."""
    plan = by_hand(fabric(specification), [(0, 0, 1, 0, 4, 1), (0, 1, 2, 0, 4, 1), (0, 2, 0, 0, 4, 1)])
    assert flow(plan, size, LIGHT, mode="asynchronous", max_events=events).total_s > 0
    with pytest.raises(ParameterError, match=f"about {events} events"):
        flow(plan, size, LIGHT, mode="asynchronous", max_events=1)
    if not plan.fabric.is_packet_switched:
        assert programme(plan, size, LIGHT, engine=f"flow:mode=asynchronous,max_events={events}").total_s > 0
        with pytest.raises(ParameterError, match=f"about {events} events"):
            programme(plan, size, LIGHT, engine="flow:mode=asynchronous,max_events=1")


# --- equivalent flows -------------------------------------------------------------------------------------------------


def test_flows_are_merged_from_a_number_on(monkeypatch):
    """All pairs of nine nodes are one flow: three events. One fewer is simulated flow by flow; each end is the same."""
    plan = all_pairs(fabric("ideal:nodes=9"))
    every = flow_result(plan, 9 * 10**6, LIGHT).traffic.transfers.end_s
    with pytest.raises(ParameterError, match="about 216 events"):
        flow(plan, 9 * 10**6, LIGHT, max_events=100)
    monkeypatch.setattr(rounds_module, "QUOTIENT_FLOWS", 72)
    merged = flow_result(plan, 9 * 10**6, LIGHT, max_events=3).traffic.transfers.end_s
    assert merged == pytest.approx(every, rel=1e-12)
    monkeypatch.setattr(rounds_module, "QUOTIENT_FLOWS", 73)
    with pytest.raises(ParameterError, match="about 216 events"):
        flow(plan, 9 * 10**6, LIGHT, max_events=100)


def test_flows_that_are_no_classes_are_simulated_one_by_one(monkeypatch):
    """All of other sizes, into two ports; recorded, each with its own end."""
    rows = [(0, s, d, 0, n, 1) for n, (s, d) in enumerate([(0, 2), (1, 2), (0, 3), (1, 3)], 1)]
    plan = by_hand(fabric("ideal:nodes=4"), rows)
    every = flow_result(plan, 10**6, LIGHT).traffic.transfers.end_s
    monkeypatch.setattr(rounds_module, "QUOTIENT_FLOWS", 1)
    assert flow_result(plan, 10**6, LIGHT).traffic.transfers.end_s.tolist() == every.tolist()
    assert len(set(every.tolist())) == 4


# --- the kernel -------------------------------------------------------------------------------------------------------


def test_an_interrupt_stops_the_kernel(monkeypatch):
    """The thread that waits sets what the kernel asks for after every event."""
    stopped = []

    def endless(flows, order, capacity, slots, most, progress, *_):
        stopped.append(any(progress[1] for _ in range(5_000_000)))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds_module.kernels, "run", endless)
    monkeypatch.setattr(rounds_module, "POLL_S", 0)
    plan = by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)])
    with pytest.raises(KeyboardInterrupt):
        flow(plan, 10**6, LIGHT, progress=stop)
    assert stopped == [True]


def test_the_part_that_was_left_out_has_nine_digits():
    """Beside the tolerance; without one nothing is added."""
    timeline = flow(by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1)]), 10**6, LIGHT)
    merging = Merging(0.02)
    merging.left_out[0] = 1 / 101
    about = merging.reported(timeline).assumptions
    assert (about["tolerance"], about["left_out"]) == (0.02, 0.00990099)
    assert Merging(0.0).reported(timeline) is timeline


def test_a_flow_starts_after_its_gap_its_latency_and_its_control_exchange():
    """Asynchronously: 1 + 2 + 4 s, and 8 bytes at a byte a second."""
    columns = {"bytes": 8.0, "gap": 1.0, "latency": 2.0, "control": 4.0, "compute": 0.0, "path_at": 0, "path_n": 1}
    flows = Flows({name: np.array([value]) for name, value in columns.items()}, np.zeros(1, np.int32))
    flows.columns["path_n"] = flows["path_n"].astype(np.int32)
    engine = _Asynchronous(np.ones(1), EventLimit("flow", 3), quiet, None, Merging(0.0))
    found = engine.run(flows, released_together(1))
    assert found.finished.tolist() == [15.0]
