"""opticcl study"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.cli._output import PICTURE, RECORD, TABLE, Outputs, ProgressLine, print_json, print_table
from opticcl.cli._request import VerbRequest, argument, option, out_option
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError, printable
from opticcl.registry import nearest

if TYPE_CHECKING:
    from opticcl.report.design_answers import Answer
    from opticcl.studies.space.cluster import Cluster
    from opticcl.studies.space.design import DesignSpace


def _names() -> list[str]:
    """Names of the studies, from the text of their files: importing these would slow `--help` down."""
    modules = (file for file in files("opticcl").joinpath("studies").iterdir() if file.name.endswith(".py"))
    studies = (file.name for file in modules if "@register_study(" in file.read_text("utf-8"))
    return sorted(name.removesuffix(".py") for name in studies)


NAMES = ", ".join(_names())
ANSWERS = ("map", "pareto", "tornado", "breakeven", "lines")
FORMS = f"query FILE.toml SQL, or {', '.join(ANSWERS)} FILE.toml"


@dataclass(frozen=True, kw_only=True)
class StudyRequest(VerbRequest):
    """What `opticcl study` is asked: values of its options."""

    OPTIONS = "name study sql folder dry_run where x y over between out jobs * json"

    name: str | None = argument(
        default=None,
        help=f"FILE.toml: a design space; {FORMS}: of its results; or a study, name:key=value,...: {NAMES}; "
        "default: list them.",
    )
    study: str | None = argument(metavar="FILE.toml", default=None, help="Design space of a query or an answer.")
    sql: str | None = argument(
        metavar="SQL", default=None, help="Query on its table `results`: SELECT ... FROM results ..."
    )
    folder: Path | None = option(
        "--folder", metavar="FOLDER", default=None, help="Ledger, results and answers; default: FILE.study here."
    )
    dry_run: bool = option(
        "--dry-run", default=False, help="Count the points of a design space and estimate the time; write nothing."
    )
    where: tuple[str, ...] = option(
        "--where",
        metavar="AXIS=VALUE",
        default=(),
        help="Of an answer: one value of an axis: nodes=64. Repeat for several.",
    )
    x: str | None = option(
        "--x", metavar="AXIS", default=None, help="Of a map: columns; of lines: the axis; default: size."
    )
    y: str | None = option(
        "--y",
        metavar="AXIS|COLUMN",
        default=None,
        help="Of a map: rows; default: nodes. Of lines: what was measured; default: total_s.",
    )
    over: str | None = option("--over", metavar="AXIS", default=None, help="Of a breakeven: the axis; default: size.")
    between: tuple[str, ...] = option(
        "--between", metavar="FABRIC", default=(), help="Of a breakeven or lines: these alone. Repeat for several."
    )
    out: tuple[Path, ...] = out_option(PICTURE, TABLE, RECORD)
    scheduler: str | None = option(
        "--scheduler",
        metavar="ADDRESS",
        default=None,
        help="Compute the points of a design space on the workers of this dask scheduler: tcp://HOST:8786.",
    )
    slurm: int | None = option(
        "--slurm", metavar="JOBS", default=None, help="Compute them in this number of jobs of SLURM (dask-jobqueue)."
    )
    slurm_set: tuple[str, ...] = option(
        "--slurm-set",
        metavar="KEY=VALUE",
        default=(),
        help="Of a job of SLURM: cores, memory, walltime, queue, account, interface, local_directory, log_directory; "
        "default: dask's own file jobqueue.yaml. Repeat for several.",
    )

    def of_answer(self) -> dict[str, Any]:
        """Options of an answer that are given."""
        return {name: value for name in ("where", "x", "y", "over", "between") if (value := getattr(self, name))}

    def cluster(self) -> AbstractContextManager[Cluster | None]:
        """A connection to a cluster that computes the points; None: processes of this computer do.

        Raises: ParameterError: options that contradict each other, or a wrong value.
        """
        if self.scheduler is not None and self.slurm is not None:
            raise ParameterError("study: --scheduler and --slurm: one cluster computes the points; leave one out")
        if self.jobs is not None and (self.scheduler or self.slurm) is not None:
            raise ParameterError(
                "study: --jobs is of this computer; the cluster has as many processes as it has workers"
            )
        if self.slurm_set and self.slurm is None:
            raise ParameterError("study: --slurm-set is of jobs of SLURM; write --slurm 4 too")
        if self.scheduler is None and self.slurm is None:
            return nullcontext()
        from opticcl.cli._plugins import load_plugins, loaded
        from opticcl.studies.space.cluster import SLURM_OPTIONS, connected, slurm

        prepare = partial(load_plugins, loaded())
        if self.scheduler is not None:
            return connected(self.scheduler, prepare)
        options = parse_settings(self.slurm_set, "memory=16GB", "--slurm-set")
        for key in options:
            if key not in SLURM_OPTIONS:
                raise ParameterError(f"--slurm-set: unknown key {key!r}; {nearest(key, SLURM_OPTIONS)}")
        if self.slurm is None or not 1 <= self.slurm <= 10_000:
            raise ParameterError(f"--slurm={self.slurm} is not within 1 to 10000 jobs; try --slurm 4")
        return slurm(self.slurm, options, prepare)


def run(request: StudyRequest) -> int:
    """Studies: one question each, such as beyond, co_scheduling, transfers; or a whole design space from a file.

    Exit code 1 if a point is set aside or a plan is wrong.
    """
    name = request.name
    if name is not None and name.endswith(".toml"):
        _refuse_second(request.study, name)
        return _run_space(request, Path(name))
    if flag := request.first_given("scheduler", "slurm", "slurm_set"):
        raise ParameterError(f"study: {flag} is of a run of a design space; give FILE.toml, or leave it out")
    if name == "query" or name in ANSWERS:
        return _of_results(request, name)
    _refuse_second(request.study, name)
    if flag := request.first_given("folder", "dry_run", "where", "jobs"):
        raise ParameterError(f"study: {flag} is of a design space; give FILE.toml, or leave it out")
    if name is None:
        return _list_studies(request)
    if Path(name).exists():
        raise ParameterError(f"study: {name} is no file that ends in .toml; give one, or the name of a study: {NAMES}")
    return _run_study(request, name)


def _list_studies(request: StudyRequest) -> int:
    """Print the questions of the studies; returns the exit code."""
    from opticcl.studies import STUDIES

    outputs = Outputs(request.out, RECORD)  # a list of names is neither drawn nor a table
    questions = {key: " ".join((STUDIES.get(key).__doc__ or "").split("\n")[0].split()) for key in STUDIES.names()}
    outputs.write_record(lambda: questions)
    if request.json:
        print_json(questions)
    else:
        print("\n".join(f"{key:<24}{question}" for key, question in questions.items()))
        outputs.print_lines()
    return 0


def _run_study(request: StudyRequest, name: str) -> int:
    """Run a study.

    Args:
        request: of the call.
        name: of the study, with its parameters.
    Returns: the exit code.
    """
    from opticcl.report.studies import study_figure, study_table
    from opticcl.studies import run_study

    outputs = Outputs(request.out, PICTURE, TABLE, RECORD)
    with ProgressLine() as progress:
        found = run_study(name, progress)
        progress("write the files")
        outputs.write_pictures(lambda: study_figure(found), f"{found.title} ({found.source})")
        outputs.write_record(found.record, lambda: found.record()["rows"])
    if request.json:
        print_json(found.record())
    else:
        print_table(f"{found.title} ({found.source})", study_table(found), *found.notes)
        outputs.print_lines()
    return 0


def _refuse_second(study: str | None, name: str | None) -> None:
    if study is not None:
        raise ParameterError(f"study: {study!r} after {name!r}; write FILE.toml, {FORMS}, or the name of a study")


def _space(path: Path, folder: Path | None) -> tuple[DesignSpace, Path]:
    """A study file and its folder."""
    from opticcl.studies.space.design import read_design

    space = read_design(path)
    return space, folder if folder is not None else Path(f"{space.name}.study")


def _run_space(request: StudyRequest, path: Path) -> int:
    """Run a design space, or estimate its time.

    Args:
        request: of the call.
        path: of the file.
    Returns: the exit code.
    """
    from importlib.metadata import version

    from opticcl.errors import InterruptedStudyError
    from opticcl.processes import number_of_jobs
    from opticcl.report.design_space import estimate_text, progressed_text
    from opticcl.studies.space.runner import estimate, read_table, run_space

    outputs = Outputs(request.out, TABLE, RECORD, read=path)
    space, where = _space(path, request.folder)
    processes, cluster = number_of_jobs(request.jobs), request.cluster()
    if request.dry_run:
        expected = estimate(space, where, jobs=processes)
        outputs.write_record(expected.record)
        if request.json:
            print_json(expected.record())
        else:
            print(estimate_text(space, expected))
            outputs.print_lines()
        return 0
    with ProgressLine() as progress, cluster as workers:
        try:
            found = run_space(
                space, where, jobs=processes, cluster=workers, version=version("opticcl"), progress=progress
            )
        except KeyboardInterrupt:
            raise InterruptedStudyError(
                f"interrupted; finished points are kept in {where}, the same command goes on"
            ) from None
        progress("write the answers")
        written = _write_answers(space, where)
        outputs.write_record(found.record, lambda: read_table(where).to_dicts())
    if request.json:
        print_json({**found.record(), "folder": str(where), "answers": written})
    else:
        print(progressed_text(space, found))
        for file in written:
            print(f"answer: {printable(str(file))}")
        outputs.print_lines()
    return 0 if found.ok else 1


def _write_answers(space: DesignSpace, folder: Path) -> list[str]:
    """Write the answers that the file lists, each as a record and a picture; returns the files and what is left out."""
    if not space.answers:
        return []
    from opticcl.report.design_answers import title_of
    from opticcl.report.design_pictures import answer_figure
    from opticcl.report.kit.records import write_record
    from opticcl.report.kit.svg import save_picture
    from opticcl.studies.space.runner import read_rows

    rows, written = read_rows(folder), []
    for name, options in space.answers.items():
        try:
            answer = _answer(space, rows, name, options)
        except ParameterError as error:  # such as: no fabric has a time there
            written.append(f"{name} is left out: {error}")
            continue
        record, picture = folder / f"{name}.json", folder / f"{name}.svg"
        write_record(record, answer.record())
        save_picture(picture, partial(answer_figure, answer), title_of(answer))
        written += [str(record), str(picture)]
    return written


def _answer(space: DesignSpace, rows: Sequence[Mapping[str, Any]], name: str, options: Mapping[str, Any]) -> Answer:
    """An answer by its name.

    Args:
        space: the study.
        rows: that are done.
        name: of the answer.
        options: of it.
    """
    from opticcl.studies.space import answers
    from opticcl.studies.space.lines import by_algorithm, lines

    where = options.get("where", {})
    if name == "breakeven" or (name == "lines" and len(space.axes["fabric"]) > 1):
        space, rows = by_algorithm(space, rows, where)
    if name == "lines":
        return lines(space, rows, **{"where": where, **options})
    if name == "map":
        return answers.fastest_map(space, rows, where, options.get("x", "size"), options.get("y", "nodes"))
    if name == "pareto":
        return answers.pareto(space, rows, where)
    if name == "tornado":
        return answers.tornado(space, rows, where)
    return answers.breakeven(space, rows, where, options.get("over", "size"), options.get("between", ()))


def _of_results(request: StudyRequest, name: str) -> int:
    """A query or an answer.

    Args:
        request: of the call.
        name: query, or that of the answer.
    Returns: the exit code.
    """
    study, given = request.study, request.of_answer()
    if study is None or (name == "query") != (request.sql is not None):
        sentence = "'SELECT ... FROM results'" if name == "query" else ""
        raise ParameterError(f"study {name}: write opticcl study {name} FILE.toml {sentence}".strip())
    space, where = _space(Path(study), request.folder)
    if name == "query":
        from opticcl.report.design_space import query_table
        from opticcl.studies.space.runner import query

        if given:
            raise ParameterError(f"study query: --{next(iter(given))} is of an answer; write it into the query")
        outputs = Outputs(request.out, TABLE, RECORD, read=Path(study))
        table = query(where, str(request.sql))
        outputs.write_record(table.to_dicts, table.to_dicts)
        if request.json:
            print_json(table.to_dicts())
        else:
            print_table(query_table(table.to_dicts(), table.columns))
            outputs.print_lines()
        return 0
    from opticcl.report.design_answers import answer_parts, table_rows, title_of
    from opticcl.report.design_pictures import answer_figure
    from opticcl.studies.space.design import ANSWERS as OPTIONS
    from opticcl.studies.space.design import selection
    from opticcl.studies.space.runner import read_rows

    for key in given:
        if key not in OPTIONS[name]:
            raise ParameterError(
                f"study {name}: --{key} is of another answer; this one takes {_options(OPTIONS[name])}"
            )
    outputs = Outputs(request.out, PICTURE, TABLE, RECORD, read=Path(study))
    chosen = selection(parse_settings(given.get("where", ()), "nodes=64", "--where"), space.axes)
    options = {**space.answers.get(name, {}), **given}
    options["where"] = {**space.answers.get(name, {}).get("where", {}), **chosen}
    answer = _answer(space, read_rows(where), name, options)
    outputs.write_pictures(lambda: answer_figure(answer), title_of(answer))
    outputs.write_record(answer.record, lambda: table_rows(answer))
    if request.json:
        print_json(answer.record())
    else:
        print_table(*answer_parts(answer))
        outputs.print_lines()
    return 0


def _options(names: Sequence[str]) -> str:
    return ", ".join(f"--{name}" for name in names)
