"""Tables that fit the console: required columns continue below, optional ones are dropped and named."""

import io
import re
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.measure import Measurement

from opticcl.report.kit.columns import Column, FittedTable, Shown, algorithm_column, columns_of
from opticcl.report.kit.html import share_bar, table
from opticcl.units import format_bytes, format_seconds

WORDS = st.text("abcdefgh", min_size=1, max_size=12)


def rendered(table, width):
    """Lines on a console of that width."""
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@st.composite
def columns(draw):
    """One to eight columns of three rows with distinct headings; the first is required."""
    headers = draw(st.lists(WORDS, min_size=1, max_size=8, unique=True))
    ranks = [0, *(draw(st.integers(0, 3)) for _ in headers[1:])]
    return [Column(h, [draw(WORDS) for _ in range(3)], rank) for h, rank in zip(headers, ranks, strict=True)]


@given(columns(), st.integers(30, 200))
def test_required_columns_are_shown_and_dropped_ones_are_named(drawn, width):
    """At every width from that of a key and one more column; no line is wider than the console."""
    lines = rendered(FittedTable(drawn, "a note"), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    rules = [i for i, line in enumerate(lines) if line.startswith("─")]
    heads = [word for i in rules for word in lines[i - 1].split()]
    required = [c.header for c in drawn if not c.rank]
    assert set(required) <= set(heads)
    assert all(lines[i - 1].split()[0] == drawn[0].header for i in rules)
    dropped = {c.header for c in drawn} - set(heads)
    named = re.search(rf"not shown at {width} columns: (.*?);", text.replace("\n", " "))
    assert (set(named[1].split(", ")) if named else set()) == dropped
    for column in drawn:
        if column.header in heads:
            assert all(cell in text for cell in column.cells)


@given(columns())
def test_the_width_that_shows_all_does(drawn):
    """The number behind COLUMNS= is wide enough."""
    table = FittedTable(drawn)
    match = re.search(r"COLUMNS=(\d+)", "\n".join(rendered(table, 30)).replace("\n", " "))
    if match:
        assert "not shown" not in "\n".join(rendered(table, int(match[1])))


@given(columns(), st.sampled_from([124, 400]))
def test_a_table_is_as_wide_as_it_is_measured(drawn, width):
    """With close cells and with others, where all columns fit."""
    console = Console(width=width)
    measured = Measurement.get(console, console.options, FittedTable(drawn)).maximum
    assert max(map(len, rendered(FittedTable(drawn), width))) == measured


def test_optional_columns_come_in_the_order_of_their_ranks():
    """Short cells before whole ones."""
    table = FittedTable(
        [
            Column("key", ["k"]),
            Column("late", ["x" * 20], 3),
            Column("early", ["y" * 20], 1),
            Column("long", ["z" * 60], 4, short=["zz"], short_rank=2),
        ]
    )
    assert rendered(table, 40)[0].split() == ["key", "early", "long"]
    assert rendered(table, 60)[0].split() == ["key", "late", "early", "long"]
    assert "z" * 60 in rendered(table, 160)[2]


def test_prose_wraps_before_columns_are_dropped():
    """A wrapped column counts with its least width."""
    table = FittedTable([Column("key", ["k"]), Column("text", ["word " * 40], 1, "left", wrap=True)])
    lines = rendered(table, 40)
    assert lines[0].split() == ["key", "text"]
    assert len(lines) > 6


def test_a_total_stands_apart():
    """A rule or a blank line before the last row."""
    lines = rendered(FittedTable([Column("key", ["a", "b", "all"])], has_total=True), 40)
    assert lines[2:4] == ["  a", "  b"]
    assert lines[-1].strip() == "all"
    assert len(lines) == 6


def test_long_algorithms_are_short_where_the_whole_does_not_fit():
    """And what was cut is below the table; with room for all of it nothing is cut."""
    held = "digit_shifts:radices=2x2x2x2,cuts=1x2x3,shifts=1x2x4x8"
    table = FittedTable([Column("key", ["a", "b"]), algorithm_column([held, "ring"]), Column("time", ["1 s", "2 s"])])
    narrow = rendered(table, 60)
    assert narrow[0].split() == ["key", "algorithm", "time"]
    assert "digit_shifts 2x2x2x2, 3 cuts " in narrow[2]
    assert f"digit_shifts 2x2x2x2, 3 cuts is {held}" in " ".join(narrow)
    wide = rendered(table, 120)
    assert held in wide[2]
    assert not any(" cuts" in line for line in wide)


VALUES = {
    "total_s": st.floats(1e-9, 1e3),
    "size_bytes": st.integers(0, 10**12),
    "ranks": st.none() | st.integers(0, 10**6),
    "name": st.text("abc", min_size=1),
    "lead": st.none() | st.floats(0, 10),
}


@given(st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=5))
def test_cells_are_the_values_of_records_in_their_units(rows):
    """With the key in words above them, numbers on the right; a page has the same cells under the same headings."""
    shown = [*map(Shown, ("total_s", "size_bytes", "ranks", "name")), Shown("lead", "its lead", 2, ".3f")]
    texts = []
    for row in rows:
        ranks, lead = row["ranks"], row["lead"]
        counts = "-" if ranks is None else f"{ranks:,}", row["name"], "-" if lead is None else f"{lead:.3f}"
        texts.append((format_seconds(row["total_s"]), format_bytes(row["size_bytes"]), *counts))
    found = columns_of(rows, *shown)
    assert [one.header for one in found] == ["total", "size", "ranks", "name", "its lead"]
    assert [one.justify for one in found] == ["right", "right", "right", "left", "right"]
    assert [*zip(*(one.cells for one in found), strict=True)] == texts
    assert found == columns_of([SimpleNamespace(**row) for row in rows], *shown)
    page = table(found)
    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page) == ["Total", "Size", "Ranks", "Name", "Its lead"]
    cells = [tuple(re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)) for row in re.findall(r"<tr>(.*?)</tr>", page)[1:]]
    assert [tuple(cell.replace("<wbr>", "") for cell in row) for row in cells] == texts


def test_a_page_shows_short_cells_of_one_column_with_the_whole_as_tooltips():
    """And links on the names of rows; markup of texts is escaped, that of a bar is not."""
    whole = Column("part", ["link a (g=1)", "<b>"], justify="left", short=["link a", "<b>"], short_rank=1)
    drawn = Column("share", [share_bar({"latency": 1.0}), share_bar({"transfer": 1.0})], justify="left")
    page = table([Column("row", ["1", "2"]), whole, drawn], tips="part")
    assert '<td title="link a (g=1)">link a</td>' in page
    assert "<b>" not in page
    assert page.count('<span class="bar"') == 2
    linked = table([whole, drawn], links={"<b>": "#b"})
    assert linked.count("<a ") == linked.count('<a href="#b">&lt;b&gt;</a>') == 1
