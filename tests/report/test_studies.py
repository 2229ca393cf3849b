"""Tables and pictures of studies."""

from __future__ import annotations

import pytest
from rich.console import Console

from opticcl.report.kit.svg import drawing_style, save_picture, to_svg
from opticcl.report.studies import study_figure, study_table
from opticcl.studies import Chart, Study, run_study

LINES = [
    {"size_bytes": x, "algorithm": name, "time_s": x * k * 1e-9}
    for name, k in (("a", 1), ("b", 2))
    for x in (1000, 10**6)
]


def study(rows=LINES, **chart) -> Study:
    """Two lines."""
    how = {"x": "size_bytes", "y": "time_s", "lines": ("algorithm",), "x_label": "size", "y_label": "time"}
    return Study("s", "A title", "nowhere", rows, Chart(**{**how, **chart}))


def text_of(table) -> str:
    """As a terminal of 100 columns shows it."""
    console = Console(width=100)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def test_lines_stand_side_by_side() -> None:
    """One row for each x, where nothing else is told; with units."""
    lines = text_of(study_table(study())).splitlines()
    assert lines[0].split() == ["size", "a", "b"]
    assert lines[2].split() == ["1", "KB", "1", "us", "2", "us"]
    assert len(lines) == 4


def test_more_columns_make_a_long_table() -> None:
    """Every row on its own, columns named in words."""
    rows = [{**row, "at_least": 3} for row in LINES]
    lines = text_of(study_table(study(rows))).splitlines()
    assert lines[0].split() == ["size", "algorithm", "time", "at", "least"]
    assert len(lines) == 2 + len(rows)


@pytest.mark.parametrize("logarithmic", ["", "x", "y", "xy"])
def test_a_picture_has_every_line(logarithmic: str) -> None:
    """Names of lines and axes stand in it."""
    svg = to_svg(lambda: study_figure(study(logarithmic=logarithmic)), "s", "label")
    for text in (">a<", ">b<", ">size<", ">time<", ">A title<"):
        assert text in svg


def test_lines_on_each_other_share_a_name() -> None:
    """So that none looks forgotten."""
    rows = [*LINES, *({**row, "algorithm": "c"} for row in LINES[:2])]
    with drawing_style():
        figure = study_figure(study(rows))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a,\nc", "b"]


def test_a_study_is_drawn_to_a_file(tmp_path) -> None:
    """As PNG."""
    found = run_study("transfers:nodes=6,lasers=2")
    file = tmp_path / "picture.png"
    save_picture(file, lambda: study_figure(found), found.title)
    assert file.read_bytes().startswith(b"\x89PNG")
