"""The picture of control messages."""

from xml.etree import ElementTree

import pytest

import opticcl
from opticcl.errors import ParameterError
from opticcl.operations.oddl_control.simulation import Channel
from opticcl.report.control_plane import control_figure, control_label
from opticcl.report.kit.svg import drawing_style, to_svg


def control_picture(plan, exchange=0):
    """The picture as SVG."""
    return to_svg(lambda: control_figure(plan, exchange), "control", control_label(plan, exchange))


@pytest.fixture(scope="module")
def plan():
    """Halving-doubling on two rows of four."""
    return opticcl.compile("oddl:shape=2x4", "all_reduce", "10 KB", algorithm="halving_doubling")


def test_it_shows_the_exchange_and_who_takes_part(plan):
    """The nodes of one exchange and of the one before, both kinds of message, the time that control takes."""
    svg = control_picture(plan, 1)
    said = [e.text for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in said if t and t.startswith("node ")] == ["node 0", "node 2", "node 4", "node 6"]
    assert {"retuning", "payload", "previous completion", "transceiver ready"} <= set(said)
    assert any(t and "10 us of control" in t for t in said)
    assert control_picture(plan, 1) == svg


def test_lost_messages_end_in_a_cross(plan):
    """Only where something is lost, and then the legend explains it."""

    def crosses(channel):
        with drawing_style():
            axes = control_figure(plan, 2, channel).axes[0]
        explained = [text.get_text() for text in axes.get_legend().get_texts()]
        return sum(line.get_marker() == "x" for line in axes.lines), "lost message" in explained

    assert crosses(None) == (0, False)
    count, explained = crosses(Channel(loss=0.4, seed=3))
    assert count > 0
    assert explained


def test_exchanges_that_are_not_there_are_refused(plan):
    """Also of a job that exchanges nothing."""
    with pytest.raises(ParameterError, match="no exchange 6; try 0 to 5"):
        control_picture(plan, 6)
    with pytest.raises(ParameterError, match="no exchange -1"):
        control_picture(plan, -1)
    alone = opticcl.compile("oddl:shape=1", "all_reduce", 10, algorithm="ring")
    with pytest.raises(ParameterError, match="one node alone exchanges nothing"):
        control_picture(alone)
