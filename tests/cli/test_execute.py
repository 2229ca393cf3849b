"""`opticcl execute`: which message it runs, and that it judges right, also collectives of one's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.collective import COLLECTIVES, Request, custom_collective
from opticcl.errors import ParameterError
from opticcl.execute import execute
from opticcl.execute import reference as _arrays
from opticcl.execute.reference import expected_results, matches, message_elements, random_arrays, wrong_ranks

OWN = """
name = "expert_weights"
ranks = 8
reduces = {reduces}

[[chunks]]
before = {before}
after = "all"
count = 2

[[chunks]]
before = [5]
after = [1, 2]
"""


@pytest.mark.parametrize("reduces", ["false", "true"])
@pytest.mark.parametrize("before", ["[3]", "[0, 4]"])
def test_collectives_of_ones_own(opticcl, answer, tmp_path, reduces, before):
    """Synthesized, and executed from its plan file: right, whichever rank holds what."""
    (tmp_path / "mine.toml").write_text(OWN.format(reduces=reduces, before=before))
    plan_file = tmp_path / "s.csv"
    made = opticcl("synthesize", "-f", "lightpath:shape=2x4", "--file", tmp_path / "mine.toml", "-o", plan_file)
    assert made.returncode == 0, made.stderr
    found, code = answer("execute", plan_file, "--size", "3KB")
    assert (code, found["ok"], found["ranks"]) == (0, True, 8)
    assert found["size_bytes"] == 3000


def test_what_others_hold_decides(opticcl, tmp_path):
    """Where nothing is added, holders of a chunk must give the same; the line names chunk and ranks."""
    (tmp_path / "mine.toml").write_text(OWN.format(reduces="false", before="[0, 4]"))
    plan_file = tmp_path / "s.json"
    opticcl("synthesize", "-f", "lightpath:shape=2x4", "--file", tmp_path / "mine.toml", "-o", plan_file)
    rows = np.tile(np.arange(9), (8, 1))
    np.save(tmp_path / "same.npy", rows)
    assert opticcl("execute", plan_file, "--input", tmp_path / "same.npy").returncode == 0
    rows[4, 4] = 99
    np.save(tmp_path / "other.npy", rows)
    done = opticcl("execute", plan_file, "--input", tmp_path / "other.npy")
    assert done.returncode == 2
    assert "expert_weights: ranks 0 and 4 both hold chunk 1 at the start, with different data" in done.stderr


def test_expected_of_ones_own():
    """By hand: three chunks of two, two and one elements; what a rank is not due is zero."""
    before = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], bool)  # chunks by ranks
    after = np.array([[0, 0, 1], [1, 0, 1], [0, 0, 1]], bool)
    arrays = np.array([[1, 2, 3, 4, 5], [10, 20, 30, 40, 50], [100, 200, 300, 400, 500]])
    found = expected_results(custom_collective("mine", before, after, True), arrays)
    assert found[1] is None
    assert [list(found[rank]) for rank in (0, 2)] == [[0, 0, 330, 440, 0], [11, 22, 330, 440, 500]]


@examples(60)
@given(st.sampled_from(COLLECTIVES), st.integers(1, 6), st.integers(1, 5), st.integers(0, 200))
def test_every_chunk_holds_something(name, ranks, chunks_each, size_bytes):
    """A message is never smaller than asked, blocks are equal, no chunk is empty, and what could be left out was."""
    wanted = Request(name).on(ranks, ranks * chunks_each)
    elements = message_elements(wanted, size_bytes, 4)
    blocks = 1 if wanted.owner is None else ranks
    assert elements % blocks == 0
    assert 4 * elements >= size_bytes
    in_block = wanted.num_chunks // blocks

    def empty(block):
        width = -(-block // in_block)
        return block <= (in_block - 1) * width

    block = elements // blocks
    assert not empty(block)
    enough = max(1, -(-size_bytes // (4 * blocks)))
    assert all(empty(smaller) for smaller in range(enough, block))


@pytest.mark.parametrize("size", ["0", "3B"])
def test_a_small_message_is_no_empty_one(opticcl, size):
    """Every chunk holds an element, and the line says so."""
    done = opticcl("execute", "-f", "ideal:nodes=8", "-a", "ring", "-s", size)
    assert done.returncode == 0
    assert f"{size.rstrip('B')} bytes requested, 64 used" in done.stdout
    assert "8 x int64" in done.stdout


def test_a_plan_file_runs_any_message(opticcl, answer, tmp_path):
    """The verb's own size unless another is given, whatever the plan file was compiled for."""
    plan_file = tmp_path / "plan.csv"
    opticcl("compile", "-f", "terarack:nodes=15,wavelengths=2", "-a", "wrht", "-s", "1GB", "--out", plan_file)
    assert answer("execute", plan_file)[0]["size_bytes"] == 1_000_000
    assert answer("execute", plan_file, "--size", "8KB")[0]["size_bytes"] == 8000
    refused = opticcl("execute", plan_file, "--root", "1")
    assert (refused.returncode, "--root" in refused.stderr) == (2, True)


