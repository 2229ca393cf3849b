"""Pictures of training: what is drawn can be seen."""

import numpy as np
from matplotlib.collections import LineCollection

from opticcl.evaluate.training import train
from opticcl.fabric import fabric
from opticcl.report.training import timeline_figure
from opticcl.workload.job import Group, Job, Task


def test_white_lines_stand_between_long_spans_and_hide_no_short_one():
    """Two computations of a second are divided; a message of some microseconds is not covered by a line of its own."""
    tasks = (
        Task("forward", 1.0),
        Task("backward", 1.0),
        Task("gradient 1", 0.0, "all_reduce", 8, "all", (0,)),
        Task("gradient 2", 0.0, "all_reduce", 8, "all", (0,)),
    )
    job = Job("job", "written", 4, tasks, {"all": Group("all", range(4))})
    (axes,) = timeline_figure(train(job, [fabric("ideal:nodes=4")])).axes
    lines = [path for group in axes.collections if isinstance(group, LineCollection) for path in group.get_segments()]
    assert [path[0][0] for path in lines if len(path)] == [1.0]
    messages = axes.collections[-2]
    assert len(messages.get_paths()) == 2
    assert messages.get_linewidth()[0] > 0
    assert np.array_equal(messages.get_edgecolor(), messages.get_facecolor())
