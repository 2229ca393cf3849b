"""Parts of pictures: places in inches, bars of times, keys of colours."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure, stack_bars, time_bars, write_key, write_scale
from opticcl.report.kit.svg import to_svg

COLOURS = ["#ff0000", "#00ff00", "#0000ff"]


def bars_of(axes):
    """Left end, right end and middle of each bar, by colour."""
    found = {}
    for box in axes.patches:
        left, wide = box.get_x(), box.get_width()
        found.setdefault(box.get_facecolor()[:3], []).append((left, left + wide, box.get_y() + box.get_height() / 2))
    return found


@given(st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3), min_size=1, max_size=6))
def test_bars_are_divided_into_their_parts(lengths):
    """Each part begins where those before it end, in the row of its bar."""
    axes = axes_at(new_figure(3.0), 1.0, 0.5, 5.0, 2.0)
    stack_bars(axes, np.array(lengths, float), COLOURS, [["", "", ""]] * len(lengths))
    found = bars_of(axes)
    for number, colour in enumerate(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))):
        parts = [(sum(row[:number]), sum(row[: number + 1]), place) for place, row in enumerate(lengths)]
        expected = parts if any(row[number] for row in lengths) else []
        assert np.allclose(found.get(colour, []), expected)


@pytest.mark.parametrize(("slowest_s", "bars"), [(25.0, True), (26.0, False)])
def test_times_that_differ_too_much_for_bars_are_points(slowest_s, bars):
    """On a logarithmic scale; the scale ends with the data, the texts stand right of it, and titles name the parts."""
    figure = new_figure(2.0)
    axes = axes_at(figure, 1.0, 0.5, 5.0, 1.0)
    parts = np.array([[0.5, 0.5, 0.0], [slowest_s, 0.0, 0.0]])
    texts = ["1 s, of many words", f"{slowest_s} s, of many words"]
    titles = [["first half", "second half", ""], ["all <of it>", "", ""]]
    assert time_bars(axes, parts, COLOURS, ["#000000"] * 2, texts, titles) == bars
    assert axes.get_xscale() == ("linear" if bars else "log")
    assert bool(axes.patches) == bars
    assert slowest_s <= axes.get_xlim()[1] <= 1.3 * slowest_s
    figure.draw_without_rendering()
    for text in axes.texts:
        assert text.get_window_extent().x0 >= axes.get_window_extent().x1
    shown = re.findall(r"<g><title>(.*?)</title>", to_svg(lambda: figure, "bars", "bars"))
    assert shown == (
        ["first half", "all &lt;of it&gt;", "second half"] if bars else ["first half, second half", "all &lt;of it&gt;"]
    )


def test_places_are_inches():
    """Of axes from the lower left corner, whatever the height; of a key from its left end, which moves where it is long."""
    figure = new_figure(4.0, "title", "remark")
    box = axes_at(figure, 1.5, 0.5, 6.0, 2.0).get_window_extent()
    assert np.allclose(np.array(box.bounds) / figure.dpi, (1.5, 0.5, 6.0, 2.0))
    assert [text.get_text() for text in figure.texts] == ["title", "remark"]
    assert 2.0 < write_key(figure, [("short", "#ff0000")], 2.0, 3.0) < WIDTH
    assert write_key(figure, [("a long name of a part", "#ff0000")] * 4, 5.0, 3.0) <= WIDTH


def test_scales_have_their_label_and_unit():
    """Text of the ticks, linear or logarithmic."""

    def draw():
        figure = new_figure(3.0)
        axes = axes_at(figure, 1.0, 0.5, 5.0, 2.0)
        axes.plot([1.0, 1000.0], [1.0, 2.0])
        write_scale(axes, "x", "time", "{:g} s".format, log=True)
        write_scale(axes, "y", "share")
        return figure

    svg = to_svg(draw, "scales", "two scales")
    assert all(text in svg for text in (">time<", ">share<", ">1 s<", ">1000 s<", ">1.0<"))
