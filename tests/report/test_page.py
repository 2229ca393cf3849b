"""The HTML page."""

import dataclasses
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from opticcl.errors import OutputError
from opticcl.fabrics import fabric
from opticcl.ir import Violation
from opticcl.plans.compare import Declined, compare_plans
from opticcl.report import comparison_page as page_module
from opticcl.report import write_page
from opticcl.report.comparison_sections import result
from opticcl.report.kit.words import busiest
from opticcl.report.reproduce import reproduction
from opticcl.units import format_seconds

VOID = {"meta", "link", "wbr", "br"}


class Reader(HTMLParser):
    """Checks that tags close in order, and collects ids, references and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.references, self.tags, self.said = [], Counter(), set(), Counter(), []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        """A tag opens."""
        self.tags[tag] += 1
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids[value] += 1
            elif key in ("href", "xlink:href", "src"):
                self.references.add(value)
            elif key == "aria-labelledby":
                self.references.add("#" + value)
            self.references |= {"#" + i for i in re.findall(r"url\(#([^)]+)\)", value or "")}

    def handle_startendtag(self, tag, attrs):
        """A tag opens and closes."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        """A tag closes."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Text."""
        self.said.append(data)


@pytest.fixture(scope="module")
def spiced(comparison):
    """The comparison with names that must be escaped and a plan that is wrong."""
    first, *others = comparison.entries
    bad = dataclasses.replace(first.verdict, violations=(Violation("clash", 0, 0, "at <b>", "1", "2"),))
    declined = (*comparison.declined, Declined("x<y", "a&b", 'because "of" <this>'))
    return dataclasses.replace(
        comparison, entries=(dataclasses.replace(first, verdict=bad), *others), declined=declined
    )


NOTE = "a note with <script>alert(1)</script>"


@pytest.fixture(scope="module")
def written(spiced, tmp_path_factory):
    """A page of it, written over an older file, and the progress that was reported."""
    target, reported = tmp_path_factory.mktemp("page") / "page.html", []
    target.write_text("old")
    write_page(target, dataclasses.replace(spiced, notes=(NOTE,)), "<Title> & more", reported.append)
    return target, reported


@pytest.fixture(scope="module")
def text(written):
    """The text of that page."""
    return written[0].read_text("utf-8")


def test_the_page_is_whole_and_needs_nothing_else(text):
    """Tags close, ids are unique, references stay inside, no script, no address but the name spaces, not too large."""
    read = Reader(text)
    assert max(read.ids.values()) == 1
    assert {r for r in read.references if r != "data:,"} <= {"#" + i for i in read.ids}
    assert read.tags["script"] == 0
    assert set(re.findall(r'https?://[^"\s<]+', text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert len(text.encode()) < 3_000_000
    assert read.tags["svg"] == read.tags["figure"] == read.tags["figcaption"] == 4  # two of the comparison, two systems
    assert read.tags["h1"] == 1


def test_the_page_tells_everything(text, spiced):
    """Each plan with its time, each declined pair with its reason, the violation, the note and the assumptions."""
    said = " ".join(Reader(text).said)
    assert all(e.plan.algorithm in said and format_seconds(e.total_s) in said for e in spiced.entries)
    assert all(d.reason in said for d in spiced.declined)
    for words in (
        "<Title> & more",
        "a note with <script>",
        "clash: step 0",
        "at <b>",
        "reconfiguration_charge = on_change",
    ):
        assert words in said
    assert "wrong" in said
    assert said.count("NO") >= 1


def test_every_cell_stands_under_a_heading(text, widths):
    """Each row of each table has as many cells as the head, also where shared columns are left out."""
    found = widths(text)
    assert len(found) >= 2
    assert all(set(rows) == {head} for head, *rows in found)


def test_what_all_plans_share_stands_above_the_table(comparison):
    """Once, instead of in a column; what differs has its column."""
    alike = result(comparison)
    assert "54 nodes each" in alike
    assert ">Nodes</th>" not in alike
    assert ">Node rate</th>" in alike
    first, *others = comparison.entries
    smaller = next(
        iter(compare_plans([fabric("ideal:nodes=4")], "all_reduce", [1_000_000], assumptions="published").entries)
    )
    differing = result(dataclasses.replace(comparison, entries=(first, *others, smaller)))
    assert ">Nodes</th>" in differing
    assert "nodes each" not in differing


def test_the_bottleneck_is_named_in_few_words_and_whole_to_the_pointer(comparison):
    """Coordinates and the like would make the row many lines tall."""
    cells = dict(re.findall(r'<td title="([^"]+)">([^<]+)</td>', result(comparison)))
    whole = next(busiest(e) for e in comparison.entries if "(" in busiest(e))
    assert whole in cells
    assert "(" not in cells[whole]


def test_the_program_on_the_page_makes_the_comparison_again(comparison, capsys, monkeypatch):
    """It runs, and its times are those of the comparison."""
    import opticcl

    compare, made = opticcl.compare, []
    monkeypatch.setattr(opticcl, "compare", lambda *a, **k: made.append(compare(*a, **k)) or made[-1], raising=False)
    exec(reproduction(comparison), {})
    assert [frame["total_s"][0] for frame in made] == [e.total_s for e in comparison.entries]
    assert "verified" in capsys.readouterr().out


def test_writing_replaces_the_file_and_leaves_nothing_else(written, text):
    """The page stands under its name, alone, and progress was reported."""
    target, reported = written
    assert text.startswith("<!DOCTYPE html>")
    assert list(target.parent.iterdir()) == [target]
    assert "draw the light of ramp" in reported


def test_a_bad_path_is_one_clear_error(comparison, tmp_path):
    """A missing folder and a folder in place of the file: OutputError at once, and nothing is left behind."""
    for path in (tmp_path / "missing" / "page.html", tmp_path):
        with pytest.raises(OutputError, match="cannot write") as caught:
            write_page(path, comparison, "title", progress=lambda text: pytest.fail("work before the path is tried"))
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_drawing_leaves_the_old_page(comparison, tmp_path, monkeypatch):
    """Whole or not at all."""
    target = tmp_path / "page.html"
    target.write_text("old")
    monkeypatch.setattr(page_module._sections, "breakdown", lambda comparison: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page(target, comparison, "title")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
