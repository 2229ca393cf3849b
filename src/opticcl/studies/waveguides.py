"""Circuits without a waveguide on the most congested edge, against the number of waveguides."""

from __future__ import annotations

from opticcl.errors import ParameterError
from opticcl.fabrics.lightpath import Numbering
from opticcl.ir import ProgressCallback
from opticcl.studies import Chart, Study, register_study
from opticcl.studies.lumorph import check_power_of_two
from opticcl.studies.overlap import overlap

__all__ = ["waveguides"]

MOST_WAVEGUIDES = 1000


@register_study("waveguides")
def waveguides(
    progress: ProgressCallback,
    *,
    nodes: int = 256,
    most: int = 40,
    numbering: Numbering = "squares",
    draws: int = 10,
    seed: int = 0,
) -> Study:
    """How many waveguides remove all congestion (figure 5 right)?

    Args:
        progress: called with (what, done, total).
        nodes: GPUs, a power of two [count].
        most: numbers of waveguides are 0 to this [count].
        numbering: of the GPUs on the tiles.
        draws: draws of random routes, of which the mean is reported [count].
        seed: of the random numbering and of all draws.
    Source: LUMORPH section 5, figure 5 right: 30.
    """
    if not 1 <= most <= MOST_WAVEGUIDES:
        raise ParameterError(f"waveguides: most={most}; try 1 to {MOST_WAVEGUIDES}")
    check_power_of_two("waveguides: nodes", nodes)
    all_sizes = overlap(progress, largest=nodes, numbering=numbering, draws=draws, seed=seed)
    last = [row for row in all_sizes.rows if row["gpus"] == nodes]
    rows = [
        {
            "waveguides": count,
            "algorithm": row["algorithm"],
            "routes": row["routes"],
            "without_waveguide": max(0.0, row["overlap"] - count),
        }
        for row in last
        for count in range(0, most + 1, max(1, most // 20))
    ]
    ends = (f"{row['algorithm']} {row['routes']} {row['overlap']:.4g}" for row in last)
    return Study(
        f"waveguides:nodes={nodes},most={most},numbering={numbering},draws={draws},seed={seed}",
        f"Circuits without a waveguide on the most congested edge, {nodes} GPUs, {numbering} numbering",
        "LUMORPH figure 5 right",
        rows,
        Chart(
            "waveguides",
            "without_waveguide",
            ("algorithm", "routes"),
            "waveguides on each edge",
            "circuits without a waveguide",
        ),
        ("waveguides that remove all congestion: " + ", ".join(ends),),
    )
