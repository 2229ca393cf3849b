"""What a search knows of a schedule before its circuits are made: never more than the circuits need."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collectives import nothing_required
from tests.profiles import examples

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.schedule import generate, skewed_exchange
from opticcl.simulate import class_bounds, schedule_facts
from opticcl.simulate.closed_form import costs


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [("all_to_all", "steps=1"), ("all_to_all", "steps=2"), ("all_reduce", "steps=2"), ("all_reduce", "steps=4")],
)
def test_steps_that_are_not_listed_count_as_row_by_row(monkeypatch, collective, algorithm):
    """Their partners are no sums; which pairs stand behind them is not known, so no later step counts as a change."""
    where = fabric("ramp:groups=3,racks=2,wavelengths=6,slot=0s")
    schedules = [generate(f"skewed_exchange:{algorithm}", collective, where)]
    monkeypatch.setattr(skewed_exchange, "MOST_LISTED", 0)
    schedules.append(generate(f"skewed_exchange:{algorithm}", collective, where))
    listed, defined = (schedule_facts(schedule, where) for schedule in schedules)
    for run in range(len(schedules[0].step_classes())):
        one, other = asdict(listed.of_run(run)), asdict(defined.of_run(run))
        assert other.pop("changes") is (run == 0)
        assert one.pop("changes") or run
        assert one == other


WHERE = (
    "ocs:nodes=5,planes=1", "ocs:nodes=4,planes=2", "ocs:nodes=4,planes=3", "terarack:nodes=5,wavelengths=2",
    "lightpath:shape=2x2,lasers=2", "oddl:shape=4,wavelengths=3", "topoopt:nodes=4,degree=3",
)  # fmt: skip
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=0, max_size=4, unique=True)


@examples(60)
@given(st.sampled_from(WHERE), st.lists(PAIRS, min_size=1, max_size=5), st.sampled_from(["cold", "warm"]))
def test_a_step_is_never_bounded_above_its_time(where, steps, initial):
    """Pairs that come back among others: on an optical switch a link stands until one of its ends gets another."""
    where = fabric(where)
    rows = [np.array([(src, (src + ahead) % 4) for src, ahead in step], int).reshape(-1, 2) for step in steps]

    def step(i):
        return Transfers.of(*rows[i].T, np.arange(len(rows[i])), 1, Op.COPY)

    plan = lower(where, Schedule("by hand", nothing_required(where.num_nodes, 8), len(rows), step))
    assumed = assumptions("common", initial=initial)
    for bound, cost in zip(class_bounds(plan.schedule, where, assumed), costs(plan, assumed), strict=True):
        fixed_s = cost.reconfiguration_s + cost.latency_s + cost.control_s
        assert bound.fixed_s <= fixed_s * (1 + 1e-9)
        for chunk_bytes in (1.0, 1e6):
            due_s = cost.total_s(where, assumed, chunk_bytes)
            assert bound.fixed_s + (bound.moving_s + bound.summing_s) * chunk_bytes * 8 <= due_s * (1 + 1e-9)


@pytest.mark.parametrize(
    ("planes", "due"), [(1, [True, True, False, True, True]), (2, [True, True, False, True, False])]
)
def test_a_link_that_stands_is_not_set_again(planes, due):
    """0 -> 1; 2 -> 3 beside it; 0 -> 1 again; 0 -> 3 in place of both, or on another plane: 2 -> 3 is gone, or not."""
    where = fabric(f"ocs:nodes=6,planes={planes}")
    pairs = [(0, 1), (2, 3), (0, 1), (0, 3), (2, 3)]
    steps = [Transfers.of([src], [dst], [0], 1, Op.COPY) for src, dst in pairs]
    schedule = Schedule("by hand", nothing_required(6, 1), len(steps), lambda i: steps[i])
    facts = schedule_facts(schedule, where)
    assert [facts.of_run(run).changes for run in range(len(steps))] == due
