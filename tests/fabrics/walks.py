"""Helpers for tests of fabrics: routes reach their receivers, broken paths are refused, links have names and join places."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.netlist import Netlist
from opticcl.verify import verify

Port = tuple[str, str, int]
"""Group, place of the element, number of the port."""


def pairs(num_nodes: int) -> tuple[IntArray, IntArray]:
    """Every ordered pair of distinct nodes."""
    src, dst = np.divmod(np.arange(num_nodes**2), num_nodes)
    return src[src != dst], dst[src != dst]


def routed(where: Fabric, src: IntArray, dst: IntArray) -> Circuits:
    """Circuits on the fabric's own routes."""
    src, dst = np.atleast_1d(src), np.atleast_1d(dst)
    return Circuits.of(np.arange(len(src)), src, dst, path=where.route(src, dst))


def num_hops(where: Fabric, src: int, dst: int) -> int:
    """Links on the path."""
    return int(routed(where, np.array([src]), np.array([dst])).num_hops()[0])


def latency_s(where: Fabric, src: int, dst: int) -> float:
    """Latency of the path [s]."""
    latencies = where.hop_latency_s(routed(where, np.array([src]), np.array([dst])).hops)
    assert latencies is not None
    return float(latencies.sum())


def loads(where: Fabric) -> list[IntArray]:
    """Flows on every link when every node sends to every other, one array for each rate of links."""
    circuits = routed(where, *pairs(where.num_nodes))
    return [np.bincount(u.index, minlength=u.resource.count) for u in where.usage(circuits)]


def refusals(where: Fabric, circuits: Circuits) -> set[str]:
    """Rules by which the verifier refuses circuits; the data are not checked."""
    from opticcl.collective import collective

    n = len(circuits)
    columns = (circuits.src, circuits.dst, np.zeros(n, int), np.ones(n, int), np.full(n, Op.REDUCE, np.uint8))
    schedule = Schedule("by hand", collective("all_reduce", where.num_nodes), 1, lambda i: Transfers(*columns))
    violations = verify(CircuitPlan(where, schedule, lambda i: (circuits,))).violations
    return {v.rule for v in violations if v.step >= 0}


def assert_routes_arrive(where: Fabric) -> None:
    """Every pair of nodes has a path, which has no link twice; no path leads from a node to itself."""
    circuits = routed(where, *pairs(where.num_nodes))
    assert not any(len(fault.circuits) for fault in where.faults(circuits))
    visited = circuits.hop_owner() * (int(circuits.hops.max(initial=0)) + 1) + circuits.hops
    assert len(np.unique(visited)) == len(visited)
    node = np.arange(where.num_nodes)
    assert not len(routed(where, node, node).hops)


def assert_broken_paths_are_refused(where: Fabric, src: int, dst: int) -> None:
    """Another link, a link that does not exist, a link left out, links reversed, no links: each is path_broken."""
    good = routed(where, np.array([src, dst]), np.array([dst, src]))
    assert refusals(where, good) == set()
    n = int(good.num_hops()[0])
    links = sum(r.count for r in where.resources)
    first, last = int(good.hop_offsets[0]), n - 1
    for at in range(n):
        for wrong in (-1, links, links + 10**6, (int(good.hops[at]) + 1) % links):
            hops = good.hops.copy()
            hops[at] = wrong
            assert refusals(where, replace(good, hops=hops)) == {"path_broken"}, (at, wrong)
    for kept in (good.hops[first + 1 :], np.delete(good.hops, last)):  # cut at either end
        offsets = np.array([0, n - 1, len(kept)])
        assert refusals(where, replace(good, hops=kept, hop_offsets=offsets)) == {"path_broken"}
    backwards = np.concatenate([good.hops[:n][::-1], good.hops[n:]])
    assert refusals(where, replace(good, hops=backwards)) == {"path_broken"}
    nothing = Circuits.of([0], np.array([src]), np.array([dst]))
    assert refusals(where, nothing) == {"path_broken"}


def links_of(net: Netlist) -> Counter[tuple[Port, Port]]:
    """Links of a netlist, by the places of the elements that they join."""

    def ports(side: str) -> list[Port]:
        return [
            (group.name, group.place(element), port)
            for group in net.groups
            for element in range(group.count)
            for port in range(getattr(group, side))
        ]

    outputs, inputs = ports("n_out"), ports("n_in")
    return Counter((outputs[a], inputs[b]) for a, b in net.links().T.tolist())
