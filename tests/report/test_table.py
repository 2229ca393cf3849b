"""Tables for the terminal."""

import dataclasses
import io
import re

import numpy as np
import pytest
from rich.console import Console

from opticcl.ir import Timeline, Violation
from opticcl.report.comparison import comparison_table, timeline_table
from opticcl.units import format_rate, format_seconds


def rendered(table, width):
    """What a pipe of that width gets."""
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False).print(table)
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_every_plan_has_its_line_at_every_width(comparison, width):
    """One line a plan, in order, with its time, and no line is wider than the console; the verdict of all stands below."""
    lines = rendered(comparison_table(comparison), width).splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split() for line in lines[2 : 2 + len(comparison.entries)]]
    assert [row[:2] for row in rows] == [[e.fabric.name, e.plan.algorithm] for e in comparison.entries]
    for row, entry in zip(rows, comparison.entries, strict=True):
        assert format_seconds(entry.total_s) in " ".join(row)
    assert "all plans verified" in " ".join(" ".join(lines[2 + len(rows) :]).split())


def test_a_wide_console_shows_more_columns_than_a_narrow_one(comparison):
    """Steps, rounds and efficiency appear only where there is room; nodes stand below since all plans share them."""
    table = comparison_table(comparison)
    wide, narrow = rendered(table, 300), rendered(table, 60)
    assert all(word in wide for word in ("steps", "gap", "parts (%)", "54 nodes each"))
    assert "steps" not in narrow.splitlines()[0]
    assert all(word in narrow for word in ("fabric", "algorithm", "time", "verified"))
    assert "verified" not in narrow.splitlines()[0]


def test_rates_that_differ_stand_in_the_table_and_below_it(comparison):
    """At 120 columns each row has its node's rate; where all are alike it stands below, and no advice."""
    lines = rendered(comparison_table(comparison), 120).splitlines()
    for line, entry in zip(lines[2:], comparison.entries, strict=False):
        assert format_rate(entry.fabric.node_rate_bits_per_s) in line
    assert any("--equal rate=800Gb/s" in line for line in lines)
    of_one = tuple(e for e in comparison.entries if e.fabric is comparison.entries[0].fabric)
    alike = rendered(comparison_table(dataclasses.replace(comparison, entries=of_one)), 120)
    assert f"{format_rate(of_one[0].fabric.node_rate_bits_per_s)} per node" in alike
    assert "--equal" not in alike


def test_the_bottleneck_is_named_where_there_is_room(comparison):
    """In full on a wide console, without parentheses on a narrower one, not at all on a narrow one."""
    table = comparison_table(comparison)
    entry = next(e for e in comparison.entries if e.fabric.name == "ramp")
    name, share = entry.bottleneck.name, f"{entry.bottleneck.utilisation:.0%}"
    assert "(g=" in name
    assert f"{name}, {share}" in rendered(table, 300)
    middling = rendered(table, 200)
    assert "tx of port" in middling
    assert "(g=" not in middling
    assert "bottleneck" not in rendered(table, 80).splitlines()[0]
    assert re.search("not shown at 80 columns: [^;]*bottleneck", rendered(table, 80))
    assert "busbw" in rendered(table, 300)


def test_a_wrong_plan_says_so(comparison):
    """A plan with a violation is marked NO."""
    first, *others = comparison.entries
    bad = dataclasses.replace(first.verdict, violations=(Violation("clash", 0, 0, "here", "1", "2"),))
    spoilt = dataclasses.replace(comparison, entries=(dataclasses.replace(first, verdict=bad), *others))
    lines = rendered(comparison_table(spoilt), 120).splitlines()
    assert lines[2].split()[-1] == "NO"
    assert lines[3].split()[-1] == "yes"


def test_two_shapes_of_one_system_are_told_apart(comparison):
    """Where a fabric stands twice its differing parameters are named."""
    first = comparison.entries[0]
    other = dataclasses.replace(first.fabric, slot=1e-6)
    twice = dataclasses.replace(comparison, entries=(first, dataclasses.replace(first, fabric=other)))
    text = rendered(comparison_table(twice), 120)
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
