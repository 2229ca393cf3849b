"""What other algorithms reach on the hardware of the papers, beside the papers' own."""

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
    return HEAD + "\n".join("\n".join(table(*study)) for study in STUDIES)


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
