"""Where each algorithm is the fastest, and by how much."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from opticcl.assumptions import assumptions
from opticcl.collective import COLLECTIVES, Request
from opticcl.errors import FabricError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.plans.search import TIE, Search
from opticcl.schedule import ALGORITHMS
from opticcl.units import format_bytes

NODES = (16, 64)
SIZES = (1_000, 1_000_000, 100_000_000)

HEAD = """# Where each algorithm wins

Every algorithm that does a collective on a fabric is a candidate of `--algorithm auto`. Here are the fastest whose light
closes, on all fabrics with their default parameters, on 16 and 64 nodes, with the assumptions of the set `common`, for messages
of 1 KB, 1 MB and 100 MB. The gain is the time of the fastest *other* algorithm over that of the winner: 1.2 is a fifth more
time without it, and = means that another takes as long. No part has failed: `packed_trees` and `uneven_exchange` are for
machines with failed parts.

"""


class Win(NamedTuple):
    """The fastest algorithm of a fabric for one message.

    Args:
        fabric: its name.
        nodes: of the fabric [count].
        collective: its name.
        size: of the message [bytes].
        algorithm: the fastest, without its parameters.
        gain: time of the fastest other algorithm over its own; None where no other does the collective.
    """

    fabric: str
    nodes: int
    collective: str
    size: int
    algorithm: str
    gain: float | None


def wins_of(fabric: str, nodes: int, collective: str) -> Iterator[Win]:
    """The fastest for each size; none where there is no machine of that many nodes.

    Args: fabric, nodes, collective: as of `Win`.
    """
    try:
        machine = fabric_at_scale(fabric, nodes)
    except FabricError:
        return
    candidates = Search(machine, Request(collective), assumptions())
    for size in (0,) if collective == "barrier" else SIZES:
        best = candidates.fastest([size])
        if best is None:
            continue
        name = best.schedule.name
        other = candidates.fastest([size], accepts=lambda one, name=name: one.schedule.name != name)
        gain = None if other is None else other.known([size]).total_s / best.known([size]).total_s
        yield Win(fabric, nodes, collective, size, name, gain)


def wins() -> list[Win]:
    """Of all fabrics, numbers of nodes, collectives and sizes."""
    return [
        win
        for fabric in FABRICS.names()
        for nodes in NODES
        for collective in COLLECTIVES
        for win in wins_of(fabric, nodes, collective)
    ]


def page() -> str:
    """All messages."""
    won = wins()
    return HEAD + "\n".join([*by_algorithm(won), "", *by_fabric(won)])


def by_algorithm(won: list[Win]) -> list[str]:
    """A table of the algorithms, those that win most often first, and those that never do."""
    of_name: dict[str, list[Win]] = defaultdict(list)
    for win in won:
        of_name[win.algorithm].append(win)
    lines = [
        f"The fastest of {len(won):,} messages: how many each algorithm wins, its median gain, and its largest with the"
        " message it is for:\n",
        "| algorithm | wins | median gain | largest | where | fabrics |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted(of_name, key=lambda name: (-len(of_name[name]), name)):
        some = of_name[name]
        gains = [win.gain or 1.0 for win in some]
        most = some[gains.index(max(gains))]
        where = f"{most.fabric}, {most.nodes} nodes, {most.collective}"
        if most.size:
            where += f" of {format_bytes(most.size)}"
        texts = map(gain_text, (median(gains), max(gains)))
        fabrics = ", ".join(dict.fromkeys(win.fabric for win in some))
        lines.append(f"| `{name}` | {len(some)} | {' | '.join(texts)} | {where} | {fabrics} |")
    never = [f"`{name}`" for name in ALGORITHMS.names() if name not in of_name]
    return [*lines, "", f"Never the fastest here: {', '.join(never)}."]


def by_fabric(won: list[Win]) -> Iterator[str]:
    """A table a fabric: the winner and its gain for each collective and size."""
    cells = {win[:4]: win for win in won}
    for fabric in dict.fromkeys(win.fabric for win in won):
        yield from (
            f"## {fabric}\n",
            "| nodes | collective | " + " | ".join(map(format_bytes, SIZES)) + " |",
            "|---" * (2 + len(SIZES)) + "|",
        )
        for nodes in NODES:
            for collective in COLLECTIVES:
                row = [cells.get((fabric, nodes, collective, 0 if collective == "barrier" else size)) for size in SIZES]
                if any(row):
                    text = " | ".join(f"`{win.algorithm}` {gain_text(win.gain)}".rstrip() if win else "" for win in row)
                    yield f"| {nodes} | {collective} | {text} |"
        yield ""


def gain_text(gain: float | None) -> str:
    """A gain in three digits, = where both take as long, or nothing where there is no other."""
    if gain is None:
        return ""
    return "=" if gain <= 1 + TIE else f"{gain:.3g}" if gain >= 1.005 else f"{gain:.6g}"
