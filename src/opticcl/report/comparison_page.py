"""A comparison as one self-contained HTML page: no other file, no network; it reads without its script."""

from __future__ import annotations

from collections import Counter
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
from opticcl.report.comparison import comparison_columns
from opticcl.report.comparison_pictures import breakdown_picture, line_names, size_picture
from opticcl.report.fastest import Crossing, crossings, fastest, sizes_between
from opticcl.report.kit import html as _html
from opticcl.report.kit.columns import Column, Shown, columns_of
from opticcl.report.kit.words import shares
from opticcl.report.light import light_caption, light_picture, small_instance, thinned_picture
from opticcl.report.reproduce import reproduction
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison
    from opticcl.plans.plan import Plan

__all__ = ["best_of_each", "drawn", "page_text", "result", "write_page"]

TOP = 10
"""Plans of a fabric in the table; the others are folded [count]."""

MOST_DRAWN = 40
"""Plans of a picture [count]."""

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
        ("result", "Which plan is fastest", result(comparison)),
        ("time", "Where the time goes", _breakdown(comparison)),
        ("size", "Time against message size", _message_sizes(comparison, changes)),
        ("compared", "What was compared", _compared(comparison)),
        ("light", "The machines, and their circuits", _light(comparison, progress)),
        ("assumptions", "Assumptions behind these times", _assumptions(comparison)),
        ("again", "How to reproduce this page", _again(comparison)),
    ]
    notes = (*comparison.notes, *caveats(comparison), *map(str, comparison.excluded))
    return _html.page(title, _lead(comparison), notes, sections, script="page.js")


def _lead(comparison: Comparison) -> str:
    """The answer, and what the verifier found."""
    return f"{headline(comparison)} {verdicts_line([e.verdict.verdict for e in comparison.entries])}."


def result(comparison: Comparison) -> str:
    """Table of the plans and what is wrong with some; values that all plans share are above it."""
    known = {one.header: one for one in comparison_columns(comparison)}
    shown = [known[header] for header in _SHOWN if header in known]
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
    first = best_of_each(comparison, TOP)
    listed = _html.table(shown, about, kind="plans", rows=first, tips="bottleneck") + _html.colour_key()
    others = [i for i in range(len(comparison.entries)) if i not in {*first}]
    if others:
        more = _html.table(shown, kind="plans", rows=others, tips="bottleneck")
        listed += _html.folded(f"{counted(len(others), 'more plan')}: each fabric has {TOP} faster ones above", more)
    return listed + _violations(comparison)


_SHOWN = (
    "fabric", "algorithm", "time", "vs best", "as built", "light", "node rate", "nodes", "published", "common", "x bound",
    "USD per node", "verified", "bottleneck", "steps", "rounds",
)  # fmt: skip
"""Headings of the columns, those that answer the question first."""


def best_of_each(comparison: Comparison, most: int) -> list[int]:
    """Positions of the fastest plans of each fabric, in the order of the comparison.

    Args:
        comparison: whose plans are in the order of their times.
        most: plans of a fabric [count].
    """
    seen: Counter[str] = Counter()
    found = []
    for i, entry in enumerate(comparison.entries):
        seen[entry.fabric.name] += 1
        if seen[entry.fabric.name] <= most:
            found.append(i)
    return found


def drawn(comparison: Comparison, changes: Sequence[Crossing] = ()) -> tuple[Comparison, str]:
    """The plans that a picture can show legibly: the fastest few of each fabric, and those that are fastest at some size.

    Args:
        comparison: all plans.
        changes: sizes at which another plan becomes the fastest.
    Returns: some of the plans; a sentence that says which, "" if they are all.
    """
    most = next((n for n in range(TOP, 1, -1) if len(best_of_each(comparison, n)) <= MOST_DRAWN), 1)
    kept = set(best_of_each(comparison, most))
    if len(kept) == len(comparison.entries):
        return comparison, ""
    ends = (sizes_between()[0], sizes_between()[-1])
    kept |= {fastest(comparison.entries, size) for size in (*ends, *(c.size_bytes for c in changes)) if changes}
    entries = tuple(entry for i, entry in enumerate(comparison.entries) if i in kept)
    which = "plan" if most == 1 else f"{most} plans"
    about = f" Drawn: the fastest {which} of each fabric" + (
        ", and those that are fastest at some size." if changes else "."
    )
    return replace(comparison, entries=entries), about


def _violations(comparison: Comparison) -> str:
    plans = zip(labels(comparison), comparison.entries, strict=True)
    return "".join(
        f'<details open><summary class="no">What is wrong with {escape(name)}</summary>'
        f"<pre>{escape(str(entry.verdict))}</pre></details>\n"
        for name, entry in plans
        if not entry.verdict.ok
    )


def _compared(comparison: Comparison) -> str:
    """All parameters of every fabric, as the command line takes them, and what was left out."""
    named = zip(fabric_names(comparison), comparison.entries, strict=True)
    made = {name: _html.call(specification(entry.fabric)) for name, entry in named}
    return _html.definitions(made.items()) + _declined(comparison)


def _declined(comparison: Comparison) -> str:
    if not comparison.declined:
        return ""
    listed = _html.table(columns_of(comparison.declined, Shown("fabric"), Shown("algorithm"), Shown("reason")))
    return _html.folded(f"Left out, with reasons: {len(comparison.declined)}", listed)


def _breakdown(comparison: Comparison) -> str:
    """Time of each plan, part by part."""
    caption = (
        "Reconfiguration: setting up circuits. Latency: from the first bit sent to the first bit received. Transfer: "
        "bytes over the rate. Compute: sums of received data. Control: messages of the control plane before a step."
    )
    some, about = drawn(comparison)
    return _html.figure(breakdown_picture(some), caption + about)


def _message_sizes(comparison: Comparison, changes: Sequence[Crossing]) -> str:
    """Time against message size, and where the fastest plan changes."""
    caption = (
        "Each line is a plan, both axes are logarithmic. A flat line is bound by latency, a rising one by the rate. Rings mark "
        "sizes where another plan becomes the fastest."
    )
    some, about = drawn(comparison, changes)
    picture = _html.figure(size_picture(some, found=changes), caption + about, line_names(some))
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


def _light(comparison: Comparison, progress: ProgressCallback) -> str:
    """The machine compared with its fastest plan, and circuits of a small instance of each system."""
    html = (
        "<p>First the machine that was compared: the first step of its fastest plan, thinned where it has many circuits. "
        "Then a small instance with every circuit, by the algorithm of its own.</p>\n"
    )
    for i in best_of_each(comparison, 1):
        name = comparison.entries[i].fabric.name
        progress(f"draw the light of {name}")
        html += f"<h3>{escape(name)}</h3>\n{_machine(comparison.entries[i].plan)}"
        try:
            plan = small_instance(name)
            html += _html.figure(light_picture(plan), light_caption(plan))
        except OpticclError as error:  # a system without a small instance
            html += f"<p>No small instance: {escape(str(error))}</p>\n"
    return html


def _machine(plan: Plan) -> str:
    """Picture of the first step of a plan on the machine compared."""
    if plan.fabric.num_nodes > MOST_NODES:
        return f"<p>{plan.fabric.num_nodes:,} nodes are too many to draw.</p>\n"
    try:
        return _html.figure(*thinned_picture(plan))
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
