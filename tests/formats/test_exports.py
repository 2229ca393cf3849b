"""Formats that are only written: Chakra traces, flow lists, connection matrices and ASTRA-sim's files, read by tests alone."""

import json
import re

import numpy as np
import pytest

import opticcl
from opticcl.collective import custom_collective
from opticcl.errors import OutputError
from opticcl.formats.astra_sim import dimensions_of, system_file, write_astra_sim
from opticcl.formats.chakra import rank_file, rank_operations, write_chakra
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers

PLANS = (
    ("ideal:nodes=4", "all_reduce", "ring"),
    ("ideal:nodes=5", "all_to_all", "bruck"),
    ("sipac:radix=2,levels=2", "all_reduce", "sipco"),
    ("ramp:groups=2,racks=2,wavelengths=4", "reduce_scatter", "ramp"),
    ("torus:shape=2x3", "all_gather", "ring"),
    ("ideal:nodes=6", "broadcast", "tree"),
    ("ideal:nodes=4", "all_reduce", "de_bruijn:steps=4"),
)
SIZES = (1_000_003, 7, 0)


@pytest.fixture(params=PLANS, ids=lambda plan: "-".join(plan))
def plan(request):
    """A plan of a message that its chunks do not divide."""
    fabric, collective, algorithm = request.param
    return opticcl.compile(fabric, collective, SIZES[0], algorithm=algorithm)


def pair_bytes(plan):
    """Bytes between each pair of nodes, step by step, in exact fractions of a chunk."""
    chunk = plan.size_bytes / plan.schedule.collective.num_chunks
    found = []
    for i in range(plan.schedule.num_steps):
        step, mine = plan.schedule.step(i), {}
        for src, dst, size in zip(step.src.tolist(), step.dst.tolist(), step.size_chunks().tolist(), strict=True):
            mine[src, dst] = mine.get((src, dst), 0) + size * chunk
        found.append(mine)
    return found


# --- Chakra -----------------------------------------------------------------------------------------------------------


def varint(data, i):
    """A varint and where it ends."""
    value = shift = 0
    while True:
        value |= (data[i] & 127) << shift
        i, shift = i + 1, shift + 7
        if data[i - 1] < 128:
            return value, i


def fields(data):
    """Fields of a message: number and value."""
    i = 0
    while i < len(data):
        tag, i = varint(data, i)
        value, i = varint(data, i)
        if tag & 7 == 2:
            value, i = data[i : i + value], i + value
        yield tag >> 3, value


FIELDS = {"is_cpu_op": 27, "num_ops": 9, "tensor_size": 13, "comm_type": 9, "comm_size": 9}
FIELDS |= dict.fromkeys(("comm_src", "comm_dst", "comm_tag"), 7)
"""Of the value of each attribute, by its type."""


def trace(path):
    """Nodes of a trace: number, type, dependencies and attributes."""
    data, i, found = path.read_bytes(), 0, []
    while i < len(data):
        length, i = varint(data, i)
        message, i = data[i : i + length], i + length
        found.append(list(fields(message)))
    assert dict(found[0])[1] == b"0.0.4"
    assert dict(fields(dict(found[0])[2])) == {1: b"schema", 29: b"1.0.2-chakra.0.0.4"}
    nodes = []
    for node in found[1:]:
        causes, at = [], 0
        packed = next((value for number, value in node if number == 5), b"")
        assert packed or 5 not in dict(node)
        kind, place = ("send", "to") if dict(node)[3] == 5 else ("(receive|add)", "from")
        assert re.fullmatch(f"step [0-9]+ {kind} {place} [0-9]+", dict(node)[2].decode())
        while at < len(packed):
            cause, at = varint(packed, at)
            causes.append(cause)
        given = [dict(fields(value)) for number, value in node if number == 10]
        assert all([*one] == [1, FIELDS[one[1].decode()]] for one in given)
        attributes = {one[1].decode(): next(value for key, value in one.items() if key != 1) for one in given}
        nodes.append((dict(node)[1], dict(node)[3], causes, attributes))
    return nodes


