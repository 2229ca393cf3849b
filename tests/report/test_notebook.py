"""What a notebook shows: tables of plans, times and verdicts, and pictures."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

import opticcl
from opticcl.errors import ParameterError
from opticcl.units import format_bytes, format_seconds


class Cells(HTMLParser):
    """Texts of the cells of tables, row by row."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        """A row begins with its tag."""
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        """Tags close in the order in which they are open."""
        assert self.open.pop() == tag

    def handle_data(self, text):
        """Text belongs to the row that is open."""
        if "tr" in self.open:
            self.rows[-1].append(text)


@pytest.fixture(scope="module")
def plan():
    """An all_reduce on eight nodes."""
    return opticcl.compile("terarack:nodes=8,wavelengths=4", "all_reduce", "1 MB")


def test_a_plan_is_a_row_of_facts(plan):
    """What it does, on what, by what."""
    head, row = Cells(plan._repr_html_()).rows
    facts = dict(zip(head, row, strict=True))
    assert facts.items() >= {"fabric": "terarack", "nodes": "8", "message": format_bytes(1e6)}.items()
    assert facts["algorithm"] == plan.algorithm


def test_times_are_those_of_the_terminal(plan):
    """The same cells; the last row has the sums."""
    times = plan.simulate()
    rows = Cells(times._repr_html_()).rows
    assert [" ".join(row) for row in rows] == [" ".join(line.split()) for line in str(times).splitlines()]
    assert rows[-1][-1] == format_seconds(times.total_s)


def test_broken_rules_are_rows(plan):
    """None where the plan is right; texts of a plan cannot be tags."""
    right = plan.verify()
    assert not Cells(right._repr_html_()).rows[1:]
    assert str(right).partition("\n")[0] in right._repr_html_()
    wrong = opticcl.errors.VerificationError
    short = opticcl.Plan(replace(plan.circuits, rounds=lambda step: ()), plan.size_bytes)
    verdict = short.verify()
    with pytest.raises(wrong):
        verdict.raise_if_bad("a <plan>")
    rows = Cells(verdict._repr_html_()).rows
    assert [row[0] for row in rows[1:]] == [violation.rule for violation in verdict.violations]


def test_every_result_draws_itself(plan, tmp_path):
    """SVG with text as text, shown and saved, the same as by opticcl.plot."""
    found = opticcl.compare(["ideal", "torus"], "all_reduce", "1 MB", nodes=8)
    for answer, word in ((plan, "node"), (found, "torus"), (plan.simulate(), "transfer"), (plan.verify(), "transfers")):
        picture = answer.plot()
        text = picture._repr_svg_()
        assert text == opticcl.plot(answer)._repr_svg_()
        assert text.startswith("<svg")
        assert re.search(rf"<text[^>]*>[^<]*{word}", text)
        picture.save(tmp_path / "picture.svg")
        assert "<text" in (tmp_path / "picture.svg").read_text()


def test_a_time_is_drawn_with_the_times_of_its_table(plan):
    """One bar a run of steps, its time beside it."""
    times = plan.simulate()
    text = times.plot()._repr_svg_()
    runs = [sum(parts.values()) for _, _, parts in times]
    assert len(runs) > 1
    assert all(f">{format_seconds(seconds)}<" in text for seconds in runs)


def test_a_verdict_is_drawn_by_its_broken_rules(plan):
    """How often each is broken; of a right plan what was checked."""
    right = plan.verify()
    assert all(f">{count:,}<" in right.plot()._repr_svg_() for count in (right.transfers, right.circuits))
    wrong = opticcl.Plan(replace(plan.circuits, rounds=lambda step: ()), plan.size_bytes).verify()
    text = wrong.plot()._repr_svg_()
    for rule in {violation.rule for violation in wrong.violations}:
        count = sum(violation.count for violation in wrong.violations if violation.rule == rule)
        assert f"<title>{rule}: {count:,}</title>" in text


def test_what_cannot_be_drawn_is_refused(plan):
    """With what to give."""
    with pytest.raises(ParameterError, match="plot: DataFrame has no picture; give a plan"):
        opticcl.plot(pl.DataFrame({"a": [1]}))
    with pytest.raises(ParameterError, match="plot: assumptions: a Timeline takes no options; give them for a plan"):
        plan.simulate().plot(assumptions="published")