def test_a_wrong_rank_is_told(opticcl, answer, monkeypatch):
    """The comparison can fail: one element of one rank."""

    def spoilt(schedule, arrays, **more):
        results = execute(schedule, arrays, **more)
        results[3][5] += 1
        return results

    monkeypatch.setattr("opticcl.execute.execute", spoilt)
    found, code = answer("execute", "-f", "ideal:nodes=8", "-s", "1KB")
    assert (code, found["ok"], found["wrong_ranks"]) == (1, False, [3])
    assert "wrong: 1 of 8 ranks differ from NumPy, rank 3 first" in opticcl("execute", "-f", "ideal:nodes=8").stdout


@pytest.mark.parametrize("dtype", ["int8", "float16", "bool", "complex64"])
def test_random_data_are_small_whole_numbers(dtype):
    """Alike for a seed, other for each rank, and their sums exact."""
    wanted = Request("all_reduce").on(5, 5)
    rows = random_arrays(wanted, 100_000, dtype, 7)
    assert rows.dtype == dtype
    assert np.array_equal(rows, random_arrays(wanted, 100_000, dtype, 7))
    assert not np.array_equal(rows[0], rows[1])
    assert (rows.real.astype(int) <= 63).all()
    assert len(np.unique(rows)) == (2 if dtype == "bool" else 64)
    exact = rows.astype(complex).sum(axis=0)
    if dtype in ("float16", "complex64"):
        assert np.array_equal(expected_results(wanted, rows)[0], exact)


def test_sums_are_numpys(monkeypatch):
    """Slice by slice or at once, in the type of the data."""
    monkeypatch.setattr(_arrays, "SLICE", 7)
    data = np.random.default_rng(3).integers(-100, 100, (4, 5, 11)).astype(np.int8)
    found = expected_results(Request("all_reduce").on(4, 4), data)
    assert np.array_equal(found[2], data.sum(axis=0, dtype=np.int8))


def test_what_matches():
    """Integers to the last bit, floats up to rounding, shapes and holders always."""
    ones = np.ones(3)
    assert matches(ones, ones * (1 + 1e-16), 2)
    assert matches(np.array([np.nan]), np.array([np.nan]), 2)
    assert not matches(ones, ones * (1 + 1e-12), 2)
    assert not matches(1e-12 * ones, 2e-12 * ones, 2)  # small numbers are no zeros
    assert not matches(ones, np.ones((2, 3)), 2)
    assert not matches(np.array([1, 2]), np.array([1, 3]), 2)
    assert not matches(None, ones, 2)


def test_sums_that_cancel_are_judged_by_what_was_added():
    """Off by the rounding of large numbers is right, off by more is wrong."""
    arrays = np.array([[1e9], [0.3], [-1e9]])
    due = [arrays.sum(axis=0)] * 3
    assert wrong_ranks([np.array([0.3])] * 3, due, arrays) == []
    assert wrong_ranks([due[0], np.array([0.301]), due[0]], due, arrays) == [1]


def test_too_large_is_refused():
    """Before an array is made; rounding up counts."""
    with pytest.raises(ParameterError, match="more than 8 GiB"):
        random_arrays(Request("all_reduce").on(8, 8), 1 << 31, "int64", 0)
    with pytest.raises(ParameterError, match=r"of 8 ranks take 24 KB, 3 KB are free"):
        random_arrays(Request("all_reduce").on(8, 8), 1000, "int64", 0, most_bytes=1000)
