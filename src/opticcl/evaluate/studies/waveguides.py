"""Circuits that find no waveguide on the fullest edge, against the waveguides that there are."""

from __future__ import annotations

from opticcl.errors import ParameterError
from opticcl.evaluate.studies import Chart, Progress, Study, register_study
from opticcl.evaluate.studies._lumorph import check_power_of_two
from opticcl.evaluate.studies.overlap import overlap
from opticcl.fabric.lightpath import Numbering

__all__ = ["waveguides"]

MOST_WAVEGUIDES = 1000


@register_study("waveguides")
def waveguides(
    progress: Progress,
    *,
    nodes: int = 256,
    most: int = 40,
    numbering: Numbering = "squares",
    draws: int = 10,
    seed: int = 0,
) -> Study:
    """How many waveguides end all congestion (figure 5 right)?

    Args:
        nodes: GPUs, a power of two [count].
        most: waveguides are 0 to this [count].
        numbering: which GPU sits on which tile.
        draws: routes by chance that are drawn; their mean is told [count].
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
        f"Circuits without a waveguide on the fullest edge, {nodes} GPUs, {numbering} numbering",
        "LUMORPH figure 5 right",
        rows,
        Chart(
            "waveguides",
            "without_waveguide",
            ("algorithm", "routes"),
            "waveguides on each edge",
            "circuits without a waveguide",
        ),
        ("waveguides that end all congestion: " + ", ".join(ends),),
    )
