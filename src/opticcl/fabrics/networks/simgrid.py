"""Platform files of SimGrid: a zone of hosts, routers, links and routes, or one cluster.

A route over one link is an edge; routes over several links must be walks along such edges and add nothing. Both ways of a link
share its rate unless its policy is SPLITDUPLEX; a FATPIPE link limits nothing and is left out, as loopback links are. A
cluster is a star, a torus or a fat tree without limiters; in a torus each node has one link a dimension to the next, so that
two nodes in a ring have two. Traces, Wi-Fi, several zones that routes join and files that others include are refused.
"""

from __future__ import annotations

from itertools import product
from math import nan, prod

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks._elements import read_xml, root_is
from opticcl.fabrics.networks.file_graph import (
    NODE,
    SWITCH,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
    exact_quantity,
    whole,
)
from opticcl.xml_elements import XmlElement

POLICIES = {"SHARED": Way.SHARED, "SPLITDUPLEX": Way.BOTH, "FULLDUPLEX": Way.BOTH}
ZONES = ("zone", "AS")
OF_LINKS = ("BANDWIDTH", "LATENCY", "LINK_AVAIL")  # what traces change; others are of hosts
READ = {"host", "router", "link", "route", "prop", "config", *ZONES, "cluster"}


def _sniff(text: str) -> bool:
    return root_is(text, "platform")


@register_network("simgrid", "SimGrid platforms", _sniff)
def read_simgrid(text: str, options: FileOptions) -> FileGraph:
    """The graph of a platform.

    Raises: FileFaultError: no single zone, elements that are no graph, or values that are none.
    """
    made = FileGraphBuilder(options)
    zone = read_xml(text, options)
    for connect in zone.of("trace_connect"):
        if connect.attributes.get("kind", "").upper() in OF_LINKS:
            raise FileFaultError(connect.line, "a trace changes a link with time; constant rates are read")
    while len(inner := [child for child in zone.children if child.tag in (*ZONES, "cluster")]) == 1:
        if inner[0].tag == "cluster":
            _add_cluster(made, inner[0])
            return made.graph()
        zone = inner[0]
    if inner:
        raise FileFaultError(inner[1].line, f"{len(inner)} zones beside each other; one zone or one cluster is read")
    if zone.attributes.get("routing", "").lower() == "vivaldi":
        raise FileFaultError(
            zone.line, "times by coordinates (Vivaldi), without links; a zone with links and routes is read"
        )
    for child in zone.children:
        if child.tag not in READ:
            raise FileFaultError(
                child.line, f"<{child.tag[:40]}> is not read: hosts, routers, links and routes of one zone are"
            )
    for tag, kind in (("host", NODE), ("router", SWITCH)):
        for one in zone.of(tag):
            _no_traces(one)
            made.vertex(_text(one, "id"), kind, one.line)
    _add_routes(made, zone)
    return made.graph()


def _text(element: XmlElement, name: str) -> str:
    if name not in element.attributes:
        raise FileFaultError(element.line, f"<{element.tag}> without {name}")
    return element.attributes[name]


def _no_traces(element: XmlElement) -> None:
    """Refuse values that change with time and files beside this one."""
    for name in element.attributes:
        if name.endswith("_file") or name == "file":
            raise FileFaultError(element.line, f"{name}= names another file; constant rates are read")


def _quantity(element: XmlElement, name: str, unit: str, default: str) -> float:
    try:
        return exact_quantity(_text(element, name), unit, default)
    except FileFaultError as fault:
        raise FileFaultError(
            element.line, f"{name}: {fault}" if not str(fault).startswith("line") else str(fault)[6:]
        ) from None


def _way(element: XmlElement, default: str) -> Way | None:
    """Directions of a link; None where it limits nothing.

    Raises: FileFaultError: a policy that is no link's.
    """
    policy = element.attributes.get("sharing_policy", default).upper()
    if policy == "FATPIPE":
        return None
    if policy not in POLICIES:
        raise FileFaultError(element.line, f"sharing_policy={policy[:20]}; known are {', '.join(POLICIES)} and FATPIPE")
    return POLICIES[policy]


# --- routes -----------------------------------------------------------------------------------------------------------


Ways = dict[str, set[tuple[int, int]]]
"""Vertices that each link leads between, by its id."""


