"""The runner of mutants of the source: the changes that it makes, and that survivors are explained as they are."""

import ast

from tests.source_mutants.__main__ import PACKAGES, REPOSITORY, TESTS, explained, recorded, table
from tests.source_mutants.operators import mutants_of

import opticcl

ROOT = REPOSITORY / "src/opticcl"

SOURCE = '''
"""A module."""

def clash(counts: list[int], most: int = 1) -> bool:
    """Whether one is too large."""
    if not counts:
        raise ValueError(f"no {counts + [1]}")
    key = (most, len(counts))
    return max(counts) > most and key[0] == 1
'''

DECORATED = """
from functools import cache

@cache
def most(
    count: int = 1,
) -> int:
    return max(count, 2)
"""


def test_every_kind_of_change_is_made_once(tmp_path):
    """Comparisons, numbers, conditions, elements, calls; not the texts, the annotations or the docstrings."""
    (tmp_path / "clash.py").write_text(SOURCE, "utf-8")
    found = {mutant.change for mutant in mutants_of(tmp_path / "clash.py", tmp_path)}
    assert {
        "if not counts => if False",
        "if not counts => if True",
        "not counts => counts",
        "(most, len(counts)) => (most,)",
        "(most, len(counts)) => (len(counts),)",
        "max(counts) > most => max(counts) >= most",
        "max(counts) => min(counts)",
        "key[0] == 1 => key[0] != 1",
        "0 => 1",
        "1 => 2",
    } <= found
    assert not any("no {" in change or "list[int]" in change or "Whether" in change for change in found)


def test_a_mutant_differs_in_one_place(tmp_path):
    """It compiles, and it is the module with the one change."""
    (tmp_path / "clash.py").write_text(SOURCE, "utf-8")
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants_of(tmp_path / "clash.py", tmp_path):
        after = ast.unparse(mutant.tree).splitlines()
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1, mutant.change
        compile(mutant.tree, "clash.py", "exec")


def test_defaults_of_a_function_are_changed_for_the_tests_that_call_it(tmp_path):
    """A call is recorded at the first line of the function, which is that of its decorator."""
    (tmp_path / "decorated.py").write_text(DECORATED, "utf-8")
    default, _, inner = mutants_of(tmp_path / "decorated.py", tmp_path)
    code = next(one for one in compile(DECORATED, "decorated.py", "exec").co_consts if hasattr(one, "co_firstlineno"))
    assert (default.change, inner.change) == ("1 => 2", "2 => 3")
    assert code.co_firstlineno in default.lines
    assert [*inner.lines] == [8]


def test_names_of_mutants_are_unique():
    """Of the judge of light: the same change of one function has a number."""
    names = [mutant.name for mutant in mutants_of(ROOT / "verify/judge.py", ROOT)]
    assert len(names) == len(set(names)) > 0


def test_what_is_explained_exists():
    """A survivor whose code has changed is explained anew; every package has tests that may kill its mutants."""
    reasons = explained()
    files = {name.partition(" ")[0] for name in reasons}
    known = {mutant.name for file in files for mutant in mutants_of(ROOT / file, ROOT)}
    assert set(reasons) <= known
    assert all(reason.strip() for reason in reasons.values())
    assert set(TESTS) == set(PACKAGES)
    assert opticcl.__file__.startswith(str(ROOT))


def test_survivors_of_recorded_runs_are_explained_or_open():
    """The record adds up, its open survivors are listed by name, and docs/extending/tests.md has its table."""
    reasons = explained()
    for file, one in recorded().items():
        assert (ROOT / file).exists(), file
        assert one["killed"] + one["explained"] + one["not_run"] + len(one["open"]) == one["mutants"], file
        assert all(name.startswith(f"{file} ") and name not in reasons for name in one["open"]), file
        assert one["explained"] <= sum(name.startswith(f"{file} ") for name in reasons), file
    assert table() in (REPOSITORY / "docs/extending/tests.md").read_text("utf-8")
