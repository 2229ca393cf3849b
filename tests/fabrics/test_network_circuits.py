"""Circuits of files: links through circuit switches, and circuit switches whose ports are joined as TopoOpt joins them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import opticcl
from opticcl.errors import FabricError
from opticcl.fabrics import fabric
from opticcl.ir import Fabric

SETTING = "ports=16 reconfiguration=25ms"


def star(nodes: int, links: int, setting: Any, **more: str) -> dict[str, Any]:
    """Node-link JSON of nodes with links to a circuit switch."""
    edges = [
        {"source": f"n{node}", "target": "ocs", "rate": "200Gb/s", "latency": "50ns", "key": k} | more
        for node in range(nodes)
        for k in range(links)
    ]
    vertices = [{"id": f"n{node}", "kind": "node"} for node in range(nodes)]
    return {"nodes": [*vertices, {"id": "ocs", "kind": "switch", "circuit": setting}], "links": edges}


def read(folder: Path, text: str | dict[str, Any], **given: Any) -> Any:
    """The network of a text."""
    (folder / "net").write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")
    return fabric("network", file=str(folder / "net"), **given)


def links(made: Any) -> Counter[tuple[int, int, float, float]]:
    """(tail, head, rate in Gb/s, latency in ns) of every link."""
    net = made.network
    rows = zip(net.tail, net.head, net.rate_bits_per_s / 1e9, net.latency_s * 1e9, strict=True)
    return Counter((int(a), int(b), round(float(rate), 6), round(float(late), 6)) for a, b, rate, late in rows)


def gml(nodes: int) -> str:
    """GML of nodes with two links to a circuit switch, whose setting is a list."""
    text = [f'node [ id {k} label "n{k}" kind "node" ]' for k in range(nodes)]
    text += [f'node [ id {nodes} label "ocs" kind "switch" circuit [ ports 16 reconfiguration "25ms" ] ]']
    text += [f'edge [ source {k // 2} target {nodes} rate "200Gb/s" latency "50ns" ]' for k in range(2 * nodes)]
    return f"graph [ multigraph 1 {' '.join(text)} ]"


def graphml(nodes: int) -> str:
    """GraphML of the same."""
    keys = "".join(f'<key id="{k}" for="all" attr.name="{k}"/>' for k in ("kind", "rate", "latency", "circuit"))
    text = [f'<node id="n{k}"><data key="kind">node</data></node>' for k in range(nodes)]
    text += [f'<node id="ocs"><data key="kind">switch</data><data key="circuit">{SETTING}</data></node>']
    data = '<data key="rate">200Gb/s</data><data key="latency">50ns</data>'
    text += [f'<edge source="n{k // 2}" target="ocs">{data}</edge>' for k in range(2 * nodes)]
    return f'<graphml>{keys}<graph edgedefault="undirected">{"".join(text)}</graph></graphml>'


@pytest.mark.parametrize(
    "text", [star(8, 2, {"ports": 16, "reconfiguration": "25ms"}), star(8, 2, SETTING), gml(8), graphml(8)]
)
def test_a_circuit_switch_is_the_panel_of_topoopt(text: str | dict[str, Any], tmp_path: Path) -> None:
    """Links, plans and their times are those of the fabric; the switch is in the bill, its time is once a job."""
    made, built = (
        read(tmp_path, text),
        fabric("topoopt:nodes=8,degree=2,node_rate=400Gb/s,link_latency=100ns,node_latency=0s"),
    )
    assert links(made) == links(built)
    for collective in ("all_reduce", "all_gather", "broadcast"):
        plans = [opticcl.compile(where, collective, "10 MB") for where in (made, built)]
        times = [plan.simulate(assumptions="published") for plan in plans]
        assert plans[0].verify().verdict == "right"
        assert times[0].total_s == pytest.approx(times[1].total_s, rel=1e-12)
        assert times[0].lower_bound_s == pytest.approx(times[1].lower_bound_s, rel=1e-12)
    assert made.control_plane().record() == {
        "once_a_job": "circuits are set",
        "once_a_job_s": 0.025,
        "every_round": "nothing",
    }
    assert "Circuits through 1 circuit switch are set before a job, in 25 ms, and stand while it runs." in made.notes
    bill = {(part.kind, part.count, part.ports) for part in made.parts()}
    assert bill == {("transceiver", 16, 0), ("circuit_switch", 1, 16)}


def test_latencies_of_a_ring_are_those_of_both_links(tmp_path: Path) -> None:
    """Each vertex has its distance to the switch."""
    text = star(4, 1, SETTING)
    for k, edge in enumerate(text["links"]):
        edge["latency"] = f"{10 * 2**k}ns"
    assert links(read(tmp_path, text)) == Counter(
        {(0, 1, 200.0, 30.0): 1, (1, 2, 200.0, 60.0): 1, (2, 3, 200.0, 120.0): 1, (3, 0, 200.0, 90.0): 1}
    )


LEAVES = """source,target,rate,latency,directed,circuit
a,leaf0,400Gb/s,1us,no,
b,leaf0,400Gb/s,1us,no,
c,leaf1,400Gb/s,1us,no,
d,leaf2,400Gb/s,1us,no,
leaf0,leaf1,200Gb/s,1us,no,ports=6 reconfiguration=10ms
leaf1,leaf2,200Gb/s,1us,no,"ports=6, reconfiguration=10ms"
leaf0,leaf2,200Gb/s,1us,no,reconfiguration=10ms ports=6
"""


def test_links_that_are_circuits(tmp_path: Path) -> None:
    """They are links of the network, and take two ports each of one switch."""
    made: Fabric = read(tmp_path, LEAVES, nodes="a+b+c+d")
    without = "\n".join(
        line.rsplit(",ports")[0].rsplit(',"ports')[0].rsplit(",reconf")[0] for line in LEAVES.splitlines()
    )
    plain = "\n".join(f"{line}," if line.count(",") == 4 else line for line in without.splitlines()) + "\n"
    assert links(made) == links(read(tmp_path, plain, nodes="a+b+c+d"))
    made = read(tmp_path, LEAVES, nodes="a+b+c+d")
    assert opticcl.compile(made, "all_to_all", "1 MB").verify().verdict == "right"
    assert [(part.count, part.ports) for part in made.parts() if part.kind == "circuit_switch"] == [(1, 6)]
    two = LEAVES.replace("\nleaf0,leaf1,200Gb/s,1us,no,ports=6", "\nleaf0,leaf1,200Gb/s,1us,no,switch=x ports=6")
    parts = read(tmp_path, two, nodes="a+b+c+d").parts()
    assert [(part.count, part.ports) for part in parts if part.kind == "circuit_switch"] == [(2, 6)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            LEAVES.replace("ports=6", "ports=5"),
            r"6 circuits, each way one, need 6 ports .* ports=5; switch=NAME distinguishes",
        ),
        (LEAVES.replace("ports=6", "ports=many"), "line 6: ports='many' is not a whole number"),
        (LEAVES.replace("ports=6", "ports=1"), "line 6: circuit='ports=1 .* two ports or more"),
        (LEAVES.replace("10ms", "-10ms"), "line 6: circuit=.* a time of 0 or more"),
        (LEAVES.replace("10ms", "10"), "line 6: reconfiguration: '10' has no unit"),
        (LEAVES.replace("10ms", "1e999s"), "line 6: reconfiguration: .*is beyond every time"),
        (
            LEAVES.replace("reconfiguration=10ms", ""),
            "line 6: circuit='ports=6'; write it as ports=64 reconfiguration=10ms",
        ),
        (LEAVES.replace("ports=6", "ports=6 loss=3dB"), "line 6: circuit='ports=6 loss=3dB.*write it as"),
        (star(8, 2, "ports=15 reconfiguration=0s"), "the links of ocs need 16 ports of a circuit switch of ports=15"),
        (star(1, 2, SETTING), "links of the circuit switch ocs make no rings: as many to each vertex, of two or more"),
        (star(4, 1, SETTING, circuit=SETTING), "a link of the circuit switch ocs has circuit= itself"),
        (star(4, 1, SETTING, directed="true"), "make no rings: both ways with the rate in each"),
        (
            star(3, 1, SETTING)
            | {"links": [*star(3, 1, SETTING)["links"], star(1, 1, SETTING)["links"][0] | {"key": 9}]},
            "make no rings: as many to each vertex",
        ),
        (
            star(3, 1, SETTING)
            | {"links": [*star(2, 1, SETTING)["links"], {"source": "n2", "target": "ocs", "rate": "1Gb/s"}]},
            "make no rings: of one rate",
        ),
        (
            star(3, 1, SETTING) | {"nodes": [{"id": f"n{k}", "circuit": SETTING, "kind": "node"} for k in range(3)]},
            "node 0 of the list: the node 'n0' has circuit=; a circuit switch or a link has",
        ),
    ],
)
def test_what_is_no_circuit_is_refused_in_one_line(text: str | dict[str, Any], why: str, tmp_path: Path) -> None:
    """With the place and the rule."""
    with pytest.raises(FabricError, match=why) as refused:
        read(tmp_path, text, **({"nodes": "a+b+c+d"} if isinstance(text, str) else {}))
    assert "\n" not in str(refused.value)


def test_circuit_switches_are_not_in_a_row(tmp_path: Path) -> None:
    """A link between two of them makes no ring."""
    text = star(3, 1, SETTING)
    text["nodes"].append({"id": "second", "kind": "switch", "circuit": SETTING})
    text["links"].append({"source": "second", "target": "ocs", "rate": "200Gb/s"})
    with pytest.raises(FabricError, match="make no rings: none to another circuit switch"):
        read(tmp_path, text)


def test_two_circuit_switches_share_nodes(tmp_path: Path) -> None:
    """Planes of one port a node each are rings beside each other."""
    text = star(6, 1, SETTING)
    text["nodes"].append({"id": "second", "kind": "switch", "circuit": "ports=6 reconfiguration=1s"})
    text["links"] += [edge | {"target": "second"} for edge in text["links"]]
    made = read(tmp_path, text)
    assert links(made) == Counter({(k, (k + 1) % 6, 200.0, 100.0): 2 for k in range(6)})
    assert made.control_plane().once_a_job_s == 1
    assert made.num_nodes == made.network.num_vertices == 6
