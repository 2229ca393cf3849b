"""The papers' claims: every verdict on file is the true one, and a wrong one would be noticed."""

import re
from functools import cache

import pytest
from tests.papers.printed import digits, entries

from opticcl.errors import UnknownNameError
from opticcl.papers import BASES, _judge, check_paper, fits, found, lumion, paper_names, printed_claims
from opticcl.papers.formula import evaluate

SLOW = {"lumion": {*printed_claims("lumion")}, "morphlux": {"M2"}}
"""Claims that take 10 s and more, by paper."""


@pytest.mark.parametrize(
    ("paper", "claims"),
    [
        *((name, {*printed_claims(name)} - SLOW.get(name, set())) for name in paper_names() if name != "lumion"),
        *(pytest.param(*slow, marks=pytest.mark.deep) for slow in SLOW.items()),
    ],
)
def test_every_verdict_is_true(paper, claims):
    """What is on file is what comes out; every claim on file is checked."""
    rows = list(check_paper(paper, patterns=sorted(claims)))
    assert [row.id for row in rows if not row.ok] == []
    assert {row.id for row in rows} == claims
    assert {row.basis for row in rows} <= set(BASES)
    assert all(row.reason for row in rows if row.verdict in ("inconsistent", "not reproduced"))


def test_a_spare_chip_slows_a_torus_alone(monkeypatch):
    """Two slices with one spare chip each: every row is computed; on an optical rack messages take as long as before."""
    monkeypatch.setattr(lumion, "SLICES", lumion.SLICES[:2])
    monkeypatch.setattr(lumion, "EVERY", 64)
    monkeypatch.setattr(lumion, "slow_downs", cache(lumion.slow_downs.__wrapped__))
    assert min(lumion.slow_downs("torus:shape=4x4x4")) > 1
    assert lumion.slow_downs("lightpath:shape=8x8") == (1, 1)
    rows = list(check_paper("lumion"))
    assert {row.id for row in rows} == set(printed_claims("lumion"))
    assert all(row.ours > 1 for row in rows)


@pytest.mark.parametrize("paper", paper_names())
def test_nothing_fitted_is_exact(paper):
    """What rests on a fit names it and has the verdict of its own; every fit has a row that shows what it was fitted to."""
    claims = printed_claims(paper)
    fitted = {id: claim for id, claim in claims.items() if claim["basis"] == "fitted"}
    assert {id for id, claim in claims.items() if "fit" in claim} == set(fitted)
    assert {claim["fit"] for claim in fitted.values()} == set(fits(paper))
    assert not {claim["verdict"] for claim in fitted.values()} & {"exact", "5 %", "20 %"}
    assert all(claims[fit.evidence]["fit"] == name for name, fit in fits(paper).items())
    assert all(claims[fit.evidence]["verdict"] == "fitted" for fit in fits(paper).values())


@pytest.mark.parametrize(
    ("printed", "ours", "ok"),
    [
        ({"published": 100, "verdict": "exact"}, 100, True),
        ({"published": 100, "verdict": "exact"}, 101, False),
        ({"published": 100, "verdict": "5 %"}, 103, True),
        ({"published": 100, "verdict": "5 %"}, 100, False),
        ({"published": 100, "verdict": "20 %"}, 125, False),
        ({"published": 100, "verdict": "fitted", "within": "20 %"}, 115, True),
        ({"published": 100, "verdict": "fitted", "within": "20 %"}, 100, False),
        ({"published": 2.8, "digits": 2, "verdict": "exact"}, 2.818, True),
        ({"published": [1, 2], "verdict": "exact"}, [1, 3], False),
        ({"published": True, "verdict": "exact"}, True, True),
        ({"published": 288, "corrected": 768, "verdict": "inconsistent"}, 768, True),
        ({"published": 288, "corrected": 768, "verdict": "inconsistent"}, 288, False),
        ({"published": [100, 200], "verdict": "5 %"}, [100, 206], True),
        ({"published": [100, 200], "verdict": "exact"}, [100, 206], False),
        ({"published": [1.5, 20], "digits": [2, 1], "verdict": "exact"}, [1.46, 22], True),
        ({"published": [1.5, 20], "digits": [2, 2], "verdict": "exact"}, [1.46, 22], False),
        ({"published": [1, 2], "verdict": "exact"}, [1, 2, 3], False),
        ({"published": "2(N - 1)", "formula": "2 * (N - 1)", "at": {"N": 8}, "verdict": "exact"}, 14, True),
        ({"published": "2(N - 1)", "formula": "2 * (N - 1)", "at": {"N": 8}, "verdict": "exact"}, 15, False),
        ({"published": "N", "formula": "N", "at": [{"N": 8}, {"N": 9}], "verdict": "exact"}, [8, 9], True),
        ({"published": "N; 2N", "formula": ["N", "2 * N"], "at": {"N": 8}, "verdict": "exact"}, [8, 16], True),
        ({"published": "only half", "evaluated": 0.5, "verdict": "20 %"}, 0.6, True),
        ({"published": "not printed", "corrected": 7, "verdict": "not printed"}, 7, True),
        ({"published": "not printed", "corrected": 7, "verdict": "not printed"}, 8, False),
    ],
)
def test_a_verdict_is_judged(printed, ours, ok):
    """Worse than its verdict is an error, and so is better."""
    about = {"where": "1", "claim": "c", "basis": "literal"}
    assert _judge("paper", "id", {**about, **printed}, ours).ok is ok


