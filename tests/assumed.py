"""The page on assumptions: every value with its source, and what changes when it is doubled.

python -m tests.assumed        writes docs/assumptions.md and the times in the table of docs/systems.md anew
"""

import re
from dataclasses import replace
from math import ceil
from pathlib import Path

from opticcl.assumptions import KEYS, LATENCY_KEYS, SETS, assumptions, meaning_of, set_of, value_text, values
from opticcl.fabrics import fabric_at_scale
from opticcl.plans.compare import compare_plans
from opticcl.plans.plan import compile
from opticcl.units import format_seconds

PAGE = Path(__file__).parents[1] / "docs" / "assumptions.md"
SYSTEMS = ("ramp", "sipac", "lightpath", "oddl", "terarack", "fat_tree", "superpod", "ideal")
ALGORITHMS = {
    "ramp": "ramp", "sipac": "sipco", "lightpath": "lumorph", "oddl": "halving_doubling", "terarack": "wrht",
    "fat_tree": "mesh", "superpod": "mesh", "ideal": "mesh",
}  # fmt: skip
"""Algorithms of the papers, so that a new algorithm does not change the page."""

HEAD = """# Assumptions about time

`python -m tests.assumed` writes this page from `src/opticcl/assumptions.toml`; a test compares it. A verb that computes a time
takes `--assumptions NAME` and single values, `--assume endpoint=2.7us`; in Python `assumptions="common"`, or what
`assumptions("common", endpoint="nic")` of the module `opticcl.assumptions` returns. One set chooses the algorithm and charges
the time.

```sh
opticcl compare --nodes 16 --size 1KB --sensitivity             # what flips ranks: every value halved and doubled
opticcl compare --nodes 16 --size 1MB --equal cost=9000         # nodes of equal price; power=100 (W), rate=800Gb/s
opticcl simulate -f oddl:shape=4x4 -s 1MB --assumptions published --assume initial=warm
opticcl compare --nodes 16 --assume endpoint=gpu_nic
```

Under `common` the latency of a circuit is the same sum for every fabric:

```text
endpoint + message_gap x messages of the round + transceiver x receivers + fibre x metres + waveguide x metres + hop x switches
```

With time slots (RAMP) it is rounded up to whole slots, apart from the messages. Rounds of a step between which nothing is set
follow each other in line, so that they wait for the latency once. Under `published` every fabric has the latency of its paper.
"""

PASSED_HEAD = """## What one message passes

A path of h links has h - 1 places that forward: switches, each of which costs `hop`, NVSwitches, each of which costs
`server_hop`, and nodes that send on what is not for them (`torus`, `bcube`, `topoopt`, `ocs`), each of which costs `hop`. The
node that receives is none of them; its router is part of `endpoint`. Light passes couplers, wavelength-selective switches,
rings, the patch panel of TopoOpt and the switches of `ocs` and LIGHTPATH without a delay other than that of the fibre or
waveguide, so a circuit is one link, however many of them it passes. Every link outside servers has a receiver. (Latencies that
papers print, `published`, count otherwise: that of a link of a torus or TopoOpt includes the router or node at its end.)

A message is all that a node sends to another in a step with one operation, however many ranges of chunks that is. It costs its
sender one `message_gap`, in the round of its first range.

What one message of 100 bytes passes in a `send_recv` among two nodes, which are the whole machine or two of its nodes
(`opticcl simulate -f torus:shape=8x8 --job 0,36 -c send_recv -a send_recv -s 100B`). The latency is the sum of that with one
`message_gap`; on RAMP the sum is rounded up to whole slots of 20 ns.

"""

