"""Light whose paths are straight, beside a count of every link of every path."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Schedule, Transfers, no_progress, same_columns
from opticcl.ir.circuit_plan import CircuitPlan
from opticcl.ir.step_blocks import FEWEST, ArcBlock, BlockSteps, StepBlock, step_blocks
from opticcl.kernels import always_compiled, never_compiled
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.arcs import clean_steps, steps_to_list
from opticcl.verify.data import check_data


def walked(where, src, dst, port):
    """Segments from one node to the other, one after the other: s to node s + 1, nodes + s back; none to itself."""
    found = []
    while src != dst:
        after = (src + 1 - 2 * (port % 2)) % where.nodes
        found.append(src if port % 2 == 0 else where.nodes + after)
        src = after
    return found


def listed(where, src, dst, port, wavelength):
    """Circuits with lists of their segments."""
    paths = [walked(where, *ends) for ends in zip(src.tolist(), dst.tolist(), port.tolist(), strict=True)]
    offsets = np.cumsum([0, *map(len, paths)])
    hops = np.array([hop for path in paths for hop in path], int)
    return Circuits.of(np.arange(len(src)), src, dst, port, wavelength, 1, (hops, offsets))


def counted(where, rows):
    """Whether no segment, modulator or filter of a step has two circuits on one wavelength, and each circuit leads anywhere."""
    taken = Counter()
    for src, dst, port, wavelength in rows:
        path = walked(where, src, dst, port)
        if not path:
            return False
        for part in [("fibre", port // 2, hop) for hop in path] + [("out", src, port), ("in", dst, port)]:
            taken[part, wavelength] += 1
    return max(taken.values(), default=1) == 1


@st.composite
def blocks(draw):
    """A ring, and circuits of a few steps on it, most of which are longer than half of the ring."""
    where = fabric(
        "terarack", nodes=draw(st.integers(1, 9)), wavelengths=draw(st.integers(1, 2)), rings=draw(st.integers(1, 2))
    )
    node = st.integers(0, where.nodes - 1)
    row = st.tuples(node, node, st.integers(0, 2 * where.rings - 1), st.integers(0, where.wavelengths - 1))
    return where, draw(st.lists(st.lists(row, max_size=5), min_size=1, max_size=4))


def block_of(steps):
    """Rows of each step as columns."""
    rows = np.array([row for step in steps for row in step], np.int32).reshape(-1, 4)
    src, dst, port, wavelength = rows.T
    transfers = Transfers(src, dst, dst, np.ones_like(src), np.full(len(src), Op.MOVE, np.uint8), np.ones_like(src))
    return StepBlock(0, transfers, np.cumsum([0, *map(len, steps)])), ArcBlock(src, dst, port, wavelength)


@pytest.mark.parametrize("compiled", [False, True])
@given(drawn=blocks())
@examples(150)
def test_a_step_is_clean_exactly_if_no_link_has_two_circuits(compiled, drawn):
    """By sorted arcs as by a count of all links."""
    where, steps = drawn
    due = [counted(where, rows) for rows in steps]
    with always_compiled() if compiled else never_compiled():
        assert clean_steps(where, *block_of(steps)).tolist() == due


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ((0, 7, 0, 0), False),
        ((-1, 2, 0, 0), False),
        ((0, 2, 2, 0), False),
        ((0, 2, 0, -1), False),
        ((0, 2, 0, 3), False),
        ((0, 2, 1, 2), True),
    ],
)
def test_circuits_that_do_not_exist_are_not_clean(row, found):
    """One step of three; the others are judged without it."""
    where = fabric("terarack:nodes=7,wavelengths=3")
    steps = [[(0, 3, 0, 0), (3, 0, 0, 0)], [(4, 5, 0, 1), row], [(0, 3, 0, 0), (2, 0, 0, 0)]]
    assert clean_steps(where, *block_of(steps)).tolist() == [True, found, False]


def test_circuits_of_other_transfers_are_not_clean():
    """Their step alone; nor are too few circuits judged."""
    where = fabric("terarack:nodes=7,wavelengths=3")
    steps, circuits = block_of([[(0, 3, 0, 0)], [(4, 5, 0, 1)]])
    other = replace(circuits, dst=np.array([3, 6], np.int32))
    assert clean_steps(where, steps, other).tolist() == [True, False]
    assert clean_steps(where, steps, replace(circuits, src=circuits.src[1:])) is None


@dataclass(frozen=True)
class Rounds:
    """Circuits of steps, by blocks and by lists."""

    where: object
    steps: tuple

    def __call__(self, i):
        """Circuits of a step."""
        return (listed(self.where, *np.array(self.steps[i], np.int32).reshape(-1, 4).T),)

    def block(self, steps):
        """Circuits of several steps."""
        return block_of(self.steps[steps.first : steps.first + len(steps)])[1]


EDITS = {
    "sender": lambda row, n: ((row[0] + 1) % n, *row[1:]),
    "receiver": lambda row, n: (row[0], (row[1] + 1) % n, *row[2:]),
    "port": lambda row, n: (row[0], row[1], 1 - row[2], row[3]),
    "no port": lambda row, n: (row[0], row[1], 2, row[3]),
    "wavelength": lambda row, n: (*row[:3], 1 - row[3]),
    "no wavelength": lambda row, n: (*row[:3], 2),
    "none": lambda row, n: row,
}


@pytest.mark.parametrize("nodes", [9, 15])
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("at", [0, 7])
def test_verdicts_are_those_of_steps_one_by_one(edit, nodes, at):
    """One circuit of an exchange is changed: the same violations, in the same words, and the same numbers."""
    where = fabric("terarack", nodes=nodes, wavelengths=2)
    plan = lower(where, generate("wavelength_exchange", Request("all_reduce"), where))
    assert plan.schedule.num_steps == {9: 10, 15: 28}[nodes]
    steps = [list(zip(c.src.tolist(), c.dst.tolist(), c.port.tolist(), c.wavelength_lo.tolist(), strict=True))
             for c in (plan.rounds(i)[0] for i in range(plan.schedule.num_steps))]  # fmt: skip
    steps[at][3] = EDITS[edit](steps[at][3], nodes)
    wrong = replace(plan, rounds=Rounds(where, tuple(steps)))
    slow = replace(wrong, rounds=lambda i: wrong.rounds(i))
    assert slow.block(None) is None
    found, due = verify(wrong), verify(slow)
    assert found == due
    assert found.ok == (edit == "none")
    left, _ = steps_to_list(wrong, progress=no_progress)
    assert (
        left == ([range(at, at + 1)] if edit != "none" else []) or nodes == 9
    )  # few steps are not evaluated in blocks


@pytest.mark.parametrize("nodes", range(1, 24, 2))
@pytest.mark.parametrize("collective", ["all_to_all", "reduce_scatter", "all_gather", "all_reduce"])
def test_blocks_of_an_exchange_are_its_steps(nodes, collective):
    """Transfers and circuits, whose paths are walked here segment by segment."""
    for wavelengths in (1, 3):
        where = fabric("terarack", nodes=nodes, wavelengths=wavelengths)
        plan = lower(where, generate("wavelength_exchange", Request(collective), where))
        inner = plan.schedule.step.function
        assert isinstance(inner, BlockSteps)
        done = 0
        while done < plan.schedule.num_steps:
            block = inner.block(done, 5)
            circuits = plan.block(block)
            for at in range(len(block)):
                rows = slice(*block.starts[at : at + 2])
                assert same_columns(block.transfers.take(rows), plan.schedule.step(done + at))
                columns = [getattr(circuits, name)[rows] for name in ("src", "dst", "port", "wavelength")]
                assert same_columns(listed(where, *columns), plan.rounds(done + at)[0])
            done += len(block)


def test_other_circuits_are_evaluated_step_by_step():
    """On two rings, with idle wavelengths used, around a part that has failed, and on part of a machine."""
    for more in ("rings=2", "striping=yes", "failed=fibre:3"):
        where = fabric(f"terarack:nodes=13,wavelengths=1,{more}")
        plan = lower(where, generate("wavelength_exchange", Request("all_to_all"), where))
        blocks_there = list(step_blocks(plan.schedule) or ())
        assert all(plan.block(one) is None for one in blocks_there)
        assert verify(plan).ok


CHANGES = {
    "dropped": lambda t: t.take(slice(1, None)),
    "doubled": lambda t: t.take(np.r_[0, np.arange(len(t))]),
    "other sender": lambda t: replace(t, src=np.r_[t.src[1:2], t.src[1:]]),
    "other chunk": lambda t: replace(t, chunk_lo=(t.chunk_lo + 1) % 13),
    "no chunk": lambda t: replace(t, chunk_lo=t.chunk_lo + 13),
    "no rank": lambda t: replace(t, dst=t.dst - 20),
    "other size": lambda t: replace(t, parts=None if t.parts is None else t.parts + 1),
    "copied": lambda t: replace(t, op=np.zeros_like(t.op)),
    "none": lambda t: t,
}


@pytest.mark.parametrize("collective", ["all_to_all", "all_reduce"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("at", [0, 11, 20])
def test_data_of_blocks_are_those_of_steps_one_by_one(collective, change, at):
    """One step is changed: the same violations, in the same words, and the same numbers."""
    where = fabric("terarack:nodes=13,wavelengths=1")
    plan = generate("wavelength_exchange", Request(collective), where)
    steps = [CHANGES[change](plan.step(i)) if i == at else plan.step(i) for i in range(plan.num_steps)]

    def block(first, count):
        some = steps[first : first + min(count, 6)]
        columns = [
            np.concatenate([getattr(t, name) for t in some]) for name in ("src", "dst", "chunk_lo", "chunk_n", "op")
        ]
        parts = None if some[0].parts is None else np.concatenate([t.parts for t in some])
        return StepBlock(first, Transfers(*columns, parts), np.cumsum([0, *map(len, some)]))

    assert len(steps) >= FEWEST
    fast = Schedule("own", plan.collective, len(steps), BlockSteps(block))
    slow = Schedule("own", plan.collective, len(steps), lambda i: steps[i])
    assert step_blocks(slow) is None
    found, due = check_data(fast), check_data(slow)
    assert found == due
    assert (not found.violations) == (change == "none" or (collective, change) == ("all_reduce", "other size"))


def test_a_plan_of_blocks_is_equal_to_its_steps():
    """By value, and as a plan whose rounds are functions."""
    where = fabric("terarack:nodes=13,wavelengths=1")
    plan = lower(where, generate("wavelength_exchange", Request("all_to_all"), where))
    assert plan == CircuitPlan(where, plan.schedule, lambda i: plan.rounds(i))
