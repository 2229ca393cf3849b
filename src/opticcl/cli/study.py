"""opticcl study"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.cli._output import PICTURE, RECORD, TABLE, FileKind
from opticcl.cli._request import VerbRequest, argument, option, out_option
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError, printable
from opticcl.registry import nearest
from opticcl.report.kit.result import ComposedResult, Result, Verbatim

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

    READ = "read"
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

    @property
    def of_space(self) -> bool:
        """Whether a design space is run."""
        return self.name is not None and self.name.endswith(".toml")

    def kinds(self) -> tuple[FileKind, ...]:
        """Records alone of the list of studies; no picture of the rows of a design space or a query."""
        if self.name is None:
            return (RECORD,)
        return (TABLE, RECORD) if self.of_space or self.name == "query" else super().kinds()

    @property
    def read(self) -> Path | None:
        """The file of the design space."""
        given = self.name if self.of_space else self.study
        return None if given is None else Path(given)

    def folder_of(self, space: DesignSpace) -> Path:
        """Where its ledger, results and answers are."""
        return self.folder if self.folder is not None else Path(f"{space.name}.study")

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


def run(request: StudyRequest) -> Result:
    """Studies: one question each, such as beyond, co_scheduling, transfers; or a whole design space from a file.

    Exit code 1 if a point is set aside or a plan is wrong.
    """
    name = request.name
    if request.of_space:
        return _space(request)
    if flag := request.first_given("scheduler", "slurm", "slurm_set"):
        raise ParameterError(f"study: {flag} is of a run of a design space; give FILE.toml, or leave it out")
    if name == "query" or name in ANSWERS:
        return _of_results(request, name)
    if request.study is not None:
        _refuse_second(request.study, name)
    if flag := request.first_given("folder", "dry_run", "where", "jobs"):
        raise ParameterError(f"study: {flag} is of a design space; give FILE.toml, or leave it out")
    if name is None:
        from opticcl.studies import STUDIES

        questions = {key: " ".join((STUDIES.get(key).__doc__ or "").split("\n")[0].split()) for key in STUDIES.names()}
        lines = [Verbatim(f"{key:<24}{question}") for key, question in questions.items()]
        return ComposedResult(lambda: questions, lambda: lines)
    if Path(name).exists():
        raise ParameterError(f"study: {name} is no file that ends in .toml; give one, or the name of a study: {NAMES}")
    from opticcl.report.studies import study_figure, study_table
    from opticcl.studies import run_study

    found = run_study(name, request.progress)
    title = f"{found.title} ({found.source})"
    shown = [title, study_table(found), *found.notes]
    return ComposedResult(found.record, lambda: shown, draw=lambda: study_figure(found), label=title)


def _space(request: StudyRequest) -> Result:
    """Run a design space, or estimate its time."""
    from opticcl.errors import InterruptedStudyError
    from opticcl.files import program_version
    from opticcl.processes import number_of_jobs
    from opticcl.report.design_space import estimate_text, progressed_text
    from opticcl.studies.space.design import read_design
    from opticcl.studies.space.runner import estimate, read_table, run_space

    if request.study is not None:
        _refuse_second(request.study, request.name)
    space = read_design(Path(str(request.name)))
    folder = request.folder_of(space)
    processes, cluster = number_of_jobs(request.jobs), request.cluster()
    if request.dry_run:
        expected = estimate(space, folder, jobs=processes)
        return ComposedResult(expected.record, lambda: [Verbatim(estimate_text(space, expected))])
    with cluster as workers:
        try:
            found = run_space(
                space,
                folder,
                jobs=processes,
                cluster=workers,
                version=program_version(),
                progress=request.progress,
            )
        except KeyboardInterrupt:
            raise InterruptedStudyError(
                f"interrupted; finished points are kept in {folder}, the same command goes on"
            ) from None
    request.progress("write the answers")
    written = _write_answers(space, folder)
    lines = [progressed_text(space, found), *(f"answer: {printable(file)}" for file in written)]
    return ComposedResult(
        lambda: {**found.record(), "folder": str(folder), "answers": written},
        lambda: map(Verbatim, lines),
        found.ok,
        lambda: read_table(folder).to_dicts(),
    )


def _refuse_second(study: str, name: str | None) -> None:
    raise ParameterError(f"study: {study!r} after {name!r}; write FILE.toml, {FORMS}, or the name of a study")


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


def _of_results(request: StudyRequest, name: str) -> Result:
    """A query or an answer.

    Args:
        request: of the call.
        name: query, or that of the answer.
    """
    from opticcl.studies.space.design import read_design

    study, given = request.study, request.of_answer()
    if study is None or (name == "query") != (request.sql is not None):
        sentence = "'SELECT ... FROM results'" if name == "query" else ""
        raise ParameterError(f"study {name}: write opticcl study {name} FILE.toml {sentence}".strip())
    space = read_design(Path(study))
    folder = request.folder_of(space)
    if name == "query":
        from opticcl.report.design_space import query_table
        from opticcl.studies.space.runner import query

        if given:
            raise ParameterError(f"study query: --{next(iter(given))} is of an answer; write it into the query")
        table = query(folder, str(request.sql))
        rows = table.to_dicts()
        return ComposedResult(lambda: rows, lambda: [query_table(rows, table.columns)], rows=lambda: rows)
    from opticcl.report.design_answers import answer_parts, table_rows, title_of
    from opticcl.report.design_pictures import answer_figure
    from opticcl.studies.space.design import ANSWERS as OPTIONS
    from opticcl.studies.space.design import selection
    from opticcl.studies.space.runner import read_rows

    for key in given:
        if key not in OPTIONS[name]:
            takes = ", ".join(f"--{one}" for one in OPTIONS[name])
            raise ParameterError(f"study {name}: --{key} is of another answer; this one takes {takes}")
    chosen = selection(parse_settings(given.get("where", ()), "nodes=64", "--where"), space.axes)
    options = {**space.answers.get(name, {}), **given}
    options["where"] = {**space.answers.get(name, {}).get("where", {}), **chosen}
    answer = _answer(space, read_rows(folder), name, options)
    return ComposedResult(
        answer.record,
        lambda: answer_parts(answer),
        rows=lambda: table_rows(answer),
        draw=lambda: answer_figure(answer),
        label=title_of(answer),
    )
