"""A job on every machine, ranked."""

from itertools import permutations
from math import ceil

import pytest

from opticcl.collective import Request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.plans.search import Searches
from opticcl.traces import builtin
from opticcl.traces.graphs import job_of
from opticcl.training.iteration import Runtime
from opticcl.training.partition import partition
from opticcl.training.train import RESOLUTION, train

NAMES = ("ideal", "ramp", "sipac", "oddl", "lightpath", "terarack")


def machines(n, names=NAMES):
    """Fabrics of that size with 100 Gb/s a node."""
    return [fabric_at_scale(name, n, 100e9) for name in names]


@pytest.fixture(scope="module")
def trained():
    """VGG16 on 16 devices, 20 epochs of ImageNet."""
    return train(partition("vgg16", 16), machines(16), samples=1_281_167, epochs=20, assumptions="published")


def test_rows_are_ranked_and_add_up(trained):
    """Fastest first, verified; computation and waiting are the iteration."""
    totals = [row.iteration.total_s for row in trained.rows if row.ranked]
    assert [row.machine.name for row in trained.rows if not row.ranked] == ["ideal"]
    assert totals == sorted(totals)
    assert {row.machine.name for row in trained.rows} == set(NAMES)
    for row in trained.rows:
        iteration = row.iteration
        assert row.verified
        assert iteration.total_s == pytest.approx(iteration.compute_s + iteration.bubble_s + iteration.exposed_s)
        assert iteration.compute_s == pytest.approx(trained.job.compute_s)
        assert 0 <= row.communication_share < 1
        assert 0 < row.bandwidth_utilisation <= 1
        assert sum(used.size_bytes for used in row.plans) == trained.job.total_bytes == 4 * 138_357_544
        assert sum(used.total_s for used in row.plans) == pytest.approx(iteration.communication_s)


def test_epochs_are_whole_iterations(trained):
    """16 devices with 16 samples each: 5,005 iterations an epoch."""
    per_epoch = ceil(1_281_167 / 256)
    assert trained.iterations_per_epoch == per_epoch == 5005
    row = trained.rows[0]
    assert trained.epoch_s(row) == pytest.approx(per_epoch * row.iteration.total_s)
    assert trained.training_s(row) == pytest.approx(20 * per_epoch * row.iteration.total_s)


def test_the_record_is_plain(trained):
    """What --json prints: the job's bytes and calls, and the rows."""
    record = trained.record()
    assert record["job"]["bytes"] == 553_430_176
    assert record["job"]["calls"] == 32
    assert [row["iteration_s"] for row in record["rows"]] == [row.iteration.total_s for row in trained.rows]
    assert all(plan["verified"] for row in record["rows"] for plan in row["plans"])


def test_more_bandwidth_never_makes_it_longer():
    """Where the order of messages is fixed: static buffers of gradients, up to what the plans' resolution allows."""
    job = partition("resnet50", 16)
    runtime = Runtime(fusion="static")
    for name in ("ideal", "sipac", "oddl"):
        totals = [
            train(job, [fabric_at_scale(name, 16, rate)], runtime=runtime, assumptions="published")
            .rows[0]
            .iteration.total_s
            for rate in (25e9, 100e9, 400e9)
        ]
        slack = RESOLUTION * job.compute_s
        assert totals[0] + slack >= totals[1], name
        assert totals[1] + slack >= totals[2], name


def test_without_overlap_it_is_the_sum():
    """Also on real plans."""
    found = train(partition("alexnet", 8), machines(8), runtime=Runtime(overlap=False), assumptions="published")
    for row in found.rows:
        iteration = row.iteration
        assert iteration.total_s == pytest.approx(iteration.compute_s + iteration.communication_s)


def test_groups_of_a_divided_model():
    """Tensor and data groups, scaled and on the machine; what cannot carry them is left out with the reason."""
    model = "transformer:layers=2,hidden=64,heads=4,sequence=32,vocabulary=128"
    job = partition(model, 16, tensor=4, local_batch=4)
    for groups in ("scaled", "machine"):
        found = train(job, machines(16), groups=groups, assumptions="published")
        assert len(found.rows) + len(found.left_out) == len(NAMES)
        assert {used.plan.schedule.collective.num_ranks for used in found.rows[0].plans} == {4}
        assert {used.plan.fabric.num_members for used in found.rows[0].plans} == {4 if groups == "machine" else 1}
        assert all(row.verified for row in found.rows)