def test_traces_match_and_run_to_their_end(plan, tmp_path):
    """Sends meet receives by tag and size, bytes are the plan's, dependencies point back, and every rank's message is right."""
    plan.export(tmp_path / "plan.et")
    num_ranks = plan.schedule.collective.num_ranks
    traces = [trace(rank_file(tmp_path / "plan.et", rank)) for rank in range(num_ranks)]
    ends = {5: set(), 6: set()}
    for rank, nodes in enumerate(traces):
        assert [number for number, *_ in nodes] == list(range(len(nodes)))
        for number, kind, causes, about in nodes:
            assert all(cause < number for cause in causes)
            assert about["is_cpu_op"] == 0
            if kind in ends:
                assert about["comm_type"] == kind
                assert about["comm_src" if kind == 5 else "comm_dst"] == rank
                key = (about["comm_src"], about["comm_dst"], about["comm_tag"], about["comm_size"])
                assert key not in ends[kind]
                ends[kind].add(key)
            else:
                assert kind == 4
                assert nodes[causes[-1]][1] == 6
                assert about["tensor_size"] == nodes[causes[-1]][3]["comm_size"] <= 4 * about["num_ops"]
    assert ends[5] == ends[6]
    total = sum(size for *_, size in ends[5])
    exact = sum(sum(mine.values()) for mine in pair_bytes(plan))
    transfers = sum(len(plan.schedule.step(i)) for i in range(plan.schedule.num_steps))
    assert abs(total - exact) <= plan.schedule.collective.num_chunks * transfers
    reductions = sum(int((plan.schedule.step(i).op & Op.REDUCE > 0).sum()) for i in range(plan.schedule.num_steps))
    assert sum(kind == 4 for nodes in traces for _, kind, *_ in nodes) == reductions


def test_traces_execute_in_any_order(plan, tmp_path):
    """Every node runs once its dependencies have and its message is sent: nothing waits forever."""
    plan.export(tmp_path / "plan.et")
    num_ranks = plan.schedule.collective.num_ranks
    traces = [trace(rank_file(tmp_path / "plan.et", rank)) for rank in range(num_ranks)]
    dice, done, sent = np.random.default_rng(1), [set() for _ in traces], set()
    left = [(rank, node) for rank, nodes in enumerate(traces) for node in nodes]
    while left:
        order = dice.permutation(len(left))
        ready = []
        for row in order:
            rank, (number, kind, causes, about) = left[row]
            if not done[rank].issuperset(causes):
                continue
            key = (about.get("comm_src"), about.get("comm_dst"), about.get("comm_tag"))
            if kind == 6 and key not in sent:
                continue
            sent |= {key} if kind == 5 else set()
            done[rank].add(number)
            ready.append(row)
        assert ready
        left = [one for row, one in enumerate(left) if row not in set(ready)]


def by_hand():
    """A plan of three ranks whose six chunks of ten bytes are written, read, added to and replaced, and its circuits."""
    steps = [
        Transfers.of([0, 0], [1, 1], [0, 1], [3, 1], Op.COPY, chunk_step=[2, 1]),
        Transfers.of([1, 2], [2, 1], [2, 4], [2, 1], [Op.REDUCE, Op.COPY]),
        Transfers.of([0], [1], [2], [1], Op.REDUCE),
        Transfers.of([0], [1], [2], [1], Op.COPY),
    ]
    every = np.ones((6, 3), bool)
    schedule = Schedule("own", custom_collective("mine", every, every, True), 4, steps.__getitem__)
    return CircuitPlan(opticcl.fabric("ideal:nodes=3"), schedule, lambda i: ())


