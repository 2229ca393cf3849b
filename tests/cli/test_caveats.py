"""What a reader must know beside an answer is the same in the terminal, on the page and in JSON."""

import html
import json
import re

import pytest
from tests.cli.verbs import VERBS, options_of
from tests.training.test_gain import STEP, profile

from opticcl.plans.machines import ExcludedFabric

QUESTIONS = {
    "compare": "-n 12 -s 1MB -f oddl -f ramp -f torus -f fat_tree",
    "train": "-m lenet -n 12 -f oddl -f ramp -f torus -f fat_tree",
    "trace": "trace.json",
}
"""Verb that writes a page -> a question with something to be careful about."""


def words(text):
    """Its words, in one line."""
    return " ".join(text.split())


def caveats_of(record):
    """Every line that a record says beside its answer."""
    left_out = [str(ExcludedFabric(**one)) for one in record["left_out"] if "fabric" in one]
    return [*dict.fromkeys(words(line) for line in (*record.get("caveats", ()), *record["notes"], *left_out))]


def test_every_verb_with_a_page_is_here():
    """Those whose option for files names the suffix."""
    paged = {
        verb for verb in VERBS if any(one.name == "out" and ".html" in (one.help or "") for one in options_of(verb))
    }
    assert paged == QUESTIONS.keys()


@pytest.mark.parametrize("verb", QUESTIONS)
def test_caveats_are_the_same_in_every_form(verb, opticcl, tmp_path, monkeypatch):
    """The page shows the lines of JSON and no other, three of them open; the terminal has each, with --notes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")
    (tmp_path / "trace.json").write_text(profile(STEP))
    asked = QUESTIONS[verb].split()
    record = json.loads(opticcl(verb, *asked, "--json", "-o", "page.html").stdout)
    expected = caveats_of(record)
    assert expected
    page = (tmp_path / "page.html").read_text()
    section = re.search(r'<section id="notes">(.*?)</section>', page, re.DOTALL)[1]
    listed = [words(html.unescape(line)) for line in re.findall(r"<li>(.*?)</li>", section, re.DOTALL)]
    assert set(listed) == set(expected)
    assert section.partition("<details>")[0].count("<li>") == min(3, len(listed))
    more = ("--notes",) if verb != "trace" else ()
    shown = words(opticcl(verb, *asked, *more).stdout)
    for line in expected:
        name, _, reason = line.removeprefix("no rank: ").partition(": ")
        assert line in shown or (line.startswith("no rank: ") and name in shown and reason in shown)
    assert record["headline"] in shown
    assert record["headline"] in words(html.unescape(re.search('<p class="lead">(.*?)</p>', page, re.DOTALL)[1]))