PASSED = """\
bcube:radix=2,levels=1 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
bcube:radix=8,levels=2 | 0, 63 | 4 | 2 | 0 | 1 | 4 | 8 | 0
dragonfly:nodes=64,nodes_per_router=2,routers_per_group=4,global_links=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
dragonfly:nodes=64,nodes_per_router=2,routers_per_group=4,global_links=2 | 0, 63 | 5 | 4 | 0 | 0 | 5 | 10 | 0
fat_tree:nodes=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
fat_tree:nodes=64 | 0, 63 | 4 | 3 | 0 | 0 | 4 | 8 | 0
ideal:nodes=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
ideal:nodes=64 | 0, 63 | 2 | 1 | 0 | 0 | 2 | 4 | 0
leaf_spine:nodes=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
leaf_spine:nodes=64 | 0, 63 | 4 | 3 | 0 | 0 | 4 | 8 | 0
lightpath:shape=1x2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 0 | 0.03
lightpath:shape=8x8 | 0, 63 | 1 | 0 | 0 | 0 | 1 | 1 | 0.42
ocs:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
ocs:nodes=64 | 0, 63 | 1 | 0 | 0 | 0 | 1 | 4 | 0
oddl:shape=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
oddl:shape=8x8 | 0, 56 | 1 | 0 | 0 | 0 | 1 | 4 | 0
ramp:groups=2,racks=1,wavelengths=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
ramp:groups=8,racks=1,wavelengths=8 | 0, 63 | 1 | 0 | 0 | 0 | 1 | 4 | 0
sip_ring:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 1 | 0
sip_ring:nodes=64 | 0, 32 | 1 | 0 | 0 | 0 | 1 | 32 | 0
sipac:radix=2,levels=1 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
sipac:radix=8,levels=2 | 0, 56 | 1 | 0 | 0 | 0 | 1 | 4 | 0
superpod:nodes=2 | 0, 1 | 2 | 0 | 1 | 0 | 0 | 4 | 0
superpod:nodes=64 | 0, 63 | 4 | 3 | 0 | 0 | 4 | 8 | 0
terarack:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 1 | 0
terarack:nodes=64 | 0, 32 | 1 | 0 | 0 | 0 | 1 | 32 | 0
terarack_torus:shape=1x2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 1 | 0
terarack_torus:shape=8x8 | 0, 4 | 1 | 0 | 0 | 0 | 1 | 4 | 0
topoopt:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
topoopt:nodes=64 | 0, 32 | 32 | 0 | 0 | 31 | 32 | 128 | 0
torus:shape=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 2 | 0
torus:shape=8x8 | 0, 36 | 8 | 0 | 0 | 7 | 8 | 16 | 0
"""
"""By hand: fabric, two nodes, links, switches, NVSwitches, nodes that forward, receivers, metres of fibre and of waveguide.

In one rack a link has 2 m of fibre, 4 m through the centre; a segment of a ring of light has 1 m, a tile 3 cm, the step from
wafer to wafer 1 m.
"""

EQUAL = """## Equal nodes

`--equal rate=800Gb/s`, `cost=9000` (USD a node) or `power=100` (W a node) scales the transmitters of every fabric until the
geometric mean of the range of its bill (`opticcl machine cost`) meets the budget. Verbs that rank fabrics do so at
`rate=800Gb/s` unless they are given another value or `--as-built`: ours, the rate of a NIC of today. From twice the rate that a
system is built for on, its row says by which factor. `ideal` stands beside the others without a rank, since it cannot be built;
times within 5 % of the best are ties.
"""


def page() -> str:
    """Text of the page."""
    return "\n".join([HEAD, _values(), _passed(), _floor(), _sets(), EQUAL])


PASSED_COLUMNS = (
    "fabric", "nodes", "links", "switches", "NVSwitches", "nodes that forward", "receivers", "fibre [m]", "waveguide [m]",
)  # fmt: skip


def _passed() -> str:
    """What a message passes, counted by hand, and its latency: the sum of that."""
    rows = [f"| {' | '.join(PASSED_COLUMNS)} | latency [ns] |", f"|{'---|' * (len(PASSED_COLUMNS) + 1)}"]
    for line in PASSED.splitlines():
        spec, nodes, *counts = line.split(" | ")
        rows.append(f"| `{spec}` | {nodes} | {' | '.join(counts)} | {latency_ns(spec, *map(float, counts)):.10g} |")
    return PASSED_HEAD + "\n".join([*rows, ""])


def latency_ns(
    spec: str, links: float, switches: float, nvswitches: float, nodes: float, receivers: float, *metres: float
) -> float:
    """Sum of the values of what one message passes, with its gap, by hand [ns].

    Args:
        spec: fabric, of which the slot counts.
        links: of its path [count].
        switches, nvswitches, nodes: that forward it [count].
        receivers: that it passes [count].
        metres: of fibre and of waveguide [m].
    """
    assert switches + nvswitches + nodes == links - 1
    late = 700 + 100 * receivers + 150 * (switches + nodes) + 100 * nvswitches + 4.9 * metres[0] + 14 * metres[1]
    return 5 + (20 * ceil(late / 20) if spec.startswith("ramp") else late)


def _values() -> str:
    rows = ["## Values", "", "| key | `common` | of | source |", "|---|---|---|---|"]
    for one in values():
        named = ", ".join(f"`{name}` {value_text(one.key, value)}" for name, value in one.named.items())
        source = f"{one.source}. Named: {named} ({one.named_source})" if named else one.source
        rows.append(f"| `{one.key}` | {value_text(one.key, one.value)} | {one.about} | {source} |")
    return "\n".join([*rows, "", *_doubled()])