def test_what_operations_wait_for(tmp_path):
    """By hand: sends for the last write, what replaces a chunk for its readers too, a sum for both and its receive."""
    progress = []
    done = write_chakra(tmp_path / "p.et", by_hand(), 60, lambda *about: progress.append(about[1:]))
    assert done == (3, 14)
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    kinds, about = {5: "send", 6: "receive", 4: "add"}, ("comm_src", "comm_dst", "comm_tag", "comm_size")
    found = [(kinds[kind], causes, *map(more.get, about)) for _, kind, causes, more in trace(tmp_path / "p.1.et")]
    assert found == [
        ("receive", [], 0, 1, 0, 30),
        ("receive", [], 0, 1, 1, 10),
        ("send", [0], 1, 2, 0, 20),
        ("receive", [0], 2, 1, 0, 10),
        ("receive", [], 0, 1, 2, 10),
        ("add", [0, 2, 4], None, None, None, None),
        ("receive", [5], 0, 1, 3, 10),
    ]
    assert [more.get("comm_type") for *_, more in trace(tmp_path / "p.1.et")] == [6, 6, 5, 6, 6, None, 6]
    added = trace(tmp_path / "p.1.et")[5][3]
    assert added == {"is_cpu_op": 0, "num_ops": 3, "tensor_size": 10}  # of four bytes each
    assert [(causes, kind) for _, kind, causes, _ in trace(tmp_path / "p.2.et")] == [([], 5), ([], 6), ([1], 4)]


def test_the_most_operations(tmp_path, monkeypatch):
    """Three for each transfer."""
    monkeypatch.setitem(rank_operations.__globals__, "MOST_OPERATIONS", 18)
    assert write_chakra(tmp_path / "p.et", by_hand(), 60)[1] == 14
    monkeypatch.setitem(rank_operations.__globals__, "MOST_OPERATIONS", 17)
    with pytest.raises(OutputError, match="more than 17 nodes; take a smaller fabric"):
        write_chakra(tmp_path / "p.et", by_hand(), 60)


def test_our_own_reader_counts_the_same_nodes(tmp_path):
    """The reader of traces, written for PyTorch's, sees sends and receives."""
    from opticcl.traces import load_workload

    opticcl.compile("ideal:nodes=4", "all_reduce", 1_000_000, algorithm="ring").export(tmp_path / "p.et")
    notes = " ".join(load_workload(tmp_path / "p.0.et").notes)
    assert re.search(r"6 comm_send", notes)
    assert re.search(r"6 comm_recv", notes)


# --- GOAL -------------------------------------------------------------------------------------------------------------


def goal(path):
    """Operations of each rank by label, (kind, bytes, peer, tag), and the labels that each needs."""
    ranks, mine, needs = {}, {}, {}
    head, *lines = path.read_text().splitlines()
    for line in lines:
        words = line.replace("{", " {").split()
        if words[:1] == ["rank"]:
            mine, needs = ranks[int(words[1])] = ({}, {})
        elif len(words) == 3 and words[1] == "requires":
            needs[words[0]].append(words[2])
        elif words and words != ["}"]:
            label, kind, amount, *rest = words
            needs[label[:-1]] = []
            peer, tag = (int(rest[1]), int(rest[3])) if rest else (-1, -1)
            mine[label[:-1]] = (kind, int(amount.removesuffix("b")), peer, tag)
    assert head == f"num_ranks {len(ranks)}"
    return [ranks[rank] for rank in range(len(ranks))]


def test_goal_matches_and_runs_to_its_end(plan, tmp_path):
    """Every send meets a receive of its size and tag, in any order that the labels allow; bytes and sums are the plan's."""
    plan.export(tmp_path / "plan.goal")
    ranks = goal(tmp_path / "plan.goal")
    dice, sent, got = np.random.default_rng(2), {}, {}
    left = [(rank, label) for rank, (mine, _) in enumerate(ranks) for label in mine]
    done = set()
    while left:
        ready = []
        for row in dice.permutation(len(left)).tolist():
            rank, label = left[row]
            (kind, size, peer, tag), needs = ranks[rank][0][label], ranks[rank][1][label]
            key = (rank, peer, tag) if kind == "send" else (peer, rank, tag)
            if not all((rank, one) in done for one in needs) or (kind == "recv" and key not in sent):
                continue
            if kind != "calc":
                ends = sent if kind == "send" else got
                assert key not in ends
                ends[key] = size
            done.add((rank, label))
            ready.append(row)
        assert ready
        left = [one for row, one in enumerate(left) if row not in set(ready)]
    assert sent == got
    exact = sum(sum(mine.values()) for mine in pair_bytes(plan))
    steps = [plan.schedule.step(i) for i in range(plan.schedule.num_steps)]
    assert abs(sum(sent.values()) - exact) <= plan.schedule.collective.num_chunks * sum(map(len, steps))
    reductions = sum(int((step.op & Op.REDUCE > 0).sum()) for step in steps)
    assert sum(kind == "calc" for mine, _ in ranks for kind, *_ in mine.values()) == reductions


