"""Synthesis: rounds, proofs and CPU seconds. Each group of cases runs in one process, with `lasers/waveguides: rounds`.

Needs the extra `synth`. The cases that nobody has closed are `synthesis.open`, a minute each.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterable

from measure import NotRunError, Run, register

from opticcl.synthesis import synthesize

Case = tuple[str, str, int, int, int]
"""Shape, collective, chunks, lasers, waveguides."""

LASERS = (1, 2, 4, 8, 16)
GROUPS: dict[str, tuple[str, list[Case]]] = {
    f"{name}_{shape}": (
        f"{name} on {shape} tiles, 1 and 4 waveguides",
        [(shape, name, 1, lasers, waveguides) for waveguides in (1, 4) for lasers in LASERS],
    )
    for shape in ("2x2", "2x4", "4x4")
    for name in ("all_gather", "all_to_all")
} | {
    "all_reduce_2x4_8": (
        "all_reduce of 8 chunks on 2x4 tiles",
        [("2x4", "all_reduce", 8, lasers, 40) for lasers in (1, 2, 3, 4, 7, 8, 16)],
    ),
    "all_reduce_2x4_1": (
        "all_reduce of 1 chunk on 2x4 tiles, one waveguide",
        [("2x4", "all_reduce", 1, lasers, 1) for lasers in (1, 2, 3, 7)],
    ),
    "all_reduce_4x4_16": (
        "all_reduce of 16 chunks on 4x4 tiles",
        [("4x4", "all_reduce", 16, lasers, 40) for lasers in (*range(1, 11), *range(12, 17))],
    ),
    "all_reduce_4x4_1": (
        "all_reduce of 1 chunk on 4x4 tiles",
        [("4x4", "all_reduce", 1, lasers, 40) for lasers in (1, 2, 3, 7)],
    ),
    "all_reduce_4x8": (
        "all_reduce of 1 and 32 chunks on 4x8 tiles",
        [*(("4x8", "all_reduce", 1, lasers, 40) for lasers in (1, 3, 7)), ("4x8", "all_reduce", 32, 16, 40)],
    ),
    "large": (
        "all_gather on 8x8 tiles, all_to_all on 16x16 tiles",
        [("8x8", "all_gather", 1, 16, 40), ("16x16", "all_to_all", 1, 16, 40)],
    ),
    "solver_small": (
        "all_reduces on 2x3 to 1x7 tiles where nothing constructed is optimal",
        [
            ("2x4", "all_reduce", 2, 1, 1), ("2x4", "all_reduce", 2, 2, 1), ("2x4", "all_reduce", 2, 4, 1),
            ("2x3", "all_reduce", 1, 1, 4), ("1x7", "all_reduce", 1, 2, 4),
        ],
    ),
    "solver_large": (
        "broadcast and all_gather on 4x4, all_reduce of 8 chunks on 2x4, where nothing constructed is optimal",
        [("4x4", "broadcast", 4, 2, 40), ("4x4", "all_gather", 1, 3, 1), ("2x4", "all_reduce", 8, 7, 1)],
    ),
    "open": (
        "cases without a proof, a minute each",
        [
            ("4x4", "all_reduce", 16, 11, 40), ("2x4", "all_reduce", 8, 2, 1), ("2x4", "all_reduce", 8, 3, 1),
            ("2x4", "all_reduce", 2, 3, 1),
        ],
    ),
}  # fmt: skip


def prepared(cases: Iterable[Case]) -> Callable[[], Run]:
    """Solver and kernels loaded by two small cases."""

    def prepare() -> Run:
        if importlib.util.find_spec("ortools") is None:
            raise NotRunError("the extra synth is not installed: pip install 'opticcl[synth]'")
        synthesize("lightpath:shape=2x4,lasers=1,waveguides=1", "all_gather", time_limit=10)
        synthesize("lightpath:shape=2x3,lasers=1,waveguides=4", "all_reduce", time_limit=10)

        def run() -> dict[str, float]:
            figures = {"worst_cpu_s": 0.0, "without_proof": 0.0}
            for shape, name, chunks, lasers, waveguides in cases:
                begun = time.process_time()
                where = f"lightpath:shape={shape},lasers={lasers},waveguides={waveguides}"
                found = synthesize(where, name, chunks=chunks, time_limit=60)
                figures["worst_cpu_s"] = max(figures["worst_cpu_s"], time.process_time() - begun)
                figures["without_proof"] += not found.optimal
                many = len({(one[0], one[1], one[2]) for one in cases}) > 1
                place = f"{shape} {name} {chunks} " if many else ""
                figures[f"{place}{lasers}/{waveguides}:"] = found.num_steps
            return figures

        return run

    return prepare


for _name, (_title, _cases) in GROUPS.items():
    register(f"synthesis.{_name}", _title, prepared(_cases))
