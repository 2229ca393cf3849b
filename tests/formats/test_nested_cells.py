"""Cells of plan and programme files that hold lists within lists: refused at once, with their row and column."""

import json
import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.errors import PlanFileError
from opticcl.formats.plan_header import KEY
from opticcl.formats.programme_file import read_programme_file, write_programme_file
from opticcl.plans.plan import read

LONGEST_S = 5
"""A second on a busy machine; the reader of the column type takes minutes for these files [s]."""


@pytest.fixture(scope="module")
def plan():
    """Five ranks, in few rows."""
    return opticcl.compile("terarack:nodes=5,wavelengths=4", "all_reduce", "1kB", algorithm="ring")


@pytest.fixture(scope="module")
def written(plan, tmp_path_factory):
    """The plan and its programme as JSON values, and a folder."""
    folder = tmp_path_factory.mktemp("nested")
    plan.save(folder / "plan.json")
    write_programme_file(folder / "times.json", plan.circuits, plan.programme())
    return *(json.loads((folder / name).read_text()) for name in ("plan.json", "times.json")), folder


def cells(most_depth=900):
    """Values that no cell may hold, lists and objects in any order down to some depth."""
    kinds = st.lists(st.sampled_from([lambda v: [v], lambda v: {"a": v}, lambda v: [1, v]]), min_size=1, max_size=3)

    def nested(inner, depth, kinds):
        value = inner
        for i in range(depth):
            value = kinds[i % len(kinds)](value)
        return value

    inner = st.sampled_from([7, None, "x", 1.5, True, 2**63])
    return st.builds(nested, inner, st.one_of(st.integers(2, 6), st.integers(2, most_depth)), kinds)


def refusal(read, text):
    """Text of the refusal of a file, which comes soon.

    Args:
        read: reads it.
        text: part of the refusal.
    """
    begun = time.monotonic()
    with pytest.raises(PlanFileError, match=text) as caught:
        read()
    assert time.monotonic() - begun < LONGEST_S
    assert len(str(caught.value)) < 400


@examples(60)
@given(st.data())
def test_a_nested_cell_of_a_plan(written, data):
    """Of any column, at any row."""
    whole, _, folder = written
    changed = json.loads(json.dumps(whole))
    name = data.draw(st.sampled_from(sorted(changed["columns"])))
    row = data.draw(st.integers(0, len(changed["columns"][name]) - 1))
    changed["columns"][name][row] = data.draw(cells())
    (folder / "odd.json").write_text(json.dumps(changed))
    refusal(lambda: read(folder / "odd.json"), rf"row {row}: {name}=.* is not a (list of whole numbers|whole number)")


@examples(60)
@given(st.data())
def test_a_nested_cell_of_a_programme(plan, written, data):
    """Of any table that has rows."""
    _, whole, folder = written
    changed = json.loads(json.dumps(whole))
    table = data.draw(st.sampled_from(sorted(n for n, t in changed["tables"].items() if len(next(iter(t.values()))))))
    name = data.draw(st.sampled_from(sorted(changed["tables"][table])))
    row = data.draw(st.integers(0, len(changed["tables"][table][name]) - 1))
    changed["tables"][table][name][row] = data.draw(cells())
    (folder / "odd-times.json").write_text(json.dumps(changed))
    refusal(
        lambda: read_programme_file(folder / "odd-times.json", plan.circuits),
        rf"table '{table}': row {row}: {name}=.* is not a (number|whole number of 64 bits)",
    )


@examples(30)
@given(value=cells())
def test_a_nested_column_or_header(plan, written, value):
    """In place of a column or of a field of the header; a column that no plan has is not read."""
    whole, times, folder = written
    for part, reader, path in (
        ("columns", lambda p: read(p), whole),
        ("header", lambda p: read(p), whole),
        ("header", lambda p: read_programme_file(p, plan.circuits), times),
    ):
        changed = json.loads(json.dumps(path))
        changed[part][sorted(changed[part])[0]] = value
        (folder / "odd-part.json").write_text(json.dumps(changed))
        refusal(lambda reader=reader: reader(folder / "odd-part.json"), "odd-part.json")
    changed = json.loads(json.dumps(whole))
    changed["columns"]["more"] = [value]
    (folder / "odd-part.json").write_text(json.dumps(changed))
    assert read(folder / "odd-part.json").verify().ok


@pytest.mark.parametrize("depth", [2, 5, 40])
def test_a_nested_column_of_a_parquet_file(plan, tmp_path, depth):
    """Its type says so before a cell is read."""
    plan.save(tmp_path / "plan.parquet")
    header, rows = pl.read_parquet_metadata(tmp_path / "plan.parquet")[KEY], pl.read_parquet(tmp_path / "plan.parquet")
    for name in ("path", "src"):
        odd = rows
        for _ in range(depth):
            odd = odd.with_columns(pl.struct(name).alias(name))
        odd.lazy().sink_parquet(tmp_path / "odd.parquet", metadata={KEY: header})
        refusal(lambda: read(tmp_path / "odd.parquet"), f"column '{name}' holds .*, not (lists of )?whole numbers")