def _add_routes(made: FileGraphBuilder, zone: XmlElement) -> None:
    """Edges of the routes over one link; those over several must follow them."""
    links: dict[str, XmlElement] = {}
    for link in zone.of("link"):
        _no_traces(link)
        if links.setdefault(_text(link, "id"), link) is not link:
            raise FileFaultError(link.line, f"two links are called {_text(link, 'id')[:40]!r}")
    routes = [(route, [_link_id(route, link, links) for link in route.of("link_ctn")]) for route in zone.of("route")]
    ways: Ways = {}
    for route, ids in routes:
        if len(ids) == 1:
            _add_edge(made, route, links[ids[0]], ways.setdefault(ids[0], set()))
    left_out = {name for name, link in links.items() if _way(link, "SHARED") is None}
    for route, ids in routes:
        _check_walk(made, route, [name for name in ids if name not in left_out], ways)


def _link_id(route: XmlElement, link: XmlElement, links: dict[str, XmlElement]) -> str:
    """Id of a link of a route, which may name one direction of it.

    Raises: FileFaultError: no such link.
    """
    said = _text(link, "id")
    known_id = next(
        (name for name in (said, said.removesuffix("_UP"), said.removesuffix("_DOWN")) if name in links), None
    )
    if known_id is None:
        raise FileFaultError(route.line, f"a route over {said[:40]!r}, which is not a link of the zone")
    return known_id


def _ends(made: FileGraphBuilder, route: XmlElement) -> tuple[int, int]:
    return made.end(_text(route, "src"), route.line), made.end(_text(route, "dst"), route.line)


def _add_edge(made: FileGraphBuilder, route: XmlElement, link: XmlElement, ways: set[tuple[int, int]]) -> None:
    """The edge of a route over one link, or the direction of it that no route before has.

    Args:
        made: collects edges.
        route: over the link alone.
        link: of the zone.
        ways: directions of the link so far; those of this route are added.
    Raises: FileFaultError: the link joins two other vertices too.
    """
    src, dst = _ends(made, route)
    way = _way(link, "SHARED")
    if way is None or src == dst:
        note = "Links of policy FATPIPE and routes of a host to itself are left out."
        made.notes += [note] if note not in made.notes else []
        return
    if ways and (src, dst) not in ways and (dst, src) not in ways:
        raise FileFaultError(
            route.line, f"link {_text(link, 'id')[:40]!r} joins two pairs of vertices; a graph has no such link"
        )
    alone = route.attributes.get("symmetrical", "YES").upper() in ("NO", "FALSE", "0") and way is not Way.SHARED
    new = [one for one in ((src, dst), (dst, src))[: 1 if alone else 2] if one not in ways]
    ways.update(new)
    values = _quantity(link, "bandwidth", "bit/s", "B/s"), _quantity(link, "latency", "s", "s")
    if new:
        made.edge(*new[0], *values, way if len(new) == 2 else Way.ONE, link.line)


def _check_walk(made: FileGraphBuilder, route: XmlElement, ids: list[str], ways: Ways) -> None:
    """Refuse a route that is no walk along the edges of routes over one link."""
    at, end = _ends(made, route)
    for name in ids if at != end else ():
        at = next((head for tail, head in ways.get(name, ()) if tail == at), -1)
        if at < 0:
            raise FileFaultError(
                route.line, f"a route over link {name[:40]!r}, which no route of one link places between two vertices"
            )
    if ids and at != end:
        raise FileFaultError(route.line, "the links of a route do not lead to its end")


# --- clusters ---------------------------------------------------------------------------------------------------------


def _add_cluster(made: FileGraphBuilder, cluster: XmlElement) -> None:
    """Nodes, switches and links of a cluster."""
    _no_traces(cluster)
    rate, latency = _quantity(cluster, "bw", "bit/s", "B/s"), _quantity(cluster, "lat", "s", "s")
    if "limiter_link" in cluster.attributes:
        raise FileFaultError(
            cluster.line, "limiter_link= limits both ways of a node together; without it a cluster is read"
        )
    way = _way(cluster, "SPLITDUPLEX")
    if way is None:
        raise FileFaultError(cluster.line, "a cluster whose links are FATPIPE limits nothing; it is not a network")
    names = [
        f"{cluster.attributes.get('prefix', '')}{k}{cluster.attributes.get('suffix', '')}"
        for k in _radical(made, cluster)
    ]
    nodes = [made.vertex(name, NODE, cluster.line) for name in names]
    if any(name.startswith("loopback") for name in cluster.attributes):
        made.notes.append("Loopback links are left out.")
    topology = cluster.attributes.get("topology", "FLAT").upper()
    if topology == "TORUS":
        pairs = _torus(cluster, nodes)
    elif topology == "FAT_TREE":
        pairs = _fat_tree(made, cluster, nodes)
    elif topology == "FLAT":
        pairs = _star(made, cluster, nodes)
    else:
        raise FileFaultError(cluster.line, f"topology={topology[:20]}; FLAT, TORUS and FAT_TREE are read")
    for one, other in pairs:
        made.edge(one, other, rate, latency, way, cluster.line)


