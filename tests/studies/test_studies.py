"""Every study runs small, is deterministic, and agrees with the notes."""

from __future__ import annotations

import pytest

from opticcl.cli import command_group
from opticcl.errors import OpticclError, ParameterError, UnknownNameError
from opticcl.studies import STUDIES, Study, run_study
from opticcl.studies.beyond import PAPERS

SMALL = {
    "transfers": "transfers:nodes=12,lasers=3",
    "beyond": "beyond:system=oddl,nodes=16",
}


@pytest.fixture
def job(tmp_path):
    """A log of two layers and three all-reduces."""
    file = tmp_path / "job.log"
    lines = ["AR;1000;0,1,2,3", "AR;500;4,5,6,7", "L2L;8;3;0;0;1", "AR;200;2,3", "L2L;8;3;1;1;0", "L2L;16;3;0;1;2"]
    file.write_text("\n".join(lines) + "\n")
    return file


def small(name: str, job) -> str:
    """A study of that name that takes no time."""
    return SMALL.get(name) or f"co_scheduling:workload={job}"


def found(study: Study, **wanted: object) -> dict:
    """The one row with these values."""
    (row,) = [row for row in study.rows if all(row[key] == value for key, value in wanted.items())]
    return row


@pytest.mark.parametrize("name", STUDIES.names())
def test_rows_have_the_same_keys_and_are_deterministic(name: str, job) -> None:
    """The same keys in every row, those of the chart among them, and the same values again."""
    one, same = run_study(small(name, job)), run_study(small(name, job))
    chart = one.chart
    assert one == same
    assert len({tuple(row) for row in one.rows}) == 1
    assert {chart.x, chart.y, *chart.lines} <= set(one.rows[0])
    assert one.name.startswith(name)
    assert STUDIES.get(name).__doc__


def test_progress_is_reported() -> None:
    """At least once per study."""
    reported: list[str] = []
    run_study(SMALL["transfers"], lambda what, done, total: reported.append(what))
    assert set(reported) == {"schedule"}


def test_the_command_line_lists_the_registered_studies() -> None:
    """Modules of shared code in the package are not among them."""
    verbs = {verb.split()[1] for verb, _ in command_group().walk() if verb.startswith("study ")}
    assert set(STUDIES.names()) == verbs - {"run", "query", "map", "pareto", "tornado", "breakeven", "lines", "papers"}


def test_transfers_break_the_rule_only_as_printed() -> None:
    """More than 16 lasers asked of a sender; corrected and coloured never."""
    study = run_study("transfers")
    for row in study.rows:
        if row["algorithm"] != "greedy, as printed":
            assert row["lasers_asked"] <= 16
            assert row["rounds"] >= row["at_least"]
        if row["algorithm"] == "edge colouring":
            assert row["rounds"] == row["at_least"]
    assert max(row["lasers_asked"] for row in study.rows if row["algorithm"] == "greedy, as printed") > 16


def test_co_scheduling_saves_rounds(job) -> None:
    """All-reduces beside layers and beside each other; times add up."""
    study = run_study(f"co_scheduling:workload={job}")
    parts = {name: [r for r in study.rows if r["order"] == name] for name in ("one after the other", "concurrently")}
    rounds = {name: sum(r["rounds"] for r in rows) for name, rows in parts.items()}
    assert rounds["concurrently"] < rounds["one after the other"]
    for rows in parts.values():
        assert rows[-1]["done"] == 5
        assert rows[-1]["until_s"] == pytest.approx(sum(r["time_s"] for r in rows))
    assert parts["concurrently"][-1]["until_s"] < parts["one after the other"][-1]["until_s"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("transfer", "did you mean 'transfers'"),
        ("transfers:most=5", "unknown parameter 'most'"),
        ("transfers:lasers=0", "lasers=0"),
        ("transfers:seed=-1", "seed=-1"),
        ("co_scheduling:workload=x,radix=1", "radix=1"),
        ("co_scheduling:workload=x,seed=-1", "seed=-1"),
        ("co_scheduling", "workload is missing"),
        ("co_scheduling:workload=nowhere.log", "nowhere.log"),
    ],
)
def test_bad_studies_are_refused_in_one_line(text: str, hint: str) -> None:
    """The message names the field and what to try."""
    with pytest.raises(OpticclError, match=hint) as error:
        run_study(text)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, (ParameterError, UnknownNameError)) or "nowhere" in text or "=" in text


@pytest.mark.parametrize(
    ("system", "nodes"), [("lightpath", 16), ("oddl", 32), ("ramp", 54), ("sipac", 16), ("terarack", 8)]
)
def test_never_slower_than_the_paper(system: str, nodes: int) -> None:
    """At no size, for no collective that the paper has, and never below the bound."""
    for collective in (
        name for name in PAPERS[system] if name != "source" and (system, name) != ("oddl", "all_to_all")
    ):
        for row in run_study(f"beyond:system={system},nodes={nodes},collective={collective}").rows:
            assert row["bound_s"] <= row["fastest_s"] <= row["paper_s"], row
            assert row["fastest_common_s"] <= row["paper_common_s"], row


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("beyond:system=torus", "system=torus is not one of lightpath, oddl, ramp, sipac, terarack"),
        ("beyond:system=sipac,collective=gather", "the paper of sipac has no gather; try all_reduce, broadcast"),
        ("beyond:system=oddl,nodes=32,collective=all_to_all", "no algorithm of the paper does all_to_all on 32 nodes"),
        ("beyond:system=oddl,nodes=9", "not a power of two up to 32768; nearest: 8 or 16"),
    ],
)
def test_comparisons_that_no_paper_has(text: str, reason: str) -> None:
    """Refused with what exists."""
    with pytest.raises(OpticclError, match=reason):
        run_study(text)
