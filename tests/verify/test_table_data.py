"""What arrives by device tables, with rows and collectives made by hand: shares, the order of time, and the results."""

from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.collective import as_request
from opticcl.ir import Op
from opticcl.verify._table_data import arrived_transfers, check_result, due_ready_s
from opticcl.verify.time import TimeRules

COLUMNS = ("src", "dst", "chunk_lo", "chunk_n", "op", "from_s", "until_s", "ready_s")


def tables(rows, collective=None):
    """Tables whose rows (src, dst, chunk, chunks, op, from, until, ready, share, shares, parts, step) send and receive."""
    full = [(*row, *(0, 1, 1, -1)[len(row) - 8 :]) for row in rows]
    names = (*COLUMNS[2:], "share", "shares", "parts", "step")
    both = [row[2:] for row in full] * 2
    data = {
        name: np.array([row[k] for row in both], float if name.endswith("_s") else int) for k, name in enumerate(names)
    }
    data["sends"] = np.arange(len(both)) < len(full)
    ranks = np.array([row[0] for row in full] + [row[1] for row in full], int)
    sender = np.concatenate([np.full(len(full), -1), np.arange(len(full))])
    return SimpleNamespace(data=SimpleNamespace(**data), collective=collective, total_s=99.0), ranks, sender


def arrived(rows):
    """Transfers, as tuples of ints, and violations."""
    told = []
    found = arrived_transfers(*tables(rows), lambda *one: told.append(one))
    return [tuple(int(v) for v in row) for row in zip(*found, strict=True)], told


def test_shares_of_a_transfer():
    """From the first bit of the first to the last bit of the last; equal transfers one after the other."""
    first, second = (0, 1, 2, 1, Op.COPY), (0, 1, 3, 1, Op.COPY)
    rows = [(*first, 1, 2, 3), (*second, 5, 6, 9, 0, 2), (*second, 4, 7, 8, 1, 2)]
    assert arrived(rows) == ([(*first, 1, 2, 3), (*second, 4, 7, 9)], [])
    again = [(*first, 5, 6, 7, 0, 2), (*first, 0, 1, 2, 0, 2), (*first, 1, 2, 3, 1, 2), (*first, 6, 7, 8, 1, 2)]
    assert arrived(again) == ([(*first, 0, 2, 3), (*first, 5, 7, 8)], [])
    mixed = [(*first, 0, 1, 2), (*first, 5, 6, 7, 0, 2), (*first, 5, 6, 7, 1, 2)]
    assert arrived(mixed) == ([(*first, 0, 1, 2), (*first, 5, 6, 7)], [])


def test_a_rank_reads_what_it_sends_in_a_step_at_once():
    """As the first of it leaves, whichever round that is in; where no step is known, each as it leaves."""
    rows = [
        (0, 1, 0, 1, Op.REDUCE_MOVE, 5, 6, 9),
        (0, 2, 0, 1, Op.REDUCE_MOVE, 3, 4, 9),
        (3, 2, 1, 1, Op.COPY, 7, 8, 9),
    ]
    for step, due in ((0, [3, 3, 7]), (-1, [5, 3, 7])):
        found, told = arrived([(*row, 0, 1, 1, step) for row in rows])
        assert ([row[5] for row in found], told) == (due, [])
    apart = [(*row, 0, 1, 1, step) for step, row in enumerate(rows)]
    assert [row[5] for row in arrived(apart)[0]] == [5, 3, 7]


@pytest.mark.parametrize("column", range(5))
def test_transfers_that_differ_in_one_column(column):
    """They are two, of one share each."""
    one = [0, 1, 2, 1, int(Op.COPY)]
    other = [value + (k == column) * (2 if k < 2 else 1) for k, value in enumerate(one)]
    found, told = arrived([(*one, 0, 1, 2), (*other, 0, 1, 2)])
    assert (found, told) == ([(*one, 0, 1, 2), (*other, 0, 1, 2)], [])
    found, told = arrived([(*one, 0, 1, 2, 0, 2), (*other, 0, 1, 2, 1, 2)])
    assert (found, len(told)) == ([], 1)
    assert told[0] == ("share_missing", 0.0, "rank 1", "2 shares of chunk 2", "1", 2)


def test_no_transfers():
    """No rows, no times; and only the whole ones of several."""
    found = arrived_transfers(*tables([]), None)
    assert [len(column) for column in found] == [0] * 8
    whole, short = (0, 1, 2, 1, Op.COPY, 1, 2, 3), (0, 1, 1, 1, Op.COPY, 4, 5, 6, 1, 2)
    rows, told = arrived([short, whole])
    assert rows == [whole]
    assert told == [("share_missing", 4.0, "rank 1", "2 shares of chunk 1", "1", 1)]


# --- when data is ready ---------------------------------------------------------------------------------------------------


def ready(rows, compute="fused", flight=10.0):
    """When each row (src, dst, chunk, chunks, op, from, until, share, shares, step) that is received is ready, in seconds.

    A chunk has 100 bytes, and the memory moves 100 bytes a second.
    """
    full = [(*row[:7], 0.0, row[7], row[8], 1, row[9]) for row in rows]
    made, ranks, _ = tables(full, as_request("all_reduce").on(4, 8))
    made.size_bytes = 800
    rules = TimeRules(compute=compute, memory_bytes_per_s=100.0)
    due = due_ready_s(made, ranks, np.full(2 * len(rows), flight), rules)
    assert due[: len(rows)].tolist() == [row[6] for row in rows]  # those that send
    return due[len(rows) :].tolist()