def test_the_layout_with_the_least_iteration_is_taken():
    """Of every order of the dimensions, on each fabric; each takes what it does where it is given, which is not the same."""
    model = "transformer:layers=2,hidden=256,heads=4,sequence=64,vocabulary=128"
    job = partition(model, 16, tensor=4)
    orders = [",".join(order) for order in permutations(("tensor", "data"))]
    found = train(job, machines(16, ("oddl", "terarack")), layout="auto")
    assert len(found.rows) == 2
    for row in found.rows:
        alone = {order: train(job, row.machine, layout=order).rows[0].iteration.total_s for order in orders}
        assert dict(row.layouts) == pytest.approx(alone, rel=1e-12)
        assert row.iteration.total_s == pytest.approx(min(alone.values()), rel=1e-9)
        assert row.iteration.job.layout == row.record()["layout"]
        assert alone[row.iteration.job.layout] == pytest.approx(row.iteration.total_s, rel=1e-12)
        assert max(alone.values()) > 1.001 * min(alone.values())


@pytest.mark.parametrize(
    ("layout", "more", "said"),
    [
        ("tensor,rows", {}, "there is no dimension 'rows'; give auto, or tensor, pipeline"),
        ("tensor,data,tensor", {}, "tensor is given twice"),
        ("tensor", {}, "data of 4 is missing; name each dimension above 1, such as tensor,data"),
        ("auto", {"groups": "scaled"}, "layout=auto changes nothing with groups=scaled"),
    ],
)
def test_layouts_that_are_refused(layout, more, said):
    """The text names what is wrong with the order."""
    job = partition("transformer:layers=2,hidden=64,heads=4,sequence=32,vocabulary=128", 16, tensor=4)
    with pytest.raises(ParameterError, match=said):
        train(job, "ideal", layout=layout, **more)


def test_a_trace_has_the_ranks_that_were_recorded():
    """No layout of dimensions that are unknown."""
    with pytest.raises(ParameterError, match="is a trace, with ranks as recorded"):
        train(job_of(builtin("resnet50_ddp"), num_ranks=16), "ideal", layout="auto")


def test_a_straggler_delays_everybody():
    """All computation takes as much longer."""
    job = partition("vgg16", 4)
    usual, late = (
        train(job, machines(4, ["ideal"]), stragglers=s, assumptions="published").rows[0].iteration
        for s in (None, {2: 2.0})
    )
    assert late.compute_s == pytest.approx(2 * usual.compute_s)
    assert late.total_s > usual.total_s


def test_one_device_needs_no_network():
    """No plan, no waiting."""
    row = train(partition("lenet", 1), machines(1, ["ideal"]), assumptions="published").rows[0]
    assert (row.plans, row.iteration.communication_s, row.verified) == ((), 0.0, True)


def test_what_cannot_be_carried_is_left_out():
    """With its reason; an error if nothing is left."""
    job = job_of(builtin("resnet50_ddp"), num_ranks=16)
    found = train(job, machines(16, ["ideal", "terarack"]), algorithm="wrht", assumptions="published")
    assert [row.machine.name for row in found.rows] == ["terarack"]
    assert [(one.fabric, "terarack" in one.reason) for one in found.left_out] == [("ideal", True)]
    with pytest.raises(UnsupportedError, match="terarack"):
        train(job, machines(16, ["ideal"]), algorithm="wrht", assumptions="published")
    large = TaskGraph(
        "job", "", 32, (Task("sum", 0.0, "all_reduce", 8, "all"),), {"all": ProcessGroup("all", range(32))}
    )
    with pytest.raises(UnsupportedError, match="has rank 31, but the machine has 16 nodes"):
        train(large, machines(16, ["ideal"]), assumptions="published")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epochs": 2}, "samples"),
        ({"samples": 10}, "batch"),
        ({"samples": 0}, "not positive"),
        ({"steps": 5, "epochs": 2, "samples": 4}, "both"),
        ({"steps": -1}, "not positive"),
        ({"groups": "machines"}, "groups: 'machines' is not one of scaled, machine"),
    ],
)
def test_numbers_that_do_not_go_together(given, said):
    """One line that says which."""
    job = job_of(builtin("resnet50_ddp"), num_ranks=4)
    with pytest.raises(ParameterError, match=said):
        train(job, machines(4, ["ideal"]), **given, assumptions="published")


def test_a_file_in_place_of_a_model_is_named(tmp_path):
    """With the function that reads it."""
    (tmp_path / "step.et").touch()
    with pytest.raises(ParameterError, match=r"step\.et is a file; give opticcl\.traces\.load_job\("):
        train(str(tmp_path / "step.et"), "ideal", nodes=4)


def test_what_is_cached_for_a_machine_is_released(monkeypatch):
    """Before the next machine, under both sets of assumptions: no candidates are kept."""
    released, forget = [], Searches.forget

    def noted(planner):
        choice = planner.of(fabric("ideal:nodes=8"), Request("all_reduce"))
        forget(planner)
        released.append(planner.of(fabric("ideal:nodes=8"), Request("all_reduce")) is not choice)

    monkeypatch.setattr(Searches, "forget", noted)
    train("lenet", ["ideal", "ramp", "ideal"], nodes=8)
    assert released == [True] * 6