def _doubled() -> list[str]:
    """Time of an all-reduce of 1 KB on 64 nodes by each paper's algorithm, and its growth when a value is doubled."""
    entries = {}
    for name in SYSTEMS:
        made = [fabric_at_scale(name, 64)]
        found = compare_plans(made, "all_reduce", [1000], algorithm=ALGORITHMS[name], vary=True)
        entries[name] = found.entries[0]
    keys = [one.variation.key for one in found.sensitivity or () if one.variation.name.endswith(" x 2")]
    rows = [
        "Doubled, a value adds this to the time of an all_reduce of 1 KB on 64 nodes, by the algorithm of each paper (`mesh`",
        "on electrical networks). `control` and `reconfiguration` are each system's own.",
        "",
        f"| doubled | {' | '.join(SYSTEMS)} |",
        f"|---|{'---|' * len(SYSTEMS)}",
    ]
    rows.append(f"| time | {' | '.join(f'{1e6 * entries[name].total_s:.2f} us' for name in SYSTEMS)} |")
    for key in keys:
        cells = []
        for name in SYSTEMS:
            entry = entries[name]
            cells.append(_growth(entry.under[f"{key} x 2"].total_s / entry.total_s - 1))
        rows.append(f"| `{key}` | {' | '.join(cells)} |")
    return [*rows, ""]


def _growth(share: float) -> str:
    return f"{share:+.1%}" if abs(share) >= 5e-4 else "0"


def _floor_doubled() -> list[str]:
    """Growth of the time of an all-reduce of 1 KB on 256 nodes, four racks, when a distance is doubled."""
    common = assumptions("common")
    rows = [
        "Doubled, a distance adds this to the time of the same all_reduce of 1 KB on 256 nodes, four racks.",
        "",
        f"| doubled | {' | '.join(SYSTEMS)} |",
        f"|---|{'---|' * len(SYSTEMS)}",
    ]
    plans = [compile(fabric_at_scale(name, 256), "all_reduce", 1000, algorithm=ALGORITHMS[name]) for name in SYSTEMS]
    times = [plan.simulate(assumptions=common).total_s for plan in plans]
    for one in values("floor"):
        twice = replace(common, floor=replace(common.floor, **{one.key: 2 * one.value}))
        cells = [_growth(p.simulate(assumptions=twice).total_s / t - 1) for p, t in zip(plans, times, strict=True)]
        rows.append(f"| {one.about} | {' | '.join(cells)} |")
    return [*rows, ""]


def _floor() -> str:
    rows = [
        "## Floor plan",
        "",
        "Racks stand in rows, in snake order, with about as many metres along a row as across the rows. Shared switches and",
        "couplers are at the centre; a switch whose nodes are all in one rack stands there.",
        "",
        "| distance | value | source |",
        "|---|---|---|",
    ]
    rows += [
        f"| {one.about} | {one.value:g} {one.unit} | {one.source} |".replace("  |", " |") for one in values("floor")
    ]
    return "\n".join([*rows, "", *_floor_doubled()])


def _sets() -> str:
    rules = [key for key in KEYS if key not in (*LATENCY_KEYS, "memory_bytes_per_s")]
    sets = {name: set_of(name) for name in SETS}
    rows = ["## Sets", "", f"| rule | {' | '.join(f'`{name}`' for name in SETS)} |", f"|---|{'---|' * len(SETS)}"]
    rows += [f"| `{key}` | {' | '.join(sets[name][key] for name in SETS)} |" for key in rules]
    rows += ["", *(f"- `{name}`: {sets[name]['about']}. Source: {sets[name]['source']}." for name in SETS), ""]
    said = dict.fromkeys((key, value) for key in rules for value in dict.fromkeys(sets[name][key] for name in SETS))
    rows += [f"- `{key}={value}`: {meaning_of(key, value)}" for key, value in said]
    return "\n".join([*rows, ""])


OF_SYSTEMS = Path(__file__).parents[1] / "docs" / "systems.md"
ROW = re.compile(r"^(\| `(\w+)` \|.*\| `(\w+)`[^|]*\|)[^|]*\|$", re.MULTILINE)
"""A row of the table of docs/systems.md: the system, its algorithm, and the times."""


def systems() -> str:
    """The page with times of an all_reduce of 1 MB on 64 nodes: common, and published in parentheses."""

    def row(match: re.Match[str]) -> str:
        made = [fabric_at_scale(match[2], 64)]
        (entry,) = compare_plans(made, "all_reduce", [10**6], algorithm=match[3]).entries
        both = format_seconds(entry.total_s), format_seconds(entry.under["published"].total_s)
        return f"{match[1]} {both[0]} ({both[1]}) |"

    return ROW.sub(row, OF_SYSTEMS.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    OF_SYSTEMS.write_text(systems(), "utf-8")
