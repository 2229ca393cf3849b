"""The papers' claims: every verdict on file is the true one, and a wrong one would be noticed."""

import pytest

from opticcl.errors import UnknownNameError
from opticcl.papers import _judge, _printed, check_paper, paper_names


@pytest.mark.parametrize("paper", paper_names())
def test_every_verdict_is_true(paper):
    """What stands in data/papers is what comes out; every claim on file is checked."""
    rows = list(check_paper(paper))
    assert [row.id for row in rows if not row.ok] == []
    assert {row.id for row in rows} == set(_printed(paper))
    assert all(row.reason for row in rows if row.verdict in ("inconsistent", "not reproduced"))


@pytest.mark.parametrize(
    ("printed", "ours", "ok"),
    [
        ({"published": 100, "verdict": "exact"}, 100, True),
        ({"published": 100, "verdict": "exact"}, 101, False),
        ({"published": 100, "verdict": "5 %"}, 103, True),
        ({"published": 100, "verdict": "5 %"}, 100, False),
        ({"published": 100, "verdict": "20 %"}, 125, False),
        ({"published": 2.8, "digits": 2, "verdict": "exact"}, 2.818, True),
        ({"published": [1, 2], "verdict": "exact"}, [1, 3], False),
        ({"published": True, "verdict": "exact"}, True, True),
        ({"published": 288, "corrected": 768, "verdict": "inconsistent"}, 768, True),
        ({"published": 288, "corrected": 768, "verdict": "inconsistent"}, 288, False),
    ],
)
def test_a_verdict_is_judged(printed, ours, ok):
    """Worse than its verdict is an error, and so is better."""
    assert _judge("paper", "id", {"where": "1", "claim": "c", **printed}, ours).ok is ok


def test_unknown_papers_are_refused():
    """With the nearest name."""
    with pytest.raises(UnknownNameError, match="'wrht'"):
        list(check_paper("wrth"))
