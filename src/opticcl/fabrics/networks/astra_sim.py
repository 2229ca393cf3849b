"""Networks of ASTRA-sim's analytical backend (`.yml`): a topology, a number of NPUs, a rate and a latency a dimension.

    topology: [ Ring, Switch ]
    npus_count: [ 4, 8 ]
    bandwidth: [ 80.0, 50.0 ]    # GB/s, of a link in one direction
    latency: [ 500.0, 500.0 ]    # ns, of a link

A list may stand in several lines, in brackets or with a dash before each value. The first dimension changes fastest. Rings are
of links both ways; two NPUs in a ring have one link. Other keys of such files are those of other backends and are refused.
"""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from math import prod

from opticcl.fabrics.networks import register_network
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

KEYS = ("topology", "npus_count", "bandwidth", "latency")
KINDS = ("Ring", "Switch", "FullyConnected")


def _sniff(text: str) -> bool:
    return all(re.search(rf"^{key}\s*:\s*(#.*)?(\[|$)", text, re.MULTILINE) for key in ("topology", "npus_count"))


def _lists(text: str) -> dict[str, tuple[int, list[str]]]:
    """Line and values of each key."""
    entries: list[tuple[int, list[str]]] = []
    brackets = 0  # that are open
    for line, row in enumerate(text.splitlines(), 1):
        plain = row.partition("#")[0].strip()
        if not plain or plain in ("---", "..."):
            continue
        if entries and (brackets > 0 or re.match(r"-\s", plain)):
            entries[-1][1].append(plain)
        else:
            entries.append((line, [plain]))
            brackets = 0
        brackets += plain.count("[") - plain.count("]")
    lists: dict[str, tuple[int, list[str]]] = {}
    for line, parts in entries:
        entry = " ".join(parts)
        key, _, rest = (part.strip() for part in entry.partition(":"))
        cells = re.fullmatch(r"\[([^\[\]]*)\]", rest)
        values = cells[1].split(",") if cells else re.split(r"(?:^|\s)-\s", rest)[1:]
        if key not in KEYS or key in lists or not (cells or (values and rest.startswith("-"))):
            raise FileFaultError(line, f"{entry[:60]!r} is none of {', '.join(KEYS)}, each once with one list [ a, b ]")
        lists[key] = line, [value.strip().strip("'\"") for value in values]
    for key in KEYS:
        if key not in lists:
            raise FileFaultError(0, f"{key} is missing")
    return lists


def _values(lists: dict[str, tuple[int, list[str]]], key: str, given: float | None) -> list[float]:
    """Rates or latencies of the dimensions; what the caller gives stands for those that are to be done."""
    line, cells = lists[key]
    unit, default = ("bit/s", "GB/s") if key == "bandwidth" else ("s", "ns")
    values = []
    for cell in cells:
        if cell.lower() in ("tbd", "", "null", "~") and given is not None:
            values.append(given)
            continue
        try:
            values.append(exact_quantity(cell, unit, default))
        except FileFaultError as fault:
            other = "rate" if key == "bandwidth" else "latency"
            raise FileFaultError(line, f"{key}: {fault}; {other}= stands for what is to be done") from None
    return values


@register_network("astra_sim", "ASTRA-sim .yml", _sniff)
def read_astra_sim(text: str, options: FileOptions) -> FileGraph:
    """The graph of a network of dimensions.

    Raises: FileFaultError: lists of several lengths, an unknown topology, or values that are none.
    """
    lists = _lists(text)
    line, kinds = lists["topology"]
    for key in KEYS[1:]:
        if len(lists[key][1]) != len(kinds):
            raise FileFaultError(lists[key][0], f"{key} has {len(lists[key][1])} values, and topology {len(kinds)}")
    sides = [whole(cell, "npus_count", lists["npus_count"][0]) for cell in lists["npus_count"][1]]
    for kind in kinds:
        if kind not in KINDS:
            raise FileFaultError(line, f"topology {kind[:40]!r} is none of {', '.join(KINDS)}")
    if min(sides) < 1:
        raise FileFaultError(lists["npus_count"][0], "npus_count has a 0; 1 or more in each dimension")
    rates, latencies = _values(lists, "bandwidth", options.rate), _values(lists, "latency", options.latency)
    made = FileGraphBuilder(options)
    made.expect(prod(sides), "NPUs")
    made.expect(
        prod(sides) * max((s for s, k in zip(sides, kinds, strict=True) if k == "FullyConnected"), default=1), "links"
    )
    for node in range(prod(sides)):
        made.vertex(str(node), NODE)
    stride = 1
    for d, (kind, side) in enumerate(zip(kinds, sides, strict=True)):
        starts = [node for node in range(prod(sides)) if node // stride % side == 0]
        for number, first in enumerate(starts if side > 1 else []):
            line_of = [first + k * stride for k in range(side)]
            pairs = list(pairwise(line_of))
            if kind == "Ring" and side > 2:
                pairs.append((line_of[-1], first))
            elif kind == "FullyConnected":
                pairs = list(combinations(line_of, 2))
            elif kind == "Switch":
                switch = made.vertex(f"switch {number} of dimension {d}", SWITCH)
                pairs = [(node, switch) for node in line_of]
            for one, other in pairs:
                made.edge(one, other, rates[d], latencies[d], Way.BOTH, line)
        stride *= side
    return made.graph()
