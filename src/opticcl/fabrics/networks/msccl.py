"""Topologies of MSCCL-tools in JSON: `links[receiver][sender]` counts links, `switches` limit what sets of pairs send together.

A link of count k has k times `rate=`. Limits of sets are no vertices. Those of a node against all others, out and in, are what
a switch with one link a node does, and are read as one; any other set fits no graph and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    return text.lstrip().startswith("{") and re.search(r'"msccl_type"\s*:\s*"topology"', text) is not None


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
    if topology.get("switches"):
        most = dict(_limits(topology["switches"], size))
        _add_hub(made, counts, most, size, rate)
    else:
        for (sender, receiver), count in sorted(counts.items()):
            made.edge(sender, receiver, count * rate)
    made.rate_hint = "the file counts links: rate= is that of one"
    return made.graph()


def _limits(entries: Any, size: int) -> Iterator[tuple[tuple[int, str], int]]:
    """(node, direction) and the limit of each entry.

    Raises: FileFaultError: an entry that is not a node against all others.
    """
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        if not isinstance(entry, list) or len(entry) != 4 or not all(isinstance(side, list) for side in entry[:2]):
            raise FileFaultError(0, f"switches[{place}] is not [senders, receivers, limit, name]")
        sides = [{whole(rank, f"switches[{place}]") for rank in side} for side in entry[:2]]
        for here, there, way in ((0, 1, "out"), (1, 0, "in")):
            if len(sides[here]) == 1 and sides[there] == set(range(size)) - sides[here] and size > 2:
                yield (min(sides[here]), way), whole(entry[2], f"switches[{place}]")
                break
        else:
            raise FileFaultError(
                0, f"switches[{place}] limits a set that is not a node against all others; no graph has such a limit"
            )


def _add_hub(
    made: FileGraphBuilder, counts: dict[tuple[int, int], int], most: dict[tuple[int, str], int], size: int, rate: float
) -> None:
    """Links of every node to a switch, which have the limits of the nodes.

    Args:
        made: collects edges.
        counts: links from node to node.
        most: limits.
        size: nodes [count].
        rate: of a link [bit/s].
    Raises: FileFaultError: a node without a limit, a pair without a link, or a link of less than the limits of its ends.
    """
    hub = made.vertex("switch", SWITCH)
    for sender in range(size):
        for receiver in set(range(size)) - {sender}:
            due = min(most.get((sender, "out"), 0), most.get((receiver, "in"), 0))
            if not due or counts.get((sender, receiver), 0) < due:
                raise FileFaultError(
                    0, f"the limits of nodes {sender} and {receiver} and their link are not a switch of one link a node"
                )
    for rank in range(size):
        made.edge(rank, hub, most[rank, "out"] * rate, way=Way.ONE)
        made.edge(hub, rank, most[rank, "in"] * rate, way=Way.ONE)
