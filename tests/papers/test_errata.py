"""Every erratum is a quotation and a counter-example that uses no value of ours; the page, the lists and the claims agree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.optional import paper_text
from tests.papers.errata import NAMES, PAGE, errata, page, plain
from tests.papers.errata.watched import OURS, Watched, read, value_of, watch

from opticcl.papers import paper_names, printed_claims

ROOT = Path(__file__).parents[2]


def test_every_paper_whose_text_is_at_hand_has_a_list():
    """Others have claims of their abstract alone. And the page is that of the lists, by `python -m tests.papers.errata`."""
    places = {name: {claim["where"] for claim in printed_claims(name).values()} for name in paper_names()}
    assert sorted(NAMES) == [name for name, where in places.items() if where != {"abstract"}]
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("paper", NAMES)
def test_quotations_are_in_the_text(paper):
    """All of them, as they stand in the record."""
    text = plain(paper_text(paper))
    assert [quote for entry in errata(paper) for quote in entry.quotes if plain(quote) not in text] == []


@pytest.mark.parametrize("paper", NAMES)
def test_examples_show_what_they_say_and_read_nothing_of_ours(paper):
    """Each gives its number, which is not the one asserted, without a value whose source begins as in `OURS`."""
    examples = [example for entry in errata(paper) for example in entry.examples]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.papers.errata.watched", paper],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(ran.stdout)
    assert len(answers) == len(examples) > 0
    for example, answer in zip(examples, answers, strict=True):
        assert answer.get("failed") is None, example
        assert answer["value"] == pytest.approx(example.shown, rel=3e-3), example
        assert answer["value"] != pytest.approx(example.asserted, rel=0.01), example
        assert answer["read"] == [], example


@pytest.mark.parametrize("paper", NAMES)
def test_claims_are_inconsistent_where_an_erratum_shows_it(paper):
    """And nowhere else: what rests on a choice or a fit of ours is not reproduced."""
    shown = {row for entry in errata(paper) for row in entry.rows}
    assert shown == {id for id, claim in printed_claims(paper).items() if claim["verdict"] == "inconsistent"}


@pytest.mark.parametrize("source", [f"{how}: of the random numbering" for how in OURS])
def test_a_value_of_ours_is_noticed(source):
    """In arithmetic, comparisons, conversions and formats, not where it is only handed on; others are never."""
    table = watch({"a": {"value": 2, "source": source}, "b": {"value": 3, "source": "section 3"}}, "")
    mine, printed = table["a"]["value"], table["b"]["value"]
    read.clear()
    kept = {mine: (mine,)}
    assert not isinstance(printed, Watched)
    assert kept
    assert not read
    for use in (lambda: 1 + mine, lambda: mine < 3, lambda: float(mine), lambda: f"{mine:.1f}", lambda: max(mine, 1)):
        read.clear()
        use()
        assert read == {".a.value"}
    assert value_of(mine) == 2
