"""Training on many machines as one HTML page that needs nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import opticcl
from opticcl.files import write_whole
from opticcl.registry import write_call
from opticcl.report import _html
from opticcl.report.captions import ABOUT_ASSUMPTION
from opticcl.report.page import _FRAME
from opticcl.report.training import _duration, headline, row_names, runtime_words, slowness
from opticcl.report.training_pictures import iteration_picture, timeline_picture
from opticcl.report.words import ratio
from opticcl.units import counted, format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.evaluate.training import Row, Training

__all__ = ["training_page_text", "write_training_page"]


def write_training_page(path: str | Path, training: Training, notes: Iterable[str] = ()) -> None:
    """Write the comparison as one page.

    Args: notes: remarks that are not the job's own, such as fabrics that have no such size.
    Raises: OutputError: the file cannot be written; what stood there stays as it was.
    """
    with write_whole(Path(path)) as file:  # opened first, so that a bad path is told before the work is done
        file.write(training_page_text(training, notes).encode())


def training_page_text(training: Training, notes: Iterable[str] = ()) -> str:
    """The page: the same text for the same training."""
    sections = [
        ("result", "Who is fastest", _result(training)),
        ("time", "Where the iteration goes", _iterations(training)),
        ("timeline", "What runs when", _timelines(training)),
        ("plans", "Which plans carry it", _plans(training)),
        ("assumptions", "What these times rest on", _assumptions(training)),
    ]
    links = "\n".join(f'<a href="#{key}">{heading}</a>' for key, heading, _ in sections)
    body = "".join(f'<section id="{key}">\n<h2>{heading}</h2>\n{text}</section>\n' for key, heading, text in sections)
    told = "".join(f"<li>{escape(note)}</li>\n" for note in (*training.job.notes, *notes))
    title = f"{training.job.name} on {counted(training.job.num_ranks, 'device')}"
    return _FRAME.format(
        title=escape(title),
        css=files("opticcl.report").joinpath("page.css").read_text("utf-8"),
        lead=escape(_lead(training)),
        notes=f"<ul>\n{told}</ul>" if told else "",
        links=links,
        body=body,
        version=escape(opticcl.__version__),
    )


def _lead(training: Training) -> str:
    names, times = row_names(training), slowness(training)
    first = training.rows[0]
    said = f"{headline(training)}. Fastest: {names[0]} with {format_seconds(first.iteration.total_s)} an iteration"
    if len(names) > 1:
        said += f"; the slowest, {names[-1]}, takes {ratio(times[-1])} as long"
    wrong = sum(not row.verified for row in training.rows)
    judged = (
        "Every plan was verified." if not wrong else f"Fabrics with a wrong plan: {wrong}; do not trust their times."
    )
    return f"{said}. {judged}"


def _result(training: Training) -> str:
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
        "Fastest first. Waits: for messages while nothing is computed, and its share of the iteration. Computes: share of "
        "the iteration in which the device computes. Network: all messages one after the other. Rate used: of a node's, "
        "while there is communication."
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
    return _html.table((*head, *ends, *more), rows, about) + f"<h3>What was compared</h3>\n{made}{declined}"


def _row(training: Training, row: Row, name: str, times_slower: float) -> str:
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
        _html.verdict(row.verified),
        *map(_html.number, (waits, *ends, *more)),
    )
    return "".join(cells)


def _iterations(training: Training) -> str:
    caption = "What of the iteration is computation, and what is waiting that computation does not hide."
    return _html.figure(iteration_picture(training), caption)


def _timelines(training: Training) -> str:
    caption = "White lines divide tasks and messages where both neighbours are long enough to be seen."
    return _html.figure(timeline_picture(training), caption)


def _plans(training: Training) -> str:
    rows = []
    for name, row in zip(row_names(training), training.rows, strict=True):
        for used in row.plans:
            plan = used.plan
            part = plan.fabric.num_machine_nodes
            ranks = f"{plan.fabric.num_nodes:,}" + (f" of {part:,}" if part > plan.fabric.num_nodes else "")
            numbers = (ranks, f"{used.messages:,}", format_bytes(used.size_bytes), format_seconds(used.total_s))
            texts = (name, plan.schedule.collective.name, plan.algorithm)
            judged = _html.verdict(used.verdict.ok)
            rows.append("".join(map(_html.text, texts)) + "".join(map(_html.number, numbers)) + judged)
    head = ("Fabric", "Collective", "Algorithm", "#Ranks", "#Messages", "#Bytes", "#Time", "Verified")
    return _html.table(head, rows, "Every plan was compiled once, judged once, and timed for each of its messages.")


def _assumptions(training: Training) -> str:
    runtime = training.runtime
    groups = (
        "a group smaller than the machine has a fabric of that system built for its size"
        if training.groups == "scaled"
        else "a group is the nodes of its ranks on the machine"
    )
    about = [
        (
            "messages",
            escape(f"{runtime_words(training)}; first go {_ORDER[runtime.order]}; streams: {runtime.streams}"),
        ),
        ("groups", escape(f"{groups}; groups at work at once do not disturb each other")),
    ]
    for name, value in dataclasses.asdict(training.assumed).items():
        shown = f"{format_bytes(value)}/s" if name.endswith("_bytes_per_s") else str(value)
        told = ABOUT_ASSUMPTION.get(f"{name}={value}") or ABOUT_ASSUMPTION.get(name, "")
        about.append((f"{name} = {shown}", escape(told)))
    return _html.definitions(about)


_ORDER = {
    "transfers_first": "what computation waits for, then gradients",
    "ready": "those that have waited longest",
    "job": "those that stand first in the job",
}
