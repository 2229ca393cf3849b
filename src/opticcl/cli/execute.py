"""opticcl execute"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    CollectiveOption,
    FabricOption,
    JsonOption,
    NodesOption,
    SeedOption,
    SizeOption,
)
from opticcl.cli._output import print_json


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "1MB",
    dtype: Annotated[str, typer.Option(help="Type of the random data: int64, float32, ...")] = "int64",
    seed: SeedOption = 0,
    data: Annotated[
        Path | None, typer.Option("--input", help="A .npy file with one row a rank, instead of random data.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--output", help="Write the ranks' results to this .npy file.")] = None,
    json: JsonOption = False,
) -> None:
    """Run a plan on real data and compare every rank with NumPy's sum. Exit code 1 if they differ."""
    from opticcl.cli._arrays import load_arrays, matches_sum, random_arrays, save_arrays
    from opticcl.cli._options import make_plan

    plan = make_plan(fabric, nodes, None, collective, algorithm, size)
    num_ranks = plan.schedule.collective.num_ranks
    arrays = load_arrays(data) if data else random_arrays(num_ranks, plan.size_bytes, dtype, seed)
    results = plan.execute(arrays)
    wrong = [rank for rank, result in enumerate(results) if not matches_sum(result, arrays)]
    if out:
        save_arrays(out, results)
    if json:
        print_json(
            {
                "ok": not wrong,
                "ranks": num_ranks,
                "wrong_ranks": wrong,
                "dtype": str(results[0].dtype),
                "shape": list(results[0].shape),
            }
        )
    elif wrong:
        print(f"{plan}\nwrong: {len(wrong)} of {num_ranks} ranks differ from the sum, rank {wrong[0]} first")
    else:
        exactly = "exactly" if results[0].dtype.kind in "biu" else "up to rounding"
        print(f"{plan}\nall {num_ranks} ranks hold the sum of {results[0].size:,} x {results[0].dtype}, {exactly}")
    raise typer.Exit(1 if wrong else 0)
