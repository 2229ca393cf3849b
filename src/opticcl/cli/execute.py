"""opticcl execute"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    CollectiveOption,
    FabricOrFileOption,
    FileArgument,
    JobOption,
    JsonOption,
    NodesOption,
    RootOption,
    SeedOption,
    SizeOption,
    make_plan,
    refuse_beside_file,
)
from opticcl.cli._output import print_json


def run(
    context: typer.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "1MB",
    root: RootOption = 0,
    job: JobOption = None,
    dtype: Annotated[str, typer.Option(help="Type of the random data: int64, float32, ...")] = "int64",
    seed: SeedOption = 0,
    data: Annotated[
        Path | None, typer.Option("--input", help="A .npy file with one row a rank, instead of random data.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--output", help="Write the ranks' results to this .npy file.")] = None,
    json: JsonOption = False,
) -> None:
    """Run a plan on real data and compare every rank with what NumPy makes of it. Exit code 1 if they differ."""
    from opticcl.cli._arrays import expected_results, load_arrays, matches, random_arrays, save_arrays
    from opticcl.plan import load

    refuse_beside_file("execute", context, file, fabric)
    made_from = (str(fabric), nodes, None, collective, algorithm, size, root, job)
    plan = load(file) if file is not None else make_plan(*made_from)
    wanted = plan.schedule.collective
    arrays = load_arrays(data) if data else random_arrays(wanted, plan.size_bytes, dtype, seed)
    results = plan.execute(arrays)
    expected = expected_results(wanted, arrays)
    wrong = [rank for rank, result in enumerate(results) if not matches(result, expected[rank], len(arrays))]
    if out:
        save_arrays(out, results)
    holder = next(result for result in results if result is not None)
    if json:
        shape = list(holder.shape)
        print_json(
            {"ok": not wrong, "ranks": len(results), "wrong_ranks": wrong, "dtype": str(holder.dtype), "shape": shape}
        )
    elif wrong:
        print(f"{plan}\nwrong: {len(wrong)} of {len(results)} ranks differ from NumPy, rank {wrong[0]} first")
    else:
        exactly = "exactly" if holder.dtype.kind in "biu" else "up to rounding"
        holders = sum(result is not None for result in results)
        who = (
            f"all {holders} ranks hold"
            if holders == len(results)
            else f"{holders} of {len(results)} ranks is due a result and holds"
        )
        print(f"{plan}\n{who} what NumPy makes of it, {holder.size:,} x {holder.dtype}, {exactly}")
    raise typer.Exit(1 if wrong else 0)
