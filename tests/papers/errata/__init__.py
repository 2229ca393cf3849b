"""Errata of the papers: what contradicts a paper itself, each with quotations and a counter-example.

A list is a TOML file a paper. An entry quotes the assertion, says what is wrong, names the rows of `opticcl study papers` that
rest on it, and has examples. An example computes one number from listed inputs, by a formula of letters or a function of
`examples.py`. It uses no value or choice of ours: `watched.py` runs it and notes what it reads. What would need
one is a question. `python -m tests.papers.errata` writes docs/papers/errata.md from the lists.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs/papers/errata.md"
NAMES = {"ramp": "RAMP", "sipac": "SiPAC", "wrht": "WRHT", "oddl": "ODDL", "lumorph": "LUMORPH"}


class Example(NamedTuple):
    """A number that refutes what is asserted.

    Args:
        of: what the number is.
        asserted: by the paper, or the bound that follows from what it asserts.
        shown: by the example.
        formula, call: what computes it; the other one is empty.
        at: inputs of the formula or the function.
    """

    of: str
    asserted: float
    shown: float
    formula: str = ""
    call: str = ""
    at: Mapping[str, float] = MappingProxyType({})


class Erratum(NamedTuple):
    """One entry.

    Args:
        where: section, table or equation.
        one_sign: whether the assertion is one sign, point or digit, which a transcription may have changed.
        quotes: texts of the paper.
        says: what is wrong, and what would be right.
        rows: ids of the claims that rest on it.
        command: shows the fault, or what is right in its place; "" if there is none.
        examples: at least one.
    """

    where: str
    one_sign: bool
    quotes: tuple[str, ...]
    says: str
    rows: tuple[str, ...]
    command: str
    examples: tuple[Example, ...]


def errata(paper: str) -> list[Erratum]:
    """Entries of a paper, in order."""
    return [
        Erratum(
            entry["where"],
            entry.get("one_sign", False),
            tuple(entry["quotes"]),
            entry["says"],
            tuple(entry.get("rows", "").split()),
            entry.get("command", ""),
            tuple(Example(**example) for example in entry["example"]),
        )
        for entry in _read(paper)["erratum"]
    ]


def questions(paper: str) -> list[str]:
    """What we would ask the authors."""
    return list(_read(paper)["questions"])


def _read(paper: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{paper}.toml").read_text("utf-8"))


def plain(text: str) -> str:
    """The text with one space for each run of spaces, tabs and ends of lines, without the spaces around a formula's marks."""
    return re.sub(r"\s*\$\s*", "$", " ".join(text.split()))


# --- the page ---------------------------------------------------------------------------------------------------------

_HEAD = """# Errata for the authors

What we would write to the authors of each paper. An entry is an assertion of the text, quoted, and a counter-example that uses
no value or choice of ours: a formula at listed inputs, or a count. A test runs every example, searches every quotation in the
paper's text, and fails if an example reads a value that the library has from no paper and no standard. What needs such a value,
or a reading of ours, is a question. This page is written by `python -m tests.papers.errata`.

The quotations are from transcriptions of the papers. Where the assertion is one sign, point or digit, which a transcription may
have changed, the entry is marked †: compare it with the printed page before it is sent.
"""


def page() -> str:
    """The text of docs/papers/errata.md."""
    return _HEAD + "".join(_paper(paper) for paper in NAMES)


def _paper(paper: str) -> str:
    listed = errata(paper)
    entries = "\n".join(f"{number}. {_entry(paper, entry)}" for number, entry in enumerate(listed, 1))
    commands = [f"{entry.command}   # {number}" for number, entry in enumerate(listed, 1) if entry.command]
    block = "\n```sh\n" + "\n".join(commands) + "\n```\n" if commands else ""
    asked = "".join(f"- {question}\n" for question in questions(paper))
    return f"\n## {NAMES[paper]}\n\n{entries}\n{block}\nWe would ask:\n\n{asked}"


def _entry(paper: str, entry: Erratum) -> str:
    quoted = "; ".join(f"`{quote}`" for quote in entry.quotes)
    rows = (
        f" Rows: `opticcl study papers {paper} {' '.join(f'--claim {row}' for row in entry.rows)}`."
        if entry.rows
        else ""
    )
    examples = "".join(f"\n    - {_example(example)}" for example in entry.examples)
    mark = " †" * entry.one_sign
    return f"**{entry.where[0].upper()}{entry.where[1:]}**{mark} · {quoted}\n    - {entry.says}{rows}{examples}"


def _example(example: Example) -> str:
    inputs = ", ".join(f"{name} = {value:.10g}" for name, value in example.at.items())
    how = f"`{example.formula}`" if example.formula else f"counted by `{example.call}`"
    return f"{example.of}: asserted {example.asserted:.10g}, shown **{example.shown:.10g}**, {how} with {inputs}"
