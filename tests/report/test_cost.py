"""The picture of cost against scale."""

from opticcl.evaluate.cost import bill_of
from opticcl.fabric import fabric_at_scale
from opticcl.report.cost import cost_figure
from opticcl.report.svg import drawing_style


def test_lines_that_lie_on_each_other_can_be_told_apart():
    """TeraRack's ring and torus cost the same for each Gb/s: the later line is dashed, so that both are seen."""
    names = ("torus", "terarack", "terarack_torus")
    bills = {name: [bill_of(fabric_at_scale(name, n)) for n in (16, 64, 256)] for name in names}
    with drawing_style():
        figure = cost_figure(bills)
    for axes in figure.axes:
        assert len(axes.lines) == 3
        _, ring, torus = axes.lines
        assert (ring.get_linestyle(), torus.get_linestyle()) == ("-", "--")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(names)


def test_a_picture_with_ranges_says_which_end_is_drawn():
    """Where every source gives one number there is nothing to say."""
    with drawing_style():
        with_range, without = (cost_figure({name: [bill_of(fabric_at_scale(name, 16))]}) for name in ("oddl", "torus"))
    assert "high end of a range" in with_range.texts[0].get_text()
    assert not without.texts
