"""What other algorithms reach on the hardware of the papers, beside the papers' own."""

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric_at_scale
from opticcl.plans.light import LightRule
from opticcl.plans.search import Search
from opticcl.studies import run_study
from opticcl.units import format_bytes, format_seconds

STUDIES = [
    ("lightpath", 256, "all_reduce"),
    ("lightpath", 256, "all_to_all"),
    ("sipac", 512, "all_reduce"),
    ("sipac", 512, "broadcast"),
    ("terarack", 1024, "all_reduce"),
    ("oddl", 1024, "all_reduce"),
    ("ramp", 1024, "all_reduce"),
    ("ramp", 1024, "all_to_all"),
]

SIZES = tuple(10**k for k in range(3, 11))
NODES = {
    "all_reduce": (16, 64, 256, 1024),
    "all_gather": (16, 64, 256),
    "broadcast": (16, 64, 256),
    "all_to_all": (16, 64, 256, 1024),
}
"""Sizes of the machines of each collective; larger ones take minutes [nodes]."""

LARGE = 4.0
"""Gaps above it have a reason."""

REASONS = {
    ("oddl", "broadcast"): "missing: pieces along a ring of one line, as `torus_trees` sends them on two or more",
}
"""Why gaps of a system and collective are above `LARGE`: a bound that a smaller machine reaches, or a missing schedule."""

HEAD = """# Beyond the papers

The same hardware can do better than the algorithms of its paper. The tables compare, with the assumptions of the papers (set
`published`), the fastest of the paper's own algorithms with the fastest of all, and that with a lower bound. All plans are
verified. For one table:

```sh
opticcl study beyond:system=lightpath,nodes=64,collective=all_to_all
```

"""


def page() -> str:
    """All tables."""
    parts = [worst_gaps(), *(table(*study) for study in STUDIES)]
    return HEAD + "\n".join("\n".join(part) for part in parts)


def worst_gaps() -> list[str]:
    """Lines of the table of the largest time over its bound of each system, and of all that are large, with the reason."""
    systems = list(dict.fromkeys(system for system, _, _ in STUDIES))
    cells = {(system, collective): worst_gap(system, collective) for system in systems for collective in NODES}
    large = {key for key, (gap, *_) in cells.items() if gap > LARGE}
    assert large == set(REASONS), f"reasons are given for {sorted(REASONS)}, due for {sorted(large)}"
    lines = [
        "## Worst gaps\n",
        "Largest time over its bound of the fastest of all algorithms, set `common`, 1 KB to 10 GB, light left out:",
        "all_reduce and all_to_all on 16, 64, 256 and 1,024 nodes, all_gather and broadcast up to 256.\n",
        "| system | worst gap | size | nodes | collective | plan | what binds |",
        "|---|---|---|---|---|---|---|",
    ]
    for system in systems:
        collective = max(NODES, key=lambda name: cells[system, name])
        lines.append(f"| {system} | " + " | ".join(in_words(collective, *cells[system, collective])) + " |")
    columns = "| system | gap | size | nodes | collective | plan | what binds | why |"
    lines += [f"\nAbove {LARGE:g}:\n", columns, "|---" * 8 + "|"]
    for key in sorted(large):
        lines.append(f"| {key[0]} | " + " | ".join([*in_words(key[1], *cells[key]), REASONS[key]]) + " |")
    return [*lines, ""]


def in_words(collective: str, gap: float, nodes: int, size: int, plan: str, binds: str) -> list[str]:
    """Cells of a row."""
    return [f"{gap:.3g}", format_bytes(size), f"{nodes:,}", collective, f"`{plan}`", binds]


def worst_gap(system: str, collective: str) -> tuple[float, int, int, str, str]:
    """Largest gap, with nodes, size, plan and what binds."""
    found = []
    for nodes in NODES[collective]:
        where = fabric_at_scale(system, nodes)
        search = Search(where, Request(collective), assumptions("common"), rule=LightRule(ignored=True))
        for size in SIZES:
            fastest = search.fastest([size])
            assert fastest is not None
            times = fastest.profile.timeline(size)
            found.append((round(times.gap, 6), nodes, size, fastest.schedule.name, times.bound_by))
    return max(found)


def table(system: str, nodes: int, collective: str) -> list[str]:
    """Lines of one table."""
    study = run_study(f"beyond:system={system},nodes={nodes},collective={collective}")
    lines = [
        f"## {system}: {collective} on {nodes:,} nodes\n",
        "| size | paper's fastest | time | fastest of all | time | speed-up | bound | time over bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in study.rows:
        cells = [
            format_bytes(row["size_bytes"]),
            f"`{row['paper']}`",
            format_seconds(row["paper_s"]),
            f"`{row['fastest']}`",
            format_seconds(row["fastest_s"]),
            f"{row['speedup']:g}",
            format_seconds(row["bound_s"]),
            f"{row['time_over_bound']:.4g}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]
