"""Concurrent calls without common GPUs: the sets, their verification, and the time that they save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.fabrics import fabric
from opticcl.ir import concatenate_circuits
from opticcl.plans.plan import compile
from opticcl.studies.concurrent_transfers import ConcurrentTask, compile_concurrent, disjoint_sets, tasks_of
from opticcl.traces import CollectiveCall, Workload, load_workload
from opticcl.verify import verify

WAFER = "lightpath:shape=4x4"


def log(tmp_path, *lines: str) -> Workload:
    """A LUMORPH log."""
    file = tmp_path / "job.log"
    file.write_text("\n".join(lines) + "\n")
    return load_workload(file)


def all_reduce(name: str, ranks: list[int], size: int = 1_000_000) -> ConcurrentTask:
    """A task."""
    nothing = np.zeros(0, np.int64)
    return ConcurrentTask(name, np.array(ranks), size, nothing, nothing, np.zeros(0))


def layer(name: str, pairs: list[tuple[int, int]], size: float = 1000.0) -> ConcurrentTask:
    """Transfers of equal size."""
    src, dst = np.array(pairs).T
    return ConcurrentTask(name, np.unique(pairs), int(size * len(pairs)), src, dst, np.full(len(pairs), size))


def test_a_log_becomes_tasks(tmp_path) -> None:
    """A task for each all-reduce and for each layer and direction, where its first line stands."""
    found = tasks_of(
        log(tmp_path, "AR;100;0,1", "L2L;8;3;0;0;1", "AR;200;2,3", "L2L;8;3;1;1;0", "L2L;16;3;0;1;2", "L2L;4;3;1;2;1")
    )
    assert [task.name for task in found] == ["line 1", "layer 3 forward", "line 3", "layer 3 backward"]
    assert [task.size_bytes for task in found] == [100, 24, 200, 12]
    assert found[1].src.tolist() == [0, 1]
    assert found[1].ranks.tolist() == [0, 1, 2]


def test_transfers_without_layers_go_by_their_neighbours() -> None:
    """What follows each other is a group."""
    calls = [CollectiveCall(f"t{i}", "send_recv", 5, ranks=(i, i + 1)) for i in range(4)]
    calls.insert(2, CollectiveCall("sum", "all_reduce", 7, ranks=(0, 1)))
    found = tasks_of(Workload("w", "s", tuple(calls), num_ranks=5))
    assert [len(task.src) for task in found] == [2, 0, 2]


def test_sets_are_greedy_and_layers_first() -> None:
    """Layers in order, each with what was called before it and shares no GPU; then what is left."""
    tasks = [
        all_reduce("a", [0, 1]),
        all_reduce("b", [2, 3]),
        all_reduce("c", [2, 3]),
        layer("l", [(0, 4)]),
        all_reduce("d", [6, 7]),
        layer("m", [(4, 5)]),
        all_reduce("e", [8, 9]),
    ]
    named = [[tasks[i].name for i in chosen] for chosen in disjoint_sets(tasks)]
    assert named == [["l", "b"], ["m", "a", "c", "d"], ["e"]]


@examples(60)
@given(st.lists(st.sets(st.integers(0, 9), min_size=2, max_size=5), min_size=1, max_size=8))
def test_every_task_once_and_no_gpu_twice(groups: list[set[int]]) -> None:
    """And no set could take a task of a later one."""
    tasks = [all_reduce(str(i), sorted(ranks)) for i, ranks in enumerate(groups)]
    sets = disjoint_sets(tasks)
    assert sorted(i for chosen in sets for i in chosen) == list(range(len(tasks)))
    for k, chosen in enumerate(sets):
        gpus = [rank for i in chosen for rank in groups[i]]
        assert len(set(gpus)) == len(gpus)
        assert all(set(gpus) & groups[later] for rest in sets[k + 1 :] for later in rest)


def test_alone_it_takes_as_long_as_its_plan() -> None:
    """An all-reduce of 16 GPUs: the rounds and the time of the plan by the paper's model."""
    ran = compile_concurrent(fabric(WAFER), [all_reduce("a", list(range(16)), 4_000_000)])
    plan = compile(WAFER, "all_reduce", 4_000_000, algorithm="lumorph").simulate(assumptions="lumorph")
    assert (ran.num_rounds, ran.time_s()) == (plan.num_rounds, pytest.approx(plan.total_s))


@pytest.mark.parametrize(
    "damage", ["", ",dead_tiles=5", ",dead_lasers=3:2,waveguides=1", ",waveguides=1,switch_unit=waveguide"]
)
def test_disjoint_groups_take_the_time_of_the_slowest(damage: str) -> None:
    """Two groups of four and a layer at once: never longer than one after the other; every round is verified."""
    where = fabric(WAFER + damage)
    tasks = [
        all_reduce("a", [0, 3, 8, 11], 1_000_000),
        all_reduce("b", [1, 2, 9, 10], 4_000_000),
        layer("l", [(4, 7), (7, 6)]),
    ]
    alone = [compile_concurrent(where, [task]) for task in tasks]
    both = compile_concurrent(where, tasks)
    assert max(one.num_rounds for one in alone) <= both.num_rounds <= sum(one.num_rounds for one in alone)
    assert both.time_s() <= sum(one.time_s() for one in alone) + 1e-12
    if not damage:
        assert both.num_rounds == 4
        assert both.time_s() == pytest.approx(max(one.time_s() for one in alone))
    verify(both.plan).raise_if_bad()


def test_the_judge_follows_every_part() -> None:
    """A circuit that is dropped from one of two groups is missed."""
    both = compile_concurrent(fabric(WAFER), [all_reduce("a", [0, 1]), layer("l", [(4, 7)])])
    kept = both.plan.rounds(0)[0]
    worse = replace(both.plan, rounds=lambda i: (kept.take(np.arange(1, len(kept))),))
    assert "transfer_not_carried" in {v.rule for v in verify(worse).violations}
    step = both.plan.schedule.step

    def without_first(i: int):
        return step(i).take(slice(1, None)) if i == 0 else step(i)

    broken = replace(both.plan, schedule=replace(both.plan.schedule, step=without_first))
    assert "contribution_missing" in {v.rule for v in verify(broken).violations}


def test_lasers_of_a_layer_are_never_shared() -> None:
    """All to all among eight, twice over: ceil(14 / 16) rounds of lasers, then waveguides decide."""
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b] * 2
    ran = compile_concurrent(fabric("lightpath:shape=2x4"), [layer("l", pairs)])
    assert ran.num_rounds == 1
    circuits = concatenate_circuits(ran.plan.rounds(0))
    assert np.bincount(circuits.src, circuits.wavelength_n).max() <= 16


def test_bad_workloads_are_refused(tmp_path) -> None:
    """Other collectives, no ranks, GPUs that the wafer does not have."""
    with pytest.raises(WorkloadError, match="all_gather; co-scheduling takes all_reduces"):
        tasks_of(Workload("w", "s", (CollectiveCall("g", "all_gather", 5),), num_ranks=4))
    with pytest.raises(WorkloadError, match="number of its GPUs"):
        tasks_of(Workload("w", "s", (CollectiveCall("g", "all_reduce", 5),)))
    with pytest.raises(WorkloadError, match="both of its ends"):
        tasks_of(Workload("w", "s", (CollectiveCall("g", "send_recv", 5, ranks=(-1, 2)),), num_ranks=4))
    with pytest.raises(WorkloadError, match="has a GPU 99"):
        compile_concurrent(fabric(WAFER), [all_reduce("a", [0, 99])])
