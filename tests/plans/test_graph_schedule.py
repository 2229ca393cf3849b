"""Schedules of other programs on fabrics: steps from dependencies, circuits and times from the fabric."""

import numpy as np
import pytest
from tests.formats.test_msccl import FORMS, SMALL, graph_of, pair, step
from tests.optional import shared_file

import opticcl
from opticcl.collective import as_request
from opticcl.errors import OpticclError, ParameterError, UnsupportedError, VerificationError
from opticcl.fabrics import fabric_at_scale
from opticcl.formats.msccl import read_msccl, write_msccl
from opticcl.plans.graph_schedule import plan_of_graph, schedule_of_graph
from opticcl.schedule import all_variants, generate

STEPS = {"ring-allreduce-8": 14, "alltoall-allpairs-8": 1, "allreduce-hierarchical-4": 3}
SYSTEMS = ("ideal", "ramp", "sipac", "terarack", "lightpath", "torus", "fat_tree")


@pytest.mark.parametrize("name", STEPS)
def test_files_of_others_run_on_every_fabric(name):
    """Verified with their circuits, executed on integers, and timed above the bound."""
    graph = read_msccl(shared_file(f"msccl/{name}.xml"))
    assert schedule_of_graph(graph).num_steps == STEPS[name]
    for system in SYSTEMS:
        plan = plan_of_graph(graph, fabric_at_scale(system, graph.num_ranks), 1_000_000)
        assert plan.verify().ok
        timeline = plan.simulate(assumptions="published")
        assert 0 < timeline.lower_bound_s <= timeline.total_s
        data = np.arange(graph.num_ranks * 48).reshape(graph.num_ranks, 48)
        results = np.array(plan.execute(data))
        if graph.collective == "all_reduce":
            assert (results == data.sum(axis=0)).all()
        else:
            blocks = data.reshape(graph.num_ranks, graph.num_ranks, -1)
            assert (results == blocks.swapaxes(0, 1).reshape(results.shape)).all()


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_ours_come_back(collective, tmp_path):
    """Written, read and cut into steps again: right, with no more steps and the same bytes for nearly all."""
    found = lost = 0
    wanted = as_request(collective)
    for num_ranks in (2, 3, 4, 6):
        fabric = fabric_at_scale("ideal", num_ranks)
        for algorithm in all_variants(wanted, fabric):
            try:
                schedule = generate(algorithm, wanted, fabric)
            except OpticclError:
                continue
            write_msccl(tmp_path / "a.xml", schedule, algorithm)
            try:
                again = schedule_of_graph(read_msccl(tmp_path / "a.xml"))
            except UnsupportedError:
                lost += 1
                continue
            found += 1
            assert again.num_steps <= schedule.num_steps
            assert _chunks(again) == _chunks(schedule)
    assert found > 10 * lost


def _chunks(schedule):
    """Chunks that are sent in all."""
    return sum(int(schedule.step(i).size_chunks().sum()) for i in range(schedule.num_steps))


@pytest.mark.parametrize("form", FORMS)
def test_scratch_and_buffers_vanish(form, tmp_path):
    """Everything that the format expresses becomes a schedule."""
    graph = graph_of(FORMS[form], tmp_path)
    schedule = schedule_of_graph(graph)
    assert schedule.num_steps >= 1
    assert schedule.collective.num_ranks == graph.num_ranks


def test_what_has_no_steps_is_refused(tmp_path):
    """A message of a sum of two chunks, and contributions of one chunk that leave a rank one after the other."""
    mixed = pair(step(0, "cpy", "i 0", "s 0"), step(1, "re", "i 1", "s 0"), step(2, "s", "s 0"), step(3, "r", target="s 1"),
                 step(4, "s", count=2), step(5, "rrc", count=2), chunks=2, scratch=2)  # fmt: skip
    with pytest.raises(UnsupportedError, match="rank 0 thread block 0 s sends a sum of several chunks"):
        schedule_of_graph(graph_of(mixed, tmp_path))
    schedule = opticcl.compile("ideal:nodes=8", "all_to_all", "1MB", algorithm="ring").schedule
    write_msccl(tmp_path / "a.xml", schedule, "ring")
    with pytest.raises(UnsupportedError, match="sends a part of what it holds of chunk"):
        schedule_of_graph(read_msccl(tmp_path / "a.xml"))


def test_wrong_graphs_and_other_sizes_are_refused(tmp_path):
    """A wrong graph has no plan; a fabric must have a node for each rank."""
    with pytest.raises(VerificationError, match="contribution_missing"):
        schedule_of_graph(graph_of(SMALL.replace('type="rrc"', 'type="r"'), tmp_path))
    with pytest.raises(ParameterError, match="2 ranks, but ideal has 3 nodes; size the fabric to 2"):
        plan_of_graph(graph_of(SMALL, tmp_path), opticcl.fabric("ideal:nodes=3"), 1000)