# --- flows ------------------------------------------------------------------------------------------------------------


def test_flow_lists_hold_the_bytes_of_every_step(plan, tmp_path):
    """Each pair of each step once, in the order of the starts, from the first step at 0."""
    plan.export(tmp_path / "p.flows")
    head, *lines = (tmp_path / "p.flows").read_text().splitlines()
    assert head == "# src dst bytes start_s"
    rows = [(int(a), int(b), int(c), float(d)) for a, b, c, d in (line.split() for line in lines)]
    starts = sorted({row[3] for row in rows})
    due = [mine for mine in pair_bytes(plan) if mine]
    assert [row[3] for row in rows] == sorted(row[3] for row in rows)
    assert starts[0] == 0
    assert len(starts) == len(due)
    assert starts[-1] < plan.simulate(assumptions="published").total_s
    for start, mine in zip(starts, due, strict=True):
        found = {(src, dst): size for src, dst, size, when in rows if when == start}
        assert set(found) == set(mine)
        assert all(abs(found[pair] - mine[pair]) <= 2 * plan.schedule.collective.num_chunks for pair in mine)


def test_connection_matrices_start_steps_by_barriers(plan, tmp_path):
    """As htsim reads them: counts in the header, one trigger a step but the last, each with the flows of its step."""
    plan.export(tmp_path / "p.cm")
    lines = (tmp_path / "p.cm").read_text().splitlines()
    header = {line.split()[0]: int(line.split()[1]) for line in lines[:3]}
    flows = [line.split() for line in lines if "->" in line]
    triggers = [line.split() for line in lines if line.startswith("trigger")]
    assert header == {"Nodes": plan.fabric.num_machine_nodes, "Connections": len(flows), "Triggers": len(triggers)}
    assert [int(flow[2]) for flow in flows] == list(range(1, len(flows) + 1))
    due = [mine for mine in pair_bytes(plan) if mine]
    assert len(triggers) == len(due) - 1
    for k, mine in enumerate(due):
        start = ["start", "0"] if k == 0 else ["trigger", str(k)]
        of_step = [flow for flow in flows if flow[3:5] == start]
        assert {tuple(map(int, flow[0].split("->"))) for flow in of_step} == set(mine)
        assert all((flow[7:] == ["recv_done_trigger", str(k + 1)]) == (k + 1 < len(due)) for flow in of_step)
        if k + 1 < len(due):
            assert triggers[k] == ["trigger", "id", str(k + 1), "barrier", "count", str(len(of_step))]


def test_long_flows_are_cut(tmp_path):
    """A size is a signed 32-bit number there."""
    plan = opticcl.compile("ideal:nodes=2", "broadcast", "5 GB", algorithm="tree")
    plan.export(tmp_path / "p.cm")
    sizes = [int(size) for size in re.findall(r"size (\d+)", (tmp_path / "p.cm").read_text())]
    assert max(sizes) < 2**31
    assert sum(sizes) == 5_000_000_000


