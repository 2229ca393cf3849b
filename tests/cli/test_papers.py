"""opticcl study papers: which claims it lists, and how."""

import dataclasses
import json

import pytest
from rich.console import Console

from opticcl.papers import ALL_VERDICTS, Row
from opticcl.report.claims import ClaimsList, claims_summary

ROW = Row("L1", "lumorph", "section 5", "GB/s of a laser", 18, None, 18.75, 0.0417, "5 %", "literal", "as text", True)


def printed(rows, width=120):
    """The list as text."""
    console = Console(width=width, highlight=False)
    with console.capture() as seen:
        console.print(ClaimsList(rows))
    return seen.get()


@pytest.mark.parametrize("spelling", ["not reproduced", "not-reproduced", "Not_Reproduced"])
def test_a_verdict_is_spelt_in_any_way(answer, spelling):
    """With spaces, lines or capitals."""
    rows, code = answer("study", "papers", "lumorph", "--verdict", spelling, "--claim", "L2?")
    assert code == 0
    assert {row["verdict"] for row in rows} == {"not reproduced"}


def test_a_verdict_picks_its_claims(answer):
    """And with it another one; the order stays that of the file."""
    rows, code = answer("study", "papers", "lumorph", "--verdict", "not reproduced", "--verdict", "20%")
    assert code == 0
    assert {row["verdict"] for row in rows} == {"not reproduced", "20 %"}
    alone, _ = answer("study", "papers", "lumorph", "--verdict", "20 %")
    assert alone == [row for row in rows if row["verdict"] == "20 %"]


def test_an_unknown_verdict_is_refused_in_a_line(opticcl):
    """With those that there are."""
    done = opticcl("study", "papers", "--verdict", "exakt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert all(name in done.stderr for name in ("--verdict", "'exakt'", *ALL_VERDICTS))


def test_claims_are_picked_by_id(answer):
    """By an id or a shell pattern, together with a verdict; the order stays that of the file."""
    rows, code = answer("study", "papers", "wrht", "--claim", "W1*", "--claim", "W5", "--verdict", "inconsistent")
    assert code == 0
    assert [row["id"] for row in rows] == ["W5", "W14", "W15", "W16", "W18.db"]
    assert [row["id"] for row in answer("study", "papers", "--claim", "RAMP-E2-s3")[0]] == ["RAMP-E2-s3"]


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [("RAMP-E2-s33", "did you mean 'RAMP-E2-s3'?"), ("*-*-*-*-*-x", "`opticcl study papers` lists them")],
)
def test_an_unknown_claim_is_refused_in_a_line(opticcl, pattern, hint):
    """With the nearest one, if there is one."""
    done = opticcl("study", "papers", "ramp", "--claim", "RAMP-E2-s3", "--claim", pattern)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"opticcl: --claim: no claim {pattern!r}; {hint}")
    assert done.stderr.count("\n") == 1


def test_counts_stand_first_and_last(opticcl):
    """From the nearest verdict to the farthest."""
    done = opticcl("study", "papers", "lumorph", "--verdict", "not reproduced", "--verdict", "20 %")
    first, *_, last = done.stdout.strip().splitlines()
    assert first == "16 claims, reproduced: 1 within 20 %; 15 not."
    assert last.index("within 20 %") < last.index("not reproduced")
    assert last.endswith("every verdict is true")


def test_a_claim_takes_two_lines():
    """Numbers in columns, then the claim and its reason; a long value is cut, a long claim wraps with its indent."""
    other = dataclasses.replace(ROW, id="L22.most", published=[1.5] * 40, ours=[1.5] * 40, relative_error=None)
    lines = [line.rstrip() for line in printed([ROW, other]).splitlines()]
    head, numbers, claim, cut, _ = lines[3:8]
    assert numbers.split() == ["L1", "5", "%", "literal", "18", "18.75", "4.17%", "section", "5"]
    assert claim == "    GB/s of a laser · as text"
    for column, value in (("published", "18"), ("ours", "18.75"), ("difference", "4.17%")):
        assert head.index(column) + len(column) == numbers.index(f" {value} ") + len(value) + 1
    assert cut.count("…") == 2
    wrapped = printed([dataclasses.replace(ROW, reason="because " * 40)]).splitlines()[5:-2]
    assert len(wrapped) > 2
    assert all(line.startswith("    ") and len(line) <= 120 for line in wrapped)


def test_a_verdict_that_is_not_true_is_told():
    """Beside the claim and in the counts."""
    wrong = dataclasses.replace(ROW, id="L2", ours=30.0, relative_error=0.67, ok=False)
    summary = "2 claims: 2 within 5 % (2 literal); verdicts on file that are not true: 1: L2"
    assert claims_summary([ROW, wrong]) == summary
    text = printed([ROW, wrong])
    assert text.count("NOT TRUE") == 1
    assert claims_summary([]) == "0 claims"


def test_what_is_exact_is_counted_apart():
    """Machinery with its bases, arithmetic on printed inputs, and what follows from a fit."""
    kinds = [
        ("exact", "corrected", ""),
        ("exact", "arithmetic", ""),
        ("exact", "literal", ""),
        ("5 %", "arithmetic", ""),
    ]
    fitted = [("fitted", "fitted", fit) for fit in ("numbering", "message_size", "message_size")]
    rows = [
        dataclasses.replace(ROW, id=f"L{i}", verdict=verdict, basis=basis, fit=fit)
        for i, (verdict, basis, fit) in enumerate([*kinds, *fitted])
    ]
    assert claims_summary(rows) == (
        "7 claims: 2 exact by machinery (1 literal, 1 corrected), 1 exact by arithmetic on printed inputs, "
        "1 within 5 % (1 arithmetic), 3 follow from 2 fits; every verdict is true"
    )


def test_rows_behind_a_fit_are_listed(opticcl, answer, tmp_path):
    """One row of each fit in the list of a paper, with their number; all with --fit, and in the record."""
    listed = opticcl("study", "papers", "lumorph", "-o", tmp_path / "all.json").stdout
    behind, code = answer("study", "papers", "lumorph", "--fit", "message_size")
    assert code == 0
    assert [row["id"] for row in behind] == ["L6", "L7"]
    assert {row["verdict"] for row in behind} == {"fitted"}
    assert "\nL7 " in listed
    assert "\nL6 " not in listed
    assert "rows that follow: 1 (--fit message_size)" in " ".join(listed.split())
    assert "L6" in {row["id"] for row in json.loads((tmp_path / "all.json").read_text("utf-8"))}


def test_an_unknown_fit_is_refused_in_a_line(opticcl):
    """With the nearest one of the papers that are listed."""
    done = opticcl("study", "papers", "ramp", "--fit", "hpc_switch")
    assert (done.returncode, done.stdout) == (2, "")
    meant = "opticcl study papers ramp --fit hpc_switches"
    assert done.stderr == f"opticcl: --fit: no fit 'hpc_switch' of ramp; did you mean 'hpc_switches'? Try: {meant}\n"


def test_a_formula_stands_beside_its_value():
    """The value in the column, the printed text below."""
    lines = printed([dataclasses.replace(ROW, published="2(N - 1)", evaluated=18)]).splitlines()
    assert "  18  18.75  " in lines[4]
    assert lines[5].strip() == "GB/s of a laser · printed: 2(N - 1) · as text"


def test_paper_by_paper():
    """The name of each above its claims."""
    text = printed([ROW, dataclasses.replace(ROW, id="S1", paper="sipac")])
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("lumorph") < lines.index("sipac")
