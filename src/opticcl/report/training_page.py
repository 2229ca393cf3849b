"""Training results as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.assumptions import meaning_of, value_text
from opticcl.files import write_whole
from opticcl.registry import write_call
from opticcl.report.beside import unranked_line, verdicts_line
from opticcl.report.kit import html as _html
from opticcl.report.kit.words import ratio
from opticcl.report.training import _duration, headline, row_names, runtime_words, slowness
from opticcl.report.training_pictures import iteration_picture, timeline_picture
from opticcl.training.runtime import num_streams
from opticcl.units import counted, format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.training.train import TrainingResult, TrainingRow

__all__ = ["training_page_text", "write_training_page"]


def write_training_page(path: str | Path, training: TrainingResult, notes: Iterable[str] = ()) -> None:
    """Write the results as one page.

    Args:
        path: of the page.
        training: the results.
        notes: remarks beside those of the job, such as fabrics without a machine of that size.
    Raises: OutputError: the file cannot be written; an existing file is left unchanged.
    """
    with write_whole(Path(path)) as file:  # opened first, so that a bad path is refused before the work
        file.write(training_page_text(training, notes).encode())


def training_page_text(training: TrainingResult, notes: Iterable[str] = ()) -> str:
    """The page as text; deterministic."""
    sections = [
        ("result", "Fastest fabrics", _result(training)),
        ("time", "Parts of the iteration", _iterations(training)),
        ("timeline", "Timelines", _timelines(training)),
        ("plans", "Plans", _plans(training)),
        ("assumptions", "Assumptions", _assumptions(training)),
    ]
    title = f"{training.job.name} on {counted(training.job.num_ranks, 'device')}"
    return _html.page(title, _lead(training), (*training.job.notes, *notes), sections)


def _lead(training: TrainingResult) -> str:
    names, times = row_names(training), slowness(training)
    first = training.rows[0]
    text = f"{headline(training)}. Fastest: {names[0]} with {format_seconds(first.iteration.total_s)} per iteration"
    if len(names) > 1:
        text += f"; the slowest, {names[-1]}, takes {ratio(times[-1])} as long"
    unranked = [(row.machine.name, row.light, row.verdict) for row in training.rows if not row.ranked]
    judged = verdicts_line([row.verdict for row in training.rows])
    return ". ".join(filter(None, (text, judged, unranked_line(unranked)))) + "."


def _result(training: TrainingResult) -> str:
    head = ("Fabric", "Algorithms", "#Iteration", "#Slower", "Verified", "#Waits")
    more = ("#Computes", "#Network", "#Rate used", "#Node rate")
    ends = [
        name for name, known in (("#Epoch", training.iterations_per_epoch), ("#Training", training.iterations)) if known
    ]
    rows = [
        _row(training, row, name, times)
        for row, name, times in zip(training.rows, row_names(training), slowness(training), strict=True)
    ]
    about = (
        "Fastest first. Waits: exposed communication and its share of the iteration. Computes: share of the iteration in "
        "which the device computes. Network: all messages one after the other. Rate used: share of the node rate during "
        "communication."
    )
    made = _html.definitions(
        (
            name,
            _html.call(
                write_call(row.machine.name, {k: v for k, v in row.machine.parameters.items() if v is not None})
            ),
        )
        for name, row in zip(row_names(training), training.rows, strict=True)
    )
    left = [_html.text(one.fabric) + _html.text(one.reason) for one in training.left_out]
    listed = _html.table(("Fabric", "Reason"), left)
    declined = f"<details><summary>Left out, with reasons: {len(left)}</summary>{listed}</details>\n" if left else ""
    return _html.table((*head, *ends, *more), rows, about) + f"<h3>Fabrics</h3>\n{made}{declined}"


def _row(training: TrainingResult, row: TrainingRow, name: str, times_slower: float) -> str:
    iteration = row.iteration
    waits = f"{format_seconds(iteration.exposed_s)}, {row.communication_share:.1%}"
    ends = (_duration(s) for s in (training.epoch_s(row), training.training_s(row)) if s is not None)
    more = (
        f"{iteration.utilisation:.0%}",
        format_seconds(iteration.communication_s),
        f"{row.bandwidth_utilisation:.0%}",
        format_rate(row.machine.node_rate_bits_per_s),
    )
    cells = (
        _html.row_name(name),
        _html.text(", ".join(row.algorithms) or "none needed"),
        _html.number(format_seconds(iteration.total_s)),
        _html.number(ratio(times_slower)),
        _html.verdict(row.verdict),
        *map(_html.number, (waits, *ends, *more)),
    )
    return "".join(cells)


def _iterations(training: TrainingResult) -> str:
    caption = "Computation, and exposed communication that computation does not hide."
    return _html.figure(iteration_picture(training), caption)


def _timelines(training: TrainingResult) -> str:
    caption = "White lines separate tasks and messages that are long enough to be visible."
    return _html.figure(timeline_picture(training), caption)


def _plans(training: TrainingResult) -> str:
    rows = []
    for name, row in zip(row_names(training), training.rows, strict=True):
        for used in row.plans:
            plan = used.plan
            part = plan.fabric.num_machine_nodes
            ranks = f"{plan.fabric.num_nodes:,}" + (f" of {part:,}" if part > plan.fabric.num_nodes else "")
            numbers = (ranks, f"{used.messages:,}", format_bytes(used.size_bytes), format_seconds(used.total_s))
            texts = (name, plan.schedule.collective.name, plan.algorithm)
            judged = _html.verdict(used.verdict.verdict)
            rows.append("".join(map(_html.text, texts)) + "".join(map(_html.number, numbers)) + judged)
    head = ("Fabric", "Collective", "Algorithm", "#Ranks", "#Messages", "#Bytes", "#Time", "Verified")
    return _html.table(head, rows, "Every plan was compiled and verified once, and timed for each of its messages.")


def _assumptions(training: TrainingResult) -> str:
    runtime = training.runtime
    groups = (
        "a group smaller than the machine has its own fabric, of the same system and the size of the group"
        if training.groups == "scaled"
        else "a group is the nodes of its ranks on the machine"
    )
    about = [
        (
            "messages",
            escape(
                f"{runtime_words(training)}; first go {_ORDER[runtime.order]}; streams: {num_streams(training.job, runtime)}"
            ),
        ),
        ("groups", escape(f"{groups}; concurrent groups are assumed not to interfere")),
    ]
    for name, value in training.assumed.record().items():
        if name != "name":
            about.append((f"{name} = {value_text(name, value)}", escape(meaning_of(name, value))))
    return _html.definitions(about)


_ORDER = {
    "transfers_first": "messages that computation waits for, then gradients",
    "ready": "those ready longest",
    "job": "those first in the job",
}
