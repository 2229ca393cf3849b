"""opticcl verify"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opticcl.cli._graphs import is_graph_file, read_graph
from opticcl.cli._output import RECORD
from opticcl.cli._request import PlanRequest, configuration_of, option, out_option, shared_option
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError, printable
from opticcl.report.kit.result import ComposedResult, Result, Verbatim
from opticcl.units import counted, format_bytes, quantity

if TYPE_CHECKING:
    from opticcl.ir import Fabric, Verdict
    from opticcl.ir.light import Optics
    from opticcl.ir.tables import TableVerdict
    from opticcl.ir.time_verdict import TimeVerdict
    from opticcl.plans.plan import Plan


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(PlanRequest):
    """What `opticcl verify` is asked: values of its options."""

    OPTIONS = """file fabric nodes equal collective algorithm optics ignore_light size root job
        sample all_chunks exact seed * json"""

    sample: int | None = option(
        "--sample",
        default=None,
        help="Follow only this number of chunks, drawn by --seed. The others get no verdict, and the exit code is 1.",
    )
    all_chunks: bool = option(
        "--all-chunks", default=False, help="Does nothing: all chunks of a plan are judged. Kept for one version."
    )
    exact: bool = option(
        "--exact", default=False, help="Does nothing: data of a plan are counted exactly. Kept for one version."
    )
    budget: str | None = option(
        "--budget",
        metavar="<preset>",
        default=None,
        help="Verify the light budget too, which is left out otherwise, with this preset: literal, typical, ...",
    )
    change: tuple[str, ...] = option(
        "--set",
        metavar="NAME=VALUE",
        default=(),
        help="With --budget: change a value, such as launch=10dBm. Repeat for several.",
    )
    emulate: Literal["auto", "always", "never"] = option(
        "--emulate",
        default="auto",
        help="Follow light through the elements of the machine too, as a second judge. auto: if there are at most 20,000 "
        "signals; without a value: always.",
    )
    isolation: tuple[str, ...] = option(
        "--isolation",
        metavar="NAME=DB",
        default=(),
        help="With --emulate: light leaks in these elements too, by group or kind, as in cross=25dB. Repeat for several.",
    )
    time: Path | None = option(
        "--time",
        metavar="FILE",
        default=None,
        help="Verify this programme by the laws of time, in place of data and light: .parquet, .json, .csv.",
    )
    standing: Path | None = shared_option(
        PlanRequest,
        "start",
        default=None,
        help="With --time: a plan file whose last circuits stand at the start, and nothing else.",
    )
    tables: Path | None = option(
        "--tables",
        metavar="DIR",
        default=None,
        help="Verify device tables alone, in place of a plan: light and data of the devices that they set; with --budget "
        "power too.",
    )
    out: tuple[Path, ...] = out_option(RECORD)

    def optics_of_budget(self, fabric: Fabric) -> Optics | None:
        """Values of the light budget that the options select; None: no budget.

        Args: fabric: of the plan.
        Raises: ParameterError, UnknownNameError, UnsupportedError: wrong values, or a fabric without light.
        """
        if self.budget is None:
            if self.change:
                raise ParameterError("verify: --set is for the light budget; give --budget literal too")
            return None
        from opticcl.optics.values import light_path_of, optics

        return optics(light_path_of(fabric).table, self.budget, parse_settings(self.change))


def run(request: VerifyRequest) -> Result:
    """Verify the data and circuits of a plan, its light budget, its times, or device tables. Exit code 1 if one is wrong."""
    if request.tables is not None:
        return _verify_tables(request, request.tables)
    request.refuse_beside_file()
    if request.sample is not None and request.sample < 1:
        raise ParameterError(f"--sample: {request.sample} chunks; try 1 or more, or leave --sample out: all")
    if request.file is not None and is_graph_file(request.file):
        return _verify_graph(request, request.file)
    if request.file is None:
        request.optics_of_budget(request.machine())  # a fabric without light is refused before a plan is searched
    plan = request.plan_to_judge()
    if request.time is not None:
        return _verify_times(request, plan, request.time)
    return _verify_plan(request, plan)


def _verify_plan(request: VerifyRequest, plan: Plan) -> Result:
    """Verify data, circuits and light of a plan.

    Args:
        request: of the call.
        plan: to verify.
    """
    if request.standing is not None:
        raise ParameterError("verify: --start is for times; give --time FILE too")
    if request.isolation and request.emulate != "always":
        raise ParameterError("verify: --isolation is for light that is followed; give --emulate too")
    given = parse_settings(request.isolation, "cross=25dB", "--isolation")
    leaks = {name: quantity(value, "dB", f"--isolation {name}") for name, value in given.items()}
    values = request.optics_of_budget(plan.fabric)
    verdict = plan.verify(
        num_chunks=request.sample,
        seed=request.seed,
        every_chunk=request.all_chunks,
        exact=request.exact,
        budget=values,
        emulate=request.emulate,
        isolation_db=leaks or None,
        progress=request.progress,
    )
    packets = plan.fabric.is_packet_switched
    what = ["data", "links" if packets else "circuits", *["light through every element"] * verdict.emulated]
    what += ["power"] * (values is not None)
    others = [*["power (--budget)"] * (values is None and not packets), "times (--time)"]
    return _judged(str(plan), verdict, "The plan is", what, others)


def _verify_graph(request: VerifyRequest, file: Path) -> Result:
    """Verify a schedule with dependencies: all chunks, in every order of execution; it has no light.

    Args:
        request: of the call.
        file: that holds the graph.
    """
    from opticcl.verify.time.dependencies import verify_graph

    if request.time is not None:
        raise ParameterError(f"verify: --time: {file} has no circuits; give a plan file, or -f FABRIC")
    if request.emulate == "always":
        raise ParameterError(f"verify: --emulate: {file} has no light; give a plan file, or -f FABRIC")
    if flag := request.first_given("sample", "budget", "change"):
        raise ParameterError(
            f"verify: {flag}: every chunk of {file} is verified, and it has no light; leave {flag} out"
        )
    graph = read_graph(file)
    verdict = verify_graph(graph, seed=request.seed, progress=request.progress)
    return _judged(str(graph), verdict, "The schedule is", ["data, in every order of execution"])


def _verify_times(request: VerifyRequest, plan: Plan, file: Path) -> Result:
    """Verify a programme of a plan by the laws of time.

    Args:
        request: of the call.
        plan: that it times.
        file: of the programme.
    """
    from opticcl.formats.programme_file import read_programme_file
    from opticcl.verify.time.programme import check_programme, rules_of

    if request.emulate == "always":
        raise ParameterError("verify: --time verifies times alone; leave --emulate or --time out")
    request.progress("verify the times")
    programme = read_programme_file(file, plan.circuits)
    standing = None
    if request.standing is not None:
        initial = configuration_of(request.standing)
        initial.require(plan.fabric)
        standing = initial.table
    verdict = check_programme(plan.circuits, programme, rules_of(programme), standing=standing)
    return _judged(str(plan), verdict, "The times are", (), ["data", "circuits", "power"])


def _verify_tables(request: VerifyRequest, path: Path) -> Result:
    """Verify a directory of device tables.

    Args:
        request: of the call; other options are refused.
        path: of the directory.
    """
    from opticcl.formats.table_files import read_tables
    from opticcl.verify.tables.devices import check_tables

    if request.file is not None:
        raise ParameterError("verify: --tables judges tables alone; leave the plan file out")
    others = (one.name for one in fields(request) if one.name not in ("tables", "budget", "change", "out", "json"))
    if flag := request.first_given(*others):
        raise ParameterError(f"verify: --tables judges tables alone; leave {flag} out")
    tables = read_tables(path)
    verdict = check_tables(tables, budget=request.optics_of_budget(tables.fabric), progress=request.progress)
    about = (
        f"{tables.collective.name} of {format_bytes(tables.size_bytes)} on {tables.fabric.name} with "
        f"{counted(tables.fabric.num_nodes, 'node')}: {printable(str(path))}/"
    )
    return _judged(Verbatim(about), verdict, "The device tables are")


def _judged(
    about: str,
    verdict: Verdict | TimeVerdict | TableVerdict,
    subject: str,
    what: Sequence[str] = (),
    others: Sequence[str] = (),
) -> Result:
    """A verdict, below what was verified.

    Args:
        about: the plan.
        verdict: on it.
        subject: beginning of the sentence that has the verdict.
        what: was judged of it.
        others: that were not, with the options that judge them.
    """
    from opticcl.units import counted

    if verdict.ok:
        headline = f"{subject} right{': ' * bool(what)}{', '.join(what)}."
        headline += f" Not judged: {', '.join(others)}." if others else ""
    elif verdict.violations:
        headline = f"{subject} wrong: {counted(len(verdict.violations), 'violation')}."
    else:
        headline = f"{subject} not judged."
    shown = [about, Verbatim(verdict)]
    return ComposedResult(verdict.record, lambda: shown, verdict.ok, headline=headline)
