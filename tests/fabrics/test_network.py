"""The fabric of a network from a file: routes, shared rates, parts that fail, names, bills, plan files."""

import json
import pickle
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from tests.execute.launch import environment
from tests.fabrics.network_files import (
    CSV,
    DOGBONE,
    HTSIM,
    MSCCL,
    SIMAI,
    TWO_BOXES,
    cluster,
    columns,
    every_pair,
    nccl,
    network_of,
    smi,
    written,
)
from tests.fabrics.walks import pairs, routed

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, PlanFileError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import Condition, no_progress
from opticcl.plans.hardware import bill_per_node
from opticcl.simulate.bottleneck import loads
from opticcl.simulate.bounds import lower_bound
from opticcl.verify.light.circuits import check_light

MACHINES = [
    *TWO_BOXES.values(),
    (HTSIM, {}),
    (SIMAI, {}),
    (DOGBONE, {}),
    (nccl(), {"copies": 2}),
    (nccl(), {"with_pcie": True}),
    (smi([["NV1", "NV2", "SYS"], ["SYS", "NV1"], ["NV2"]]), {"gpu": "v100"}),
    (cluster("TORUS", 12, "3,2,2"), {}),
]


def random_network(seed):
    """An edge list of nodes and switches, of which a ring joins all, and what its caller says."""
    random = np.random.default_rng(seed)
    count = int(random.integers(4, 12))
    names = [f"n{k}" if k < 3 or random.random() < 0.5 else f"s{k}" for k in range(count)]
    rows = [f"{a},{b},{random.choice([1, 2, 4])}GB/s,0s,yes" for a, b in pairwise([*names, names[0]])]
    for _ in range(2 * count):
        a, b = random.choice(count, 2, replace=False)
        rows.append(f"{names[a]},{names[b]},{random.choice([1, 2, 4])}GB/s,0s,{random.choice(['yes', 'no'])}")
    return "\n".join(["source,target,rate,latency,directed", *rows]), {"nodes": "n*"}


def cost_of(made):
    """Graph of the links with 1 / rate and a little more for each link, and of those that go on from switches alone."""
    net = made.network
    graph = nx.MultiDiGraph()
    rates = net.rate_bits_per_s
    for a, b, rate in zip(net.tail.tolist(), net.head.tolist(), rates.tolist(), strict=True):
        graph.add_edge(a, b, cost=rates.max() / rate + 1e-6)
    return graph


@pytest.mark.parametrize(("text", "given"), MACHINES + [random_network(seed) for seed in range(20)])
def test_routes_are_cheapest_walks(text, given, tmp_path):
    """Of all pairs: end to end, through nodes only where these relay, and of the least sum of 1/rate, by another program."""
    made = network_of(tmp_path, text, **given)
    graph, net = cost_of(made), made.network
    costs = net.rate_bits_per_s.max() / net.rate_bits_per_s + 1e-6
    circuits = routed(made, *pairs(made.num_nodes))
    for i, (src, dst) in enumerate(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True)):
        path = circuits.path(i)
        assert (net.tail[path[0]], net.head[path[-1]]) == (src, dst)
        assert (net.head[path[:-1]] == net.tail[path[1:]]).all()
        inner = set(net.tail[path[1:]].tolist())
        allowed = graph if net.relays else graph.subgraph({src, dst, *range(net.num_nodes, net.num_vertices)})
        assert net.relays or min(inner, default=net.num_nodes) >= net.num_nodes
        assert costs[path].sum() == pytest.approx(nx.dijkstra_path_length(allowed, src, dst, "cost"), rel=1e-12)
    assert not list(made.faults(circuits))


def test_pairs_spread_over_paths_of_one_cost(tmp_path):
    """All four up-links of a switch are used, by another choice for another seed."""
    made, other = (network_of(tmp_path, HTSIM, seed=seed) for seed in (0, 1))
    one, two = (routed(one, *pairs(8)) for one in (made, other))
    names = made.place_names(0, np.unique(one.hops))
    assert len({name for name in names if name.startswith("link ToR 0 -> core")}) == 2
    used = Counter(one.hops.tolist())
    assert sum("ToR 0 -> core" in name for name in made.place_names(0, np.array(list(used)))) == 4
    assert one.hops.tolist() != two.hops.tolist()


