"""opticcl execute"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click

from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    CollectiveOption,
    FabricOrFileOption,
    FileArgument,
    IgnoreLightOption,
    JobOption,
    JsonOption,
    NodesOption,
    OpticsOption,
    RootOption,
    SeedOption,
    SizeOption,
    make_plan,
    refuse_beside_file,
)
from opticcl.cli._output import ARRAYS, RECORD, Outputs, ProgressLine, out_option, print_json
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError


class DataTransport(StrEnum):
    """What carries data between ranks."""

    memory = "memory"
    light = "light"


def run(
    context: click.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    message: SizeOption = "1MB",
    root: RootOption = 0,
    job: JobOption = None,
    dtype: Annotated[str, option("--dtype", help="Type of the random data: int64, float32, ...")] = "int64",
    seed: SeedOption = 0,
    data: Annotated[
        Path | None, option("--input", help="A .npy file with one row for each rank, instead of random data.")
    ] = None,
    transport: Annotated[
        DataTransport,
        option(
            "--transport", help="memory: arrays of this process; light: through the optical elements of the machine."
        ),
    ] = DataTransport.memory,
    set_device: Annotated[
        list[str],
        option(
            "--set-device",
            metavar="GROUP:DEVICE=STATE",
            help="With --transport light: a device that is set in another way than the plan needs, such as tx_gate:17=0; "
            "opticcl netlist shows groups and states. Repeat for several.",
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    out: Annotated[list[Path], out_option(ARRAYS, RECORD)] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """Execute a plan on real data and compare with NumPy. Exit code 1 if they differ, or light does not arrive.

    A plan file runs on a message of any size, so it may be combined with --size. A message is rounded up until every chunk
    holds an element.
    """
    from opticcl.execute import execute, reference
    from opticcl.plans.plan import load
    from opticcl.report.execution import ExecutionReport
    from opticcl.units import message_size

    refuse_beside_file("execute", context, file, fabric)
    outputs = Outputs(out, ARRAYS, RECORD, read=file)
    if set_device and transport is not DataTransport.light:
        raise ParameterError("execute: --set-device changes optical elements; give --transport light too")
    made_from = (str(fabric), nodes, None, collective, algorithm, message, root, job, DEFAULT_SET, optics, ignore_light)
    plan = load(file) if file is not None else make_plan(*made_from)
    wanted = plan.schedule.collective
    asked_bytes = 0 if wanted.name == "barrier" else message_size(message)
    with ProgressLine() as progress:
        if data is None:
            arrays = reference.random_arrays(wanted, asked_bytes, dtype, seed, progress)
        else:
            arrays = reference.load_arrays(data)
        light = None
        if transport is DataTransport.light:
            from opticcl.execute.light import execute_by_light

            results, light = execute_by_light(plan.circuits, arrays, changes=set_device, progress=progress)
        else:
            results = execute(plan.schedule, arrays, progress=progress)
        expected = reference.expected_results(wanted, arrays, progress)
        wrong = reference.wrong_ranks(results, expected, arrays, progress)
    holders = [result for result in results if result is not None]
    report = ExecutionReport(
        plan=plan,
        num_results=len(holders),
        wrong_ranks=tuple(wrong),
        dtype=str(holders[0].dtype),
        shape=holders[0].shape,
        size_bytes=reference.message_bytes(wanted, arrays),
        asked_bytes=asked_bytes if data is None else None,
        light=light,
    )
    outputs.write(ARRAYS, lambda path: reference.save_arrays(path, results))
    outputs.write_record(report.record)
    if json:
        print_json(report.record())
    else:
        print("\n".join(report.lines()))
        outputs.print_lines()
    raise click.exceptions.Exit(0 if report.ok else 1)
