"""Failed links, switches and nodes of a network from a file: bounds by all cuts, cuts that are judged, nodes on the way."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import Condition, Fabric
from opticcl.operations.faults.answers import FaultReport, Healthy, answer, recovery_parameters
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.data.cut import check_cut

NETWORKS = {
    "two boxes": "".join(f"{n},s{'abcdef'.index(n) // 3},40Gb/s\n" for n in "abcdef")
    + "".join(f"{n},t,{rate}Gb/s\n" for n, rate in zip("abcdef", (10, 10, 10, 20, 10, 10), strict=True)),
    "ring with chords": "".join(f"{a},{b},10Gb/s\n" for a, b in ("ab", "bc", "cd", "de", "ef", "fa", "ad", "be")),
}


def written(folder: Path, edges: str) -> Fabric:
    """The network of nodes a to f, all links both ways, without latencies.

    Args:
        folder: to write the file in.
        edges: rows of the file.
    """
    (folder / "net.csv").write_text("source,target,rate\n" + edges, "utf-8")
    return fabric("network", file=str(folder / "net.csv"), nodes="a+b+c+d+e+f", directed=False)


def answered(where: Fabric, conditions: list[Condition], collective: str = "all_gather") -> FaultReport:
    """The answer for a message of 600 MB."""
    law = assumptions("published", compute="none")
    healthy = Healthy(where, Request(collective), 6 * 10**8, "auto", law, recovery_parameters())
    return answer(healthy, conditions)


def least_s(where: Fabric, conditions: list[Condition]) -> float:
    """Least time of that all_gather between the nodes that are left, by all cuts of the links that are left, one by one."""
    net = where.network
    dead = {c.index + (net.num_nodes if c.kind == "switch" else 0) for c in conditions if c.kind != "link"}
    lost = {c.index for c in conditions if c.kind == "link"}
    ends = zip(net.tail.tolist(), net.head.tolist(), net.rate_bits_per_s.tolist(), strict=True)
    links = [one for k, one in enumerate(ends) if k not in lost and not dead & {one[0], one[1]}]
    vertices = [v for v in range(net.num_vertices) if v not in dead]
    ranks, worst = [v for v in vertices if v < net.num_nodes], Fraction(0)
    for sides in product((False, True), repeat=len(vertices)):
        inside = dict(zip(vertices, sides, strict=True))
        count = sum(inside[v] for v in ranks)
        if 0 < count < len(ranks):
            capacity = sum(round(rate) for tail, head, rate in links if inside[tail] and not inside[head])
            worst = max(worst, Fraction(count, capacity))
    return float(worst) * 8 * 6e8 / len(ranks)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_bound_of_each_failure_is_the_worst_of_all_cuts(name: str, tmp_path: Path) -> None:
    """A link of each kind, two of them, a switch, a node; plans are right and between the bound and 5 % above it."""
    where = written(tmp_path, NETWORKS[name])
    net = where.network
    failures = [
        [Condition("link", 0)],
        [Condition("link", net.num_links - 1)],
        [Condition("link", 1), Condition("link", 6)],
    ]
    failures += [[Condition("node", 2)]] + [[Condition("switch", net.num_vertices - net.num_nodes - 2)]] * (
        name == "two boxes"
    )
    for conditions in failures:
        report = answered(where, conditions)
        assert report.ok, report.label
        due = least_s(where, conditions)
        assert report.bound_s == pytest.approx(due, rel=1e-9), report.label
        assert report.time_s is not None
        assert due * (1 - 1e-9) < report.time_s < 1.05 * due, report.label


def test_a_cut_is_named_and_judged(tmp_path: Path) -> None:
    """No data leave a node without links away from it; others go on. A set with a way out is no cut."""
    where = written(tmp_path, NETWORKS["ring with chords"])
    away = [Condition("link", k) for k in np.flatnonzero(where.network.tail == 2).tolist()]
    report = answered(where, away)
    assert (report.answer, report.cut, report.ranks) == ("cut", (2,), 5)
    left = where.without(away)
    assert check_cut(left, np.array([2])) == ()
    (violation,) = check_cut(left, np.array([2, 3]))
    assert violation.rule == "cut_open"
    assert [one.rule for one in check_cut(where, np.array([2]))] == ["cut_open"]


def test_a_dead_node_passes_nothing_on(tmp_path: Path) -> None:
    """Its neighbours go around it, and a plan over it is refused."""
    where = written(tmp_path, NETWORKS["ring with chords"])
    plan = lower(where, generate("mesh", Request("all_to_all"), where))
    assert 1 in where.network.head[plan.rounds(0)[0].hops]
    left = where.without([Condition("node", 1)])
    assert left.num_nodes == 5
    around = lower(left, generate("mesh", Request("all_to_all"), left))
    assert verify(around).ok
    assert 1 not in where.network.head[around.rounds(0)[0].hops]
    (over,) = plan.rounds(0)
    passing = {int(k) for fault in left.part_faults(over) for k in fault.circuits}
    assert {int(k) for k in over.hop_owner()[where.network.head[over.hops] == 1]} <= passing
