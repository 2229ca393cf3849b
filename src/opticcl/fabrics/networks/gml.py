"""GML: lists of keys and values in brackets, with one `graph`, its `node` and `edge` lists.

    graph [
      directed 0
      node [ id 0 label "a" kind "node" ]
      edge [ source 0 target 1 rate "300GB/s" ]
    ]

A vertex is called by its label where all labels differ, else by its id. Edges lead both ways unless `directed` is 1.
"""

from __future__ import annotations

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

MOST_DEPTH = 50
_TOKEN = re.compile(r'\s+|#[^\n]*|"(?P<text>[^"]*)"|(?P<mark>[\[\]])|(?P<word>[^\s\[\]"]+)')

Pairs = list[tuple[str, Any, int]]
"""Keys with their values, a text or pairs, and the line of the key."""


def _sniff(text: str) -> bool:
    return re.search(r"^[ \t]*graph\s*\[", text, re.MULTILINE) is not None


def _parse(text: str) -> Pairs:
    """Keys and values of the file.

    Raises: FileFaultError: brackets that do not close, or a key without a value.
    """
    top: Pairs = []
    stack, key, line, at = [top], "", 1, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise FileFaultError(line, "a quotation mark without its second")
        at = token.end()
        if token["mark"] == "]":
            if key or len(stack) == 1:
                raise FileFaultError(line, f"{key[:40]!r} has no value" if key else "a bracket closes that none opened")
            stack.pop()
        elif token["mark"] == "[":
            if not key or len(stack) > MOST_DEPTH:
                raise FileFaultError(line, "a list without its key" if not key else f"lists deeper than {MOST_DEPTH}")
            inner: Pairs = []
            stack[-1].append((key, inner, line))
            stack.append(inner)
            key = ""
        elif token["text"] is not None or token["word"] is not None:
            value = token["text"] if token["text"] is not None else token["word"]
            if key:
                stack[-1].append((key, value, line))
                key = ""
            elif token["text"] is not None:
                raise FileFaultError(line, "a text stands where a key is due")
            else:
                key = value
        line += token[0].count("\n")
    if len(stack) > 1 or key:
        raise FileFaultError(line, "ends inside a list" if len(stack) > 1 else f"{key[:40]!r} has no value")
    return top


def _plain(pairs: Pairs) -> dict[str, str]:
    """Values that are texts, by key, and lists of such values in one text."""
    return {key: value if isinstance(value, str) else _in_one(value) for key, value, _ in pairs}


def _in_one(pairs: Pairs) -> str:
    """A list in a text, such as "ports=64 reconfiguration=10ms"."""
    return " ".join(f"{key}={value}" for key, value, _ in pairs if isinstance(value, str))


@register_network("gml", "GML", _sniff)
def read_gml(text: str, options: FileOptions) -> FileGraph:
    """The graph of a GML file.

    Raises: FileFaultError: no GML, no single graph, or vertices and edges that are none.
    """
    graphs = [value for key, value, _ in _parse(text) if key == "graph" and isinstance(value, list)]
    if len(graphs) != 1:
        raise FileFaultError(0, f"holds {len(graphs)} graphs; one is read")
    graph = graphs[0]
    made, attributes, directed = FileGraphBuilder(options), Attributes(options), _plain(graph).get("directed", "0")
    nodes = [(_plain(value), line) for key, value, line in graph if key == "node" and isinstance(value, list)]
    labels = [node.get("label", "") for node, _ in nodes]
    by_label = len(set(labels)) == len(labels) and all(labels)
    number: dict[str, int] = {}
    for node, line in nodes:
        if "id" not in node or node["id"] in number:
            raise FileFaultError(
                line, f"two vertices have the id {node['id'][:40]!r}" if "id" in node else "a vertex without id"
            )
        name = node["label"] if by_label else node["id"]
        number[node["id"]] = made.vertex(name, attributes.kind(node), line, attributes.circuit(node, line))
    for edge, line in ((_plain(v), line) for key, v, line in graph if key == "edge" and isinstance(v, list)):
        source, target = (number.get(edge.get(end, "")) for end in ("source", "target"))
        if source is None or target is None:
            raise FileFaultError(line, "an edge whose source or target is not an id of a vertex")
        way = Way.ONE if edge.get("directed", directed) == "1" else Way.BOTH
        made.edge(source, target, *attributes.of_edge(edge, line), way, line, attributes.circuit(edge, line))
    made.rate_hint = attributes.hint()
    return made.graph()