def test_nodes_relay_where_nothing_else_joins_all(tmp_path):
    """Two boxes of direct links need it; one switch, or a link of each pair, does not; without it a pair has no path."""
    boxes = network_of(tmp_path, CSV, nodes="*")
    assert boxes.network.relays
    assert "Nodes pass on packets of others." in boxes.notes
    assert not network_of(tmp_path, SIMAI).network.relays
    assert not network_of(tmp_path, smi(every_pair(4, "NV4")), gpu="a100").network.relays
    strict = network_of(tmp_path, CSV, nodes="*", relays="no")
    assert strict.notes == ()
    assert len(strict.route(np.array([0]), np.array([1]))[0]) == 1
    with pytest.raises(
        UnsupportedError, match=r"no path through switches from node 0 \(a0\) to node 3 \(b1\); relays=yes"
    ):
        strict.route(np.array([0]), np.array([3]))


# --- rates that both ways share ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "into", "collective", "due_s"),
    [
        (100, 800, "gather", 2e-3),  # three senders of 25 MB each at 100 Gb/s
        (100, 800, "all_gather", 6e-3),  # 75 MB out of each
        (800, 100, "gather", 6e-3),  # 75 MB into one
        (800, 100, "scatter", 2e-3),
        (100, 800, "scatter", 6e-3),
        (800, 100, "all_to_all", 6e-3),
    ],
)
def test_links_of_unequal_ways_bound_each_way(out, into, collective, due_s, tmp_path):
    """The plan takes what the slower way needs, and no bound is above that."""
    rows = [f"{a},s,{out}Gb/s,0s,yes\ns,{a},{into}Gb/s,0s,yes" for a in "abcd"]
    text = "\n".join(["source,target,rate,latency,directed", *rows])
    made = network_of(tmp_path, text, nodes="a+b+c+d")
    timeline = opticcl.compile(made, collective, "100 MB").simulate(assumptions="published", compute="none")
    assert timeline.total_s == pytest.approx(due_s, rel=1e-6)
    assert timeline.lower_bound_s <= timeline.total_s * (1 + 1e-12)


@pytest.mark.parametrize("engine", ["closed_form", "flow", "device", "packet"])
def test_both_ways_of_a_link_share_its_rate(engine, tmp_path):
    """A neighbour exchange there and back over the middle of the dogbone takes twice the time of full duplex."""
    half, full = (network_of(tmp_path, DOGBONE, duplex=duplex) for duplex in (None, "full"))
    assert [resource.count for resource in half.resources] == [5]
    assert [resource.count for resource in full.resources] == [10]
    assert half.place_names(0, [0]) == ["link node 0 (S1) <-> switch R1"]
    assert half.kind_names(0, np.array([1]))[0] == full.kind_names(0, np.array([2]))[0]
    times = []
    for made in (half, full):
        plan = opticcl.compile(made, "all_to_all", "4 MB", algorithm="mesh")
        assert plan.verify().verdict == "right"
        assert check_light(plan.circuits, progress=no_progress).violations == ()
        times.append(float(plan.simulate(engine).transfer_s.sum()))
    # each way of the middle carries 4 of the 12 pairs, 1 MB each; a link of a host 3 out and 3 in
    cells = 2e-3 if engine == "packet" else 1e-6  # two cells of each part of a path are sent before the busiest link is
    assert times == pytest.approx([8e6 / 100e6, 4e6 / 100e6], rel=cells)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_an_all_gather_over_links_that_both_ways_share(collective, tmp_path):
    """Of 1 GB a host: if switches copied, 3 shards into a host and one out of it, 40 s; as they do not, 3 and 3, 60 s."""
    made = network_of(tmp_path, DOGBONE)
    plan = opticcl.compile(made, collective, "4 GB", algorithm="forest:pipeline=64")
    assert plan.verify().verdict == "right"
    assert check_light(plan.circuits, progress=no_progress).violations == ()
    (carried,) = loads(plan.circuits, plan.size_bytes)
    middle = made.place_names(0, range(5)).index("link switch R1 <-> switch R2")
    at_hosts = np.delete(
        carried.carried_bytes, middle
    )  # routers send on what they receive: as much out of hosts as into them
    assert at_hosts.sum() == pytest.approx(2 * 12e9)
    assert at_hosts.sum() / len(at_hosts) / 100e6 == pytest.approx(60)
    law = assumptions("published", compute="none")
    bound = lower_bound(plan.schedule.collective, made, 4 * 10**9, law)
    assert bound.name == "flow over links that both ways share"
    assert bound.seconds == pytest.approx(40, rel=1e-3)
    for engine in ("closed_form", "flow", "device", "packet:cell_bytes=1048576"):
        assert 60 < plan.simulate(engine, assumptions=law).total_s * (1 + 1e-9) < 63


def test_loads_of_shared_rates_are_sums_of_both_ways(tmp_path):
    """6 MB on each link of a host, 8 in the middle; full duplex halves them."""
    for duplex, due in ((None, [6, 6, 6, 6, 8]), ("full", [3] * 8 + [4] * 2)):
        plan = opticcl.compile(network_of(tmp_path, DOGBONE, duplex=duplex), "all_to_all", "4 MB", algorithm="mesh")
        (carried,) = loads(plan.circuits, plan.size_bytes)
        assert sorted(carried.carried_bytes.tolist()) == [one * 1e6 for one in due]


