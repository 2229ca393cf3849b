"""Circuits of a file: links through optical circuit switches that are set once a job, as a patch panel is.

    an edge with `circuit`      stands from one of its ends to the other
    a vertex with `circuit`     a circuit switch: its ports are joined into rings of the vertices around it, those of TopoOpt

A circuit is a link that packets share; no setting changes while a job runs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import compress

import numpy as np

from opticcl.fabrics.networks.file_graph import Circuit, FileFaultError, FileGraph, Way
from opticcl.fabrics.topoopt import strides_of

__all__ = ["set_circuits"]


def set_circuits(graph: FileGraph) -> tuple[FileGraph, tuple[Circuit, ...]]:
    """The graph with circuits in place of circuit switches, and all switches that circuits pass.

    Raises: FileFaultError: more circuits than ports, or links of a circuit switch that make no rings.
    """
    edges_of: defaultdict[Circuit, list[int]] = defaultdict(list)
    for edge, circuit in graph.circuits.items():
        edges_of[circuit].append(edge)
        if end := {int(graph.source[edge]), int(graph.target[edge])} & graph.circuit_switches.keys():
            raise FileFaultError(
                0, f"a link of the circuit switch {graph.names[min(end)]} has circuit= itself; one of them has"
            )
    switches = (*edges_of, *graph.circuit_switches.values())
    for circuit, edges in edges_of.items():
        way = np.repeat(edges, np.where(graph.way[edges] == Way.ONE, 1, 2))
        back = np.r_[False, way[1:] == way[:-1]]
        out, into = np.where(back, (graph.target[way], graph.source[way]), (graph.source[way], graph.target[way]))
        used = np.maximum(*(np.bincount(end, minlength=len(graph.names)) for end in (out, into)))
        what = f"{len(way):,} circuits, each way one,"
        _check(circuit, int(used.sum()), what, "; switch=NAME distinguishes several")
    for vertex, circuit in graph.circuit_switches.items():
        graph, links = _in_rings(graph, vertex)
        _check(circuit, links, f"the links of {graph.names[vertex]}", "")
    if not graph.circuit_switches:
        return graph, switches
    stays = [vertex not in graph.circuit_switches for vertex in range(len(graph.names))]
    number = np.cumsum(stays) - 1
    names, kinds = (tuple(compress(of, stays)) for of in (graph.names, graph.kinds))
    source, target = number[graph.source], number[graph.target]
    return replace(graph, names=names, kinds=kinds, source=source, target=target, circuit_switches={}), switches


def _check(circuit: Circuit, used: int, what: str, hint: str) -> None:
    """Refuse a circuit switch of which more ports are used than it has.

    Raises: FileFaultError: it is one.
    """
    if used > circuit.ports:
        raise FileFaultError(0, f"{what} need {used:,} ports of a circuit switch of ports={circuit.ports:,}{hint}")


def _in_rings(graph: FileGraph, vertex: int) -> tuple[FileGraph, int]:
    """The graph with rings of the vertices around a circuit switch in place of its links, and the number of these.

    Raises: FileFaultError: links one way, of several rates, to another circuit switch, or of different numbers.
    """
    mine = np.flatnonzero((graph.source == vertex) | (graph.target == vertex))
    other = graph.source[mine] + graph.target[mine] - vertex
    around, count = np.unique(other, return_counts=True)
    rates = np.unique(graph.rate_bits_per_s[mine])
    wrong = {
        "both ways with the rate in each": (graph.way[mine] != Way.BOTH).any(),
        "of one rate": len(rates) > 1,
        "as many to each vertex, of two or more": len(around) < 2 or count.min() < count.max(),
        "none to another circuit switch": any(int(one) in graph.circuit_switches for one in around),
    }
    if any(wrong.values()):
        rule = next(rule for rule, broken in wrong.items() if broken)
        name = graph.names[vertex]
        raise FileFaultError(
            0, f"links of the circuit switch {name} make no rings: {rule}; or give edges circuit= instead"
        )
    n, degree = len(around), int(count[0])
    late = graph.latency_s[mine[np.argsort(other, kind="stable")]].reshape(n, degree)  # of each link of each vertex
    at = np.arange(n)
    ahead = [(at + stride) % n for stride in strides_of(n, degree)]
    stays = np.setdiff1d(np.arange(len(graph.source)), mine)
    rings = replace(
        graph,
        source=np.r_[graph.source[stays], np.tile(around, degree)],
        target=np.r_[graph.target[stays], around[np.concatenate(ahead)]],
        rate_bits_per_s=np.r_[graph.rate_bits_per_s[stays], np.repeat(rates, n * degree)],
        latency_s=np.r_[graph.latency_s[stays], *(late[:, k] + late[to, k] for k, to in enumerate(ahead))],
        way=np.r_[graph.way[stays], np.full(n * degree, Way.ONE, np.uint8)],
        line=np.r_[graph.line[stays], np.zeros(n * degree, np.int64)],
        circuits={},
    )
    return rings, n * degree