def test_data_that_is_stored_is_ready_as_it_arrives():
    """But not before its rank has sent what it sends in the step; what it sends in other steps does not matter."""
    store = (0, 1, 0, 2, Op.COPY, 0.0, 3.0, 0, 1, 0)
    assert ready([store]) == [13.0]
    assert ready([store, (1, 2, 5, 1, Op.COPY, 0.0, 99.0, 0, 1, 0)]) == [99.0, 109.0]
    assert ready([store, (1, 2, 5, 1, Op.COPY, 20.0, 99.0, 0, 1, 1)]) == [13.0, 109.0]


@pytest.mark.parametrize(("compute", "sums"), [("fused", 2 + 1 + 2 * 3), ("chain", 3 * 3), ("none", 0)])
def test_data_that_is_added_is_ready_once_all_of_it_is_there(compute, sums):
    """Two ranges of chunks 0 to 1 and 1 to 2, of which the second comes later, in two shares; and a chunk of another step."""
    rows = [(0, 1, 0, 2, Op.REDUCE, 0.0, 3.0, 0, 1, 0), (2, 1, 2, 1, Op.REDUCE_MOVE, 0.0, 5.0, 0, 2, 0),
            (2, 1, 2, 1, Op.REDUCE_MOVE, 0.0, 7.0, 1, 2, 0), (0, 1, 0, 1, Op.REDUCE, 90.0, 91.0, 0, 1, 1)]  # fmt: skip
    alone = 0.0 if compute == "none" else 3.0
    assert ready(rows, compute) == [17.0 + sums] * 3 + [101.0 + alone]
    crossing = [rows[0], (2, 1, 1, 2, Op.REDUCE, 0.0, 1.0, 0, 1, 0), (3, 1, 0, 2, Op.REDUCE, 0.0, 1.0, 0, 1, 0)]
    assert ready(crossing, "fused") == [13.0 + 6 + 2 * 3] * 3


# --- results ------------------------------------------------------------------------------------------------------------


def result(collective, rows, ranks=3, chunks=3):
    """Violations of the result of transfers (src, dst, chunk, chunks, op), one a second."""
    told = []
    timed = [(*row, 2 * k, 2 * k + 1, 2 * k + 1) for k, row in enumerate(rows)]
    made = as_request(collective).on(ranks, chunks)
    check_result(*tables(timed, made), lambda *one: told.append(one))
    return told


ADD, PUT, MOVE = Op.REDUCE, Op.COPY, Op.MOVE
REDUCED = [(1, 0, 0, 1, ADD), (2, 0, 0, 1, ADD), (0, 1, 0, 1, PUT), (0, 2, 0, 1, PUT)]


@pytest.mark.parametrize(
    ("collective", "rows", "chunks", "due"),
    [
        ("all_reduce", REDUCED, 1, None),
        ("all_reduce", REDUCED[:-1], 1, ("rank 2 chunk 0", "that of rank 0 0 times, and 1 others wrong", 1)),
        ("all_reduce", REDUCED[:1] * 2 + REDUCED[2:], 1,
         ("rank 0 chunk 0", "that of rank 1 2 times, and 1 others wrong", 3)),
        ("all_reduce", [*REDUCED[:3], *REDUCED[3:], (0, 2, 0, 1, ADD)], 1,
         ("rank 2 chunk 0", "that of rank 0 2 times, and 2 others wrong", 1)),
        ("all_reduce", [(2, 0, 0, 1, ADD), *REDUCED[2:]], 1, ("rank 0 chunk 0", "that of rank 1 0 times", 3)),
        ("all_gather", [(k, (k + d) % 3, k, 1, PUT) for k in range(3) for d in (1, 2)], 3, None),
        ("all_gather", [(k, (k + d) % 3, k, 1, ADD) for k in range(3) for d in (1, 2)], 3, None),
        ("all_gather", [(k, (k + d) % 3, k, 1, PUT) for k in range(3) for d in (1, 2)][1:], 3,
         ("rank 1 chunk 0", "other data, or none", 1)),
        ("all_to_all", [(k, (k + d) % 3, (k + d) % 3, 1, MOVE) for k in range(3) for d in (1, 2)], 3, None),
        ("all_to_all", [(k, (k + d) % 3, (k + d) % 3, 1, MOVE) for k in range(3) for d in (1, 2)][1:], 3,
         ("rank 1 chunk 1", "that of rank 0 0 times", 1)),
        ("all_to_all", [(0, 1, 2, 1, PUT), (0, 2, 2, 1, MOVE), (1, 2, 2, 1, MOVE)]
         + [(k, (k + d) % 3, (k + d) % 3, 1, MOVE) for k in range(3) for d in (1, 2) if (k + d) % 3 != 2], 3,
         ("rank 2 chunk 2", "that of rank 0 2 times, and 1 others wrong", 1)),
    ],
)  # fmt: skip
def test_results(collective, rows, chunks, due):
    """The first rank and chunk, whose contribution, how often, and how many are wrong."""
    expected = "the data" if collective == "all_gather" else "each contribution once"
    found = result(collective, rows, chunks=chunks)
    assert found == ([] if due is None else [("data_wrong", 99.0, due[0], expected, *due[1:])])


def test_data_of_another_chunk_is_no_result():
    """Of an all_gather, with the right number of copies."""
    rows = [(0, 1, 0, 1, PUT), (0, 1, 0, 1, PUT)]
    (found,) = result("all_gather", rows, ranks=2, chunks=2)
    assert found[2:] == ("rank 0 chunk 1", "the data", "other data, or none", 1)
