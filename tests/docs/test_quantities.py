"""A quantity that is written in several places has one value: data, pages, claims and errata are compared by name and unit."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import PAGES, ROOT

LISTED = tomllib.loads((Path(__file__).parent / "quantities.toml").read_text("utf-8"))["quantity"]
TABLES = [*(ROOT / "src/opticcl").rglob("*.toml"), *(ROOT / "tests/papers/errata").glob("*.toml")]
LIGHT_M_PER_S = 299792458.0
FACTORS = {"Hz": 1, "GHz": 1e9, "THz": 1e12, "Gb/s": 1e9, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
NUMBER = r"(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)"


def in_base(number: str, unit: str) -> float:
    """A number in Hz, s, bit/s or as it is; of light, the frequency of a wavelength."""
    value = float(number.replace(",", ""))
    if unit in ("m", "nm"):
        return LIGHT_M_PER_S / (value * (1e-9 if unit == "nm" else 1))
    return value * FACTORS.get(unit, 1)


def numbers(text: str, units: str) -> list[float]:
    """All numbers with one of the units, the first of "191.3 to 196.1 THz" too."""
    found = []
    for match in re.finditer(rf"(?<![\w.]){NUMBER}(?: (?:to|and|or) {NUMBER})? ?({units})(?![\w/])", text):
        found += [in_base(number, match[3]) for number in match.groups()[:2] if number]
    return found


def sentences(text: str) -> list[str]:
    """Of a page: a paragraph, an entry of a list or a row of a table has its own."""
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) ?)", text)
    return [part for block in blocks for part in re.split(r"(?<=[\w)`*]\.)\s+(?=[A-Z`*\"])", " ".join(block.split()))]


def entries(table: Any, path: str) -> Iterator[str]:
    """Texts of a TOML file with their keys before them, and values with their units."""
    if isinstance(table, list):
        table = dict(enumerate(table))
    if isinstance(table, dict):
        if isinstance(table.get("value"), int | float) and "source" in table:
            yield f"{path}: {table['value']!r} {table.get('unit', path.rpartition('.')[2].rpartition('_')[2])}"
        for key, value in table.items():
            yield from entries(value, f"{path}.{key}")
    elif isinstance(table, str) and "quotes" not in path:
        yield from (f"{path}: {part}" for part in sentences(table))


def collected() -> list[tuple[str, str]]:
    """Every place with its sentence."""
    found = [(path, part) for path in PAGES for part in sentences(path.read_text("utf-8"))]
    found += [(path, part) for path in TABLES for part in entries(tomllib.loads(path.read_text("utf-8")), path.stem)]
    return [(str(path.relative_to(ROOT)), part) for path, part in found]


COLLECTED = collected()


def different(quantity: dict[str, Any], places: list[tuple[str, str]]) -> tuple[int, list[str]]:
    """How many numbers of a quantity were found, and places with another value."""
    known = [numbers(text, r"[A-Za-z/]+") for text in quantity["values"] + quantity["others"]]
    right = [value for each in known for value in each]
    seen, wrong = 0, []
    for place, text in places:
        for value in numbers(text, quantity["unit"]) if re.search(quantity["about"], text) else ():
            seen += 1
            wrong += [f"{place}: {text}"] if not any(value == pytest.approx(one, rel=1e-6) for one in right) else []
    return seen, wrong


@pytest.mark.parametrize("quantity", LISTED, ids=[quantity["name"] for quantity in LISTED])
def test_a_quantity_has_one_value(quantity):
    """Wherever it is written, and that is in two places at least."""
    seen, wrong = different(quantity, COLLECTED)
    assert wrong == []
    assert seen >= 2


@pytest.mark.parametrize(
    "planted",
    ["c_band_low: 1.53e-06 m", "ITU-T G.Sup39: conventional band, 1530 to 1565 nm", "the C band ends at 196.2 THz"],
)
def test_another_value_is_found(planted):
    """In data, in a source and on a page."""
    assert different(LISTED[0], [("a.md", planted)])[1]


def test_the_load_that_a_scheduler_carries_is_that_of_its_row():
    """In the table of docs/operating.md the backlog grows at 0.9 only where RAMP-3-throughput does not have it carried."""
    from opticcl.papers import check_paper

    lines = (ROOT / "docs/operating.md").read_text("utf-8").splitlines()
    row = next(line for line in lines if line.startswith("| `rack`, 1:1"))
    head = next(line for line in reversed(lines[: lines.index(row)]) if "0.9" in line and not line.startswith("| `"))
    cell = row.split("|")[[re.sub(r"[^\d.]", "", part) for part in head.split("|")].index("0.9")]
    (claim,) = check_paper("ramp", patterns=["RAMP-3-throughput"])
    assert claim.ours is ("grows" not in cell)
