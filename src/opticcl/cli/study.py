"""opticcl study"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from opticcl.cli._options import JobsOption, JsonOption
from opticcl.cli._output import (
    PICTURE,
    RECORD,
    TABLE,
    Outputs,
    ProgressLine,
    out_option,
    print_json,
    print_table,
)
from opticcl.cli._parameters import argument, option
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


def run(
    name: Annotated[
        str | None,
        argument(
            help=f"FILE.toml: a design space; {FORMS}: of its results; or a study, name:key=value,...: {NAMES}; "
            "default: list them."
        ),
    ] = None,
    study: Annotated[str | None, argument(metavar="FILE.toml", help="Design space of a query or an answer.")] = None,
    sql: Annotated[
        str | None, argument(metavar="SQL", help="Query on its table `results`: SELECT ... FROM results ...")
    ] = None,
    folder: Annotated[
        Path | None,
        option("--folder", metavar="FOLDER", help="Ledger, results and answers; default: FILE.study here."),
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="Count the points of a design space and estimate the time; write nothing.")
    ] = False,
    where: Annotated[
        list[str],
        option(
            "--where", metavar="AXIS=VALUE", help="Of an answer: one value of an axis: nodes=64. Repeat for several."
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    x: Annotated[
        str | None, option("--x", metavar="AXIS", help="Of a map: columns; of lines: the axis; default: size.")
    ] = None,
    y: Annotated[
        str | None,
        option(
            "--y",
            metavar="AXIS|COLUMN",
            help="Of a map: rows; default: nodes. Of lines: what was measured; default: total_s.",
        ),
    ] = None,
    over: Annotated[
        str | None, option("--over", metavar="AXIS", help="Of a breakeven: the axis; default: size.")
    ] = None,
    between: Annotated[
        list[str],
        option("--between", metavar="FABRIC", help="Of a breakeven or lines: these alone. Repeat for several."),
    ] = [],  # noqa: B006
    out: Annotated[list[Path], out_option(PICTURE, TABLE, RECORD)] = [],  # noqa: B006
    jobs: JobsOption = None,
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler",
            metavar="ADDRESS",
            help="Compute the points of a design space on the workers of this dask scheduler: tcp://HOST:8786.",
        ),
    ] = None,
    slurm: Annotated[
        int | None,
        option("--slurm", metavar="JOBS", help="Compute them in this number of jobs of SLURM (dask-jobqueue)."),
    ] = None,
    slurm_set: Annotated[
        list[str],
        option(
            "--slurm-set",
            metavar="KEY=VALUE",
            help="Of a job of SLURM: cores, memory, walltime, queue, account, interface, local_directory, log_directory; "
            "default: dask's own file jobqueue.yaml. Repeat for several.",
        ),
    ] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Studies: one question each, such as beyond, co_scheduling, transfers; or a whole design space from a file.

    Exit code 1 if a point is set aside or a plan is wrong.
    """
    from opticcl.studies import STUDIES, run_study

    if name is not None and name.endswith(".toml"):
        _refuse_second(study, name)
        _run_space(Path(name), folder, _Where(jobs, scheduler, slurm, tuple(slurm_set)), dry_run, out, json)
        return
    of_cluster: dict[str, object] = {"--scheduler": scheduler, "--slurm": slurm, "--slurm-set": slurm_set}
    for flag, given_value in of_cluster.items():
        if given_value:
            raise ParameterError(f"study: {flag} is of a run of a design space; give FILE.toml, or leave it out")
    if name == "query" or name in ANSWERS:
        given = {"where": where, "x": x, "y": y, "over": over, "between": between}
        _of_results(name, study, sql, folder, {key: value for key, value in given.items() if value}, out, json)
        return
    _refuse_second(study, name)
    for flag, value in (("--folder", folder), ("--dry-run", dry_run), ("--where", where), ("--jobs", jobs)):
        if value:
            raise ParameterError(f"study: {flag} is of a design space; give FILE.toml, or leave it out")
    if name is None:
        outputs = Outputs(out, RECORD)  # a list of names is neither drawn nor a table
        questions = {key: " ".join((STUDIES.get(key).__doc__ or "").split("\n")[0].split()) for key in STUDIES.names()}
        outputs.write_record(lambda: questions)
        if json:
            print_json(questions)
        else:
            print("\n".join(f"{key:<24}{question}" for key, question in questions.items()))
            outputs.print_lines()
        return
    if Path(name).exists():
        raise ParameterError(f"study: {name} is no file that ends in .toml; give one, or the name of a study: {NAMES}")
    from opticcl.report.studies import study_figure, study_table

    outputs = Outputs(out, PICTURE, TABLE, RECORD)
    with ProgressLine() as progress:
        found = run_study(name, progress)
        progress("write the files")
        outputs.write_pictures(lambda: study_figure(found), f"{found.title} ({found.source})")
        outputs.write_record(found.record, lambda: found.record()["rows"])
    if json:
        print_json(found.record())
    else:
        print_table(f"{found.title} ({found.source})", study_table(found), *found.notes)
        outputs.print_lines()


