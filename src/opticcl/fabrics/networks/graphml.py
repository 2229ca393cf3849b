"""GraphML: keys with names and defaults, one `graph` with `node` and `edge` elements and their `data`.

Attributes go by `attr.name`. Defaults hold for elements without the key. What editors add in other namespaces is left out.
"""

from __future__ import annotations

import re

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks._elements import read_xml, root_is
from opticcl.fabrics.networks.file_graph import (
    Attributes,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
)
from opticcl.xml_elements import XmlElement


def _sniff(text: str) -> bool:
    return root_is(text, "graphml")


class _Keys:
    """Keys of a file: names and defaults.

    Args: root: element of the file.
    """

    def __init__(self, root: XmlElement) -> None:
        self._names: dict[str, str] = {}
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        for key in root.of("key"):
            name = key.attributes.get("attr.name", "")
            if not name:  # of a drawing
                continue
            self._names[key.attributes.get("id", "")] = name
            for default in key.of("default"):
                for of in ("node", "edge") if key.attributes.get("for") in ("all", None) else (key.attributes["for"],):
                    self._defaults.setdefault(of, {})[name] = default.content.strip()

    def of(self, element: XmlElement) -> dict[str, str]:
        """Attributes of a vertex or an edge by name, those of the element itself among them."""
        given = {
            self._names[data.attributes.get("key", "")]: data.content.strip()
            for data in element.of("data")
            if data.attributes.get("key", "") in self._names
        }
        return self._defaults[element.tag] | given


@register_network("graphml", "GraphML", _sniff)
def read_graphml(text: str, options: FileOptions) -> FileGraph:
    """The graph of a GraphML file.

    Raises: FileFaultError: no single graph, hyperedges, graphs within vertices, or values that are no rates.
    """
    root = read_xml(text, options)
    graphs = root.of("graph")
    if len(graphs) != 1:
        raise FileFaultError(0, f"holds {len(graphs)} graphs; one is read")
    keys, made, attributes = _Keys(root), FileGraphBuilder(options), Attributes(options)
    for child in graphs[0].children:
        if child.tag == "hyperedge" or child.of("graph"):
            raise FileFaultError(
                child.line, "hyperedges and graphs within vertices are not read; a link joins two vertices"
            )
    for node in graphs[0].of("node"):
        if "id" not in node.attributes:
            raise FileFaultError(node.line, "a vertex without id")
        said_of = keys.of(node)
        made.vertex(node.attributes["id"], attributes.kind(said_of), node.line, attributes.circuit(said_of, node.line))
    default = graphs[0].attributes.get("edgedefault", "")
    for edge in graphs[0].of("edge"):
        source, target = (made.end(edge.attributes.get(end, ""), edge.line) for end in ("source", "target"))
        said = edge.attributes.get("directed", {"directed": "true", "undirected": "false"}.get(default, ""))
        if not re.fullmatch("true|false", said):
            raise FileFaultError(edge.line, "the graph has no edgedefault, directed or undirected")
        of = keys.of(edge)
        way = Way.ONE if of.get("directed", said).lower() in ("true", "yes", "1") else Way.BOTH
        made.edge(source, target, *attributes.of_edge(of, edge.line), way, edge.line, attributes.circuit(of, edge.line))
    made.rate_hint = attributes.hint()
    return made.graph()
