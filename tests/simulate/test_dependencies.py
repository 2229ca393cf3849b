"""Flows of a plan and what they wait for, beside lists of what each rank holds; the critical path by hand."""

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from tests.simulate.plans import by_hand

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Op
from opticcl.simulate import dependencies as dependencies_module
from opticcl.simulate import lower_bound
from opticcl.simulate.dependencies import FlowTimes, released_together, simulate_asynchronously
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import sums_s

ASSUMED = assumptions("common", message_gap="30ns", compute="fused")
RATE = 1e9  # byte/s


def plans():
    """Runs of equal steps, chunks at a distance, ranges that cross, copies of one chunk to several, a step of two rounds."""
    where = fabric("torus:shape=3x2")
    for collective, algorithm in (("all_reduce", "ring"), ("all_to_all", "bruck"), ("broadcast", "tree")):
        yield opticcl.compile(where, collective, "1 MB", algorithm=algorithm).circuits
    yield opticcl.compile("torus:shape=3", "reduce_scatter", "1 MB", algorithm="ring").circuits  # a run of two steps
    rows = [
        (0, 2, 0, 0, 4, Op.COPY), (0, 1, 0, 2, 4, Op.COPY), (0, 2, 1, 0, 4, Op.COPY), (0, 1, 2, 0, 1, Op.REDUCE),
        (1, 0, 3, 1, 3, Op.REDUCE), (1, 0, 4, 1, 3, Op.COPY), (1, 0, 5, 1, 2, Op.COPY), (1, 2, 3, 0, 2, Op.REDUCE),
        (2, 3, 0, 0, 4, Op.REDUCE), (2, 0, 1, 4, 2, Op.COPY), (3, 0, 2, 0, 6, Op.COPY), (3, 4, 3, 3, 1, Op.COPY),
    ]  # fmt: skip
    plan = by_hand(where, rows, 4)

    def halves(i):
        (circuits,) = plan.rounds(i)
        return circuits.take(np.arange(len(circuits))[1::2]), circuits.take(np.arange(len(circuits))[::2])

    yield CircuitPlan(plan.fabric, plan.schedule, halves)


def routes(circuits):
    """The hops of the circuits."""
    return circuits.hops, circuits.hop_offsets


def listed(plan, send_order):
    """Every flow as a dictionary, in the order of steps, senders and what else orders them."""
    schedule, law, found = plan.schedule, path_latency(plan.fabric, ASSUMED), []
    chunk_bytes = 10**6 / schedule.collective.num_chunks
    for steps in schedule.step_classes():
        rounds = plan.rounds(steps.start)
        for step in steps:
            t, mine = schedule.step(step), {}
            sums = sums_s(t, chunk_bytes, ASSUMED)
            for circuits in rounds:
                gap, latency = law.gaps_s(t, circuits), law.of_circuits(circuits)
                for row, i in enumerate(circuits.transfer.tolist()):
                    mine[i] = {
                        "step": step, "src": t.src[i], "dst": t.dst[i], "lo": t.chunk_lo[i], "n": t.chunk_n[i],
                        "by": 1 if t.chunk_step is None else t.chunk_step[i], "adds": t.op[i] != Op.COPY,
                        "bytes": t.chunk_n[i] * (1 if t.parts is None else t.parts[i]) * chunk_bytes,
                        "gap": gap[row], "latency": latency[row],
                        "control": 1e-6 * len(circuits), "compute": sums[i], "path": circuits.path(row).tolist(),
                    }  # fmt: skip
            order = [0] * len(t)
            if send_order is not None:
                first = np.array([mine[i]["path"][0] for i in range(len(t))])
                order = list(zip(first.tolist(), send_order(t.src, t.dst, first).tolist(), strict=True))
            found += [mine[i] for i in sorted(mine, key=lambda i: (mine[i]["src"], order[i], i))]
    return found


