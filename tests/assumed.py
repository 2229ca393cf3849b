"""The page on assumptions: every value with its source, and what changes when it is doubled.

python -m tests.assumed        writes docs/assumptions.md and the times in the first table of the README anew
"""

import re
from dataclasses import replace
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

EQUAL = """## Equal nodes

`--equal rate=800Gb/s`, `cost=9000` (USD a node) or `power=100` (W a node) scales the transmitters of every fabric until the
geometric mean of the range of its bill (`opticcl cost`) meets the budget. A rate above the one that a system is built for is
marked as extrapolated; above four times that rate the system is not ranked. `--node-rate X` is `--equal rate=X`.
"""


def page() -> str:
    """Text of the page."""
    return "\n".join([HEAD, _values(), _floor(), _sets(), EQUAL])


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


README = Path(__file__).parents[1] / "README.md"
ROW = re.compile(r"^(\| `(\w+)` \|.*\| `(\w+)`[^|]*\|)[^|]*\|$", re.MULTILINE)
"""A row of the first table of the README: the system, its algorithm, and the times."""


def readme() -> str:
    """The README with times of an all_reduce of 1 MB on 64 nodes: common, and published in parentheses."""

    def row(match: re.Match[str]) -> str:
        made = [fabric_at_scale(match[2], 64)]
        (entry,) = compare_plans(made, "all_reduce", [10**6], algorithm=match[3]).entries
        both = format_seconds(entry.total_s), format_seconds(entry.under["published"].total_s)
        return f"{match[1]} {both[0]} ({both[1]}) |"

    return ROW.sub(row, README.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    README.write_text(readme(), "utf-8")
