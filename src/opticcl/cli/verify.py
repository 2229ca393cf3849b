"""opticcl verify"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import click

from opticcl.cli._graphs import is_graph_file, read_graph
from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    CollectiveOption,
    FabricOrFileOption,
    FileArgument,
    IgnoreLightOption,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    OpticsOption,
    RootOption,
    SampleOption,
    SeedOption,
    SizeOption,
    configuration_of,
    is_given,
    make_plan,
    refuse_beside_file,
)
from opticcl.cli._output import RECORD, Outputs, ProgressLine, out_option, print_json
from opticcl.cli._parameters import option
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError, printable
from opticcl.units import quantity

EMULATE = ("auto", "always", "never")
"""Values of `--emulate`, as `opticcl.verify.verify` takes them."""

if TYPE_CHECKING:
    from opticcl.ir import Fabric, Verdict
    from opticcl.ir.light import Optics
    from opticcl.ir.tables import TableVerdict
    from opticcl.ir.time_verdict import TimeVerdict
    from opticcl.plans.plan import Plan
    from opticcl.verify import Emulate


def run(
    context: click.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    sample: SampleOption = None,
    all_chunks: Annotated[
        bool,
        option("--all-chunks", help="Does nothing: all chunks of a plan are judged. Kept for one version."),
    ] = False,
    exact: Annotated[
        bool,
        option("--exact", help="Does nothing: data of a plan are counted exactly. Kept for one version."),
    ] = False,
    seed: SeedOption = 0,
    budget: Annotated[
        str | None,
        option("--budget", help="Verify the light budget too, with this preset: literal, typical, ..."),
    ] = None,
    change: Annotated[
        list[str],
        option(
            "--set",
            metavar="NAME=VALUE",
            help="With --budget: change a value, such as launch=10dBm. Repeat for several.",
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    emulate: Annotated[
        str,
        option(
            "--emulate",
            help="Follow light through the elements of the machine too, a second judge. auto: up to 20,000 signals; alone it "
            "means always.",
        ),
    ] = "auto",
    isolation: Annotated[
        list[str],
        option(
            "--isolation",
            metavar="NAME=DB",
            help="With --emulate: light leaks in these elements too, by group or kind, as in cross=25dB. Repeat for several.",
        ),
    ] = [],  # noqa: B006
    time: Annotated[
        Path | None,
        option(
            "--time",
            metavar="FILE",
            help="Verify this programme by the laws of time, in place of data and light: .parquet, .json, .csv.",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        option(
            "--start",
            metavar="PLAN",
            help="With --time: a plan file whose last circuits stand at the start, and nothing else.",
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        option(
            "--tables",
            metavar="DIR",
            help="Verify device tables alone, in place of a plan: light and data of the devices that they set; with --budget "
            "power too.",
        ),
    ] = None,
    out: Annotated[list[Path], out_option(RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Verify a plan: data, circuits, light budget; or its times; or device tables. Exit code 1 if it is wrong."""
    if tables is not None:
        _verify_tables(context, tables, budget, change, Outputs(out, RECORD), json)
    refuse_beside_file("verify", context, file, fabric)
    if sample is not None and sample < 1:
        raise ParameterError(f"--sample: {sample} chunks; try 1 or more, or leave --sample out: all")
    outputs = Outputs(out, RECORD, read=file)
    if emulate not in EMULATE:
        raise ParameterError(
            f"--emulate: {emulate!r} is not {', '.join(EMULATE[:-1])} or {EMULATE[-1]}; try --emulate auto"
        )
    if file is not None and is_graph_file(file):
        if time is not None:
            raise ParameterError(f"verify: --time: {file} has no circuits; give a plan file, or -f FABRIC")
        if emulate == "always":
            raise ParameterError(f"verify: --emulate: {file} has no light; give a plan file, or -f FABRIC")
        _verify_graph(file, sample, budget, change, seed, outputs, json)
    if file is not None:
        from opticcl.plans.plan import read

        plan = read(file)
    else:
        plan = make_plan(
            str(fabric), nodes, node_rate, collective, algorithm, size, root, job, DEFAULT_SET, optics, ignore_light
        )
    if time is not None:
        if emulate == "always":
            raise ParameterError("verify: --time verifies times alone; leave --emulate or --time out")
        _verify_times(plan, time, start, outputs, json)
    if start is not None:
        raise ParameterError("verify: --start is for times; give --time FILE too")
    if isolation and emulate != "always":
        raise ParameterError("verify: --isolation is for light that is followed; give --emulate too")
    given = parse_settings(isolation, "cross=25dB", "--isolation")
    leaks = {name: quantity(value, "dB", f"--isolation {name}") for name, value in given.items()}
    values = _values(plan.fabric, budget, change)
    with ProgressLine() as progress:
        verdict = plan.verify(
            num_chunks=sample,
            seed=seed,
            every_chunk=all_chunks,
            exact=exact,
            budget=values,
            emulate=cast("Emulate", emulate),
            isolation_db=leaks or None,
            progress=progress,
        )
    _leave_with(plan, verdict, outputs, json)


