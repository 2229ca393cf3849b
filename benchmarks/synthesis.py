"""Rounds, proofs and CPU seconds of the synthesis, each beside its mark: `python benchmarks/synthesis.py [open]`.

A warm-up comes first, so that what Numba compiles is not counted. Marks are for one quiet core. With `open`, the cases that
are not closed follow, a minute each.
"""

from __future__ import annotations

import sys
import time

from opticcl.synthesis import Synthesis, synthesize

LASERS = (1, 2, 4, 8, 16)

# shape, collective, chunks, lasers, waveguides, mark in CPU seconds
Case = tuple[str, str, int, int, int, float]
CASES: list[Case] = [
    *(
        (shape, name, 1, lasers, waveguides, mark)
        for shape, mark in (("2x2", 10), ("2x4", 10), ("4x4", 60))
        for name in ("all_gather", "all_to_all")
        for waveguides in (1, 4)
        for lasers in LASERS
    ),
    *(("2x4", "all_reduce", 8, lasers, 40, 30) for lasers in (1, 2, 3, 4, 7, 8, 16)),
    *(("2x4", "all_reduce", 1, lasers, 1, 30) for lasers in (1, 2, 3, 7)),
    *(("4x4", "all_reduce", 16, lasers, 40, 60) for lasers in (*range(1, 11), *range(12, 17))),
    *(("4x4", "all_reduce", 1, lasers, 40, 60) for lasers in (1, 3, 7)),
    *(("4x8", "all_reduce", 1, lasers, 40, 60) for lasers in (1, 3, 7)),
    ("4x8", "all_reduce", 32, 16, 40, 60),
    ("8x8", "all_gather", 1, 16, 40, 60),
    ("16x16", "all_to_all", 1, 16, 40, 60),
]
SOLVED: list[Case] = [  # where nothing constructed is optimal
    ("2x4", "all_reduce", 2, 1, 1, 30),
    ("2x4", "all_reduce", 2, 2, 1, 30),
    ("2x4", "all_reduce", 2, 4, 1, 30),
    ("2x3", "all_reduce", 1, 1, 4, 30),
    ("1x7", "all_reduce", 1, 2, 4, 30),
    ("4x4", "broadcast", 4, 2, 40, 60),
    ("4x4", "all_reduce", 1, 2, 40, 60),
    ("4x4", "all_gather", 1, 3, 1, 60),
    ("2x4", "all_reduce", 8, 7, 1, 60),
]
OPEN: list[Case] = [
    ("4x4", "all_reduce", 16, 11, 40, 0),
    ("2x4", "all_reduce", 8, 2, 1, 0),
    ("2x4", "all_reduce", 8, 3, 1, 0),
    ("2x4", "all_reduce", 2, 3, 1, 0),
]


def solved(case: Case, time_limit: float) -> Synthesis:
    """The answer to one case."""
    shape, name, chunks, lasers, waveguides, _ = case
    where = f"lightpath:shape={shape},lasers={lasers},waveguides={waveguides}"
    return synthesize(where, name, chunks=chunks, time_limit=time_limit)


def main(more: list[str]) -> None:
    """Print the table."""
    solved(("2x4", "all_gather", 1, 1, 1, 0), 10)
    solved(("2x3", "all_reduce", 1, 1, 4, 0), 10)
    columns = ("chunks", 7), ("lasers", 8), ("guides", 8), ("rounds", 8), ("bound", 7), ("CPU s", 9), ("mark", 6)
    head = "".join(f"{name:>{width}}" for name, width in columns)
    print(f"{'grid':<7}{'collective':<12}{head}  proof; made by")
    for case in [*CASES, *SOLVED, *(OPEN if "open" in more else [])]:
        begin = time.process_time()
        found = solved(case, 60)
        spent = time.process_time() - begin
        shape, name, chunks, lasers, waveguides, mark = case
        limit = f"{mark:g}" if mark else ""
        said = found.bound.name if found.optimal else f"open ({found.bound.name})"
        print(
            f"{shape:<7}{name:<12}{chunks:>7}{lasers:>8}{waveguides:>8}{found.num_steps:>8}{found.lower_bound:>7}"
            f"{spent:>9.2f}{limit:>6}  {said}; {found.how}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
