"""Trees of htsim (`.topo`): numbers of nodes, tiers and pods, then radices, rates and latencies of each tier of switches.

    Nodes 32
    Tiers 2
    Podsize 32
    Tier 0
    Downlink_speed_Gbps 100
    Radix_Down 8
    Radix_Up 2
    Downlink_Latency_ns 1000

Tier 0 are the switches above the nodes; a rate and a latency are those of the links below a tier. Ports in Radix_Up and
Radix_Down count links; a Bundle of b joins two switches by b of them. Switch k of the top tier belongs to position k mod
(switches of a pod) of the tier below. Numbers of switches follow from the radices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks.file_graph import (
    NODE,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
    exact_quantity,
    whole,
)

HEAD = ("nodes", "tiers", "podsize")
NUMBERS = ("radix_down", "radix_up", "bundle", "oversubscribed")
TIMES = ("downlink_latency_ns", "switch_latency_ns")
QUEUES = ("queue_up", "queue_down")
SPEED = "downlink_speed_gbps"
NAMES = ("ToR", "aggregation", "core")


def _sniff(text: str) -> bool:
    return all(
        re.search(rf"^[ \t]*{key}\s+\S", text, re.MULTILINE | re.IGNORECASE) for key in ("Nodes", "Tiers", "Radix_Down")
    )


@dataclass(slots=True)
class _Tier:
    """Switches of one tier: values by key, and where they stand.

    Args:
        number: from 0 above the nodes.
        line: of its head.
        values: by key in lower case.
    """

    number: int
    line: int
    values: dict[str, float]

    def whole(self, key: str, default: int | None = None) -> int:
        """A number.

        Raises: FileFaultError: it is missing or 0.
        """
        value = self.values.get(key, default)
        if not value:
            raise FileFaultError(self.line, f"tier {self.number}: {key} is missing or 0")
        return int(value)

    def share(self, total: int, of: int, what: str) -> int:
        """A quotient without remainder.

        Raises: FileFaultError: there is a remainder.
        """
        if total % of or not total:
            raise FileFaultError(self.line, f"tier {self.number}: {what}: {total:,} is not divisible by {of:,}")
        return total // of

    @property
    def rate_bits_per_s(self) -> float:
        """Of the links below."""
        if SPEED not in self.values:
            raise FileFaultError(self.line, f"tier {self.number}: {SPEED} is missing")
        return self.values[SPEED]

    @property
    def latencies_s(self) -> tuple[float, float]:
        """Of the links up to this tier, with its switches, and down from it."""
        if TIMES[0] not in self.values:
            raise FileFaultError(self.line, f"tier {self.number}: {TIMES[0]} is missing")
        return self.values[TIMES[0]] + self.values.get(TIMES[1], 0.0), self.values[TIMES[0]]


def _parse(text: str) -> tuple[dict[str, int], list[_Tier]]:
    head: dict[str, int] = {}
    tiers: list[_Tier] = []
    for line, row in enumerate(text.splitlines(), 1):
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        cells = row.split()
        if len(cells) != 2:
            raise FileFaultError(line, f"{row.strip()[:60]!r} is not a key with one value")
        key = cells[0].lower()
        known = HEAD if not tiers else (*NUMBERS, *TIMES, *QUEUES, SPEED)
        if key == "tier":
            if whole(cells[1], "Tier", line) != len(tiers):
                raise FileFaultError(line, f"Tier {cells[1][:20]}, and tier {len(tiers)} is due")
            tiers.append(_Tier(len(tiers), line, {}))
        elif key not in known or key in (head if not tiers else tiers[-1].values):
            raise FileFaultError(
                line, f"{cells[0][:40]!r} is unknown here or given twice; known are {', '.join(known)}"
            )
        elif not tiers:
            head[key] = whole(cells[1], cells[0], line)
        else:
            tiers[-1].values[key] = _value(key, cells, line)
    for key in HEAD:
        if not head.get(key):
            raise FileFaultError(0, f"{key.capitalize()} is missing or 0")
    if len(tiers) != head["tiers"] or not 2 <= len(tiers) <= 3:
        raise FileFaultError(0, f"Tiers {head['tiers']}, and {len(tiers)} are described; 2 or 3 are read")
    return head, tiers


def _value(key: str, cells: list[str], line: int) -> float:
    try:
        if key == SPEED:
            return exact_quantity(cells[1], "bit/s", "Gb/s")
        if key in TIMES:
            return exact_quantity(cells[1], "s", "ns")
    except FileFaultError as fault:
        raise FileFaultError(line, f"{cells[0]}: {fault}") from None
    return whole(cells[1], cells[0], line)


@register_network("htsim", "htsim .topo", _sniff)
def read_htsim(text: str, options: FileOptions) -> FileGraph:
    """The graph of a tree.

    Raises: FileFaultError: keys that are missing or unknown, or radices that do not fit each other.
    """
    head, tiers = _parse(text)
    made = FileGraphBuilder(options)
    made.expect(max(head.values()), "nodes")
    if any(key in tier.values for tier in tiers for key in QUEUES):
        made.notes.append("Sizes of queues are left out.")
    pods = tiers[-1].share(head["nodes"], head["podsize"], "nodes a pod")
    if len(tiers) == 2 and pods != 1:
        raise FileFaultError(0, f"Podsize {head['podsize']} of {head['nodes']} nodes: a tree of two tiers is one pod")
    for node in range(head["nodes"]):
        made.vertex(str(node), NODE)
    below = list(range(head["nodes"]))
    near = tiers[0].whole("radix_down")
    above = _switches(made, 0, tiers[0].share(head["podsize"], near, "nodes a switch") * pods)
    _join(made, tiers[0], [(node, above[at // near], 1) for at, node in enumerate(below)])
    for tier in tiers[1:]:
        lower, below = tiers[tier.number - 1], above
        bundle, last = tier.whole("bundle", 1), tier.number == len(tiers) - 1
        _check_oversubscription(lower, tier)
        up = lower.share(lower.whole("radix_up"), bundle, "up-links in bundles")
        groups = pods if len(tiers) == 3 and not last else 1
        if len(tiers) == 3 and last:  # a position of every pod shares its own switches
            each = len(below) // pods
            count, joined = each * up, [(low, at % each + each * k) for at, low in enumerate(below) for k in range(up)]
        else:
            each = len(below) // groups
            count, joined = groups * up, [(low, at // each * up + k) for at, low in enumerate(below) for k in range(up)]
        ports = len(joined) * bundle // max(1, count)
        if ports != tier.whole("radix_down"):
            raise FileFaultError(
                tier.line, f"tier {tier.number}: Radix_Down {tier.whole('radix_down')}, and {ports} links lead down"
            )
        above = _switches(made, tier.number + (1 if len(tiers) == 2 else 0), count)
        _join(made, tier, [(low, above[high], bundle) for low, high in joined])
    return made.graph()


def _switches(made: FileGraphBuilder, name: int, count: int) -> list[int]:
    made.expect(count, "switches")
    return [made.vertex(f"{NAMES[name]} {k}", NAMES[name]) for k in range(count)]


def _join(made: FileGraphBuilder, tier: _Tier, pairs: list[tuple[int, int, int]]) -> None:
    """Links between (lower vertex, switch of the tier, number of links)."""
    up, down = tier.latencies_s
    rate = tier.rate_bits_per_s
    for low, high, count in pairs:
        for _ in range(count):
            if up == down:
                made.edge(low, high, rate, up, Way.BOTH, tier.line)
            else:
                made.edge(low, high, rate, up, Way.ONE, tier.line)
                made.edge(high, low, rate, down, Way.ONE, tier.line)


def _check_oversubscription(lower: _Tier, upper: _Tier) -> None:
    """Refuse a factor that the radices and rates do not have."""
    said = lower.values.get("oversubscribed")
    down, up = lower.whole("radix_down") * lower.rate_bits_per_s, lower.whole("radix_up") * upper.rate_bits_per_s
    if said is not None and said * up != down:
        raise FileFaultError(
            lower.line, f"tier {lower.number}: Oversubscribed {said:g}, and its links say {down / up:g}"
        )
