"""Tables for the terminal."""

import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from opticcl.errors import ParameterError
from opticcl.ir import Timeline, Violation
from opticcl.report.comparison import comparison_blocks, timeline_table
from opticcl.units import format_seconds


def rendered(table, width):
    """What a pipe of that width gets."""
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False).print(table)
    return stream.getvalue()


def shown(comparison, width, columns=()):
    """The tables of a comparison at that width."""
    return "".join(rendered(block, width) for block in comparison_blocks(comparison, columns))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_every_plan_has_its_line_at_every_width(comparison, width):
    """One line a plan, in order, with its time, and no line is wider than the console."""
    lines = shown(comparison, width).splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split() for line in lines[3 : 3 + len(comparison.ranked)]]
    assert [row[0] for row in rows] == [e.fabric.name for e in comparison.ranked]
    for row, entry in zip(rows, comparison.entries, strict=False):
        assert format_seconds(entry.total_s) in " ".join(row)
        assert row[1].split(":")[0] == entry.plan.schedule.name


def test_a_wide_console_shows_whole_cells(comparison):
    """Algorithms with their parameters only where there is room; one table at 80 columns; others where they are asked for."""
    wide, narrow = shown(comparison, 300), shown(comparison, 80)
    whole = max((e.plan.algorithm for e in comparison.ranked), key=len)
    assert whole in wide
    assert narrow.count("fabric ") == wide.count("fabric ")
    for header in ("rounds", "x bound", "parts (%)", "USD per node"):
        assert header not in wide
        assert header in shown(comparison, 300, ["all"])
    assert shown(comparison, 80, ["time", "fabric"]).splitlines()[1].split() == ["time", "fabric"]
    with pytest.raises(ParameterError, match="--columns: no column 'speed'; there are fabric, algorithm, nodes"):
        comparison_blocks(comparison, ["speed"])


def test_the_bottleneck_is_named_where_there_is_room(comparison):
    """In full on a wide console, without parentheses on a narrower one."""
    entry = next(e for e in comparison.entries if e.fabric.name == "ramp")
    name, share = entry.bottleneck.name, f"{entry.bottleneck.utilisation:.0%}"
    assert "(g=" in name
    assert f"{name}, {share}" in shown(comparison, 300, ["fabric", "bottleneck"])
    narrow = shown(comparison, 50, ["fabric", "bottleneck"])
    assert "tx of port" in narrow
    assert "(g=" not in narrow


def test_a_wrong_plan_has_no_rank_and_says_why(comparison):
    """It stands below the others, in a table of its own."""
    first, *others = comparison.entries
    bad = dataclasses.replace(first.verdict, violations=(Violation("clash", 0, 0, "here", "1", "2"),))
    spoilt = dataclasses.replace(first, verdict=bad, ranked=False)
    text = shown(dataclasses.replace(comparison, entries=(*others, spoilt)), 120)
    above, _, below = text.partition("Without a rank")
    assert first.plan.algorithm not in [line.split()[1] for line in above.splitlines()[3:]]
    assert "the plan is wrong" in next(line for line in below.splitlines() if line.startswith(first.fabric.name))


def test_two_shapes_of_one_system_are_told_apart(comparison):
    """Where a fabric stands twice its differing parameters are named."""
    first = comparison.entries[0]
    other = dataclasses.replace(first.fabric, slot=1e-6)
    twice = dataclasses.replace(comparison, entries=(first, dataclasses.replace(first, fabric=other)))
    text = shown(twice, 120)
    assert "ramp:slot=2e-08" in text
    assert "ramp:slot=1e-06" in text


def test_timeline_adds_up(comparison):
    """The last line of a timeline is its total, and parts without time have no column."""
    timeline = next(e for e in comparison.entries if e.fabric.name == "ideal").timelines[0]
    lines = rendered(timeline_table(timeline), 120).rstrip().splitlines()
    total = next(line for line in lines if line.startswith("all"))
    assert format_seconds(timeline.total_s) in total
    assert "reconfiguration" not in lines[0]
    assert "transfer" in lines[0]


def test_long_timelines_are_folded_without_losing_time():
    """Of 100 runs ten rows are left, the middle ones added up."""
    times = np.arange(100.0)
    nothing = np.zeros(100)
    runs = tuple(range(i, i + 1) for i in range(100))
    timeline = Timeline(runs, np.ones(100, int), nothing, times, nothing, nothing, nothing)
    text = rendered(timeline_table(timeline, most_rows=10), 120)
    assert "91 runs of steps" in text
    assert format_seconds(times[5:96].sum()) in text
    assert len(text.split("\n")) < 20
