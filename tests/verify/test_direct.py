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
from opticcl.ir.collective import Holders, HolderTable
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


def all_to_all(ranks, each, *, interleaved):
    """With so many chunks for each rank, side by side or interleaved."""
    owner = np.arange(ranks * each) % ranks if interleaved else np.arange(ranks * each) // each
    return collective("all_to_all", ranks, ranks * each, owner=owner.astype(np.int32))


def in_steps(columns, cuts):
    """Transfers of the rows between cuts."""
    whole = Transfers.of(**columns)
    ends = [0, *sorted(cuts), len(whole)]
    return [whole.take(slice(*pair)) for pair in pairwise(ends)]


KINDS = (None, "src", "dst", "chunk_lo", "chunk_n", "chunk_step", "op", "parts", "again", "left out", "to itself")


@examples(60)
@given(
    ranks=st.integers(2, 6), each=st.integers(1, 10), interleaved=st.booleans(), cuts=st.lists(st.integers(0, 30), max_size=3),
    kind=st.sampled_from(KINDS), seed=st.integers(0, 1000),
)  # fmt: skip
def test_what_is_sent_directly_is_right(ranks, each, interleaved, cuts, kind, seed):
    """And nothing else that is right is found wrong: what was changed is left to the replay."""
    rng = np.random.default_rng(seed)
    c = all_to_all(ranks, each, interleaved=interleaved)
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
        ("src", -1), ("src", 1), ("src", 3), ("dst", -1), ("dst", 0), ("dst", 1), ("dst", 3), ("op", Op.REDUCE_MOVE),
        ("op", Op.COPY), ("chunk_lo", -2), ("chunk_lo", -1), ("chunk_lo", 1), ("chunk_lo", 6), ("chunk_n", 0), ("chunk_n", -1),
        ("chunk_n", 1), ("chunk_n", 3), ("chunk_step", 0), ("chunk_step", -1), ("chunk_step", 2), ("parts", 0), ("parts", 2),
    ],
)  # fmt: skip
def test_one_row_that_does_anything_else(name, value):
    """Of an exchange between three ranks of two chunks each; the right value instead is sent directly."""
    c = all_to_all(3, 2, interleaved=False)
    columns = rows_of(c, np.random.default_rng(0))
    row = int(np.flatnonzero((columns["src"] == 0) & (columns["dst"] == 2))[0])
    changed = {key: np.broadcast_to(column, 6).copy() for key, column in columns.items()}
    assert sent_directly(hand([Transfers.of(**changed)], c), no_progress) == 6
    changed[name][row] = value
    assert sent_directly(hand([Transfers.of(**changed)], c), no_progress) is None


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("ranks", "each"), [(2, 1), (3, 2), (4, 6), (5, 5)])
@pytest.mark.parametrize("parts", [1, None])
def test_right_exchanges(ranks, each, interleaved, parts):
    """Chunks side by side or interleaved, in a step or in one for each row."""
    c = all_to_all(ranks, each, interleaved=interleaved)
    columns = rows_of(c, np.random.default_rng(4)) | {"parts": parts}
    if columns["chunk_step"] == 1:
        columns["chunk_step"] = parts
    rows = ranks * (ranks - 1)
    for cuts in ([], range(1, rows)):
        assert sent_directly(hand(in_steps(columns, cuts), c), no_progress) == rows


def exchange(*rows, ranks=3):
    """Steps of one row each: sender, receiver, first chunk, chunks; of one chunk for each rank."""
    c = all_to_all(ranks, 1, interleaved=False)

    def step(src, dst, lo, n):  # `Transfers.of` leaves out what a rank sends to itself
        return replace(Transfers.of([src], [src + 1], [lo], [n], Op.MOVE), dst=np.array([dst], np.int32))

    return hand([step(*row) for row in rows], c)


RIGHT = [(s, d, d, 1) for s in range(3) for d in range(3) if s != d]


NO_EXCHANGE = {
    "one twice, one never": [*RIGHT[:5], RIGHT[0]],
    "the first twice": [RIGHT[0], *RIGHT[:5]],
    "to itself": [*RIGHT[:5], (0, 0, 0, 1)],
    "of another rank": [*RIGHT[:5], (2, 2, 1, 1)],
    "no chunk in place of one": [*RIGHT[:5], (2, 1, 1, 0)],
    "no chunk more": [*RIGHT, (0, 1, 1, 0)],
    "no chunk first": [(0, 1, 1, 0), *RIGHT],
    "fewer than no chunk": [*RIGHT, (0, 1, 1, -1)],
    "one more": [*RIGHT, RIGHT[3]],
    "one fewer": RIGHT[:5],
    "none": [],
}


@pytest.mark.parametrize("rows", NO_EXCHANGE.values(), ids=NO_EXCHANGE)
def test_as_many_rows_that_are_not_an_exchange(rows):
    """However the numbers of rows and pairs come out; the same rows as one step are refused too."""
    assert sent_directly(exchange(*RIGHT), no_progress) == 6
    schedule = exchange(*rows)
    assert sent_directly(schedule, no_progress) is None
    if rows:
        steps = [concatenate_transfers([schedule.step(i) for i in range(len(rows))])]
        assert sent_directly(hand(steps, schedule.collective), no_progress) is None


@pytest.mark.parametrize("owner", [-1, 3, 7])
def test_chunks_for_a_rank_that_does_not_exist(owner):
    """Sent to it by all others: nothing is proven."""
    c = all_to_all(3, 1, interleaved=False)
    owners = np.array([0, 1, owner], np.int32)
    rows = [(s, d, k, 1) for s in range(3) for k, d in enumerate(owners.tolist()) if s != d]
    for some in (rows, [row for row in rows if (row[0], row[2]) != (2, 2)]):
        schedule = exchange(*some)
        wrong = replace(c, owner=owners, after=Holders("owner", 0, owners))
        assert sent_directly(replace(schedule, collective=wrong), no_progress) is None


def test_blocks_of_steps_and_progress():
    """Evaluated some at a time; called after each."""
    c = all_to_all(6, 1, interleaved=False)
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
    c = all_to_all(4, 1, interleaved=False)
    steps = in_steps(rows_of(c, np.random.default_rng(2)), [])
    assert sent_directly(hand(steps, c), no_progress) == 12
    for end, kind in (("before", "root"), ("before", "owner"), ("after", "root"), ("after", "all")):
        holders = Holders(kind, 0, c.owner)
        assert sent_directly(hand(steps, replace(c, **{end: holders})), no_progress) is None
    assert sent_directly(hand(steps, replace(c, keeps_apart=False, reduces=True)), no_progress) is None
    pairs = np.arange(4)[None], np.arange(4)[:, None]
    for end in ("before", "after"):
        table = HolderTable(np.asarray(getattr(c, end)(*pairs)))
        assert sent_directly(hand(steps, replace(c, **{end: table})), no_progress) is None
    for owners in (None, np.arange(3, dtype=np.int32), np.arange(5, dtype=np.int32)):
        holders = Holders("owner", 0, owners)
        assert sent_directly(hand(steps, replace(c, after=holders)), no_progress) is None
    monkeypatch.setattr(direct, "MOST_BITS", 16)
    assert sent_directly(hand(steps, c), no_progress) == 12
    monkeypatch.setattr(direct, "MOST_BITS", 15)
    assert sent_directly(hand(steps, c), no_progress) is None


def test_nothing_is_replayed_for_them(monkeypatch):
    """Where there are many chunks, no claim, and no sets are asked for."""
    c = all_to_all(5, 3, interleaved=True)
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
