"""Topologies of MSCCL-tools and of SCCL in JSON: `links[receiver][sender]` counts links, `switches` limit sets of pairs.

A link of count k has k times `rate=`. Limits of sets are no vertices. Where each of some senders has one towards the same
receivers, and each receiver one from these senders, a switch does the same, with a link from each sender and to each receiver:
NVSwitches of a box, whose nodes are all senders and receivers, or cards between two boxes, a switch each way. Any other set
fits no graph and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from math import nan
from typing import Any

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks.file_graph import (
    NODE,
    SWITCH,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
    whole,
)
from opticcl.fabrics.networks.node_link import as_json


def _sniff(text: str) -> bool:
    marked = re.search(r'"m?sccl_type"\s*:\s*"topology"', text) is not None  # SCCL's, and TACCL's of another form
    return text.lstrip().startswith("{") and marked and '"node_links"' not in text


@register_network("msccl", "topologies of MSCCL-tools", _sniff)
def read_msccl_topology(text: str, options: FileOptions) -> FileGraph:
    """The graph of a topology.

    Raises: FileFaultError: no square matrix of counts, or limits of sets that no graph has.
    """
    topology = as_json(text)
    links = topology.get("links")
    size = len(links) if isinstance(links, list) else 0
    if not isinstance(links, list) or not size or not all(isinstance(row, list) and len(row) == size for row in links):
        raise FileFaultError(0, "links is not a square matrix: links[receiver][sender] counts links")
    made, rate = FileGraphBuilder(options), options.rate if options.rate is not None else nan
    made.expect(size * size, "pairs of nodes")
    for rank in range(size):
        made.vertex(str(rank), NODE)
    counts = {
        (s, d): whole(n, f"links[{d}][{s}]") for d, row in enumerate(links) for s, n in enumerate(row) if n != "0"
    }
    for senders, receivers, out, into in _switches(_limits(topology.get("switches") or [], size), counts):
        hub = made.vertex(f"switch {len(made.kinds) - size}", SWITCH)
        for sender in filter(out.get, senders):  # a limit of 0 lets nothing pass
            made.edge(sender, hub, out[sender] * rate, way=Way.ONE)
        for receiver in filter(into.get, receivers):
            made.edge(hub, receiver, into[receiver] * rate, way=Way.ONE)
        for pair in product(senders, receivers):
            if pair[0] != pair[1] and counts.pop(pair, 0) < min(out[pair[0]], into[pair[1]]):
                raise FileFaultError(
                    0,
                    f"the link of nodes {pair[0]} and {pair[1]} is less than their limits, or has two; no graph has that",
                )
    for (sender, receiver), count in sorted(counts.items()):
        made.edge(sender, receiver, count * rate)
    made.rate_hint = "the file counts links: rate= is that of one"
    return made.graph()


_Entry = tuple[int, frozenset[int]]
"""A node and those that it is limited against."""


def _limits(entries: Any, size: int) -> tuple[dict[_Entry, int], dict[_Entry, int]]:
    """The least limit of each node towards others, and from others.

    Raises: FileFaultError: an entry that is not a node against others.
    """
    out: dict[_Entry, int] = {}
    into: dict[_Entry, int] = {}
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        if not isinstance(entry, list) or len(entry) != 4 or not all(isinstance(side, list) for side in entry[:2]):
            raise FileFaultError(0, f"switches[{place}] is not [senders, receivers, limit, name]")
        senders, receivers = (frozenset(whole(rank, f"switches[{place}]") for rank in side) for side in entry[:2])
        if not senders or not receivers or max(senders | receivers) >= size or senders & receivers:
            raise FileFaultError(0, f"switches[{place}] has no sets of nodes 0 to {size - 1} that are apart")
        if min(len(senders), len(receivers)) > 1:
            raise FileFaultError(
                0, f"switches[{place}] limits a set that is not a node against others; no graph has such a limit"
            )
        limit = whole(entry[2], f"switches[{place}]")
        for one, others, limits in ((senders, receivers, out), (receivers, senders, into)):
            if len(one) == 1:
                key = min(one), others
                limits[key] = min(limit, limits.get(key, limit))
    return out, into


def _switches(
    limits: tuple[dict[_Entry, int], dict[_Entry, int]], counts: dict[tuple[int, int], int]
) -> Iterator[tuple[list[int], list[int], dict[int, int], dict[int, int]]]:
    """Senders and receivers of each switch that the limits together are, and the links of each.

    Args:
        limits: of `_limits`.
        counts: links from node to node.
    Raises: FileFaultError: a limit that belongs to no switch.
    """
    out, into = (dict(side) for side in limits)
    while out or into:
        node, others = next(iter(out or into))
        side, back = (out, into) if out else (into, out)
        members = {v: (others | {node}) - {v} for v in sorted(others | {node})}  # each is sender and receiver
        if all((v, rest) in side for v, rest in members.items()):
            near = far = list(members)
        else:
            near, far = sorted(v for v, rest in side if rest == others), sorted(others)
        its = {v: side.pop((v, frozenset(far) - {v})) for v in near}
        pairs = {w: [(v, w) if side is out else (w, v) for v in near if v != w] for w in far}
        whole_of = {w: back.pop((w, frozenset(near) - {w}), None) for w in far}
        theirs = {
            w: counts.get(pairs[w][0], 0) if one is None and len(near) == 1 else one for w, one in whole_of.items()
        }
        if None in theirs.values():
            alone = next(w for w, one in theirs.items() if one is None)
            raise FileFaultError(
                0,
                f"nodes {', '.join(map(str, near[:4]))} are limited against node {alone}, which has no limit against them; "
                "these limits are not those of a switch",
            )
        known = {w: one for w, one in theirs.items() if one is not None}
        yield (near, far, its, known) if side is out else (far, near, known, its)