# --- parts ------------------------------------------------------------------------------------------------------------


def test_routes_lead_around_failed_parts(tmp_path):
    """A dead link, a dead switch, and both; where none is left, the pair is named; a dead node leaves a job."""
    made = network_of(tmp_path, SIMAI)
    src, dst = np.array([0]), np.array([1])
    first = int(made.route(src, dst)[0][0])
    without = made.without([Condition("link", first)])
    assert first not in without.route(src, dst)[0].tolist()
    plan = opticcl.compile(without, "all_to_all", "1 MB", algorithm="mesh")
    assert plan.verify().verdict == "right"
    faults = list(without.part_faults(routed(made, src, dst)))
    assert [fault.rule for fault in faults] == ["part_failed"]
    switch = made.without([Condition("switch", 0)])  # the NVSwitch of nodes 0 and 1
    assert {made.network.head[link] for link in switch.route(src, dst)[0]}.isdisjoint({4})
    with pytest.raises(UnsupportedError, match="no path through switches"):
        made.without([Condition("switch", 0), Condition("switch", 2)]).route(src, dst)
    assert made.without([Condition("node", 2)]).num_nodes == 3


def test_bills_have_switches_and_ends_of_links(tmp_path):
    """CPUs and PCI switches with their links are the server's; NVLinks are backplane, the others transceivers."""
    made = network_of(tmp_path, nccl(), copies=2)
    found = {(part.kind, part.rate_bits_per_s / 8e9): (part.count, part.ports) for part in made.parts()}
    assert found == {
        ("backplane_end", 75): (32, 0),
        ("transceiver", 25): (8, 0),
        ("nvlink_switch", 75): (4, 4),
        ("electrical_switch", 25): (1, 4),
    }
    tree = network_of(tmp_path, HTSIM)
    assert sum(part.count for part in tree.parts() if part.kind == "transceiver") == 32
    assert sorted((part.count, part.ports) for part in tree.parts() if part.kind == "electrical_switch") == [
        (2, 4),
        (2, 8),
    ]
    assert bill_per_node(tree)[0] > 0


# --- a file that stays what it is -------------------------------------------------------------------------------------


def test_a_network_is_not_rescaled(tmp_path):
    """Not its nodes, not its rate; the same ones are no change."""
    path = str(written(tmp_path, SIMAI))
    made = fabric("network", 4, file=path)
    assert made.with_node_rate(made.node_rate_bits_per_s) is made
    with pytest.raises(FabricError, match="has 4 nodes, not 8"):
        fabric("network", 8, file=path)
    with pytest.raises(
        FabricError,
        match="is not rescaled, its nodes send 3280Gb/s; the others can have that rate: --equal rate=3280Gb/s",
    ):
        fabric("network", None, "800Gb/s", file=path)


def test_a_plan_file_has_the_content_of_its_network(tmp_path):
    """And is right without that file; the digest is among the parameters, also of what pickles."""
    path = written(tmp_path, SIMAI, "net.txt")
    plan = opticcl.compile(f"network:file={path}", "all_gather", "1 MB", algorithm="ring")
    assert pickle.loads(pickle.dumps(plan.fabric)) == plan.fabric
    plan.save(tmp_path / "plan.csv")
    read = opticcl.load(tmp_path / "plan.csv")
    assert read.verify().verdict == "right"
    assert fabric(plan.fabric.name, **plan.fabric.parameters) == plan.fabric == read.fabric
    assert columns(read.fabric) == columns(plan.fabric)
    path.write_text(SIMAI.replace("2880", "2881"))
    code = f"import opticcl; found = opticcl.load({str(tmp_path / 'plan.csv')!r})\n"
    code += "print(found.verify().verdict, found.fabric.num_nodes)"
    for _ in range(2):  # in another process, which has read no network; with another file in its place, and with none
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
        )
        assert done.stdout == f"right {plan.fabric.num_nodes}\n"
        path.unlink(missing_ok=True)
    text = (tmp_path / "plan.csv").read_text("utf-8")
    digest = plan.fabric.parameters["content"]
    (tmp_path / "plan.csv").write_text(text.replace(digest, digest[::-1]), "utf-8")
    with pytest.raises(PlanFileError, match=f"content: its digest is {digest}"):
        opticcl.load(tmp_path / "plan.csv")
    with pytest.raises(FabricError, match="there is no such file"):
        fabric("network", file=str(path))


