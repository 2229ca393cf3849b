"""The search for symmetries that no schedule claims: what is tried, and rows that do not exist."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.collective import collective, custom_collective
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.symmetry import Digits, Xor
from opticcl.schedule import generate
from opticcl.verify import data as data_module
from opticcl.verify import found as found_module
from opticcl.verify.found import _candidates, _chunks_of, _malformed, _prime_factors, found_claims


def tried(step, num_ranks):
    """Permutations that are tried, as lists."""
    return [images.tolist() for images in _candidates(step, num_ranks)]


def test_permutations_that_are_tried():
    """What the step does where it is a permutation, the rotation, the digits, and exclusive or for powers of two."""
    ring = Transfers.of([0, 1, 2, 3], [2, 0, 3, 1], 0, 1, Op.COPY)
    bits = [one.images(4).tolist() for one in (Digits((2, 2), 0, 1), Digits((2, 2), 1, 1), Xor(1), Xor(2))]
    assert tried(ring, 4) == [[2, 0, 3, 1], [1, 2, 3, 0], *bits]
    for changed in (ring.take([0, 1, 2]), replace(ring, src=ring.dst * 0), replace(ring, dst=ring.src * 0)):
        assert tried(changed, 4) == [[1, 2, 3, 0], *bits]
    digits = [Digits((2, 3), digit, 1).images(6).tolist() for digit in (0, 1)]
    assert tried(ring, 6) == [[1, 2, 3, 4, 5, 0], *digits]
    assert tried(ring, 5) == [[1, 2, 3, 4, 0]]
    assert tried(ring, 2) == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("number", "factors"), [(1, ()), (2, (2,)), (4, (2, 2)), (7, (7,)), (9, (3, 3)), (12, (2, 2, 3)), (35, (5, 7))]
)
def test_prime_factors(number, factors):
    """Ascending, each as often as it divides."""
    assert _prime_factors(number) == factors


@pytest.mark.parametrize(
    ("column", "value"),
    [("src", -1), ("src", 3), ("dst", -1), ("dst", 3), ("op", 4), ("chunk_lo", -1), ("chunk_lo", 3), ("chunk_n", 0)],
)
def test_rows_that_do_not_exist_are_not_searched(column, value):
    """The largest and smallest rank, chunk and operation are."""
    good = Transfers.of([0, 2], [2, 0], [0, 2], 1, Op.REDUCE_MOVE)
    wanted = collective("all_reduce", 3, 3)
    assert not _malformed(good, wanted)
    assert not _malformed(good.take(np.zeros(0, int)), wanted)
    values = getattr(good, column).copy()
    values[1] = value
    assert _malformed(replace(good, **{column: values}), wanted)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [*((name, "ring") for name in ("all_reduce", "all_gather", "reduce_scatter")), ("all_gather", "bruck")],
)
def test_rotations_are_found(monkeypatch, name, algorithm):
    """The permutation of the chunks follows from their owners, or from the rows of the first step."""
    monkeypatch.setattr(data_module, "SYMMETRY_FROM", 0)
    monkeypatch.setattr(found_module, "LEAST_WIDTH", 1)
    silent = replace(generate(algorithm, name, fabric("ideal:nodes=12")), symmetries=())
    report = data_module.check_data(silent)
    assert (report.violations, report.how) == ((), "symmetry of order 12, found and checked")


def test_whole_messages_of_many_ranks_are_named_once():
    """65,536 rows of as many chunks each: one row stands for all with its range."""
    n = 1 << 16
    rank = np.arange(n)
    whole = Transfers.of(rank, (rank + 1) % n, 0, n, Op.COPY)
    images = _chunks_of((rank + 1) % n, whole, collective("broadcast", n, n))
    assert np.array_equal(images, rank)
    apart = Transfers.of(rank[1:], rank[:-1], rank[:-1] // 2, n // 2 - rank[:-1] % 2, Op.COPY)
    assert _chunks_of(rank, apart, collective("broadcast", n, n)) is None


NOTHING = Transfers.of(np.zeros(0, int), np.zeros(0, int), 0, 1, Op.COPY)
ROTATED = np.array([1, 2, 0])


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "scatter", "send_recv", "all_to_all"])
def test_chunks_follow_their_owners(name):
    """Whoever holds them before or after, without a look at the step; two chunks a rank."""
    images = _chunks_of(ROTATED, NOTHING, collective(name, 3, 6))
    assert images.tolist() == [2, 3, 4, 5, 0, 1]


def chunks_by_rows(rows, num_chunks, ranks=ROTATED, c=None):
    """The permutation that follows from rows (src, dst, chunk_lo, chunk_n), or None."""
    step = Transfers.of(*np.array(rows, int).reshape(-1, 4).T, Op.REDUCE)
    images = _chunks_of(ranks, step, c or collective("all_reduce", 3, num_chunks))
    return None if images is None else images.tolist()


def test_chunks_by_the_rows_of_a_step(monkeypatch):
    """Each row becomes the one between the images of its ranks, which carries as many chunks."""
    ring = [(0, 1, 0, 2), (1, 2, 2, 2), (2, 0, 4, 2)]
    assert chunks_by_rows(ring, 6) == [2, 3, 4, 5, 0, 1]
    every = np.ones((6, 3), bool)
    assert chunks_by_rows(ring, 6, c=custom_collective("mine", every, every, True)) == [2, 3, 4, 5, 0, 1]
    assert chunks_by_rows([(0, 1, 1, 1), (0, 2, 0, 4)], 4, np.arange(3)) == [0, 1, 2, 3]
    monkeypatch.setattr(found_module, "MOST_NAMED", 1)
    assert chunks_by_rows(ring, 6) == [2, 3, 4, 5, 0, 1]
    assert chunks_by_rows([*ring, (0, 2, 0, 1), (1, 0, 2, 1), (2, 1, 4, 1)], 6) is None


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 1, 0, 2), (1, 2, 2, 2), (2, 0, 4, 1)],
        [(0, 1, 0, 2), (2, 0, 4, 2)],
        [(0, 1, 0, 2), (1, 2, 2, 2), (2, 0, 4, 2), (0, 1, 0, 2)],
        [(0, 1, 0, 2), (1, 2, 0, 2), (2, 0, 4, 2)],
        [(0, 1, 0, 1), (1, 2, 2, 1), (2, 0, 4, 1)],
    ],
    ids=["no rows", "another size", "no image", "two of a pair", "two images of a chunk", "chunks that no row names"],
)
def test_rows_that_give_no_permutation(rows):
    """Of six chunks under the rotation of three ranks."""
    assert chunks_by_rows(rows, 6) is None


def test_a_chunk_that_no_row_names_has_no_image():
    """Though the others would leave one for it."""
    assert chunks_by_rows([(0, 1, 0, 1)], 2, np.arange(3)) is None


@pytest.mark.parametrize("rows", [[(0, 1, 0, 2), (2, 0, 0, 2)], [(0, 1, 0, 2), (1, 2, 0, 2), (2, 0, 0, 1)]])
def test_whole_messages_need_an_image_of_the_same_size(rows):
    """Between the ranks that take the places of theirs, though no chunk would move."""
    assert chunks_by_rows(rows, 2) is None


@pytest.mark.parametrize("at", [None, 0, 1])
def test_no_claims_for_steps_that_do_not_exist(at):
    """No steps at all, or a receiver that does not exist in the first or in a later one."""
    c = collective("all_reduce", 3, 3)
    step = Transfers.of([0, 1, 2], [1, 2, 0], [0, 1, 2], 1, Op.REDUCE)
    steps = [step, step] if at is not None else []
    right = Schedule("hand", c, len(steps), steps.copy().__getitem__)
    assert bool(found_claims(right)) == (at is not None)
    for i in () if at is None else (at,):
        steps[i] = replace(step, dst=np.array([1, 2, 3], np.int32))
        assert found_claims(Schedule("hand", c, 2, steps.__getitem__)) == []


@pytest.mark.parametrize("at", [0, 1])
def test_no_claims_for_rows_without_chunks(at):
    """Which change nothing, so that no claim is refuted by them."""
    step = Transfers.of([0, 1, 2], [1, 2, 0], [0, 1, 2], 1, Op.REDUCE)
    steps = [step, step]
    steps[at] = replace(step, chunk_n=np.zeros(3, np.int32))
    assert found_claims(Schedule("hand", collective("all_reduce", 3, 3), 2, steps.__getitem__)) == []


@pytest.mark.parametrize(("limit", "claims"), [(5, False), (6, True), (7, True)])
def test_no_claims_for_too_many_chunks_apart(monkeypatch, limit, claims):
    """Six of them: three rows of two each."""
    monkeypatch.setattr(found_module, "MOST_APART", limit)
    step = Transfers.of([0, 1, 2], [1, 2, 0], [0, 2, 1], 2, Op.REDUCE, chunk_step=3)
    made = Schedule("hand", collective("reduce_scatter", 3, 6), 1, lambda i: step)
    assert bool(found_claims(made)) == claims
