"""The HTML page."""

import dataclasses
import re
import shutil
from collections import Counter
from html import escape
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from opticcl.errors import OutputError
from opticcl.fabrics import fabric
from opticcl.ir import Violation
from opticcl.plans.compare import compare_plans
from opticcl.plans.comparison import Declined
from opticcl.plans.hardware import bill_per_node
from opticcl.plans.names import labels
from opticcl.report import comparison_page as sections
from opticcl.report.comparison_page import every_plan, write_page
from opticcl.report.fastest import crossings
from opticcl.report.kit.words import PART_NAMES, busiest
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
    """Tags close, ids are unique, references stay inside, no address but the name spaces, not too large; one script."""
    read = Reader(text)
    assert max(read.ids.values()) == 1
    assert {r for r in read.references if r != "data:,"} <= {"#" + i for i in read.ids}
    (script,) = re.findall(r"<script>\n(.*?)</script>", text, re.DOTALL)
    assert read.tags["script"] == 1
    assert script == files("opticcl.report").joinpath("page.js").read_text("utf-8")  # nothing of an input is in it
    assert set(re.findall(r'https?://[^"\s<]+', text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert len(text.encode()) < 3_000_000
    assert (
        read.tags["svg"] == read.tags["figure"] == read.tags["figcaption"] == 6
    )  # two of the comparison, two of each system
    assert read.tags["h1"] == 1


def test_the_answer_stands_before_the_plans_and_circuits_are_folded(text):
    """One picture and one row a fabric are open; each row leads to its plan, the machine compared before its small instance."""
    order = [text.index(f'id="{key}"') for key in ("result", "notes", "all", "size", "plans", "assumptions", "again")]
    assert order == sorted(order)
    opened = re.sub("<details>.*?</details>", "", text, flags=re.DOTALL)
    assert opened.count('<figure tabindex="0">') == 1  # scrolled by keyboard where it is wider than the window
    assert set(re.findall(r'<a href="#plan-\d+">(\w+)</a>', opened)) == {"ramp", "ideal"}
    for number in re.findall(r'<h3 id="plan-(\d+)">', text):
        assert 0 < text.index(f'id="machine-{number}-title"') < text.index(f'id="light-{number}-title"')
    assert re.search(
        r"ramp, 54 nodes, [\w:=,]+: (all circuits|the circuits of \d+ of 54 senders) of step 0", text[order[4] :]
    )


def test_the_answer_has_one_plan_of_each_fabric_and_the_folded_table_all(spiced):
    """The fastest plan of each, with the columns of the terminal; pictures say what they leave out."""
    best = sections.best_of_each(spiced)
    fabrics = [entry.fabric.name for entry in spiced.entries]
    assert [fabrics[i] for i in best] == list(dict.fromkeys(fabrics))
    assert [spiced.entries[i].total_s for i in best] == [
        min(e.total_s for e in spiced.entries if e.fabric.name == name) for name in dict.fromkeys(fabrics)
    ]
    assert sections.answer(spiced).count('<th scope="row">') == len(best) < len(fabrics)
    assert sections.every_plan(spiced).partition("<details>")[0].count('<th scope="row">') == len(fabrics)
    some, about = sections.drawn(spiced, ())
    assert len(best) <= len(some.entries) < len(fabrics)
    assert about.startswith(" Drawn: the fastest plan of each fabric")


def test_lines_carry_their_names(text, spiced):
    """As the pointer shows them, in the order of the lines."""
    named = re.findall(r'<g class="line" data-line="(\d+)"><title>(.*?)</title>', text)
    some, _ = sections.drawn(spiced, crossings(spiced))
    assert 1 < len(some.entries) < len(spiced.entries)
    assert [int(number) for number, _ in named] == list(range(len(some.entries)))
    assert [name for _, name in named] == [escape(name) for name in labels(some)]
    assert {int(number) for number in re.findall(r'<g class="end" data-line="(\d+)">', text)} == set(range(len(named)))


def test_bars_carry_their_values(text, spiced):
    """The time of each part of a plan, and price and power of a node, as the pointer shows them."""
    shown = re.findall(r"<title>([^<]*)</title>", text)
    for i in sections.best_of_each(spiced):
        entry = spiced.entries[i]
        for part, seconds in entry.totals().items():
            words = f": {PART_NAMES[part]} {format_seconds(seconds)}, {seconds / entry.total_s:.0%}"
            assert any(words in one for one in shown) == bool(seconds)
        usd, w = bill_per_node(entry.fabric)
        assert usd is None or {f": {usd:,.0f} USD", f": {w:,.0f} W"} <= {
            one[one.rindex(": ") :] for one in shown if ": " in one
        }


@pytest.mark.deep
def test_the_script_in_a_browser(tmp_path):
    """Sort, filter and hide by keyboard and mouse; the folded plans are found; nothing of an input is executed."""
    player = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'opticcl[browser]'"
    )
    found = compare_plans(
        [fabric("torus", shape=(4, 4)), fabric("ideal", nodes=16)], "all_reduce", [10**6], algorithm="all"
    )
    path = tmp_path / "page.html"
    write_page(path, dataclasses.replace(found, notes=(NOTE,)), "All plans")
    with player.sync_playwright() as running:
        binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if binary is None:
            pytest.skip("no Chromium: apt-get install chromium")
        browser = running.chromium.launch(executable_path=binary, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        said = []
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollHeight") < 6 * 800
        page.set_viewport_size({"width": 360, "height": 800})
        box = page.locator("#result tbody tr").first.locator("td", has_text=format_seconds(found.entries[0].total_s))
        assert box.bounding_box()["x"] + box.bounding_box()["width"] <= 360
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        page.set_viewport_size({"width": 1280, "height": 800})
        for key in ("all", "size"):
            page.locator(f'nav a[href="#{key}"]').click()
            assert page.locator(f"#{key}").is_visible()
        time = page.locator("#all table.plans").first.locator("thead th", has_text="Time")
        for order, first in (("ascending", found.entries[0]), ("descending", None)):
            time.locator("button").focus()
            page.keyboard.press("Enter")
            assert time.get_attribute("aria-sort") == order
            cells = page.locator("#all table.plans").first.locator("tbody tr").first.locator("td").all_inner_texts()
            assert (format_seconds(found.entries[0].total_s) in cells) == (first is not None)
        page.locator("#all input[type=search]").fill("ideal ring")
        shown = page.locator("#all table.plans tbody tr:visible").all_inner_texts()
        assert shown
        assert all("ideal" in text and "ring" in text for text in shown)
        assert page.locator("#all output").inner_text() == f"{len(shown)} of {len(found.entries)}"
        toggle = page.locator("#size .toggles button").first
        line = page.locator("#size g.line").first
        toggle.click()
        assert (toggle.get_attribute("aria-pressed"), line.is_visible()) == ("false", False)
        toggle.click()
        assert line.is_visible()
        assert page.locator("#size .named").inner_text() == toggle.inner_text()
        browser.close()
    assert said == []


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


def test_the_bottleneck_is_named_in_few_words_and_whole_to_the_pointer(comparison):
    """Coordinates and the like would make the row many lines tall."""
    cells = dict(re.findall(r'<td title="([^"]+)">([^<]+)</td>', every_plan(comparison)))
    whole = next(busiest(e) for e in comparison.entries if "(" in busiest(e))
    assert whole in cells
    assert "(" not in cells[whole]


def test_the_program_on_the_page_makes_the_comparison_again(comparison, capsys, monkeypatch):
    """It runs, and its times are those of the comparison."""
    import opticcl

    compare, made = opticcl.compare, []
    monkeypatch.setattr(opticcl, "compare", lambda *a, **k: made.append(compare(*a, **k)) or made[-1], raising=False)
    exec(reproduction(comparison), {})
    assert [one.entries[0].total_s for one in made] == [e.total_s for e in comparison.entries]
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
    monkeypatch.setattr(sections, "crossings", lambda comparison: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page(target, comparison, "title")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
