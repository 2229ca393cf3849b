"""Pictures of training: what is drawn can be seen."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from opticcl.fabrics import fabric
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.report.kit.words import ratio
from opticcl.report.training_page import training_page_text
from opticcl.report.training_pictures import timeline_figure
from opticcl.training.train import train
from opticcl.units import format_seconds


def test_white_lines_stand_between_long_spans_and_hide_no_short_one():
    """Two computations of a second are divided; a message of some microseconds is not covered by a line of its own."""
    tasks = (
        Task("forward", 1.0),
        Task("backward", 1.0),
        Task("gradient 1", 0.0, "all_reduce", 8, "all", (0,)),
        Task("gradient 2", 0.0, "all_reduce", 8, "all", (0,)),
    )
    job = TaskGraph("job", "written", 4, tasks, {"all": ProcessGroup("all", range(4))})
    (axes,) = timeline_figure(train(job, [fabric("ideal:nodes=4")], assumptions="published")).axes
    lines = [path for group in axes.collections if isinstance(group, LineCollection) for path in group.get_segments()]
    assert [path[0][0] for path in lines if len(path)] == [1.0]
    messages = axes.collections[-2]
    assert len(messages.get_paths()) == 2
    assert messages.get_linewidth()[0] > 0
    assert np.array_equal(messages.get_edgecolor(), messages.get_facecolor())


def test_the_picture_says_what_it_shows_and_how_long_each_iteration_takes():
    """Title, a key of every mark, and beside each row its time and how much slower than the fastest it is."""
    tasks = (Task("forward", 1e-3), Task("gradient", 0.0, "all_reduce", 10**8, "all", (0,)))
    job = TaskGraph("small job", "written", 4, tasks, {"all": ProcessGroup("all", range(4))})
    found = train(job, [fabric(f"ideal:nodes=4,rate={rate}Gb/s") for rate in (400, 100)], assumptions="published")
    figure = timeline_figure(found)
    said = [text.get_text() for text in figure.texts]
    assert said[0] == "An iteration of small job on 4 devices: 2 fabrics, fastest first"
    assert {"computes", "messages", "end of the iteration"} <= set(said)
    (axes,) = figure.axes
    first, second = (row.iteration.total_s for row in found.rows)
    beside = {text.xy[1]: text.get_text() for text in axes.texts}
    assert beside == {
        0: f"{format_seconds(first)}  (1.00x)",
        1: f"{format_seconds(second)}  ({ratio(second / first)})",
    }
    assert second > 1.05 * first


def test_a_picture_of_many_fabrics_says_how_many_it_leaves_out():
    """Only the fastest are drawn."""
    job = TaskGraph("job", "written", 4, (Task("forward", 1e-3),), {})
    figure = timeline_figure(
        train(job, [fabric(f"ideal:nodes=4,rate={rate}Gb/s") for rate in range(1, 9)], assumptions="published")
    )
    assert "6 fastest of 8 fabrics" in figure.texts[0].get_text()


@pytest.mark.parametrize("known", [{}, {"samples": 1000, "epochs": 2.0}])
def test_every_cell_of_the_page_stands_under_a_heading(widths, known):
    """With and without the columns of an epoch and the training."""
    tasks = (Task("forward", 1e-3), Task("gradient", 0.0, "all_reduce", 10**8, "all", (0,)))
    job = TaskGraph("small job", "written", 4, tasks, {"all": ProcessGroup("all", range(4))}, samples=10)
    text = training_page_text(train(job, [fabric("ideal:nodes=4")], **known, assumptions="published"))
    opened = re.sub("<details>.*?</details>", "", text, flags=re.DOTALL)
    assert opened.count("<figure") == opened.count('<div class="wide" tabindex="0"><table>') == 1  # the rest is folded
    text = text[text.index('<div id="all">') :]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', text)
    assert ({"Epoch", "Training"} <= set(heads)) == bool(known)
    assert all(set(rows) == {head} for head, *rows in widths(text) if rows)
    iteration = re.search(r'<th scope="row">.*', text)
    assert iteration
    cells = dict(zip(heads, re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", iteration[0]), strict=False))
    assert cells["Node rate"] == "400 Gb/s"
