"""A comparison as one self-contained HTML page: no other file, no network; it reads without its script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.errors import OpticclError
from opticcl.files import write_whole
from opticcl.ir import ProgressCallback, no_progress
from opticcl.plans.machines import specification
from opticcl.plans.names import fabric_names, labels, messages
from opticcl.plans.sentences import caveats, headline
from opticcl.report.beside import verdicts_line
from opticcl.report.comparison import comparison_blocks, comparison_columns
from opticcl.report.comparison_pictures import breakdown_picture, size_picture
from opticcl.report.fastest import Crossing, crossings, fastest, sizes_between
from opticcl.report.kit import html as _html
from opticcl.report.kit.columns import Column, Shown, columns_of
from opticcl.report.kit.words import shares
from opticcl.report.light import light_caption, light_picture, small_instance, thinned_picture
from opticcl.report.reproduce import reproduction

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison
    from opticcl.plans.plan import Plan

__all__ = ["answer", "best_of_each", "drawn", "every_plan", "page_text", "write_page"]

MOST_NODES = 256
"""Of a machine that is drawn [count]."""


def write_page(path: str | Path, comparison: Comparison, title: str, progress: ProgressCallback = no_progress) -> None:
    """Write a comparison as one page: tables, pictures, assumptions and the program that computes it again.

    Args:
        path: of the file; an existing file is replaced.
        comparison: to show.
        title: of the page.
        progress: called with a line of text before each part of the work.
    Raises: OutputError: the file cannot be written; an existing file is unchanged.
    """
    with write_whole(Path(path)) as file:  # opened first, so that a bad path fails before the work is done
        file.write(page_text(comparison, title, progress).encode())


def page_text(comparison: Comparison, title: str, progress: ProgressCallback = no_progress) -> str:
    """The page that `write_page` writes: the same text for the same comparison.

    Args:
        comparison: to show.
        title: of the page.
        progress: called with a line of text before each part of the work.
    """
    progress("find where the fastest plan changes")
    changes = crossings(comparison)
    progress("draw times")
    sections = [
        _html.Section("result", "Which plan is fastest", answer(comparison)),
        _html.Section("all", "All plans and columns", every_plan(comparison), folded=True),
        _html.Section("size", "Time against message size", _message_sizes(comparison, changes), folded=True),
        _html.Section("plans", "The plans and their circuits", _plans(comparison, progress), folded=True),
        _html.Section("assumptions", "Assumptions behind these times", _assumptions(comparison), folded=True),
        _html.Section("again", "How to reproduce this page", _again(comparison), folded=True),
    ]
    notes = [*caveats(comparison), *comparison.notes, *map(str, comparison.left_out)]
    return _html.page(title, _lead(comparison), notes, sections, script="page.js")


def _lead(comparison: Comparison) -> str:
    """The answer, and what the verifier found."""
    return f"{headline(comparison)} {verdicts_line([e.verdict.verdict for e in comparison.entries])}."


def answer(comparison: Comparison) -> str:
    """The fastest plan of each fabric with the columns that a terminal shows, and their times beside price and power."""
    best = best_of_each(comparison)
    names = fabric_names(comparison)
    links = {names[i]: f"#plan-{i}" for i in best}
    blocks = comparison_blocks(comparison, rows=best)
    tables = "".join(_html.table(one.columns, one.heading, kind="answer", links=links) for one in blocks)
    some = replace(comparison, entries=tuple(comparison.entries[i] for i in best))
    caption = (
        "Reconfiguration: setting up circuits. Latency: from the first bit sent to the first bit received. Transfer: "
        "bytes over the rate. Compute: sums of received data. Control: messages of the control plane before a step. "
        "Price and power: geometric mean of the range of the bill, at the rate of this comparison."
    )
    return tables + _violations(comparison) + _html.figure(breakdown_picture(some), caption)


def every_plan(comparison: Comparison) -> str:
    """Table of all plans with all columns."""
    shown = [one for one in comparison_columns(comparison) if one.header != "parts (%)"]
    why = [entry.no_rank for entry in comparison.entries]
    if any(why):
        shown.append(Column("no rank", why, justify="left"))
    shown.append(
        Column("where it goes", [_html.share_bar(shares(e.totals())) for e in comparison.entries], justify="left")
    )
    about = (
        f"{messages(comparison)}; fastest first, plans without a rank last. x bound: time over the lower bound of any "
        "algorithm on that fabric, with what determines that bound. Bottleneck: the busiest part of the machine, and the "
        "share of the time in which it is busy. Light: margin of the worst circuit of the plan."
    )
    return _html.table(shown, about, kind="plans", tips="bottleneck") + _html.colour_key() + _declined(comparison)


def best_of_each(comparison: Comparison) -> list[int]:
    """Position of the fastest plan of each fabric, in the order of the comparison."""
    first: dict[str, int] = {}
    for i, name in enumerate(fabric_names(comparison)):
        first.setdefault(name, i)
    return list(first.values())


def drawn(comparison: Comparison, changes: Sequence[Crossing]) -> tuple[Comparison, str]:
    """The plans that a picture of many sizes can show: the fastest of each fabric, and those that are fastest at some size.

    Args:
        comparison: all plans.
        changes: sizes at which another plan becomes the fastest.
    Returns: some of the plans; a sentence that says which, "" if they are all.
    """
    sizes = (sizes_between()[0], *(change.size_bytes for change in changes))
    kept = {*best_of_each(comparison), *(fastest(comparison.entries, size) for size in sizes)}
    if len(kept) == len(comparison.entries):
        return comparison, ""
    entries = tuple(entry for i, entry in enumerate(comparison.entries) if i in kept)
    return replace(comparison, entries=entries), (
        " Drawn: the fastest plan of each fabric at the size compared, and those that are fastest at some size."
    )


def _violations(comparison: Comparison) -> str:
    plans = zip(labels(comparison), comparison.entries, strict=True)
    return "".join(
        f'<details open><summary class="no">What is wrong with {escape(name)}</summary>'
        f"<pre>{escape(str(entry.verdict))}</pre></details>\n"
        for name, entry in plans
        if not entry.verdict.ok
    )


def _declined(comparison: Comparison) -> str:
    if not comparison.declined:
        return ""
    listed = _html.table(columns_of(comparison.declined, Shown("fabric"), Shown("algorithm"), Shown("reason")))
    return _html.folded(f"Left out, with reasons: {len(comparison.declined)}", listed)


def _message_sizes(comparison: Comparison, changes: Sequence[Crossing]) -> str:
    """Time against message size, and where the fastest plan changes."""
    caption = (
        "Each line is a plan, both axes are logarithmic. A flat line is bound by latency, a rising one by the rate."
    )
    caption += " Rings mark sizes where another plan becomes the fastest." if changes else ""
    some, about = drawn(comparison, changes)
    picture = _html.figure(size_picture(some, found=changes), caption + about)
    if not changes:
        return f"{picture}<p>The same plan is the fastest at every size drawn.</p>\n"
    columns = columns_of(
        changes,
        Shown("size_bytes", "from"),
        Shown("size_bytes", "bytes", form=","),
        Shown("before", "fastest below"),
        Shown("after", "fastest from here on"),
    )
    return picture + _html.table(columns, "Where the fastest plan changes")


def _plans(comparison: Comparison, progress: ProgressCallback) -> str:
    """Of each fabric the parameters, the command that compiles its fastest plan, and circuits of that plan.

    A small instance of the system follows, with every circuit.
    """
    html = (
        "<p>Circuits are those of the first step of the fastest plan, thinned where there are many; below them a small "
        "instance of the system has every circuit, by the algorithm of its own.</p>\n"
    )
    names = fabric_names(comparison)
    for i in best_of_each(comparison):
        entry = comparison.entries[i]
        progress(f"draw the light of {entry.fabric.name}")
        html += f'<h3 id="plan-{i}">{escape(names[i])}</h3>\n<p>{_html.call(specification(entry.fabric))}</p>\n'
        html += f"<pre><code>{escape(entry.command)}</code></pre>\n" if entry.command else ""
        html += _machine(entry.plan, f"machine-{i}")
        try:
            plan = small_instance(entry.fabric.name)
            html += _html.figure(light_picture(plan, name=f"light-{i}"), light_caption(plan))
        except OpticclError as error:  # a system without a small instance
            html += f"<p>No small instance: {escape(str(error))}</p>\n"
    return html


def _machine(plan: Plan, name: str) -> str:
    """Picture of the first step of a plan on the machine compared.

    Args:
        plan: to draw.
        name: prefix of the ids in the picture.
    """
    if plan.fabric.num_nodes > MOST_NODES:
        return f"<p>{plan.fabric.num_nodes:,} nodes are too many to draw.</p>\n"
    try:
        return _html.figure(*thinned_picture(plan, name))
    except OpticclError as error:  # nothing is sent
        return f"<p>No picture: {escape(str(error))}</p>\n"


def _assumptions(comparison: Comparison) -> str:
    """Time assumptions and the engine."""
    settings = comparison.entries[0].timelines[0].assumptions
    engine = "Times are computed in closed form: steps one after the other, each as long as its slowest transfer."
    if "mode" in settings:
        model = "cells that wait in queues" if "cell_bytes" in settings else "flows that share links"
        engine = f"Times are simulated with {model} and a barrier after every step."
    return f"<p>{engine}</p>\n{_html.definitions(_html.assumptions(comparison.entries[0].profile.assumed))}"


def _again(comparison: Comparison) -> str:
    """The program that computes the comparison again."""
    about = "This program compiles, verifies and times the same plans under the same assumptions."
    return f"<p>{about}</p>\n<pre><code>{escape(reproduction(comparison))}</code></pre>\n"