def waiting(flows):
    """(groups, groups of each block, what each group waits for: flows and blocks) from arrivals that have not been replaced."""
    groups, blocks = [], []
    for i, flow in enumerate(flows):
        block = flow["step"], flow["src"]
        chunks = flow["lo"], flow["n"], flow["by"]
        if not blocks or blocks[-1][0] != block:
            blocks.append((block, []))
            groups.append((chunks, []))
            blocks[-1][1].append(len(groups) - 1)
        elif groups[-1][0] != chunks:
            groups.append((chunks, []))
            blocks[-1][1].append(len(groups) - 1)
        groups[-1][1].append(i)
    held, needs = defaultdict(list), [set() for _ in groups]
    group_of = {i: g for g, (_, members) in enumerate(groups) for i in members}
    for step in sorted({flow["step"] for flow in flows}):
        now = [i for i, flow in enumerate(flows) if flow["step"] == step]
        chunks = {i: [flows[i]["lo"] + k * flows[i]["by"] for k in range(flows[i]["n"])] for i in now}
        for i in now:
            needs[group_of[i]] |= {one for chunk in chunks[i] for one in held[flows[i]["src"], chunk]}
        for i in now:
            for chunk in chunks[i]:
                key = flows[i]["dst"], chunk
                held[key] = [*(held[key] if flows[i]["adds"] else ()), i]
    last, before = {}, {}
    for number, ((_, src), _) in enumerate(blocks):
        before[number] = last.get(src, -1)
        last[src] = number
    return groups, blocks, needs, before


