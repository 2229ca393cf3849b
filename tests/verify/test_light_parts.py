"""Parts of the judge of light, each against the same by hand: counts, settings, names in messages, steps of runs, one slot."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import Bench

from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Resource, Schedule, Transfers, Usage, no_progress
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.symmetry import Run, RunSteps
from opticcl.kernels import always_compiled
from opticcl.verify.light import _write_settings, check_light, check_slot, count_usage

RING = "terarack:nodes=6,wavelengths=4"


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize(("depth", "size"), [(1, 5), (1, 5000), (7, 5)])
def test_counts_of_circuits(compiled, owned, depth, size):
    """Rows of circuits in any order, wavelengths one or two apart: as counted one by one; what was there stays."""
    draw = np.random.default_rng(3)
    lo, n = draw.integers(0, 2, 6).astype(np.int32), draw.integers(1, 4, 6).astype(np.int32)
    index = draw.integers(0, 5, 6).astype(np.int32)
    owner = np.array([5, 0, 0, 3, 2, 1]) if owned else None
    for step in (1, 2):
        counts = np.full(size * depth, 2, np.int32)
        due = counts.copy()
        with always_compiled() if compiled else nullcontext():
            count_usage(index, owner, lo, n, step, depth, counts)
        for row in range(6):
            circuit = owner[row] if owned else row
            for nth in range(n[circuit] if depth > 1 else 1):
                due[index[row] * depth + (lo[circuit] + nth * step if depth > 1 else 0)] += 1
        assert counts.tolist() == due.tolist()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("depth", [1, 4])
def test_settings_are_written_once(compiled, depth):
    """Setting 0 is one too; of what clashes the number, the first row and both settings."""
    table = np.full(3 * depth, -1, np.int64)
    table[2 * depth] = 0
    one, two = np.ones(3, np.int32), np.zeros(3, np.int32)
    with always_compiled() if compiled else nullcontext():
        found = _write_settings(np.array([0, 1, 2]), None, np.array([0, 4, 0]), two, one, 1, depth, table)
        assert found.tolist() == [0, 0, 0, 0]
        assert table[::depth].tolist() == [0, 4, 0]
        found = _write_settings(np.array([0, 1, 2]), None, np.array([0, 3, 5]), two, one, 1, depth, table)
        assert found.tolist() == [2, 1, 4, 3]
        assert table[::depth].tolist() == [0, 4, 0]


def run_of(number, count, parts_step=0):
    """A run of steps from node 0 to node 1, of as many chunks as its number and one more."""
    step = Transfers.of([0], [1], [0], number + 1, Op.COPY, [1] if parts_step else None)
    return Run(lambda: step, count, parts_step=parts_step)


@pytest.mark.parametrize(
    ("counts", "parts_step", "classes", "equal"),
    [
        ((2, 2), 0, (range(2), range(2, 4)), True), ((2, 2), 0, (range(4),), False),
        ((2, 2), 0, (range(1), range(1, 4)), False), ((2, 2), 0, (range(3), range(3, 4)), False),
        ((1, 3), 0, (range(1), range(1, 4)), True), ((4,), 0, (range(4),), True), ((4,), 1, (range(4),), False),
        ((1, 1, 2), 0, (range(1), range(1, 4)), False), ((1, 3), 0, (range(2), range(2, 4)), False),
        ((2, 2), 0, (range(1), range(1, 3), range(3, 4)), False),
    ],
)  # fmt: skip
def test_steps_of_a_class_that_runs_define(counts, parts_step, classes, equal):
    """A class within a run needs no comparison; one that reaches over its end is compared, and one whose parts grow."""
    runs = tuple(run_of(number, count, parts_step) for number, count in enumerate(counts))
    schedule = Schedule("runs", collective("barrier", 6, 4), 4, RunSteps(runs, 4), classes)
    light = (Circuits.of(np.arange(1), np.array([0]), np.array([1]), 0, 0, 1, np.array([[0]])),)
    report = check_light(CircuitPlan(fabric(RING), schedule, lambda i: light), progress=no_progress)
    assert {v.rule for v in report.violations} == (set() if equal else {"steps_unequal"})


def test_circuits_of_other_classes_are_compared():
    """Circuits that are equal by definition in classes of their own say nothing about those of the schedule."""
    step = Transfers.of([0], [1], [0], 1, Op.COPY)
    schedule = Schedule("two", collective("barrier", 6, 1), 2, lambda i: step, (range(2),))
    light = [(Circuits.of(np.arange(1), np.array([0]), np.array([1]), 0, 0, 1 + i, np.array([[0]])),) for i in range(2)]
    for classes, rules in (((range(1), range(1, 2)), {"steps_unequal"}), ((range(2),), set())):
        plan = CircuitPlan(fabric(RING), schedule, ClassRounds(classes, lambda i: light[i]))
        assert {v.rule for v in check_light(plan, progress=no_progress).violations} == rules


def test_circuits_of_one_slot():
    """Other nodes than those of their transfers, or two into one receiver."""
    where = fabric(RING)
    t = Transfers.of([0, 1], [1, 2], [0, 1], 1, Op.COPY)

    def slot(src, dst, paths):
        found = check_slot(where, t, Circuits.of(np.arange(2), np.array(src), np.array(dst), 0, 0, 1, paths))
        return [(v.rule, v.step, v.round) for v in found]

    right = (np.array([0, 1]), np.array([0, 1, 2]))
    assert slot([0, 1], [1, 2], right) == []
    assert slot([0, 1], [1, 3], (np.array([0, 1, 2]), np.array([0, 1, 3]))) == [("circuit_astray", 0, 0)]
    shared = slot([0, 1], [1, 2], (np.array([0, 0, 1]), np.array([0, 1, 3])))
    assert shared == [("path_broken", -1, -1)]
    t = Transfers.of([0, 0], [1, 1], [0, 1], 1, Op.COPY)
    assert {rule for rule, _, _ in slot([0, 0], [1, 1], (np.array([0, 0]), np.array([0, 1, 2])))} == {
        "laser_shared", "photodiode_shared", "wavelength_clash",
    }  # fmt: skip


class Hall(Bench):
    """One waveguide of two shares, and a switch with a setting."""

    num_wavelengths = 3
    resources = (
        Resource("waveguide", 2, capacity=4, per_wavelength=False, one_setting=True),
        Resource("subnet", 1, per_wavelength=False),
    )
    whole = False

    def usage(self, circuits):
        """Circuits of even senders take three of four shares; all pass the coupler."""
        even = np.flatnonzero(circuits.src % 2 == 0)
        yield Usage(
            self.resources[0], np.ones(len(even), np.int64), even, setting=circuits.dst[even].astype(np.int64),
            amount=np.full(len(even), 3),
        )  # fmt: skip
        yield Usage(self.resources[1], np.zeros(len(circuits), np.int64))


def messages(rows):
    """(rule, place, found) of circuits (src, dst)."""
    src, dst = np.array(rows).T
    t = Transfers.of(src, dst, np.arange(len(rows)), 1, Op.COPY)
    schedule = Schedule("by hand", collective("barrier", 12, len(rows)), 1, lambda i: t)
    circuits = Circuits.of(np.arange(len(rows)), src, dst)
    report = check_light(CircuitPlan(Hall(nodes=12), schedule, lambda i: (circuits,)), progress=no_progress)
    assert report.circuits == len(rows)
    return {(v.rule, v.where, v.expected, v.found, v.step, v.round) for v in report.violations}


def test_messages_name_what_clashes():
    """Shares of a waveguide; the two circuits whose settings differ; four circuits, and dots for more."""
    assert messages([(1, 2)]) == set()
    assert messages([(1, 2), (2, 3), (4, 3)]) == {
        ("waveguide_overfull", "waveguide 1", "at most 4 shares", "6: 2 -> 3, 4 -> 3", 0, 0),
        ("wavelength_clash", "subnet 0", "at most 1 circuit(s)", "3: 1 -> 2, 2 -> 3, 4 -> 3", 0, 0),
    }
    found = messages([(1, 2), (2, 3), (3, 9), (4, 5), (5, 7)])
    assert (
        "mzi_clash", "waveguide 1", "one setting of its switches, as 2 -> 3 needs it", "another for 4 -> 5", 0, 0,
    ) in found  # fmt: skip
    assert any(one[3] == "5: 1 -> 2, 2 -> 3, 3 -> 9, 4 -> 5, ..." for one in found)
    assert any(one[3] == "4: 1 -> 2, 3 -> 4, 5 -> 6, 7 -> 8" for one in messages([(1, 2), (3, 4), (5, 6), (7, 8)]))


def test_a_long_path_is_cut_in_messages():
    """After eight hops."""
    where = fabric("terarack:nodes=12,wavelengths=4")
    for hops, shown in ((8, "path [1 2 3 4 5 6 7 8]"), (9, "path [1 2 3 4 5 6 7 8 ...]")):
        path = np.arange(1, hops + 1)[None]
        circuits = Circuits.of(np.arange(1), np.array([0]), np.array([hops]), 0, 0, 1, path)
        t = Transfers.of([0], [hops], [0], 1, Op.COPY)
        schedule = Schedule("by hand", collective("barrier", 12, 1), 1, lambda i, t=t: t)
        plan = CircuitPlan(where, schedule, lambda i, circuits=circuits: (circuits,))
        (found,) = check_light(plan, progress=no_progress).violations
        assert found.rule == "path_broken"
        assert found.found.endswith(shown)
        assert replace(found, count=1) == found
