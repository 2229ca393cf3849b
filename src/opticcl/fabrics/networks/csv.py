"""Edge lists: a line for each link, with the columns source, target, rate, latency and directed in any order.

    source,target,rate,latency,directed
    a,s,300GB/s,700ns,no

Columns are separated by commas, semicolons, tabs or spaces; lines that begin with # are comments. Where `directed` is yes or
missing, the link leads from source to target. The columns `source_kind` and `target_kind` mark vertices: node, NVSwitch,
switch, ... A link with `circuit` stands through an optical circuit switch: ports=64 reconfiguration=10ms.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks.file_graph import (
    Attributes,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
)

ENDS = {"source": "source", "src": "source", "from": "source", "target": "target", "dst": "target", "to": "target"}
KNOWN = ENDS | {name: name for name in ("rate", "latency", "directed", "circuit", "source_kind", "target_kind")}
DIRECTED = {
    "yes": Way.ONE,
    "true": Way.ONE,
    "1": Way.ONE,
    "": Way.ONE,
    "no": Way.BOTH,
    "false": Way.BOTH,
    "0": Way.BOTH,
}


def _sniff(text: str) -> bool:
    header = _first_line(text)
    words = _separator(header) != " " or re.fullmatch(r"[\w\s]+", header) is not None
    return words and {"source", "target"} <= set(_columns(header, ()))


def _first_line(text: str) -> str:
    return next((line for line in text[:65536].splitlines() if line.strip() and not line.startswith("#")), "")


def _columns(header: str, keys: Collection[str | None]) -> list[str]:
    """Names of the columns, those that are known by their usual name, whatever the case of their letters.

    Args:
        header: line of the file.
        keys: names that the caller uses, which stay as they are.
    """
    mark = _separator(header)
    cells = [cell.strip().strip('"') for cell in _spaced(header, mark).split(mark)]
    return [cell if cell in keys else KNOWN.get(cell.lower(), cell) for cell in cells]


def _separator(header: str) -> str:
    return next((mark for mark in (";", "\t", ",", " ") if mark in header.strip()), ",")


def _spaced(row: str, mark: str) -> str:
    """A row with one space between its cells where spaces separate them."""
    return " ".join(row.split()) if mark == " " else row


@register_network("csv", "CSV edge lists (source,target,rate,latency,directed)", _sniff)
def read_csv(text: str, options: FileOptions) -> FileGraph:
    """The graph of an edge list; vertices are those that its rows name, in their order.

    Raises: FileFaultError: a row of another length, or a cell that is no value of its column.
    """
    header = _first_line(text)
    made, attributes = FileGraphBuilder(options), Attributes(options)
    columns = _columns(header, (options.rate_key, options.latency_key))
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise FileFaultError(0, f"two columns are called {twice[0][:40]!r}; each needs a name of its own")
    mark = _separator(header)
    rows = csv.reader((_spaced(row, mark) for row in text.splitlines()), delimiter=mark)
    begun = False
    for cells in rows:
        line = rows.line_num
        if not cells or not "".join(cells).strip() or cells[0].startswith("#"):
            continue
        if not begun:  # the header
            begun = True
            continue
        if len(cells) != len(columns):
            raise FileFaultError(line, f"{len(cells)} cells, and the header has {len(columns)}")
        row = {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
        source, target = (_vertex(made, attributes, row, end, line) for end in ("source", "target"))
        said = row.get("directed", "").lower()
        if said not in DIRECTED:
            raise FileFaultError(line, f"directed={said[:40]!r} is neither yes nor no")
        circuit = attributes.circuit(row, line)
        made.edge(source, target, *attributes.of_edge(row, line), DIRECTED[said], line, circuit)
    made.rate_hint, made.lists_vertices = attributes.hint(), False
    return made.graph()


def _vertex(made: FileGraphBuilder, attributes: Attributes, row: dict[str, str], end: str, line: int) -> int:
    """Number of the vertex at an end of a row, which is added where it is new."""
    if not (name := row[end]):
        raise FileFaultError(line, f"{end} is empty")
    kind = attributes.kind({attributes.key_of_kind: row.get(f"{end}_kind", "")})
    if name not in made.number:
        return made.vertex(name, kind, line)
    number = made.number[name]
    if kind and made.kinds[number] not in ("", kind):
        raise FileFaultError(line, f"{end}_kind={kind}, and {name[:60]!r} is a {made.kinds[number]} in another row")
    made.kinds[number] = made.kinds[number] or kind
    return number
