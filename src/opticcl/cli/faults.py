"""opticcl faults"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    FabricOption,
    JsonOption,
    NodesOption,
    RootOption,
    SeedOption,
    SizeOption,
    make_assumptions,
    make_fabric,
)
from opticcl.cli._output import PICTURE, RECORD, TABLE, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._replay import ReplayJob, print_replay, split_assumed
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.ir import Condition, Fabric
    from opticcl.operations.faults.answers import FaultReport, Healthy

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    fail: Annotated[
        list[str],
        typer.Option(
            "--fail", help="Parts that fail together, such as switch:3+comb_laser:5. Repeat for further rows."
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    sweep: Annotated[bool, typer.Option("--sweep", help="Every part, one of each class of equal parts.")] = False,
    pairs: Annotated[int | None, typer.Option("--pairs", help="That many pairs of parts, chosen at random.")] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="FILE", help="Fault events of servers (.json) to replay on a job with spares."
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", help="Servers of the job of --replay; default: all nodes but the spares.")
    ] = None,
    spares: Annotated[
        int | None,
        typer.Option("--spares", help="Spare servers of --replay; default: 16, or an eighth of fewer nodes."),
    ] = None,
    streamed: Annotated[
        bool,
        typer.Option(
            "--streamed",
            help="Pieces are forwarded while further ones arrive; all times are those of the device engine.",
        ),
    ] = False,
    recover: Annotated[
        list[str],
        typer.Option("--recover", help="A time or share of the recovery, such as restart=600 or communication=0.5."),
    ] = [],  # noqa: B006
    seed: SeedOption = 0,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    root: RootOption = 0,
    size: SizeOption = "100MB",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    out: Annotated[list[Path], out_option(PICTURE, TABLE, RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """What a collective costs where parts have failed, beside a restart. Exit code 1 if a part has no plan."""
    from opticcl.collective import Request, collective_name
    from opticcl.operations.faults.answers import Healthy
    from opticcl.report.faults import FaultsReport, faults_figure, faults_label, faults_table
    from opticcl.units import message_size

    outputs = Outputs(out, PICTURE, TABLE, RECORD)
    name = collective_name(collective)
    if name not in COLLECTIVES:
        raise ParameterError(f"faults: collective={collective}; it does {', '.join(COLLECTIVES)}")
    if replay is not None:
        if fail or sweep or pairs is not None or root or streamed:
            raise ParameterError(
                "faults: --replay has faults of its own; leave out --fail, --sweep, --pairs, --root and --streamed"
            )
        job = ReplayJob(ranks, spares, name, size, algorithm, seed)
        times, others = split_assumed(recover, assume)
        print_replay(
            make_fabric(fabric, nodes, None), replay, job, make_assumptions(assumptions, others), times, outputs, json
        )
        return
    if ranks is not None or spares is not None:
        raise ParameterError("faults: --ranks and --spares belong to a replay; give --replay trace.json too")
    if not fail and not sweep and pairs is None:
        raise ParameterError(
            "faults: nothing fails; give --fail comb_laser:5, --sweep, --pairs 100 or --replay trace.json"
        )
    if pairs is not None and not 0 < pairs <= 1_000_000:
        raise ParameterError(f"--pairs: {pairs} is not 1 to 1,000,000; try 100")
    machine = make_fabric(fabric, nodes, None)
    if len(machine.inventory()) < 2:
        raise ParameterError(
            f"faults: the parts of {machine.name} are unknown; try ramp, sipac, terarack, oddl or lightpath"
        )
    given = [_conditions(text, machine) for text in fail]
    assumed = make_assumptions(assumptions, assume)
    wanted, size_bytes = Request(name, root), message_size(size)
    healthy = Healthy(machine, wanted, size_bytes, algorithm, assumed, _recovery(recover), streamed)
    with ProgressLine() as progress:
        rows = _rows(healthy, given, sweep, pairs, seed, progress)
    report = FaultsReport(healthy, rows)
    outputs.write_pictures(lambda: faults_figure(report), faults_label(report))
    outputs.write_record(report.record, lambda: [{**row.record(), "cut": len(row.cut)} for row in rows])
    if json:
        print_json(report.record())
    else:
        print_table(faults_table(report), *report.lines())
        outputs.print_lines()
    raise typer.Exit(0 if report.ok else 1)


def _conditions(text: str, machine: Fabric) -> tuple[Condition, ...]:
    """Parts of one `--fail`, refused before any work if the machine does not have them.

    Raises: FabricError: no such parts, they have failed already, or no node is left.
    """
    from opticcl.ir.occupied import parse_conditions

    found = parse_conditions(text, machine.inventory(), "--fail")
    machine.without(found)
    return found


def _recovery(given: list[str]) -> dict[str, float]:
    """Times and share of the recovery, some of them replaced.

    Raises: ParameterError: an unknown name, or no such number.
    """
    from opticcl.operations.faults.answers import recovery_parameters
    from opticcl.units import quantity

    found = recovery_parameters()
    for item in given:
        name, equals, text = (part.strip() for part in item.partition("="))
        if name not in found or not equals:
            raise ParameterError(f"--recover: {item!r} is not one of {', '.join(found)} with a value; try restart=600s")
        value = quantity(text, "" if name == "communication" else "s", f"--recover {name}")
        if value < 0 or (name == "communication" and value > 1):
            raise ParameterError(f"--recover: {item} is not in its range; times are 0 or more, the share 0 to 1")
        found[name] = value
    return found


def _rows(
    healthy: Healthy,
    given: list[tuple[Condition, ...]],
    sweep: bool,
    pairs: int | None,
    seed: int,
    progress: ProgressLine,
) -> list[FaultReport]:
    """All answers.

    Args:
        healthy: the collective where nothing has failed.
        given: parts of each `--fail`.
        sweep: whether every part is tried.
        pairs: pairs of parts to try, or None.
        seed: of the pairs.
        progress: called after each answer.
    """
    from opticcl.operations.faults.answers import answer
    from opticcl.operations.faults.sweep import pairs_of_parts
    from opticcl.operations.faults.sweep import sweep as every_part

    rows = [answer(healthy, conditions) for conditions in given]
    if sweep:
        rows += every_part(healthy, progress)
    chosen = [] if pairs is None else pairs_of_parts(healthy.fabric, pairs, seed)
    for number, both in enumerate(chosen):
        progress("answer failures of pairs", number, len(chosen))
        rows.append(answer(healthy, both))
    return rows