def test_messages_of_nothing_are_written(tmp_path):
    """A barrier has flows of no bytes, which no simulator starts."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", 0, algorithm="ring")
    for name in ("p.flows", "p.cm", "p.et", "p.goal"):
        plan.export(tmp_path / name)
    assert [mine for mine, _ in goal(tmp_path / "p.goal")] == 4 * [{}]
    assert "Connections 0" in (tmp_path / "p.cm").read_text()
    assert (tmp_path / "p.flows").read_text() == "# src dst bytes start_s\n"
    assert trace(tmp_path / "p.0.et") == []


def test_jobs_name_nodes_of_the_machine(tmp_path):
    """Flows go between the nodes that the job has."""
    plan = opticcl.compile("ideal:nodes=8", "all_reduce", 1000, algorithm="ring", nodes=[6, 1, 3])
    plan.export(tmp_path / "p.flows")
    ends = {int(end) for line in (tmp_path / "p.flows").read_text().splitlines()[1:] for end in line.split()[:2]}
    assert ends == {1, 3, 6}


# --- ASTRA-sim --------------------------------------------------------------------------------------------------------


def test_networks_of_packets_are_written(tmp_path):
    """Counts multiply to the nodes; rates and latencies are those of a link."""
    for text in ("ideal:nodes=8,rate=400Gb/s,latency=1us", "torus:shape=2x3x4", "bcube:radix=4,levels=2"):
        plan = opticcl.compile(text, "all_reduce", "1MB", algorithm="ring")
        plan.export(tmp_path / "p.yml")
        rows = dict(line.split(": ", 1) for line in (tmp_path / "p.yml").read_text().splitlines())
        values = {key: value.strip("[] ").split(", ") for key, value in rows.items()}
        assert np.prod([int(n) for n in values["npus_count"]]) == plan.fabric.num_nodes
        assert len({len(row) for row in values.values()}) == 1
        rates = [float(rate) * 8e9 for rate in values["bandwidth"]]
        assert rates == pytest.approx([d.rate_bits_per_s for d in dimensions_of(plan.fabric)])
    assert dimensions_of(opticcl.fabric("ideal:nodes=8,rate=400Gb/s,latency=1us")) == (("Switch", 8, 400e9, 5e-7),)
    assert [d.topology for d in dimensions_of(opticcl.fabric("torus:shape=2x3"))] == ["Ring", "FullyConnected"]
    assert [d.nodes for d in dimensions_of(opticcl.fabric("torus:shape=1x4x2"))] == [2, 4]
    cube = opticcl.fabric("bcube:radices=2x3,node_rate=200Gb/s,link_latency=1us,router_latency=2us")
    assert dimensions_of(cube) == (("Switch", 2, 100e9, 2e-6), ("Switch", 3, 100e9, 2e-6))


def test_systems_name_the_traces(tmp_path):
    """As a custom collective of that name."""
    write_astra_sim(tmp_path / "p.yml", opticcl.fabric("ideal:nodes=4"), "all_gather")
    text = system_file(tmp_path / "p.yml").read_text()
    assert json.loads(text) == {
        "scheduling-policy": "LIFO", "endpoint-delay": 0, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
        "all-gather-implementation-custom": [str(tmp_path / "p")], "collective-optimization": "localBWAware",
        "local-mem-bw": 1555, "boost-mode": 0,
    }  # fmt: skip
    assert {len(line) - len(line.lstrip()) for line in text.splitlines()} == {0, 2, 4}
    assert text.endswith("}\n")


def test_what_was_written_is_said(tmp_path):
    """Files, and the option of a simulator that names them."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", 1000, algorithm="ring")
    said, where = plan.export(tmp_path / "p.et"), tmp_path / "p"
    assert said.startswith(f"Chakra: {where}.0.et to {where}.3.et, 60 nodes, ")
    assert said.endswith(f'"all-reduce-implementation-custom": ["{where}"]')
    said = plan.export(tmp_path / "p.yml")
    assert f"network {where}.yml, system {where}.system.json; its schedule is in {where}.et" in said


def test_what_astra_sim_cannot_express_is_refused(tmp_path):
    """Circuits, parts of machines, rooted collectives; nothing is written."""
    with pytest.raises(OutputError, match="cannot express ramp; try ideal, torus or bcube"):
        write_astra_sim(tmp_path / "p.yml", opticcl.fabric("ramp:groups=2,racks=2,wavelengths=4"), "all_reduce")
    part = opticcl.compile("torus:shape=2x3", "all_reduce", 1000, algorithm="ring", nodes=[0, 1]).fabric
    with pytest.raises(OutputError, match="cannot express torus"):
        write_astra_sim(tmp_path / "p.yml", part, "all_reduce")
    with pytest.raises(OutputError, match="no custom broadcast"):
        write_astra_sim(tmp_path / "p.yml", opticcl.fabric("ideal:nodes=4"), "broadcast")
    assert not list(tmp_path.iterdir())
