"""Every printed number has a row or a reason: lists, rows, the page and the papers' texts agree."""

import re

import pytest
from tests.optional import paper_text
from tests.papers.printed import PAGE, PAPERS, Entry, digits, entries, page, paragraphs, rows_of

from opticcl.papers import paper_names, printed_claims


def _values(published: object) -> list[int | float | str]:
    """Numbers of a published value, or those that its text prints outside formulas."""
    if isinstance(published, list):
        return [value for each in published for value in _values(each)]
    if isinstance(published, str):
        return re.findall(r"(?<![\w.^/(⌊⌈-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w(⌈]*\()", published)
    return [published] if isinstance(published, int | float) and not isinstance(published, bool) else []


def test_every_paper_has_a_list():
    """And no list is of another one."""
    assert paper_names() == PAPERS


@pytest.mark.parametrize("paper", PAPERS)
def test_lists_name_rows(paper):
    """Each entry has a row or a reason, each pattern a row, and each row that the paper prints an entry."""
    printed = printed_claims(paper)
    named = set()
    for entry in entries(paper):
        found = rows_of(entry, [*printed])
        assert bool(found) != bool(entry.why), entry
        assert all(rows_of(entry._replace(rows=(pattern,)), [*printed]) for pattern in entry.rows), entry
        named.update(found)
    assert {id for id, claim in printed.items() if claim["published"] != "not printed"} - named == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_published_numbers_are_printed(paper):
    """A number in `published` is in the entries of its row, digit by digit."""
    listed, printed = entries(paper), printed_claims(paper)
    for id, claim in printed.items():
        numbers = {digits(number) for entry in listed if rows_of(entry, [id]) for number in entry.numbers}
        values = [] if "formula" in claim else _values(claim["published"])
        assert {digits(value) for value in values} <= numbers, id


def test_the_page_is_that_of_the_lists():
    """Written by `python -m tests.papers.printed`."""
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("paper", PAPERS)
def test_lists_are_the_text(paper):
    """The paragraph of each entry prints its numbers; no number of a paragraph is left out."""
    assert _differences(paper_text(paper), entries(paper)) == []


def _differences(text: str, listed: list[Entry]) -> list[str]:
    """What a list and a text do not share."""
    bodies = [(" ".join(line.split()), numbers) for line, numbers in paragraphs(text)]
    left = [set(numbers) for _, numbers in bodies]
    found = []
    for entry in listed:
        begin = [i for i, (body, _) in enumerate(bodies) if body.startswith(entry.at)]
        places = begin or [i for i, (body, _) in enumerate(bodies) if entry.at in body]
        if not places or (len(places) > 1 and not entry.numbers):
            found.append(f"{entry.at!r} is in {len(places)} paragraphs")
        for place in places:
            if missing := set(entry.numbers) - bodies[place][1]:
                found.append(f"{entry.at!r} does not print {sorted(missing)}")
            left[place] -= set(entry.numbers)
    return found + [f"{body[:60]!r}: {sorted(rest)}" for (body, _), rest in zip(bodies, left, strict=True) if rest]


def test_differences_are_found():
    """A number that the list lacks, one that the text lacks, and words that are not there."""
    text = "Abstract\nWe gain 7.6 to 171 times on 65,536 nodes [3], see Fig. 4.\nIt takes $\\alpha = 3.7\\mu s$."
    whole = Entry("abstract", "We gain", ("7.6", "171", "65,536"), ("X1",), "")
    second = Entry("abstract", "It takes", ("3.7",), ("X2",), "")
    assert _differences(text, [whole, second]) == []
    assert _differences(text, [whole._replace(numbers=("7.6", "65,536")), second]) != []
    assert _differences(text, [whole._replace(numbers=("7.6", "171", "65,536", "8")), second]) != []
    assert _differences(text, [whole, second._replace(at="It takes longer")]) != []


@pytest.mark.parametrize("paper", PAPERS)
def test_rows_are_where_they_say(paper):
    """`where` has the section, table or figure of one of the row's entries; equations and lemmas stand in some section."""
    listed = entries(paper)
    for id, claim in printed_claims(paper).items():
        places = {entry.section for entry in listed if rows_of(entry, [id])}
        numbered = re.search(r"equation|lemma|theorem|algorithm", claim["where"])
        assert not places or numbered or any(_mentions(claim["where"], place) for place in places), id


def _mentions(where: str, place: str) -> bool:
    """Whether a text names a section ("5.4"), a table, a figure or an appendix, alone or among others."""
    kind, _, number = place.rpartition(" ")
    if not kind:
        where = re.sub(r"\b(?:figure|table|equation)s? .*", "", where)
    before = rf"\b{kind}s? (?:[^;]*[ ,])?" if kind else r"(?<![\w.-])"
    return re.search(rf"{before}{re.escape(number)}(?![\d.-])", where) is not None


def test_places_are_distinguished():
    """Sections and what they contain, figures in a list, tables with another number."""
    assert _mentions("section 5, figure 8b", "5")
    assert _mentions("5.A, figures 12, 13", "figure 13")
    assert not _mentions("5.A, figure 13", "figure 12")
    assert not _mentions("5.4, figure 5", "5")
    assert not _mentions("table 10", "table 1")