def test_the_error_is_that_of_the_evaluated_value():
    """Not of the text; of a list it is the largest."""
    about = {"where": "1", "claim": "c", "basis": "literal", "verdict": "5 %"}
    row = _judge("paper", "id", {**about, "published": "N", "formula": "N", "at": {"N": 100}}, 103)
    assert (row.published, row.evaluated, row.relative_error) == ("N", 100, 0.03)
    assert _judge("paper", "id", {**about, "published": [100, 100]}, [101, 103]).relative_error == 0.03


def test_a_reason_names_computed_facts():
    """Fields are filled in from the facts and our value; a fact that the function does not compute is an error."""
    about = {"where": "1", "claim": "c", "basis": "literal", "verdict": "exact", "published": 2}
    row = _judge("paper", "id", {**about, "reason": "{ours} of {total:.1f}"}, found(2, total=7.04))
    assert (row.ours, row.reason) == (2, "2 of 7.0")
    with pytest.raises(KeyError, match="missing"):
        _judge("paper", "id", {**about, "reason": "{missing}"}, found(2, total=7.04))


@pytest.mark.parametrize("formula", ["__import__('os')", "N.real", "[N]", "M + 1", "'a' * 3", "N < 3", "True"])
def test_a_formula_is_arithmetic(formula):
    """Of numbers and the letters that have a value."""
    with pytest.raises(ValueError, match="is not arithmetic of the letters N"):
        evaluate(formula, {"N": 3})


def test_unknown_papers_are_refused():
    """With the nearest name."""
    with pytest.raises(UnknownNameError, match="'wrht'"):
        list(check_paper("wrth"))


# --- reasons ----------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.^{])\d+(?:,\d{3})*(?:\.\d+)?(?:[eE]-?\d+)?")
_WORDS = {"four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_PLACES = re.compile(
    r"\b(?:sections?|figures?|tables?|equations?|formulation|step|lemma) [\d.]+[a-z]?(?:(?:, | and | to )\d[\d.]*)*"
    r"|\d(?:\.\d){2,}"
)


def _named(text: str, ids: list[str]) -> set[str]:
    """Significant digits of the numbers that a text names, without those of places in the paper, ids and computed fields."""
    plain = re.sub(r"\{[^}]*\}", " ", text)
    for id in sorted(ids, key=len, reverse=True):
        plain = re.sub(rf"(?<![\w-]){re.escape(id)}(?![\w.-])", " ", plain)
    words = [str(_WORDS[word]) for word in re.findall(r"\w+", plain) if word in _WORDS]
    return {digits(number) for number in [*_NUMBER.findall(_PLACES.sub(" ", plain)), *words]}


@pytest.mark.parametrize("paper", paper_names())
def test_numbers_in_reasons_are_computed_or_printed(paper):
    """A number that a reason writes out is one of the paper or of the row itself; what we find is a field."""
    claims = printed_claims(paper)
    of_the_paper = {digits(number) for entry in entries(paper) for number in entry.numbers}
    for id, printed in claims.items():
        of_the_row = " ".join(str(value) for key, value in printed.items() if key != "reason")
        known = of_the_paper | {digits(number) for number in _NUMBER.findall(of_the_row)}
        assert _named(printed.get("reason", ""), [*claims]) <= known, id


def test_numbers_in_reasons_are_found():
    """In figures and in words; places, ids and fields are none."""
    reason = "as S29 in table 4 and section 8.1, {ours:.2f} of 12.5 Tb/s, seven steps, 1,024 nodes"
    assert _named(reason, ["S29"]) == {"125", "7", "1024"}
