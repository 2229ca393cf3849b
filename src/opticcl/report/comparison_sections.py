"""Sections of the page on a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from opticcl.assumptions import meaning_of, value_text
from opticcl.errors import OpticclError
from opticcl.ir import ProgressCallback
from opticcl.report.beside import beside_cells, light_word, rank_lines, usd_word
from opticcl.report.comparison_pictures import breakdown_picture, size_picture
from opticcl.report.fastest import Crossing
from opticcl.report.kit import html as _html
from opticcl.report.kit.words import (
    busiest,
    fabric_names,
    gap,
    labels,
    messages,
    ratio,
    shares,
    slower,
    specification,
)
from opticcl.report.light import light_caption, light_picture, small_instance
from opticcl.report.reproduce import reproduction
from opticcl.units import counted, format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.plans.compare import Comparison

__all__ = ["again", "assumptions", "breakdown", "lead", "light", "message_sizes", "result"]


def lead(comparison: Comparison) -> str:
    """The result in a few sentences."""
    entries, names, times = comparison.entries, labels(comparison), slower(comparison)
    nodes = sorted({e.fabric.num_nodes for e in entries})
    count = f"{nodes[0]:,} nodes" if len(nodes) == 1 else f"{nodes[0]:,} to {nodes[-1]:,} nodes"
    plans = f"{len(entries)} plans" if len(entries) > 1 else "one plan"
    text = f"{messages(comparison)}, {plans} on {count}. Fastest: {names[0]} with {format_seconds(entries[0].total_s)}"
    if len(entries) > 1:
        text += f"; {names[1]} takes {ratio(times[1])} the time"
    if len(entries) > 2:
        text += f", the slowest, {names[-1]}, {ratio(times[-1])}"
    wrong = sum(not e.verdict.ok for e in entries)
    verdict = "Every plan was verified." if not wrong else f"Wrong plans: {wrong}; their times mean nothing."
    return f"{text}. {verdict}"


def result(comparison: Comparison) -> str:
    """Table of the plans, parameters of the fabrics, and what was declined; values that all plans share are above it."""
    entries = comparison.entries
    steps, rounds = ([sum(getattr(t, f) for t in e.timelines) for e in entries] for f in ("num_steps", "num_rounds"))
    times, factors = (format_seconds(e.total_s) for e in entries), map(ratio, slower(comparison))
    cells = beside_cells(comparison)
    columns: dict[str, Sequence[str]] = {
        "Fabric": [*map(_html.row_name, fabric_names(comparison))],
        "Algorithm": [_html.text(e.plan.algorithm) for e in entries],
        "#Time": [*map(_html.number, times)],
        **({f"#{comparison.beside.name.capitalize()}": [*map(_html.number, cells)]} if comparison.beside else {}),
        "Gap": [_html.text(gap(e)) for e in entries],
        "#Slower": [*map(_html.number, factors)],
        "#Light": [_html.number(light_word(e)) for e in entries],
        "#USD per node": [_html.number(usd_word(e)) for e in entries],
        "Verified": [_html.verdict(e.verdict.ok) for e in entries],
        "Where it goes": [f"<td>{_html.share_bar(shares(e.totals()))}</td>" for e in entries],
        "Bottleneck": [_html.text(busiest(e, short=True), busiest(e)) for e in entries],
        "#Steps": [_html.number(f"{n:,}") for n in steps],
        "#Rounds": [_html.number(f"{n:,}") for n in rounds],
        "#Nodes": [_html.number(f"{e.fabric.num_nodes:,}") for e in entries],
        "#Node rate": [_html.number(format_rate(e.fabric.node_rate_bits_per_s)) for e in entries],
    }
    shared = [messages(comparison)]
    if steps == rounds:
        shared.append("one round per step")
        del columns["#Rounds"]
    if len(set(columns["#Nodes"])) == 1:
        shared.append(f"{counted(entries[0].fabric.num_nodes, 'node')} each")
        del columns["#Nodes"]
    if len(set(columns["#Node rate"])) == 1:
        shared.append(f"{format_rate(entries[0].fabric.node_rate_bits_per_s)} per node")
        del columns["#Node rate"]
    about = (
        f"{', '.join(shared)}; fastest first. Verified: every rank ends with the right data, and no two signals collide. "
        "Gap: time over the lower bound of any algorithm on that fabric, with what determines that bound. Bottleneck: the "
        "busiest part of the machine, and the share of the time in which it is busy. "
        "Light: margin of the budget of the worst path. " + ". ".join(rank_lines(comparison)) + "."
    )
    rows = ("".join(cells) for cells in zip(*columns.values(), strict=True))
    listed = _html.table([*columns], rows, about) + _html.colour_key()
    return listed + _violations(comparison) + _compared(comparison) + _declined(comparison)


def _violations(comparison: Comparison) -> str:
    plans = zip(labels(comparison), comparison.entries, strict=True)
    return "".join(
        f'<details open><summary class="no">What is wrong with {escape(name)}</summary>'
        f"<pre>{escape(str(entry.verdict))}</pre></details>\n"
        for name, entry in plans
        if not entry.verdict.ok
    )


def _compared(comparison: Comparison) -> str:
    """All parameters of every fabric, as the command line takes them."""
    names = fabric_names(comparison)
    made = dict(zip(names, map(specification, comparison.entries), strict=True))
    return "<h3>What was compared</h3>\n" + _html.definitions((name, _html.call(made[name])) for name in made)


def _declined(comparison: Comparison) -> str:
    if not comparison.declined:
        return ""
    rows = ["".join(map(_html.text, (d.fabric, d.algorithm, d.reason))) for d in comparison.declined]
    listed = _html.table(("Fabric", "Algorithm", "Reason"), rows)
    return f"<details><summary>Left out, with reasons: {len(rows)}</summary>{listed}</details>\n"


def breakdown(comparison: Comparison) -> str:
    """Time of each plan, part by part."""
    caption = (
        "Reconfiguration: setting up circuits. Latency: from the first bit sent to the first bit received. Transfer: "
        "bytes over the rate. Compute: sums of received data. Control: messages of the control plane before a step."
    )
    return _html.figure(breakdown_picture(comparison), caption)


def message_sizes(comparison: Comparison, changes: Sequence[Crossing]) -> str:
    """Time against message size, and where the fastest plan changes."""
    caption = (
        "Each line is a plan, both axes are logarithmic. A flat line is bound by latency, a rising one by the rate. Rings mark "
        "sizes where another plan becomes the fastest."
    )
    picture = _html.figure(size_picture(comparison, found=changes), caption)
    if not changes:
        return f"{picture}<p>The same plan is the fastest at every size drawn.</p>\n"
    rows = [
        _html.number(format_bytes(c.size_bytes))
        + _html.number(f"{c.size_bytes:,}")
        + _html.text(c.before)
        + _html.text(c.after)
        for c in changes
    ]
    head = ("#From", "#Bytes", "Fastest below", "Fastest from here on")
    return picture + _html.table(head, rows, "Where the fastest plan changes")


def light(comparison: Comparison, progress: ProgressCallback) -> str:
    """Circuits of a small instance of each system."""
    html = "<p>The systems compared, each small enough to draw every circuit, with its own algorithm.</p>\n"
    for name in dict.fromkeys(e.fabric.name for e in comparison.entries):
        progress(f"draw the light of {name}")
        try:
            plan = small_instance(name)
            drawn = _html.figure(light_picture(plan), light_caption(plan))
        except OpticclError as error:  # a system without a small instance
            drawn = f"<p>No picture: {escape(str(error))}</p>\n"
        html += f"<h3>{escape(name)}</h3>\n{drawn}"
    return html


def assumptions(comparison: Comparison) -> str:
    """Time assumptions and the engine."""
    assumed = comparison.entries[0].profile.assumed
    items = [
        (f"{name} = {value_text(name, value)}", escape(meaning_of(name, value)))
        for name, value in assumed.record().items()
        if name != "name"
    ]
    settings = comparison.entries[0].timelines[0].assumptions
    engine = "Times are computed in closed form: steps one after the other, each as long as its slowest transfer."
    if "mode" in settings:
        model = "cells that wait in queues" if "cell_bytes" in settings else "flows that share links"
        engine = f"Times are simulated with {model} and a barrier after every step."
    return f"<p>{engine}</p>\n{_html.definitions(items)}"


def again(comparison: Comparison) -> str:
    """The program that computes the comparison again."""
    about = "This program compiles, verifies and times the same plans under the same assumptions."
    return f"<p>{about}</p>\n<pre><code>{escape(reproduction(comparison))}</code></pre>\n"
