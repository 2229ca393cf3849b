"""opticcl compare"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from opticcl.cli._clock import ClockOption, parse_clock
from opticcl.cli._memory import keep_freed_memory
from opticcl.cli._options import (
    DEFAULT_SET,
    LARGE,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    EngineOption,
    EqualOption,
    FabricsOption,
    IgnoreLightOption,
    JobsOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    OpticsOption,
    RootOption,
    WorkloadsOption,
    equal_machines,
    make_assumptions,
    make_fabrics,
)
from opticcl.cli._output import (
    PAGE,
    PICTURE,
    RECORD,
    TABLE,
    Outputs,
    ProgressLine,
    out_option,
    print_json,
    print_table,
)
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.traces.division import Division


def run(
    context: click.Context,
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    equal: EqualOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: Annotated[
        str,
        option(
            "--algorithm",
            "-a",
            help="An algorithm for every fabric; auto: the fastest of each fabric; main: the fastest and that of the "
            "fabric's paper; all: every algorithm that a fabric supports.",
        ),
    ] = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: Annotated[
        list[str],
        option(
            "--size", "-s", help="Size of the whole message, such as 100MB. Repeat for several messages in sequence."
        ),
    ] = [],  # noqa: B006
    workload: WorkloadsOption = [],  # noqa: B006
    clock: ClockOption = None,
    engine: EngineOption = "closed_form",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    sensitivity: Annotated[
        bool, option("--sensitivity", help="Halve and double every assumption; list the swaps of rank.")
    ] = False,
    root: RootOption = 0,
    out: Annotated[list[Path], out_option(PAGE, PICTURE, TABLE, RECORD)] = [],  # noqa: B006
    jobs: JobsOption = None,
    json: JsonOption = False,
) -> None:
    """Compare fabrics, fastest first, every plan verified. Exit code 1 if a plan is wrong or not judged."""
    from opticcl.collective import Request, collective_name
    from opticcl.plans.compare import compare_plans
    from opticcl.plans.light import light_rule
    from opticcl.processes import number_of_jobs
    from opticcl.report import breakdown_figure, breakdown_label, comparison_table, write_page
    from opticcl.report.beside import sensitivity_table
    from opticcl.units import message_size

    outputs = Outputs(out, PAGE, PICTURE, TABLE, RECORD)
    number_of_jobs(jobs)
    assumed = make_assumptions(assumptions, assume)
    given = context.get_parameter_source("collective")
    wanted = collective_name(collective) if not workload or (given and given.name == "COMMANDLINE") else None
    division = _division(size, workload, wanted, nodes, clock)
    name = division.chosen.collective if division else collective_name(collective)
    sizes = list(division.sizes) if division else [message_size(one, "--size") for one in (size or ["100MB"])]
    at_scale = division.chosen.group_size or nodes if division else nodes
    if at_scale is None and not fabric:
        raise ParameterError("compare: the number of nodes is missing; give --nodes N, or fabrics with their shapes")
    built, excluded, remarks = equal_machines(*make_fabrics(fabric, at_scale, None), equal, node_rate)
    processes = number_of_jobs(jobs, large=max(one.num_nodes for _, one in built) >= LARGE)
    notes: tuple[str, ...] = tuple(remarks)
    if division:
        num_nodes = {one.num_nodes for _, one in built}
        first = [division.first_line(n) for n in sorted(num_nodes)]
        notes = (*first, *division.notes(), *division.workload.notes, *remarks)
    keep_freed_memory()
    with ProgressLine() as progress:
        found = compare_plans(
            [one for _, one in built],
            Request(name, root),
            sizes,
            algorithm=algorithm,
            assumptions=assumed,
            engine=engine,
            explain=True,
            vary=sensitivity,
            rule=light_rule([one for _, one in built], optics, ignore_light),
            jobs=processes,
            progress=progress,
        )
        found = replace(found, excluded=tuple(excluded), notes=notes, division=division)
        title = f"{found.collective} on {at_scale} nodes" if at_scale else found.collective
        outputs.write(PAGE, lambda path: write_page(path, found, title=title, progress=progress))
        outputs.write_pictures(lambda: breakdown_figure(found), breakdown_label(found))
        outputs.write_record(found.record, found.rows)
    if json:
        print_json(found.record())
    else:
        swaps = [sensitivity_table(found)] if sensitivity else []
        print_table(*found.notes, comparison_table(found), *map(str, found.left_out), *swaps)
        outputs.print_lines()
    raise click.exceptions.Exit(0 if found.ok else 1)


def _division(
    size: list[str], workload: list[str], collective: str | None, nodes: int | None, clock: str | None
) -> Division | None:
    """The calls of `--workload` that are compared and those that are left out; None without a workload.

    Args:
        size: values of `--size`.
        workload: values of `--workload`.
        collective: whose calls are taken; None: those with the most bytes.
        nodes: value of `--nodes`: the number of ranks of the job.
        clock: value of `--clock`.
    Raises: ParameterError: options that contradict each other, or no such call; WorkloadError: the trace cannot be read, or
        contradicts the number of ranks.
    """
    if not workload:
        if clock is not None:
            raise ParameterError("--clock: only a trace that counts cycles needs a clock; give --workload too")
        return None
    if size:
        raise ParameterError("compare: both --size and --workload are given; give one of them")
    from opticcl.traces import load_workload
    from opticcl.traces.division import divide

    clock_hz = None if clock is None else parse_clock(clock)
    return divide(load_workload(workload, num_ranks=nodes or 0, clock_hz=clock_hz), collective)
