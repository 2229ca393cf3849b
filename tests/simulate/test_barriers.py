"""Rounds between barriers: which steps and times a recorder receives."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.simulate.test_barrier_programme import ASSUMED, SYSTEMS, Clock, repeated

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.simulate.barriers import RoundEnd, circuit_rounds, simulate_with_barriers
from opticcl.simulate.latency import in_line_on
from opticcl.simulate.parts import Reconfiguration, charged_control_s, summed_chunks, transfer_times


def test_a_recorder_is_told_every_step_once():
    """On a ring whose first step sets the circuits, the others follow it; their lengths add up to the total."""
    plan, assumed = compile("terarack:nodes=6", "all_reduce", "1 MB", algorithm="ring").circuits, assumptions("common")
    steps, lengths_s = [], []
    recorder = SimpleNamespace(
        add_round=lambda mine, *rest: steps.append(mine), end_step=lambda rounds, length_s: lengths_s.append(length_s)
    )
    found = simulate_with_barriers(plan, 10**6, assumed, circuit_rounds(plan, assumed, True), lambda *_: None, recorder)
    assert [step for mine in steps for step in mine] == list(range(10))
    assert len(steps) > len(plan.schedule.step_classes())
    total_s = sum(len(mine) * length_s for mine, length_s in zip(steps, lengths_s, strict=True))
    assert total_s == pytest.approx(found.total_s)


def parts_of(plan, size_bytes, assumed):
    """Settings, control, sums and data of each class of steps, each step for itself [s]."""
    where, charges = plan.fabric, Reconfiguration(plan.fabric, assumed)
    chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
    found = []
    for steps in plan.schedule.step_classes():
        setting_s = control_s = data_s = sums_s = 0.0
        for step in steps:
            t = plan.schedule.step(step)
            for circuits in plan.rounds(step):
                charged = charges.of_round(circuits, charged_control_s(where, t, circuits, assumed))
                setting_s, control_s = setting_s + charged[0], control_s + charged[1]
                rows, late, seconds = transfer_times(where, t, circuits, chunk_bytes, assumed)
                if len(rows):
                    data_s += max(seconds) if in_line_on(where, assumed) else seconds[(late + seconds).argmax()]
            sums_s += summed_chunks(t, assumed) * chunk_bytes / assumed.memory_bytes_per_s
        found.append((setting_s, data_s, sums_s, control_s))
    return zip(*found, strict=True)


@pytest.mark.parametrize("seed", range(len(ASSUMED)))
@pytest.mark.parametrize("system", SYSTEMS)
def test_rounds_take_as_long_as_by_a_clock(system, seed):
    """In all and in parts; a recorder receives when each round begins, and how long each circuit takes from then on."""
    where, reports = fabric(system), []
    plan, assumed = repeated(where, seed), assumptions(("common", "published")[seed % 2], **ASSUMED[seed])
    due, steps, number = Clock(plan, 30_000, assumed, at_the_end=False), [], Counter()
    starts = {(step, number): start for step, number, _, start, *_ in due.circuits}

    def add_round(mine, start_s, t, circuits, chunk_bytes, end_s):
        assert start_s == pytest.approx(starts[mine.start, number[mine.start]], rel=1e-9, abs=1e-15)
        number[mine.start] += 1
        rows, late, seconds = transfer_times(where, t, circuits, chunk_bytes, assumed)
        ends = dict(zip(rows.tolist(), (late + seconds).tolist(), strict=True))
        assert end_s.tolist() == pytest.approx([ends.get(row, 0.0) for row in circuits.transfer.tolist()])
        assert chunk_bytes == 10_000

    recorder = SimpleNamespace(add_round=add_round, end_step=lambda rounds, length_s: steps.append((rounds, length_s)))
    found = simulate_with_barriers(
        plan, 30_000, assumed, circuit_rounds(plan, assumed, True), lambda *one: reports.append(one), recorder
    )
    assert found.total_s == pytest.approx(due.total, rel=1e-9)
    names = ("reconfiguration_s", "transfer_s", "compute_s", "control_s")
    for name, column in zip(names, parts_of(plan, 30_000, assumed), strict=True):
        assert getattr(found, name) == pytest.approx(np.array(column), rel=1e-9, abs=1e-15), name
    classes = plan.schedule.step_classes()
    assert reports == [("simulate steps", one.stop, plan.schedule.num_steps) for one in classes]
    assert found.rounds.tolist() == [len(plan.rounds(one.start)) * len(one) for one in classes]
    assert [rounds for rounds, _ in steps] == [len(plan.rounds(one)) for one in sorted(number)]


@pytest.mark.parametrize(
    ("system", "step_s"), [("torus:shape=2x2", 6e-6), ("sipac:radix=2,levels=2", 4.5e-6), ("terarack:nodes=4", 6e-6)]
)
def test_a_round_follows_its_last_bit(system, step_s):
    """Once it has arrived on links and where circuits are set, once it has left where nothing is; both have two rounds."""
    plan = compile(system, "all_gather", "1 KB", algorithm="ring").circuits
    twice = replace(plan, rounds=lambda i: plan.rounds(i) * 2)
    assumed = assumptions("common", initial="warm", control="none")
    end = RoundEnd(1e-6, 2e-6, None, 1.5e-6, 0.25e-6)
    found = simulate_with_barriers(twice, 1000, assumed, lambda *_: end, lambda *_: None, None)
    steps = plan.schedule.num_steps
    assert found.total_s - found.reconfiguration_s.sum() == pytest.approx(steps * step_s, rel=1e-9)
    in_line = step_s < 6e-6
    assert found.transfer_s.sum() == pytest.approx(steps * 2 * (1.25e-6 if in_line else 2e-6), rel=1e-9)
    assert found.latency_s.sum() == pytest.approx(steps * (step_s - 2 * (1.25e-6 if in_line else 2e-6)), rel=1e-9)


def test_rounds_of_idle_circuits_take_no_time():
    """They carry nothing; their ends are asked for or not."""
    plan = compile("terarack:nodes=4", "all_gather", "1 KB", algorithm="ring").circuits
    t, (circuits,) = plan.schedule.step(0), plan.rounds(0)
    idle = replace(circuits, transfer=np.full(len(circuits), -1, np.int32))
    for record in (True, False):
        found = circuit_rounds(plan, assumptions("common"), record)(t, idle, 250.0, 1)
        assert found[:2] == (0.0, 0.0)
        assert (found.end_s is not None and found.end_s.tolist()) == ([0.0] * len(circuits) if record else False)