def _refuse_second(study: str | None, name: str | None) -> None:
    if study is not None:
        raise ParameterError(f"study: {study!r} after {name!r}; write FILE.toml, {FORMS}, or the name of a study")


def _space(path: Path, folder: Path | None) -> tuple[DesignSpace, Path]:
    """A study file and its folder."""
    from opticcl.studies.space.design import read_design

    space = read_design(path)
    return space, folder if folder is not None else Path(f"{space.name}.study")


@dataclass(frozen=True, slots=True)
class _Where:
    """Where points are computed.

    Args: jobs, scheduler, slurm, slurm_set: options.
    """

    jobs: int | None
    scheduler: str | None
    slurm: int | None
    slurm_set: tuple[str, ...]

    def cluster(self) -> AbstractContextManager[Cluster | None]:
        """A connection to a cluster; None: processes of this computer."""
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


def _run_space(path: Path, folder: Path | None, place: _Where, dry_run: bool, out: list[Path], json: bool) -> None:
    """Run a design space, or estimate its time.

    Args: path, folder, place, dry_run, out, json: options.
    """
    from importlib.metadata import version

    from opticcl.errors import InterruptedStudyError
    from opticcl.processes import number_of_jobs
    from opticcl.report.design_space import estimate_text, progressed_text
    from opticcl.studies.space.runner import estimate, read_table, run_space

    outputs = Outputs(out, TABLE, RECORD, read=path)
    space, where = _space(path, folder)
    processes, cluster = number_of_jobs(place.jobs), place.cluster()
    if dry_run:
        expected = estimate(space, where, jobs=processes)
        outputs.write_record(expected.record)
        if json:
            print_json(expected.record())
        else:
            print(estimate_text(space, expected))
            outputs.print_lines()
        return
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
    if json:
        print_json({**found.record(), "folder": str(where), "answers": written})
    else:
        print(progressed_text(space, found))
        for file in written:
            print(f"answer: {printable(str(file))}")
        outputs.print_lines()
    raise click.exceptions.Exit(0 if found.ok else 1)


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


def _of_results(
    name: str,
    study: str | None,
    sql: str | None,
    folder: Path | None,
    given: dict[str, Any],
    out: list[Path],
    json: bool,
) -> None:
    """A query or an answer.

    Args:
        name: query, or that of the answer.
        study: its file.
        sql: query.
        folder: option.
        given: options of the answer.
        out, json: options.
    """
    if study is None or (name == "query") != (sql is not None):
        sentence = "'SELECT ... FROM results'" if name == "query" else ""
        raise ParameterError(f"study {name}: write opticcl study {name} FILE.toml {sentence}".strip())
    space, where = _space(Path(study), folder)
    if name == "query":
        from opticcl.report.design_space import query_table
        from opticcl.studies.space.runner import query

        if given:
            raise ParameterError(f"study query: --{next(iter(given))} is of an answer; write it into the query")
        outputs = Outputs(out, TABLE, RECORD, read=Path(study))
        table = query(where, str(sql))
        outputs.write_record(table.to_dicts, table.to_dicts)
        if json:
            print_json(table.to_dicts())
        else:
            print_table(query_table(table.to_dicts(), table.columns))
            outputs.print_lines()
        return
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
    outputs = Outputs(out, PICTURE, TABLE, RECORD, read=Path(study))
    chosen = selection(parse_settings(given.get("where", ()), "nodes=64", "--where"), space.axes)
    options = {**space.answers.get(name, {}), **given}
    options["where"] = {**space.answers.get(name, {}).get("where", {}), **chosen}
    answer = _answer(space, read_rows(where), name, options)
    outputs.write_pictures(lambda: answer_figure(answer), title_of(answer))
    outputs.write_record(answer.record, lambda: table_rows(answer))
    if json:
        print_json(answer.record())
    else:
        print_table(*answer_parts(answer))
        outputs.print_lines()


def _options(names: Sequence[str]) -> str:
    return ", ".join(f"--{name}" for name in names)