def _verify_graph(
    file: Path, sample: int | None, budget: str | None, change: list[str], seed: int, outputs: Outputs, json: bool
) -> NoReturn:
    """Verify a schedule with dependencies: all chunks, in every order of execution; it has no light.

    Args:
        file: that holds the graph.
        sample: value of `--sample`, refused.
        budget: value of `--budget`, refused.
        change: values of `--set`, refused.
        seed: value of `--seed`.
        outputs: values of `--out`.
        json: whether to print JSON.
    """
    from opticcl.verify.dependencies import verify_graph

    for flag, given in (("--sample", sample is not None), ("--budget", budget is not None), ("--set", bool(change))):
        if given:
            raise ParameterError(
                f"verify: {flag}: every chunk of {file} is verified, and it has no light; leave {flag} out"
            )
    graph = read_graph(file)
    with ProgressLine() as progress:
        verdict = verify_graph(graph, seed=seed, progress=progress)
    _leave_with(graph, verdict, outputs, json)


def _verify_times(plan: Plan, file: Path, start: Path | None, outputs: Outputs, json: bool) -> NoReturn:
    """Verify a programme of a plan by the laws of time.

    Args:
        plan: that it times.
        file: of the programme.
        start: value of `--start`.
        outputs: values of `--out`.
        json: whether to print JSON.
    """
    from opticcl.formats.programme_file import read_programme_file
    from opticcl.verify.time import check_programme, rules_of

    with ProgressLine() as progress:
        progress("verify the times")
        programme = read_programme_file(file, plan.circuits)
        standing = None
        if start is not None:
            initial = configuration_of(start)
            initial.require(plan.fabric)
            standing = initial.table
        verdict = check_programme(plan.circuits, programme, rules_of(programme), standing=standing)
    _leave_with(plan, verdict, outputs, json)


def _verify_tables(
    context: click.Context, path: Path, budget: str | None, change: list[str], outputs: Outputs, json: bool
) -> NoReturn:
    """Verify a directory of device tables.

    Args:
        context: of the call; other options are refused.
        path: of the directory.
        budget: value of `--budget`.
        change: values of `--set`.
        outputs: values of `--out`.
        json: whether to print JSON.
    """
    from opticcl.formats.table_files import read_tables
    from opticcl.verify.tables import check_tables

    for name in context.params:
        if name not in ("tables", "budget", "change", "out", "json") and is_given(context, name):
            other = "the plan file" if name == "file" else f"--{name.replace('_', '-')}"
            raise ParameterError(f"verify: --tables judges tables alone; leave {other} out")
    with ProgressLine() as progress:
        found = read_tables(path)
        verdict = check_tables(found, budget=_values(found.fabric, budget, change), progress=progress)
    _leave_with(
        f"{found.collective.name} on {found.fabric.name} with {found.fabric.num_nodes} nodes: {printable(str(path))}/",
        verdict,
        outputs,
        json,
    )


def _leave_with(about: object, verdict: Verdict | TimeVerdict | TableVerdict, outputs: Outputs, json: bool) -> NoReturn:
    """Write and print a verdict, and leave with its exit code.

    Args:
        about: what was verified.
        verdict: on it.
        outputs: values of `--out`.
        json: whether to print JSON.
    """
    outputs.write_record(verdict.record)
    if json:
        print_json(verdict.record())
    else:
        print(about)
        print(verdict)
        outputs.print_lines()
    raise click.exceptions.Exit(0 if verdict.ok else 1)


def _values(fabric: Fabric, preset: str | None, change: list[str]) -> Optics | None:
    """Values of the light budget that the options select; None: no budget."""
    if preset is None:
        if change:
            raise ParameterError("verify: --set is for the light budget; give --budget literal too")
        return None
    from opticcl.optics.values import light_path_of, optics

    return optics(light_path_of(fabric).table, preset, parse_settings(change))