def _radical(made: FileGraphBuilder, cluster: XmlElement) -> list[int]:
    """Numbers of the nodes, "0-15,20"."""
    numbers: list[int] = []
    for part in _text(cluster, "radical").split(","):
        first, dash, last = part.strip().partition("-")
        low = whole(first, "radical", cluster.line)
        high = whole(last, "radical", cluster.line) if dash else low
        made.expect(len(numbers) + high - low + 1, "nodes")
        numbers += range(low, high + 1)
    return numbers


def _numbers(cluster: XmlElement, text: str) -> list[int]:
    return [whole(cell.strip(), "topo_parameters", cluster.line) for cell in text.split(",")]


def _torus(cluster: XmlElement, nodes: list[int]) -> list[tuple[int, int]]:
    """Links of each node to the next in each dimension, the first dimension fastest."""
    sides = _numbers(cluster, _text(cluster, "topo_parameters"))
    if prod(sides) != len(nodes):
        raise FileFaultError(cluster.line, f"topo_parameters of {prod(sides)} nodes, and radical names {len(nodes)}")
    pairs, stride = [], 1
    for side in sides:
        for at in range(len(nodes)) if side > 1 else ():
            digit = at // stride % side
            pairs.append((nodes[at], nodes[at + ((digit + 1) % side - digit) * stride]))
        stride *= side
    return pairs


def _fat_tree(made: FileGraphBuilder, cluster: XmlElement, nodes: list[int]) -> list[tuple[int, int]]:
    """Links of a tree "levels; children; parents; links between two", each a list from the nodes up."""
    fields = _text(cluster, "topo_parameters").split(";")
    lists = [_numbers(cluster, text) for text in fields[1:]]
    levels = whole(fields[0].strip(), "topo_parameters", cluster.line)
    if len(lists) != 3 or {len(one) for one in lists} != {levels} or min(min(one) for one in lists) < 1:
        raise FileFaultError(
            cluster.line, "topo_parameters is not levels;children;parents;links with a number of 1 or more a level"
        )
    children, parents, parallel = lists
    if prod(children) != len(nodes):
        raise FileFaultError(cluster.line, f"topo_parameters of {prod(children)} nodes, and radical names {len(nodes)}")
    below: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {
        (digits, ()): nodes[at] for at, digits in enumerate(product(*(range(c) for c in reversed(children))))
    }
    pairs: list[tuple[int, int]] = []
    for level in range(levels):
        above: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        made.expect(len(below) * parents[level] * parallel[level], "links of a level")
        for (digits, way), low in below.items():
            for up in range(parents[level]):
                key = digits[:-1], (*way, up)
                if key not in above:
                    above[key] = made.vertex(f"switch {len(above)} of level {level + 1}", SWITCH, cluster.line)
                pairs += [(low, above[key])] * parallel[level]
        below = above
    return pairs


def _star(made: FileGraphBuilder, cluster: XmlElement, nodes: list[int]) -> list[tuple[int, int]]:
    """Links of each node to a router; a backbone that all share lies between two of them."""
    if "bb_bw" not in cluster.attributes or cluster.attributes.get("bb_sharing_policy", "SHARED").upper() == "FATPIPE":
        if "bb_bw" in cluster.attributes:
            made.notes.append("The backbone of policy FATPIPE limits no sum of flows and is left out.")
        router = made.vertex("router", SWITCH, cluster.line)
        return [(node, router) for node in nodes]
    entrance, exit_ = (made.vertex(f"backbone {name}", SWITCH, cluster.line) for name in ("entrance", "exit"))
    late = _quantity(cluster, "bb_lat", "s", "s") if "bb_lat" in cluster.attributes else nan
    made.edge(entrance, exit_, _quantity(cluster, "bb_bw", "bit/s", "B/s"), late, Way.ONE, cluster.line)
    if _way(cluster, "SPLITDUPLEX") is not Way.BOTH:
        raise FileFaultError(cluster.line, "a backbone behind links of half duplex is not read")
    rate, latency = _quantity(cluster, "bw", "bit/s", "B/s"), _quantity(cluster, "lat", "s", "s")
    for node in nodes:
        made.edge(node, entrance, rate, latency, Way.ONE, cluster.line)
        made.edge(exit_, node, rate, latency, Way.ONE, cluster.line)
    return []
