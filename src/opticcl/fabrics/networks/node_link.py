"""Node-link JSON, as networkx and D3 write it: `nodes` with ids, `links` or `edges` with source and target.

    {"directed": true, "nodes": [{"id": "a", "kind": "node"}], "links": [{"source": "a", "target": "s", "rate": "300GB/s"}]}

Numbers are read as they are written. Vertices without `id` go by `name` or `label`, or by their place in the list. Older
versions of both programs write the place of a vertex as `source` and `target`: it is read so where some end is no vertex
otherwise. Where `directed` is missing, edges lead both ways, as networkx writes it of such graphs.
"""

from __future__ import annotations

import json
import re
from typing import Any

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks.file_graph import (
    Attributes,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
)


def _sniff(text: str) -> bool:
    return text.lstrip().startswith("{") and all(
        re.search(pattern, text) for pattern in (r'"nodes"\s*:\s*\[', r'"(links|edges)"\s*:\s*\[')
    )


def as_json(text: str) -> dict[str, Any]:
    """An object of JSON whose numbers are texts, so that their decimals stay.

    Raises: FileFaultError: no JSON, or another value.
    """
    try:
        parsed = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise FileFaultError(error.lineno, f"no JSON: {error.msg}") from None
    except RecursionError:
        raise FileFaultError(0, "is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise FileFaultError(0, "is JSON, but no object")
    return parsed


def _objects(whole: dict[str, Any], name: str) -> list[dict[str, str]]:
    """A list of objects, with plain values as texts."""
    objects = whole[name]
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
        raise FileFaultError(0, f"{name} is not a list of objects")
    return [{key: _text(value) for key, value in one.items()} for one in objects]


def _names(nodes: list[dict[str, str]]) -> list[str]:
    """Name of each vertex.

    Raises: FileFaultError: some have an id, and some do not.
    """
    for key in ("id", "name", "label"):
        names = [node[key] for node in nodes if key in node]
        if len(names) == len(nodes) and (key == "id" or len(set(names)) == len(names)):
            return names
        if key == "id" and names:
            place = next(place for place, node in enumerate(nodes) if key not in node)
            raise FileFaultError(0, f"node {place} of the list has no id")
    return [str(place) for place in range(len(nodes))]


def _by_place(names: list[str], edges: list[dict[str, str]]) -> dict[str, str]:
    """Name of the vertex at each place, if all ends are places and some are no names; else nothing."""
    places = {str(place): name for place, name in enumerate(names)}
    ends = {edge.get(end, "") for edge in edges for end in ("source", "target")}
    return places if ends <= places.keys() and not ends <= set(names) else {}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else json.dumps(value)


@register_network("node_link", "node-link JSON (nodes, links or edges)", _sniff)
def read_node_link(text: str, options: FileOptions) -> FileGraph:
    """The graph of a JSON object.

    Raises: FileFaultError: an object of another form, an edge without its ends, or a value that is no rate.
    """
    whole = as_json(text)
    lists = [name for name in ("links", "edges") if name in whole]
    if len(lists) != 1 or "nodes" not in whole:
        raise FileFaultError(
            0, f"has {' and '.join(lists) or 'neither links nor edges'}; node-link JSON has nodes and one of them"
        )
    made, attributes = FileGraphBuilder(options), Attributes(options)
    directed = _text(whole.get("directed", False)) == "true"
    nodes, edges = _objects(whole, "nodes"), _objects(whole, lists[0])
    names = _names(nodes)
    for place, (name, node) in enumerate(zip(names, nodes, strict=True)):
        try:
            made.vertex(name, attributes.kind(node), 0, attributes.circuit(node, 0))
        except FileFaultError as fault:
            raise FileFaultError(0, f"node {place} of the list: {fault}") from None
    at = _by_place(names, edges)
    for place, edge in enumerate(edges):
        try:
            if not {"source", "target"} <= edge.keys():
                raise FileFaultError(0, "has no source or no target")
            way = Way.ONE if edge.get("directed", str(directed).lower()) == "true" else Way.BOTH
            source, target = (made.end(at.get(edge[end], edge[end])) for end in ("source", "target"))
            made.edge(source, target, *attributes.of_edge(edge, 0), way, 0, attributes.circuit(edge, 0))
        except FileFaultError as fault:
            raise FileFaultError(0, f"{lists[0][:-1]} {place} of the list: {fault}") from None
    made.rate_hint = attributes.hint()
    return made.graph()
