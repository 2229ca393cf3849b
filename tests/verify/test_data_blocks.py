"""Schedules whose steps are evaluated many at a time are judged as step by step."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.collective import collective
from opticcl.ir import Op, Schedule, Transfers, step_blocks
from opticcl.ir.schedule import concatenate_transfers
from opticcl.ir.step_blocks import BlockSteps, StepBlock
from opticcl.verify.data import check_data
from opticcl.verify.malformed import _well_formed

STEPS = 18


@pytest.fixture(autouse=True)
def blocks_of_five_steps(monkeypatch):
    """Four blocks, the last of three steps."""
    monkeypatch.setattr(step_blocks, "ROWS", 15)


def some_steps(rng, c, wrong):
    """Three rows a step: copies along a ring, and in some steps something else; chunks may be apart."""
    made = []
    for i in range(STEPS):
        src = np.array([0, 1, 2])
        dst, lo, n, by = (src + 1) % 3, rng.integers(0, 2, 3), rng.integers(1, 3, 3), np.ones(3, int)
        op = np.full(3, Op.MOVE if c.keeps_apart else Op.COPY)
        if rng.random() < 0.5:
            by[:] = 2
            lo[:] = 0
        if i in wrong:
            row, kind = int(rng.integers(3)), wrong[i]
            if kind == "operation":
                op[row] = Op.REDUCE if c.keeps_apart else Op.MOVE
            elif kind == "rank":
                dst[row] = 7
            elif kind == "chunk":
                lo[row] = 9
            elif kind == "clash":
                dst[row] = (row + 2) % 3
            else:
                op[row] = Op.MOVE if c.keeps_apart else Op.REDUCE_MOVE
        parts = rng.integers(1, 3, 3) if c.keeps_apart else None
        made.append(Transfers.of(src, dst, lo, n, op, parts, by if by.any() else None))
    return made


def by_blocks(steps, c):
    """The same schedule, evaluated many steps at a time."""

    def block(first, count):
        some = steps[first : first + count]
        return StepBlock(first, concatenate_transfers(some), np.cumsum([0, *map(len, some)]))

    return Schedule("hand", c, len(steps), BlockSteps(block))


@pytest.mark.parametrize("name", ["all_reduce", "all_to_all", "broadcast"])
@pytest.mark.parametrize("kind", [None, "given up", "clash", "operation", "rank", "chunk"])
def test_blocks_are_judged_as_steps(name, kind):
    """The same violations, each with its step, the same transfers, and a call of `progress` for each block."""
    c = collective(name, 3, 3)
    rng = np.random.default_rng(5)
    for _ in range(4):
        steps = some_steps(rng, c, {int(i): kind for i in rng.choice(STEPS, 2, replace=False)} if kind else {})
        one_by_one = Schedule("hand", c, STEPS, steps.__getitem__)
        calls = []
        expected = check_data(one_by_one)
        found = check_data(by_blocks(steps, c), progress=lambda *call, calls=calls: calls.append(call))
        assert found == expected
        if kind in (None, "given up", "clash"):
            assert calls == [("follow the data", done, STEPS) for done in (5, 10, 15, 18)]
        else:
            assert len(found.violations) == 1


def test_a_right_schedule_of_blocks_is_accepted():
    """A message passed on from rank to rank; where one passes on half of it, those behind have nothing to send."""
    c = collective("broadcast", 19, 2)
    steps = [Transfers.of(np.array([i]), np.array([i + 1]), np.array([0]), np.array([2]), Op.COPY) for i in range(18)]
    assert check_data(by_blocks(steps, c)).violations == ()
    steps[7] = replace(steps[7], chunk_n=np.array([1], np.int32))
    found = [(violation.rule, violation.step) for violation in check_data(by_blocks(steps, c)).violations]
    assert found == [*(("sent_before_held", step) for step in range(8, 18)), ("contribution_missing", -1)]


GOOD = {"src": 1, "dst": 2, "chunk_lo": 0, "chunk_n": 2, "op": Op.COPY, "parts": 1}


@pytest.mark.parametrize(
    ("column", "right", "wrong"),
    [
        ("src", (0, 2), (-1, 3)),
        ("dst", (0, 2), (-1, 3)),
        ("chunk_lo", (0, 2), (-1, 3, 2**31 - 1)),
        ("chunk_n", (1, 4), (0, 5, -1)),
        ("op", (Op.COPY, Op.REDUCE, Op.REDUCE_MOVE), (Op.MOVE, 4, 255)),
        ("parts", (1,), (0, 2)),
    ],
)
@pytest.mark.parametrize("at", [0, 2])
def test_rows_that_exist(column, right, wrong, at):
    """Of three ranks and four chunks, in the first row and in the last; a wrong value is not made good by a right one."""
    kernel = getattr(_well_formed, "py_func", _well_formed)
    types = dict(zip(GOOD, (np.int32,) * 4 + (np.uint8, np.int32), strict=True))
    for value, exists in [*((one, True) for one in right), *((one, False) for one in wrong)]:
        columns = {name: np.full(3, good, types[name]) for name, good in GOOD.items()}
        columns[column][at] = value
        assert bool(kernel(*columns.values(), 3, 4, False)) == exists
    columns = {name: np.full(3, good, types[name]) for name, good in GOOD.items()}
    assert kernel(*list(columns.values())[:5], columns["parts"][:0], 3, 4, False)


@pytest.mark.parametrize("op", list(Op))
def test_operations_where_contributions_are_kept_apart(op):
    """No sums; any number of parts."""
    kernel = getattr(_well_formed, "py_func", _well_formed)
    row = [np.array([value]) for value in (0, 1, 0, 1, op, 3)]
    assert bool(kernel(*row, 2, 2, True)) == (op in (Op.COPY, Op.MOVE))
