"""Training results as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.files import write_whole
from opticcl.plans.machines import specification
from opticcl.report.beside import unranked_line, verdicts_line
from opticcl.report.kit import html as _html
from opticcl.report.kit.columns import Shown, columns_of
from opticcl.report.training import (
    below_recorded,
    communication_columns,
    ranked_blocks,
    row_names,
    runtime_words,
    training_columns,
    training_notes,
)
from opticcl.report.training_pictures import iteration_picture, timeline_picture
from opticcl.training.runtime import num_streams
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.training.train import TrainingResult

__all__ = ["training_page_text", "write_training_page"]


def write_training_page(path: str | Path, training: TrainingResult) -> None:
    """Write the results as one page.

    Args:
        path: of the page.
        training: the results.
    Raises: OutputError: the file cannot be written; an existing file is left unchanged.
    """
    with write_whole(Path(path)) as file:  # opened first, so that a bad path is refused before the work
        file.write(training_page_text(training).encode())


def training_page_text(training: TrainingResult) -> str:
    """The page as text; deterministic."""
    sections = [
        _html.Section("result", "Fastest fabrics", _answer(training) + _iterations(training)),
        _html.Section("timeline", "Timelines", _timelines(training), folded=True),
        _html.Section("all", "All columns, and the fabrics", _result(training), folded=True),
        _html.Section("plans", "Plans", _plans(training), folded=True),
        _html.Section("assumptions", "Assumptions", _assumptions(training), folded=True),
    ]
    title = f"{training.job.name} on {counted(training.job.num_ranks, 'device')}"
    return _html.page(title, _lead(training), training_notes(training), sections)


def _lead(training: TrainingResult) -> str:
    text = training.headline.removesuffix(".")
    unranked = [
        (row.machine.name, row.light, row.verdict) for row in training.rows if not row.ranked and not row.is_reference
    ]
    judged = verdicts_line([row.verdict for row in training.rows])
    return ". ".join(filter(None, (text, judged, unranked_line(unranked)))) + "."


def _answer(training: TrainingResult) -> str:
    """The columns that answer, which a terminal shows first."""
    answering = [one for one in training_columns(training) if one.rank <= 1]
    return "".join(_html.table(one.columns, one.heading) for one in ranked_blocks(training, answering))


def _result(training: TrainingResult) -> str:
    about = (
        "Fastest first. Step: the recorded one, less what the fabric saves of its exposed communication; without idle time: as "
        "simulated. Waits for messages: exposed communication; share: of the iteration. On the network: all messages one "
        "after the other. Computes: share of the iteration in which the device computes. Rate used: share of the node rate "
        "during communication."
    )
    machines = [row.machine for row in training.rows]
    columns = below_recorded(
        training, [*training_columns(training), *columns_of(machines, Shown("node_rate_bits_per_s"))]
    )
    named = zip(row_names(training), machines, strict=True)
    made = _html.definitions((name, _html.call(specification(machine))) for name, machine in named)
    listed = _html.table(columns_of(training.left_out, Shown("fabric"), Shown("reason")))
    count = len(training.left_out)
    declined = _html.folded(f"Left out, with reasons: {count}", listed) if count else ""
    return _html.table(columns, about) + f"<h3>Fabrics</h3>\n{made}{declined}"


def _iterations(training: TrainingResult) -> str:
    caption = "Computation, and exposed communication that computation does not hide."
    return _html.figure(iteration_picture(training), caption)


def _timelines(training: TrainingResult) -> str:
    caption = "White lines separate tasks and messages that are long enough to be visible."
    return _html.figure(timeline_picture(training), caption)


def _plans(training: TrainingResult) -> str:
    named = [(name, use) for name, row in zip(row_names(training), training.rows, strict=True) for use in row.plans]
    about = (
        "Every plan was compiled and verified once, and timed for each of its messages. Time, bound and scaled are sums over "
        "these, one after the other. No plan on the nodes of the group takes less than the bound; scaled is the time on a "
        "fabric of its size."
    )
    return _html.table(communication_columns(named), about)


def _assumptions(training: TrainingResult) -> str:
    runtime = training.runtime
    groups = (
        "a group smaller than the machine has its own fabric, of the same system and the size of the group; concurrent groups "
        "are assumed not to interfere"
        if training.groups == "scaled"
        else "all groups of a kind run at the same time on the nodes of their ranks, in one plan"
    )
    about = [
        (
            "messages",
            escape(
                f"{runtime_words(training)}; first go {_ORDER[runtime.order]}; streams: {num_streams(training.job, runtime)}"
            ),
        ),
        ("groups", escape(groups)),
    ]
    return _html.definitions([*about, *_html.assumptions(training.assumed)])


_ORDER = {
    "transfers_first": "messages that computation waits for, then gradients",
    "ready": "those ready longest",
    "job": "those first in the job",
}
