"""Exchanges of blocks that go straight to their ranks, beside a replay of every chunk."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.collective import collective
from opticcl.ir import Op, Schedule, Transfers, no_progress
from opticcl.ir.collective import HolderTable
from opticcl.ir.schedule import concatenate_transfers
from opticcl.ir.step_blocks import BlockSteps, StepBlock
from opticcl.verify import data, direct
from opticcl.verify.data import check_data
from opticcl.verify.direct import sent_directly


def hand(steps, c):
    """A schedule of listed steps."""
    return Schedule("hand", c, len(steps), steps.__getitem__)


def rows_of(c, rng):
    """Columns of one row for each pair of ranks, which carries all chunks of the receiver: ranges, or chunks apart."""
    ranks = c.num_ranks
    src, dst = np.divmod(np.arange(ranks * ranks), ranks)
    src, dst = src[src != dst], dst[src != dst]
    order = rng.permutation(len(src))
    src, dst = src[order], dst[order]
    lo = np.argmax(c.owner == dst[:, None], axis=1)
    apart = 1 if (np.diff(c.owner) >= 0).all() else ranks
    return {"src": src, "dst": dst, "chunk_lo": lo, "chunk_n": c.num_chunks // ranks, "op": Op.MOVE, "parts": 1,
            "chunk_step": apart}  # fmt: skip


def all_to_all(ranks, each, *, in_turn):
    """With so many chunks for each rank, side by side or in turn."""
    owner = np.arange(ranks * each) % ranks if in_turn else np.arange(ranks * each) // each
    return collective("all_to_all", ranks, ranks * each, owner=owner.astype(np.int32))


def in_steps(columns, cuts):
    """Transfers of the rows between cuts."""
    whole = Transfers.of(**columns)
    ends = [0, *sorted(cuts), len(whole)]
    return [whole.take(slice(*pair)) for pair in pairwise(ends)]


KINDS = (None, "src", "dst", "chunk_lo", "chunk_n", "chunk_step", "op", "parts", "again", "left out", "to itself")


@examples(60)
@given(
    ranks=st.integers(2, 6), each=st.integers(1, 10), in_turn=st.booleans(), cuts=st.lists(st.integers(0, 30), max_size=3),
    kind=st.sampled_from(KINDS), seed=st.integers(0, 1000),
)  # fmt: skip
def test_what_is_sent_directly_is_right(ranks, each, in_turn, cuts, kind, seed):
    """And nothing else that is right is found wrong: what was changed is left to the replay."""
    rng = np.random.default_rng(seed)
    c = all_to_all(ranks, each, in_turn=in_turn)
    columns = rows_of(c, rng)
    rows = len(columns["src"])
    row = int(rng.integers(rows))
    if kind in ("again", "left out"):
        kept = np.arange(rows)
        kept = np.append(kept, row) if kind == "again" else np.delete(kept, row)
        columns = {name: column[kept] if np.ndim(column) else column for name, column in columns.items()}
    elif kind is not None:
        name = "dst" if kind == "to itself" else kind
        column = np.broadcast_to(columns[name], rows).copy()
        column[row] = {"op": Op.COPY, "parts": 2, "chunk_n": 0, "chunk_step": 0, "to itself": columns["src"][row]}.get(
            kind, rng.integers(-1, c.num_chunks + 1)
        )
        columns[name] = column
    schedule = hand(in_steps(columns, [min(cut, rows) for cut in cuts]), c)
    found = sent_directly(schedule, no_progress)
    report = check_data(schedule)
    if kind is None:
        assert found == rows == report.transfers
        assert not report.violations
    elif found is not None:  # a random value may be the right one
        assert kind in ("src", "dst", "chunk_lo")
        assert not report.violations
    elif kind in ("again", "left out", "op", "parts", "chunk_n", "chunk_step"):
        assert report.violations
    assert found in (None, len(columns["src"]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("src", -1), ("src", 3), ("dst", -1), ("dst", 3), ("dst", 0), ("op", Op.REDUCE_MOVE), ("op", Op.COPY),
        ("chunk_lo", -1), ("chunk_lo", 1), ("chunk_lo", 6), ("chunk_n", 0), ("chunk_n", -1), ("chunk_n", 1), ("chunk_n", 3),
        ("chunk_step", 0), ("chunk_step", -1), ("chunk_step", 2), ("parts", 0), ("parts", 2),
    ],
)  # fmt: skip
def test_one_row_that_does_anything_else(name, value):
    """Of an exchange between three ranks of two chunks each; the right value instead is sent directly."""
    c = all_to_all(3, 2, in_turn=False)
    columns = rows_of(c, np.random.default_rng(0))
    row = int(np.flatnonzero((columns["src"] == 0) & (columns["dst"] == 2))[0])
    changed = {key: np.broadcast_to(column, 6).copy() for key, column in columns.items()}
    assert sent_directly(hand([Transfers.of(**changed)], c), no_progress) == 6
    changed[name][row] = value
    assert sent_directly(hand([Transfers.of(**changed)], c), no_progress) is None


def test_blocks_of_steps_and_progress():
    """Evaluated some at a time; called after each."""
    c = all_to_all(6, 1, in_turn=False)
    steps = in_steps(rows_of(c, np.random.default_rng(1)), range(1, 30, 2))
    calls = []
    assert sent_directly(hand(steps, c), lambda *call: calls.append(call)) == 30
    assert calls == [("follow the data", i + 1, 16) for i in range(16)]

    def block(first, count):
        some = steps[first : first + min(count, 5)]
        return StepBlock(first, concatenate_transfers(some), np.cumsum([0, *map(len, some)]))

    calls.clear()
    assert sent_directly(Schedule("hand", c, 16, BlockSteps(block)), lambda *call: calls.append(call)) == 30
    assert calls == [("follow the data", done, 16) for done in (5, 10, 15, 16)]


def test_other_collectives_are_not_judged(monkeypatch):
    """Nor those whose holders are a table, nor more bits than fit."""
    for name in ("all_reduce", "gather", "all_gather", "reduce_scatter"):
        schedule = opticcl.compile("ideal:nodes=4", name, "1MB").schedule
        assert sent_directly(schedule, no_progress) is None
    c = all_to_all(4, 1, in_turn=False)
    steps = in_steps(rows_of(c, np.random.default_rng(2)), [])
    assert sent_directly(hand(steps, c), no_progress) == 12
    pairs = np.arange(4)[None], np.arange(4)[:, None]
    for end in ("before", "after"):
        table = HolderTable(np.asarray(getattr(c, end)(*pairs)))
        assert sent_directly(hand(steps, replace(c, **{end: table})), no_progress) is None
    monkeypatch.setattr(direct, "MOST_BITS", 16)
    assert sent_directly(hand(steps, c), no_progress) == 12
    monkeypatch.setattr(direct, "MOST_BITS", 15)
    assert sent_directly(hand(steps, c), no_progress) is None


def test_nothing_is_replayed_for_them(monkeypatch):
    """Where there are many chunks, no claim, and no sets are asked for."""
    c = all_to_all(5, 3, in_turn=True)
    schedule = hand(in_steps(rows_of(c, np.random.default_rng(3)), [7]), c)
    expected = check_data(schedule)
    monkeypatch.setattr(data, "SYMMETRY_FROM", 0)
    assert check_data(schedule, exact=True).how == "every chunk followed, exact"
    followed = []
    monkeypatch.setattr(data, "_followed", lambda *given: followed.append(given))
    for every_chunk in (False, True):
        assert check_data(schedule, every_chunk=every_chunk) == expected
    assert not followed
    assert (expected.how, expected.chunks, expected.transfers) == ("every chunk followed", 15, 20)
    check_data(schedule, exact=True)
    check_data(hand([schedule.step(0)], c))
    assert len(followed) == 2
