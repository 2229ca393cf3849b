"""opticcl study run"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._output import RECORD, TABLE
from opticcl.cli._request import option, out_option
from opticcl.cli._settings import parse_settings
from opticcl.cli.study._space import SpaceRequest
from opticcl.errors import ParameterError, printable
from opticcl.registry import nearest
from opticcl.report.kit.result import ComposedResult, Result, Verbatim

if TYPE_CHECKING:
    from opticcl.studies.space.cluster import Cluster
    from opticcl.studies.space.design import DesignSpace


@dataclass(frozen=True, kw_only=True)
class RunRequest(SpaceRequest):
    """What `opticcl study run` is asked: values of its options."""

    OPTIONS = "file folder dry_run out jobs * format json"

    dry_run: bool = option(
        "--dry-run", default=False, help="Count the points of a design space and estimate the time; write nothing."
    )
    out: tuple[Path, ...] = out_option(TABLE, RECORD)
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

    def cluster(self) -> AbstractContextManager[Cluster | None]:
        """A connection to a cluster that computes the points; None: processes of this computer do.

        Raises: ParameterError: options that contradict each other, or a wrong value.
        """
        if self.scheduler is not None and self.slurm is not None:
            raise ParameterError("study run: --scheduler and --slurm: one cluster computes the points; leave one out")
        if self.jobs is not None and (self.scheduler or self.slurm) is not None:
            raise ParameterError(
                "study run: --jobs is of this computer; the cluster has as many processes as it has workers"
            )
        if self.slurm_set and self.slurm is None:
            raise ParameterError("study run: --slurm-set is of jobs of SLURM; write --slurm 4 too")
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


def run(request: RunRequest) -> Result:
    """Compute the points of a design space, and the answers that its file lists.

    An interrupted run goes on where it ended. Exit code 1 if a point is set aside or a plan is wrong.
    """
    from opticcl.errors import InterruptedStudyError
    from opticcl.files import program_version
    from opticcl.processes import number_of_jobs
    from opticcl.report.design_space import estimate_text, progressed_text
    from opticcl.studies.space.design import read_design
    from opticcl.studies.space.runner import estimate, read_table, run_space

    space = read_design(request.file)
    folder = request.folder_of(space)
    processes, cluster = number_of_jobs(request.jobs), request.cluster()
    if request.dry_run:
        expected = estimate(space, folder, jobs=processes)
        return ComposedResult(expected.record, lambda: [Verbatim(estimate_text(space, expected))])
    with cluster as workers:
        try:
            progressed = run_space(
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
    lines = [progressed_text(space, progressed), *(f"answer: {printable(file)}" for file in written)]
    return ComposedResult(
        lambda: {**progressed.record(), "folder": str(folder), "answers": written},
        lambda: map(Verbatim, lines),
        progressed.ok,
        lambda: read_table(folder).to_dicts(),
    )


def _write_answers(space: DesignSpace, folder: Path) -> list[str]:
    """Write the answers that the file lists, each as a record and a picture; returns the files and what is left out."""
    if not space.answers:
        return []
    from opticcl.report.design_answers import title_of
    from opticcl.report.design_pictures import answer_figure
    from opticcl.report.kit.records import write_record
    from opticcl.report.kit.svg import save_picture
    from opticcl.studies.space.question import answer_of
    from opticcl.studies.space.runner import read_rows

    rows, written = read_rows(folder), []
    for name, options in space.answers.items():
        try:
            answer = answer_of(space, rows, name, options)
        except ParameterError as error:  # such as: no fabric has a time there
            written.append(f"{name} is left out: {error}")
            continue
        record, picture = folder / f"{name}.json", folder / f"{name}.svg"
        write_record(record, answer.record())
        save_picture(picture, partial(answer_figure, answer), title_of(answer))
        written += [str(record), str(picture)]
    return written
