"""Tables of docs/beyond.md; `python -m tests.beyond` writes the page."""

from pathlib import Path

from opticcl.studies import run_study
from opticcl.units import format_bytes, format_seconds

PAGE = Path(__file__).parents[1] / "docs/beyond.md"

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
verified. This page is written by `python -m tests.beyond`, and a test compares the two. For one table:

```sh
opticcl study beyond:system=lightpath,nodes=64,collective=all_to_all
```

What is new beside the papers, with its source in the first lines of its file:

| algorithm | idea | prior art |
|---|---|---|
| `all_dimensions` | SiPCO's walks on any grid, so that LIGHTPATH's circuits stand | all-port hypercubes |
| `de_bruijn` | every node reaches every other in two steps, no reconfiguration; also sums | de Bruijn and Kautz networks |
| `disjoint_trees` | broadcast on as many spanning trees as a node has links, in pieces | Johnsson and Ho 1989 |
| `circulant_rings` | rings of several strides share a TeraRack, short ones in one step | circulant graphs, Träff 2023 |
| `rails` | short rings first, then trees and rings on rails, all on one fibre at once | BlueConnect, Cho et al. 2019 |
| `standing_tree` | WRHT's tree without a change of circuits between its levels | WRHT |
| `hub_chains` | pipelined broadcast along chains between hubs | pipelined chains |
| `spaced_hubs` | the same with hubs so spaced that all nodes are equally deep | virtual paths on lines, Gerstel et al. 1996 |
| `two_sided_ring:pieces` | both directions, each chunk cut over all wavelengths | bidirectional rings |
| `torus_all_ports` | the same along all dimensions | Jain and Sabharwal 2010 |
| `loop_back_rings` | on `sipac:channels=ring` the group that led back to its sender carries data too | bucket algorithms |
| `breadth_first` | sides that differ, at the bounds of ports and diameter | Zhao et al. 2025 |
| `skewed_exchange` | RAMP's nodes meet all others in one or two steps, all transceivers at work | Sirius, RotorNet |
| `skewed_exchange:classes` | the second step meets one node of each other class of places, on all transceivers | the same |
| `skewed_exchange:parts` | whole slots of a block go directly, the rest of it in two steps | the same |
| `rotated_rings` | one way along all dimensions, circuits set once | Sack and Gropp 2015 |
| `relayed_exchange` | relays over links set once: a twisted grid, or two strides | double loops |
| `rotated_exchange` | all-to-all along all dimensions, each side in levels | Bruck et al. 1997, Sack and Gropp 2015 |
| `twisted_grid` | every line a ring in an order of its own: an expander on circuits set once | random regular graphs |
| `torus_trees` | broadcast on as many trees as a torus has ways to go, along rings that stand | Edmonds 1973 |

An all_to_all by `skewed_exchange:classes=q` takes 2 alpha, ceil(q M / 950 N) N / q x and (q - 1) ceil(M / 950 q x) slots,
where the slots of a step follow each other (`rounds=in_line`). On 65,536 nodes that is 31.52 us for 25 MB with two classes
instead of 35.76, and 20.48 for 15 MB with four instead of 22.64; it is the fastest in most of 12 to 31 MB, and with eight
classes around 7 MB.

A block that goes directly takes ceil(M / 950 N) N / x slots. Where its last slot is nearly empty, a search cuts it into P
parts, as `skewed_exchange:parts=P,direct=d`: d of them, floor(M / 950 N) whole slots at most, go directly in the step in which
the others take A, and these take B behind it. Slots are at most 0.2 % more than those of a cut at any byte, where P up to 256
allows that. On 65,536 nodes: 45 us for 63 MB instead of 83.32 (cut at any byte: 44.92), 214.3 for 316 MB instead of 247.2
(213.9), 664.6 for 1 GB instead of 697.7 (663.3).

With barriers behind its steps, a broadcast in k pieces on a RAMP waits k + 1 times. Without them, `plan --streamed` forwards a
piece a slot, 2 alpha and ceil(M / 950 x) + 1 slots in all. On 65,536 nodes, published times, rounds in line, no sums:

| size | with barriers | slot by slot | bound |
|---|---|---|---|
| 100 KB | 2.96 us | 2.9 us | 1.466 us |
| 1 MB | 4.12 us | 3.48 us | 2.058 us |
| 10 MB | 14.1 us | 9.4 us | 7.979 us |
| 100 MB | 86.76 us | 68.64 us | 67.19 us |

What was computed and is not built, beside plans of today:

- RAMP, the rest of a block that is cut over C and D in place of A and B: at most 12 % less, at 92 MB on 65,536 nodes, and 0.5 %
  or more at a sixth of the sizes above 63 MB. Light of the first step then has half the symmetry: three times the rows.
- A torus whose nodes forward packets needs no all_to_all of its own: `mesh` is within 1.01 of its bound from 10 MB on.

"""


def page() -> str:
    """The text of docs/beyond.md."""
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


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