def test_a_job_on_some_of_its_nodes(tmp_path):
    """Routes stay those of the machine."""
    where = job(network_of(tmp_path, SIMAI), [3, 0])
    plan = opticcl.compile(where, "all_reduce", "1 MB")
    assert plan.verify().verdict == "right"
    assert where.notes == where.machine.notes


def test_a_network_that_was_written_is_read(tmp_path):
    """ASTRA-sim's files of a torus and of an ideal switch: links of the same ends and rates."""
    for machine, name in (("torus:shape=3x4", "plan.yml"), ("torus:shape=2x2", "two.yml")):
        plan = opticcl.compile(machine, "all_reduce", "1 MB", algorithm="ring")
        plan.export(tmp_path / name)
        made, net = fabric("network", file=str(tmp_path / name)), plan.fabric.network
        due = Counter(zip(net.tail.tolist(), net.head.tolist(), net.rate_bits_per_s.tolist(), strict=True))
        net = made.network
        assert Counter(zip(net.tail.tolist(), net.head.tolist(), net.rate_bits_per_s.tolist(), strict=True)) == due


def test_a_page_of_a_comparison_has_no_small_instance_of_it(opticcl, tmp_path):
    """A file describes one machine; the page says so and has the machine itself."""
    path, page = written(tmp_path, SIMAI), tmp_path / "page.html"
    done = opticcl(
        "compare", "-f", f"network:file={path}", "-f", "ideal:nodes=4", "--equal", "rate=3280Gb/s", "-o", str(page)
    )
    assert done.returncode == 0
    assert "which has no small instance" in page.read_text()


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all", "broadcast", "reduce_scatter"])
@pytest.mark.parametrize(("text", "given"), [(nccl(), {"copies": 2}), (DOGBONE, {}), (MSCCL, {"rate": "25GB/s"})])
def test_collectives_are_verified(collective, text, given, tmp_path):
    """The fastest algorithm, judged, and no time below the bound."""
    plan = opticcl.compile(network_of(tmp_path, text, **given), collective, "1 MB")
    assert plan.verify().verdict == "right"
    assert plan.simulate().total_s > 0


def test_the_command_line_says_what_was_assumed(opticcl, tmp_path):
    """With the answer, in words and in a record; a refusal in one line with exit code 2."""
    path = written(tmp_path, nccl())
    where, said = f"network:file={path}", "A link between GPUs has 25 GB/s in a direction, that of a100"
    for asked in (("verify", "-f", where, "-a", "ring"), ("simulate", "-f", where), ("machine", "cost", "-f", where)):
        done = opticcl(*asked)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count(said) == 1
        assert any(said in note for note in json.loads(opticcl(*asked, "--json").stdout)["notes"])
    asked = ("compare", "-f", where, "-f", "ideal", "-s", "1MB")
    assert opticcl(*asked, "--notes").stdout.count(said) == 1
    assert any(said in caveat for caveat in json.loads(opticcl(*asked, "--json").stdout)["caveats"])
    path.write_text("nothing")
    done = opticcl("verify", "-f", f"network:file={path}", "-c", "all_gather")
    assert done.returncode == 2
    assert "is of no format that is known by its content" in done.stderr


def test_others_are_compared_at_its_rate_and_size(answer, opticcl, tmp_path):
    """Without --equal and -n; with --equal it stays as it is, and another number of nodes is refused."""
    where = f"network:file={written(tmp_path, SIMAI)}"
    asked = ("compare", "-f", where, "-f", "torus", "-s", "1MB")
    found, _ = answer(*asked)
    rows = {row["fabric"]: row for row in found["rows"]}
    own = rows["network"]
    assert own["node_rate_bits_per_s"] == own["built_node_rate_bits_per_s"] == found["equal"]["value"]
    assert rows["torus"]["num_nodes"] == own["num_nodes"]
    assert rows["torus"]["node_rate_bits_per_s"] == pytest.approx(own["node_rate_bits_per_s"])
    assert found["equal"]["of"] == "network"
    assert "the rate of network" in found["headline"]
    twice = f"rate={2 * own['node_rate_bits_per_s'] / 1e9:.12g}Gb/s"
    again = {row["fabric"]: row for row in answer(*asked, "--equal", twice)[0]["rows"]}
    assert again["network"]["total_s"] == own["total_s"]
    assert again["network"]["stays_as_built"]
    assert "stays_as_built" not in again["torus"].keys() | own.keys()
    assert "(network as built, 3.28 Tb/s)" in answer(*asked, "--equal", twice)[0]["headline"]
    refused = opticcl(*asked, "-n", "8")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--nodes: 8, and a fabric that is fixed has 4; leave it out" in refused.stderr
    assert again["torus"]["total_s"] < rows["torus"]["total_s"]
