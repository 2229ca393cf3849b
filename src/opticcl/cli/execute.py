"""opticcl execute"""

from __future__ import annotations

from dataclasses import replace
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
from opticcl.cli._output import Progress, check_outputs, print_json


def run(
    context: typer.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    message: SizeOption = "1MB",
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
    """Run a plan on real data and compare every rank with what NumPy makes of it. Exit code 1 if they differ.

    A programme runs on a message of any size, so it gets --size too, whatever size it was compiled for. A message is rounded
    up until every chunk holds an element.
    """
    from opticcl.cli import _arrays
    from opticcl.execute import execute
    from opticcl.plan import load
    from opticcl.units import message_size

    refuse_beside_file("execute", context, file, fabric)
    check_outputs({"--output": (out, (".npy",))})
    made_from = (str(fabric), nodes, None, collective, algorithm, message, root, job)
    plan = load(file) if file is not None else make_plan(*made_from)
    wanted = plan.schedule.collective
    asked_bytes = 0 if wanted.name == "barrier" else message_size(message)
    with Progress() as progress:
        arrays = (
            _arrays.load_arrays(data) if data else _arrays.random_arrays(wanted, asked_bytes, dtype, seed, progress)
        )
        results = execute(plan.schedule, arrays, progress=progress)
        expected = _arrays.expected_results(wanted, arrays, progress)
        wrong = _arrays.wrong_ranks(results, expected, arrays, progress)
    if out:
        _arrays.save_arrays(out, results)
    holder = next(result for result in results if result is not None)
    ran_bytes = _arrays.message_bytes(wanted, arrays)
    if json:
        found = {"ok": not wrong, "ranks": len(results), "wrong_ranks": wrong, "dtype": str(holder.dtype)}
        print_json({**found, "shape": list(holder.shape), "size_bytes": ran_bytes})
        raise typer.Exit(1 if wrong else 0)
    print(replace(plan, size_bytes=ran_bytes))
    if data is None and ran_bytes != asked_bytes:
        print(
            f"{asked_bytes:,} bytes asked, {ran_bytes:,} used: whole {holder.dtype} elements in every block and chunk"
        )
    if wrong:
        print(f"wrong: {len(wrong)} of {len(results)} ranks differ from NumPy, rank {wrong[0]} first")
    else:
        exactly = "exactly" if holder.dtype.kind in "biu" else "up to rounding"
        holders = sum(result is not None for result in results)
        who = (
            f"all {holders} ranks hold"
            if holders == len(results)
            else f"{holders} of {len(results)} ranks is due a result and holds"
        )
        print(f"{who} what NumPy makes of it, {holder.size:,} x {holder.dtype}, {exactly}")
    raise typer.Exit(1 if wrong else 0)