class Engine:
    """Flows without links: control, gap, latency and bytes at a rate; checks what it is given."""

    def __init__(self, due):
        self.due = due

    def run(self, flows, waits):
        """Times of all flows, and what released them."""
        due, n = self.due, len(self.due)
        for name in sorted(due[0].keys() - {"path"}):
            assert flows[name].tolist() == [one[name] for one in due], name
        links, offsets = flows.paths()
        assert [part.tolist() for part in np.split(links, offsets[1:-1])] == [one["path"] for one in due]
        groups, blocks, needs, before = waiting(due)
        group_of = [g for g, (_, members) in enumerate(groups) for _ in members]
        block_of_group = [b for b, (_, mine) in enumerate(blocks) for _ in mine]
        assert waits.group_of.tolist() == group_of
        assert waits.group_at.tolist() == [*(members[0] for _, members in groups), n]
        assert waits.block_of.tolist() == [block_of_group[g] for g in group_of]
        assert waits.block_at.tolist() == [*(mine[0] for _, mine in blocks), len(groups)]
        following = {b: number for number, b in before.items()}
        assert waits.next_block.tolist() == [following.get(b, -1) for b in range(len(blocks))]
        assert waits.waits.tolist() == [len(need) + (before[block_of_group[g]] >= 0) for g, need in enumerate(needs)]
        feeds = [sorted(g for g, need in enumerate(needs) if i in need) for i in range(n)]
        assert [sorted(part.tolist()) for part in np.split(waits.feeds, waits.feeds_at[1:-1])] == feeds
        sizes = defaultdict(int)
        for (_, src), mine in blocks:
            sizes[src] = max(sizes[src], sum(len(groups[g][1]) for g in mine))
        assert waits.most_at_once == sum(sizes.values())

        self.cost = [one["control"] + one["gap"] + one["latency"] + one["bytes"] / RATE for one in due]
        finished, released, caused = np.zeros(n), np.zeros(len(groups)), np.full(len(groups), -1)
        for g, need in enumerate(needs):
            block = before[block_of_group[g]]
            events = [(finished[i] + due[i]["compute"], 2 * i + 1) for i in need]
            events += [] if block < 0 else [(finished[i], 2 * i) for h in blocks[block][1] for i in groups[h][1]]
            released[g], caused[g] = max(events, default=(0.0, -1))
            for i in groups[g][1]:
                finished[i] = released[g] + self.cost[i]
        self.finished, self.released = finished, [released[g] for g in group_of]
        self.chain, end, cause = [], finished + [one["compute"] for one in due], 2 * int(np.argmax(
            finished + [one["compute"] for one in due]
        )) + 1  # fmt: skip
        self.total_s = end.max()
        while cause >= 0:
            self.chain.insert(0, cause)
            cause = caused[group_of[cause // 2]]
        return FlowTimes(finished, released, caused)


@pytest.fixture(autouse=True)
def control(monkeypatch):
    """A control exchange on packet fabrics, by the circuits of a round."""
    monkeypatch.setattr(
        dependencies_module, "charged_control_s", lambda where, t, circuits, assumed: 1e-6 * len(circuits)
    )


def by_distance(src, dst, first):
    """The farthest receiver first."""
    return src - dst


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("send_order", [None, by_distance])
def test_flows_and_what_they_wait_for(number, send_order):
    """Columns, groups, blocks and needs of every flow; the parts of the chain that ends last add up to the total."""
    plan = list(plans())[number]
    engine = Engine(listed(plan, send_order))
    classes, due = plan.schedule.step_classes(), engine.due
    told, given, most = [], [], 3 * len(due)
    recorder = SimpleNamespace(add_transfers=lambda *columns: given.append(columns))
    limit = EventLimit("test", most, 3)
    found = simulate_asynchronously(
        plan, 10**6, ASSUMED, engine.run, routes, limit, lambda *one: told.append(one), recorder, send_order
    )
    assert told == [("build flows", steps.stop, plan.schedule.num_steps) for steps in classes]
    assert found.steps == classes
    assert found.rounds.tolist() == [len(plan.rounds(steps.start)) * len(steps) for steps in classes]
    parts = np.zeros((4, len(classes)))
    for cause in engine.chain:
        flow = due[cause // 2]
        row = next(row for row, steps in enumerate(classes) if flow["step"] in steps)
        parts[0, row] += flow["gap"] + flow["latency"]
        parts[1, row] += flow["bytes"] / RATE
        parts[2, row] += flow["compute"] * (cause % 2)
        parts[3, row] += flow["control"]
    assert np.array([found.latency_s, found.transfer_s, found.compute_s, found.control_s]) == pytest.approx(parts)
    assert found.total_s == pytest.approx(engine.total_s)
    assert not found.reconfiguration_s.any()
    bound = lower_bound(plan.schedule.collective, plan.fabric, 10**6, ASSUMED, starts="data")
    assert (found.lower_bound_s, found.bound_by) == (bound.seconds, bound.name)
    assert found.assumptions["mode"] == "asynchronous"
    ((columns, steps, chain),) = given
    starts = [released + one["control"] for released, one in zip(engine.released, due, strict=True)]
    assert [column.tolist() for column in columns[:4]] == [
        [one[name] for one in due] for name in ("step", "src", "dst", "bytes")
    ]
    assert columns[4].tolist() == pytest.approx(starts)
    assert columns[5].tolist() == engine.finished.tolist()
    assert (steps, chain.tolist()) == (classes, [cause // 2 for cause in engine.chain])
    with pytest.raises(ParameterError, match=f"{most:,} events or more"):
        simulate_asynchronously(
            plan, 10**6, ASSUMED, engine.run, routes, EventLimit("test", most - 1, 3), lambda *one: None, None
        )


def test_an_empty_message_takes_latency_alone():
    """What is left of rounding is no transfer."""
    plan = by_hand(fabric("torus:shape=3x2"), [(0, 0, 1, 0, 1, Op.COPY)])

    def run(flows, waits):
        return FlowTimes(flows["control"] + flows["gap"] + flows["latency"] + 1e-9, np.zeros(1), np.full(1, -1))

    found = simulate_asynchronously(plan, 0, ASSUMED, run, routes, EventLimit("test", 10, 1), lambda *one: None, None)
    assert found.transfer_s.tolist() == [0.0]
    law = path_latency(plan.fabric, ASSUMED)
    assert found.latency_s.sum() == pytest.approx(law.longest_s(plan.rounds(0)[0]) + 30e-9 + 1e-9)


def test_a_plan_without_transfers_takes_no_time():
    """Nothing is simulated."""
    plan = by_hand(fabric("torus:shape=3x2"), [], 1)
    found = simulate_asynchronously(
        plan, 10**6, ASSUMED, None, routes, EventLimit("test", 10, 1), lambda *one: None, None
    )
    assert found.total_s == 0


def test_what_never_ends_and_what_has_several_routes_is_refused():
    """With the number of transfers that wait; a way out."""
    plan = by_hand(
        fabric("torus:shape=3x2"), [(0, 0, 1, 0, 1, Op.COPY), (0, 1, 2, 0, 1, Op.COPY), (0, 2, 3, 0, 1, Op.COPY)]
    )
    limit = EventLimit("test", 10, 1)

    def run(flows, waits):
        return FlowTimes(np.array([np.nan, 1.0, np.nan]), np.zeros(3), np.full(3, -1))

    with pytest.raises(ParameterError, match="test: 2 transfers of by hand wait for each other"):
        simulate_asynchronously(plan, 10**6, ASSUMED, run, routes, limit, lambda *one: None, None)
    twice = CircuitPlan(plan.fabric, plan.schedule, lambda i: (plan.rounds(i)[0].take(np.array([0, 1, 1, 2])),))
    with pytest.raises(UnsupportedError, match="by hand on torus sends a transfer on several routes; use mode=barrier"):
        simulate_asynchronously(twice, 10**6, ASSUMED, run, routes, limit, lambda *one: None, None)


def test_flows_that_are_released_together_wait_for_nothing():
    """One group in one block."""
    found = released_together(3)
    assert [one.tolist() for one in found[:-1]] == [[0, 3], [0] * 3, [0], [0, 1], [0] * 3, [-1], [0] * 4, []]
    assert found.most_at_once == 3
