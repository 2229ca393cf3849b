"""Numbers of the papers: what is in their text, what our lists have, and the page of those that have no row.

A list is a TOML file a paper. Each entry has a few words of the text, the numbers of its paragraph that it accounts for, and
the rows of `opticcl study papers` that compute them, or the reason for which none does. `python -m tests.papers.printed` writes
the page docs/papers/printed.md from the lists.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs/papers/printed.md"
PAPERS = tuple(sorted(path.stem for path in HERE.glob("*.toml")))


class Entry(NamedTuple):
    """Numbers of a paragraph that have the same rows, or the same reason.

    Args:
        section: of the paper, or its table or figure.
        at: words of the text in or before which the numbers are.
        numbers: as printed, without signs and units; none for a claim in words.
        rows: patterns of the ids of the rows.
        why: reason for which there is no row, empty where there are rows.
    """

    section: str
    at: str
    numbers: tuple[str, ...]
    rows: tuple[str, ...]
    why: str


def entries(paper: str) -> list[Entry]:
    """The list of a paper."""
    listed = tomllib.loads((HERE / f"{paper}.toml").read_text("utf-8"))
    return [_entry(listed["why"], entry) for entry in listed["printed"]]


def _entry(reasons: dict[str, str], entry: dict[str, Any]) -> Entry:
    numbers, rows = (tuple(entry.get(key, "").split()) for key in ("numbers", "rows"))
    return Entry(entry["section"], entry["at"], numbers, rows, reasons[entry["why"]] if "why" in entry else "")


def rows_of(entry: Entry, ids: list[str]) -> list[str]:
    """Ids that an entry names."""
    return [id for id in ids if any(fnmatchcase(id, pattern) for pattern in entry.rows)]


def digits(number: str | float) -> str:
    """Significant digits, which units leave alone: those of 12.8 Tb/s and 12.8e12 bit/s."""
    plain = f"{number:.6g}" if isinstance(number, int | float) else number
    return re.sub(r"[.,]|[eE].*", "", plain).strip("0") or "0"


# --- numbers of a text ------------------------------------------------------------------------------------------------

_BIBLIOGRAPHIC = re.compile(
    r"^©|ISBN|e-mail|^Received|^Manuscript|^Digital Object|^Funding|^\*\*Funding|^ICPP|^Fei Dai\*"
)
_HEADING = re.compile(r"^(#+ )?([A-Z]|1[01]?|[2-9])(\.\d+)*\.? [A-Z*].{0,90}[^.]$")
_PART = re.compile(r"(?i)[# *0-9.]*(abstract|references|declarations|with the ever-increasing|[A-C] (?=[A-Z]))")
_MARKER = re.compile(r"^\s*(- )?(\*\*)?\(?\d+[.):]+\s|^[\d.]+\d (?=[A-Z])")
_REFERENCES = re.compile(
    r"\[\d[\d, –-]*\]|https?://\S+|§[\d.]+|<sup>.*?</sup>|© \d+"
    r"|\b(?i:fig(?:ure|s|\.)*|tab(?:le|les|s|\.)*|sec(?:tion|tions|\.)*|eq(?:uation|uations|s|n|\.)*|alg(?:orithms?|\.)|lines?|step"
    r"|appendix|lemma|theorem)[ ~]*\(?\d[\d.]*[a-z]?\)?(?:(?:,| and|, and| to|-|–) ?\(?\d[\d.]*[a-z]?\)?)*"
    r"|(?<=[A-Za-z]{2})-\d+\b|\b\d+D\b|\(?\b\d\.[abc]\)|(?<![\w.=])\(?\d\)(?!\w)"
)
_POWER = re.compile(r"(?:(\d[\d.]*)\s*(?:\\times|×)?\s*)?\b(?:10\^|1e\^)\{?(-?\d+)\}?")
_UNITS = re.compile(
    r"\\(?:mu|times|approx|sim|%|leq|geq|ge|le|text|mathrm|rm)\b|\\%|\\[,;~ ]|[{}]"
    r"|(?:USD|[kMGT]?(?:bps|b/s|B)|[umnf]?[ms]|[TG]b/s)\b"
)
_VALUE = re.compile(r"[=<>]\s*(\d+(?:\.\d+)?)(?![\d.\w^({\\])")
_NUMBER = re.compile(r"(?<![\w.^])\d+(?:,\d{3})*(?:\.\d+|,\d(?=k))?(?:[eE]-?\d+)?")


def paragraphs(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Each line of a paper's text from its abstract on, with the numbers that it prints.

    Left out: what identifies the paper, headings, citations, references to figures and equations, and formulas; of those the
    values that they assign to a letter remain.

    Args:
        text: of a paper, a paragraph or row of a table a line.
    """
    part = ""
    for line in text.splitlines():
        if named := re.match(
            r"(?i)[# *0-9.]*(abstract|references|declarations|with the ever-increasing|[A-C] (?=[A-Z]))", line
        ):
            part = named[1].lower()
        body = part not in ("", "references", "declarations")
        if body and line.strip() and not _BIBLIOGRAPHIC.search(line) and not _HEADING.match(line.strip()):
            yield line, frozenset(_numbers(_MARKER.sub("", line)))


def _numbers(line: str) -> list[str]:
    plain = _POWER.sub(lambda m: f"{m[1] or 1}e{m[2]}", line.replace(r"\$", " USD ").replace(r"\text{E}", "E"))
    plain = re.sub(r"\$\$.*?\$\$", " ", plain.replace(r"\text{-}", "-"))
    plain = re.sub(r"\$([^$]*)\$", _values_of_math, plain)
    return _NUMBER.findall(re.sub(r"(?<=\d)[X×](?=\d)", " ", _REFERENCES.sub(" ", plain)))


def _values_of_math(match: re.Match[str]) -> str:
    """Numbers with units, and values above one that letters are given."""
    plain = f" {_UNITS.sub(' ', match[1])} "
    if not re.search(r"[A-Za-z\\_^]", re.sub(r"(?<=\d)[eE](?=-?\d)", "", plain)):
        return plain
    return " ".join(["", *(value for value in _VALUE.findall(plain) if float(value) > 1), ""])


# --- the page ---------------------------------------------------------------------------------------------------------

_HEAD = """# Printed numbers without a row

Every number that a paper prints from its abstract to its references is in a list, `tests/papers/printed`, with the rows of
`opticcl study papers` that compute it or the reason for which none does. This page has the latter, by reason and section. It is
written by `python -m tests.papers.printed`; a test compares lists, rows and this page, and the lists with the papers' texts.
Curves and bars of figures are drawings without numbers; what the texts state about them is in the lists.
"""


def page() -> str:
    """The text of docs/papers/printed.md."""
    return _HEAD + "".join(f"\n## `{paper}`\n\n{_counts(paper)}\n\n{_reasons(paper)}" for paper in PAPERS)


def _counts(paper: str) -> str:
    listed = entries(paper)
    numbers = sum(len(entry.numbers) for entry in listed)
    without = sum(len(entry.numbers) for entry in listed if entry.why)
    claims = sum(not entry.numbers for entry in listed)
    return (
        f"{numbers:,} numbers, {numbers - without:,} with a row; {claims} claims in words or formulas, all with a row."
    )


def _reasons(paper: str) -> str:
    found: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for entry in entries(paper):
        if entry.why:
            found[entry.why][entry.section].update(dict.fromkeys(entry.numbers))
    lines = []
    for why, sections in found.items():
        where = "; ".join(f"{section}: {' '.join(numbers)}" for section, numbers in sections.items())
        lines.append(f"- {why[0].upper()}{why[1:]}. {where}\n")
    return "".join(lines)
