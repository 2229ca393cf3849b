"""opticcl faults"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opticcl.cli._output import PICTURE, RECORD, TABLE, output_width, print_json
from opticcl.cli._replay import split_assumed
from opticcl.cli._request import FabricRequest, make_assumptions, option, out_option
from opticcl.errors import ParameterError
from opticcl.files import as_written
from opticcl.report.kit.result import Result

if TYPE_CHECKING:
    from opticcl.ir import Condition, Fabric
    from opticcl.operations.faults.answers import Healthy
    from opticcl.report.fault_replay import ReplayReport
    from opticcl.report.faults import FaultsReport

KEPT_AFTER_S = 10.0
"""Files are as old as that at most while a sweep goes on [s]."""

SPARES = 16
"""Spare servers unless an option says otherwise [count]."""

SEARCHED_ONCE = """plans as built are from one search on the machine as built, timed around each failure;
--fail PART searches all algorithms""".replace("\n", " ")

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")


@dataclass(frozen=True, kw_only=True)
class FaultsRequest(FabricRequest):
    """What `opticcl faults` is asked: values of its options."""

    OPTIONS = """fabric nodes * seed collective algorithm optics ignore_light root size assumptions assume
        out notes json"""

    fail: tuple[str, ...] = option(
        "--fail", default=(), help="Parts that fail together, such as switch:3+comb_laser:5. Repeat for further rows."
    )
    sweep: bool = option("--sweep", default=False, help="Every part, one of each class of equal parts.")
    pairs: int | None = option("--pairs", default=None, help="That many pairs of parts, chosen at random.")
    replay: Path | None = option(
        "--replay", metavar="FILE", default=None, help="Fault events of servers (.json) to replay on a job with spares."
    )
    servers: int | None = option(
        "--ranks", default=None, help="Servers of the job of --replay; default: all nodes but the spares."
    )
    spares: int | None = option(
        "--spares", default=None, help="Spare servers of --replay; default: 16, or an eighth of fewer nodes."
    )
    streamed: bool = option(
        "--streamed",
        default=False,
        help="Pieces are forwarded while further ones arrive; all times are those of the device engine.",
    )
    recover: tuple[str, ...] = option(
        "--recover",
        default=(),
        help="A value of the recovery: detect or restart (seconds), communication (share of a step). Repeat for several.",
    )
    out: tuple[Path, ...] = out_option(PICTURE, TABLE, RECORD)


def run(request: FaultsRequest) -> Result:
    """Compute what a collective costs when parts fail, beside a restart. Exit code 1 if a part has no plan."""
    from opticcl.collective import collective_name

    name = collective_name(request.collective)
    if name not in COLLECTIVES:
        raise ParameterError(f"faults: collective={request.collective}; it does {', '.join(COLLECTIVES)}")
    if request.replay is not None:
        return _replay(request, request.replay, name)
    if request.servers is not None or request.spares is not None:
        raise ParameterError("faults: --ranks and --spares belong to a replay; give --replay trace.json too")
    if not request.fail and not request.sweep and request.pairs is None:
        raise ParameterError(
            "faults: nothing fails; give --fail comb_laser:5, --sweep, --pairs 100 or --replay trace.json"
        )
    if request.pairs is not None and not 0 < request.pairs <= 1_000_000:
        raise ParameterError(f"--pairs: {request.pairs} is not 1 to 1,000,000; try 100")
    return _report(request, name)


def _replay(request: FaultsRequest, path: Path, name: str) -> ReplayReport:
    """Replay a trace of faults.

    Args:
        request: of the call.
        path: of the trace.
        name: of the collective.
    """
    if request.fail or request.sweep or request.pairs is not None or request.root or request.streamed:
        raise ParameterError(
            "faults: --replay has faults of its own; leave out --fail, --sweep, --pairs, --root and --streamed"
        )
    from opticcl.operations.fault_replay.fault_trace import read_fault_trace
    from opticcl.operations.fault_replay.replay import ReplaySetup, replay
    from opticcl.report.fault_replay import ReplayReport
    from opticcl.units import message_size

    times, others = split_assumed(request.recover, request.assume)
    assumed = make_assumptions(request.assumptions, others)
    machine, ranks, spares = request.machine(), request.servers, request.spares
    nodes = machine.num_nodes
    if spares is None:
        spares = min(SPARES, nodes // 8) if ranks is None else min(SPARES, max(0, nodes - ranks))
    ranks = nodes - spares if ranks is None else ranks
    message_size(request.size)
    trace = read_fault_trace(path)
    setup = ReplaySetup(
        machine, trace, ranks, spares, name, request.size, request.algorithm, assumed, times, request.seed
    )
    return ReplayReport(setup, replay(setup, progress=request.progress))


def _report(request: FaultsRequest, name: str) -> FaultsReport:
    """Answers for the parts that the options name.

    Args:
        request: of the call.
        name: of the collective.
    """
    from opticcl.collective import Request
    from opticcl.operations.faults.answers import Healthy
    from opticcl.registry import is_of_library
    from opticcl.units import message_size

    machine = request.machine()
    if len(machine.inventory()) < 2:
        define = (
            "" if is_of_library(system := type(machine.machine)) else f"{system.__name__} does not define `inventory`; "
        )
        raise ParameterError(
            f"faults: the parts of {machine.name} are unknown; {define}try ramp, sipac, terarack, oddl or lightpath"
        )
    given = [_conditions(text, machine) for text in request.fail]
    assumed = request.assumed()
    wanted, size_bytes = Request(name, request.root), message_size(request.size)
    recovery = _recovery(request.recover)
    healthy = Healthy(
        machine, wanted, size_bytes, request.algorithm, assumed, recovery, request.streamed, request.rule([machine])
    )
    return _answered(request, healthy, [_Failure(parts, 1, search=True) for parts in given])


def _conditions(text: str, machine: Fabric) -> tuple[Condition, ...]:
    """Parts of one `--fail`, refused before any work if the machine does not have them.

    Raises: FabricError: no such parts, they have failed already, or no node is left.
    """
    from opticcl.ir.occupied import parse_conditions

    conditions = parse_conditions(text, machine.inventory(), "--fail")
    machine.without(conditions)
    return conditions


def _recovery(given: Sequence[str]) -> dict[str, float]:
    """Times and share of the recovery, some of them replaced.

    Raises: ParameterError: an unknown name, or no such number.
    """
    from opticcl.operations.faults.answers import recovery_parameters
    from opticcl.units import quantity

    recovery = recovery_parameters()
    for item in given:
        name, equals, text = (part.strip() for part in item.partition("="))
        if name not in recovery or not equals:
            raise ParameterError(
                f"--recover: {item!r} is not one of {', '.join(recovery)} with a value; try restart=600s"
            )
        value = quantity(text, "" if name == "communication" else "s", f"--recover {name}")
        if value < 0 or (name == "communication" and value > 1):
            raise ParameterError(f"--recover: {item} is not in its range; times are 0 or more, the share 0 to 1")
        recovery[name] = value
    return recovery


class _Failure(NamedTuple):
    """Parts that fail together, parts for which the answer holds, and whether all algorithms are searched."""

    parts: tuple[Condition, ...]
    equal_parts: int
    search: bool = False


def _answered(request: FaultsRequest, healthy: Healthy, given: list[_Failure]) -> FaultsReport:
    """All answers; each is printed as it comes, and the files keep those so far.

    Args:
        request: of the call.
        healthy: the collective where nothing has failed.
        given: parts of each `--fail`.
    Raises: InterruptedStudyError: by the user, after the first row.
    """
    from textwrap import wrap

    from opticcl.errors import InterruptedStudyError
    from opticcl.operations.faults.answers import FULL_SEARCH, answer
    from opticcl.operations.faults.sweep import classes_to_try, limits_of, pairs_of_parts
    from opticcl.report.faults import FaultsReport, fault_cells, fault_columns
    from opticcl.report.kit.columns import RowByRow

    report = FaultsReport(healthy, [], limits_of(healthy.fabric) if request.sweep else [])
    kept_at = time.monotonic()
    progress = request.progress
    progress("find equal parts")
    failures = list(given)
    if request.sweep:
        failures += [_Failure((each.condition,), each.equal_parts) for each in classes_to_try(healthy)]
    failures += [_Failure(both, 1) for both in pairs_of_parts(healthy.fabric, request.pairs or 0, request.seed)]
    labels = ["+".join(map(str, failure.parts)) for failure in failures]
    table = RowByRow(fault_columns(labels, healthy.other.name), output_width())
    try:
        for number, failure in enumerate(failures):
            progress("answer failures", number, len(failures))
            row = answer(healthy, failure.parts, failure.equal_parts, search=failure.search)
            report = replace(report, rows=[*report.rows, row], to_try=len(failures))
            if not request.json:
                progress.close()
                print(
                    *([] if number else [*wrap(report.opening(), output_width()), table.heading()]),
                    table.row(fault_cells(row)),
                    sep="\n",
                    flush=True,
                )
            if time.monotonic() - kept_at > KEPT_AFTER_S:
                _keep(request, report)
                kept_at = time.monotonic()
    except (KeyboardInterrupt, MemoryError) as stopped:
        if not report.rows:
            raise
        kept = _keep(request, report)
        if request.json:
            print_json(report.record())
        elif isinstance(stopped, KeyboardInterrupt):
            print(*report.lines(), *report.notes, sep="\n")
        if isinstance(stopped, MemoryError):
            raise
        rows = f"{len(report.rows):,} of {len(failures):,} rows were made"
        raise InterruptedStudyError(
            f"interrupted; {rows}" + (f" and are kept in {', '.join(kept)}" if kept else "")
        ) from None
    if any(row.plan_from not in ("", FULL_SEARCH) for row in report.rows[len(given) :]):
        report = replace(report, notes=[*report.notes, SEARCHED_ONCE])
    return replace(report, dropped=table.dropped())


def _keep(request: FaultsRequest, report: FaultsReport) -> list[str]:
    """Write the rows so far to the files of records and rows, in place of what they had; returns their names."""
    outputs = request.outputs
    with as_written():
        outputs.write_result(report, request.progress, RECORD, TABLE)
    outputs.lines.clear()
    return [str(path) for kind in (RECORD, TABLE) for path in outputs.of(kind)]
