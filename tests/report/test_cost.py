"""The picture of cost against scale."""

from itertools import pairwise

import pytest
from matplotlib.text import Text

from opticcl.estimate.cost import bill_of
from opticcl.fabrics import fabric_at_scale
from opticcl.report.cost import MOST_SHADED, cost_figure
from opticcl.report.kit.svg import drawing_style

MANY = ("torus", "terarack", "terarack_torus", "oddl", "ramp", "lightpath", "sipac")


def draw(names, scales=(16, 64, 256)):
    """The figure for fabrics at those scales."""
    with drawing_style():
        return cost_figure({name: [bill_of(fabric_at_scale(name, n)) for n in scales] for name in names})


def said(axes):
    """Names at the ends of the lines, from the lowest up."""
    return [text.get_text() for text in sorted(axes.texts, key=lambda text: text.xyann[1])]


def place(name):
    """Where a name stands, without its leader [pixels]."""
    return Text.get_window_extent(name)


def test_lines_that_lie_on_each_other_can_be_told_apart():
    """TeraRack's ring and torus cost the same for each Gb/s: the later line is dashed, so that both are seen."""
    names = ("torus", "terarack", "terarack_torus")
    for axes in draw(names).axes:
        assert len(axes.lines) == 3
        _, ring, torus = axes.lines
        assert (ring.get_linestyle(), torus.get_linestyle()) == ("-", "--")
        assert {text.partition("  ")[0].rstrip("*") for text in said(axes)} == set(names)


@pytest.mark.parametrize("names", [MANY, ("torus",), ("torus", "lightpath:laser_rate=200Gb/s,reconfiguration=1us")])
def test_each_line_is_named_at_its_end_and_no_name_lies_on_another(names):
    """Also where lines end at the same value, and where a long name stands on several lines."""
    with drawing_style():
        figure = cost_figure(
            {name: [bill_of(fabric_at_scale(name.partition(":")[0], n)) for n in (16, 64)] for name in names}
        )
        figure.draw_without_rendering()
        page = figure.bbox
        for axes in figure.axes:
            assert len(axes.texts) == len(names)
            boxes = sorted(map(place, axes.texts), key=lambda box: box.y0)
            for below, above in pairwise(boxes):
                assert below.y0 + 0.75 * below.height < above.y0 + 0.25 * above.height
            assert all(box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1 for box in boxes)
    left, right = figure.axes
    ends = [place(text).x1 for text in left.texts]
    assert max(ends) < right.get_position().x0 * page.width


def test_ranges_are_shaded_only_while_few_fabrics_are_drawn():
    """More shades would lie on each other; then the names tell both ends."""
    few, many = draw(("oddl", "ramp")), draw(MANY)
    assert len(MANY) > MOST_SHADED
    assert all(len(axes.collections) == 2 for axes in few.axes)
    assert not any(axes.collections for axes in many.axes)
    assert "shaded down to its low end" in few.texts[1].get_text()
    assert "beside the name" in many.texts[1].get_text()
    (oddl,) = [text for text in said(many.axes[0]) if text.startswith("oddl")]
    low, high = bill_of(fabric_at_scale("oddl", 256)).usd_per_gbps
    assert oddl == f"oddl*  {low:.3g} $ to {high:.3g} $"


def test_the_picture_says_what_it_shows():
    """How many fabrics, at which scale, by which prices, and what is assumed; nothing of ranges where there are none."""
    several, alone = draw(("oddl", "torus")), draw(("torus",), (16,))
    assert several.texts[0].get_text() == "Price and power of 2 fabrics at 16 to 256 nodes, price list default"
    assert "assumed" in several.texts[1].get_text()
    assert alone.texts[0].get_text() == "Price and power of 1 fabric at 16 nodes, price list default"
    assert alone.texts[1].get_text() == ""
    for axes in several.axes:
        assert {text.partition("  ")[0] for text in said(axes)} == {"oddl*", "torus"}
