"""The page on assumptions, and that every value has a source."""

import re

import numpy as np
import pytest

from opticcl.assumptions import KEYS, LATENCY_KEYS, SETS, assumptions, meaning_of, set_of, values
from opticcl.fabrics import FABRICS, fabric, job
from opticcl.plans.plan import compile
from opticcl.simulate import simulate
from opticcl.verify.time._rows import path_latency_s
from tests.assumed import OF_SYSTEMS, PAGE, PASSED_COLUMNS, ROW, latency_ns, page, systems

PASSED = [
    line[2:-2].split(" | ") for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| `\w+:\S+` \|", line)
]
"""Rows of the page: what one message passes."""
ENGINES = ("closed_form", "flow", "flow:mode=asynchronous", "packet", "packet:mode=asynchronous", "device")


def test_the_page_is_up_to_date():
    """`python -m tests.assumed` writes it anew."""
    assert PAGE.read_text("utf-8") == page()


def test_the_table_of_systems_is_up_to_date():
    """On common assumptions, which it says; likewise written by `python -m tests.assumed`."""
    text = OF_SYSTEMS.read_text("utf-8")
    assert len(ROW.findall(text)) == 7
    assert text == systems()
    assert "`common` assumptions" in text


def test_the_page_has_every_fabric():
    """Near and far."""
    assert sorted(spec.strip("`").split(":")[0] for spec, *_ in PASSED) == sorted(2 * FABRICS.names())


@pytest.mark.parametrize("row", PASSED, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_message_passes_what_the_page_says(row):
    """By every engine and by the judge of time; h links have h - 1 that forward."""
    spec, nodes, *counts, late_ns = (cell.strip("`") for cell in row)
    assert len(counts) + 2 == len(PASSED_COLUMNS)
    assert float(late_ns) == pytest.approx(latency_ns(spec, *map(float, counts)), abs=1e-6)
    where = fabric(spec)
    if where.num_nodes > 2:
        where = job(where, [int(node) for node in nodes.split(", ")])
    plan, common = compile(where, "send_recv", "100B", algorithm="send_recv").circuits, assumptions("common")
    changes_s = where.reconfiguration_s + where.control_s(np.array([0]), np.array([1]))
    for engine in ENGINES:
        total_s = simulate(plan, 0, common, engine=engine).timeline.total_s
        assert 1e9 * (total_s - changes_s) == pytest.approx(float(late_ns), abs=1e-3), engine
    for circuits in plan.rounds(0):
        assert 1e9 * path_latency_s(plan, circuits, common) == pytest.approx(float(late_ns) - 5)


@pytest.mark.parametrize("one", [*values(), *values("floor")], ids=lambda one: one.key)
def test_every_value_has_a_source(one):
    """And says what it is."""
    assert one.source
    assert one.about
    assert one.value > 0


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_every_rule_and_a_source(name):
    """Sets other than `common` are laid over `published`."""
    found = set_of(name)
    assert found["source"]
    assert set(KEYS) - set(LATENCY_KEYS) - {"memory_bytes_per_s"} <= set(found)
    for key in set(KEYS) & set(found):
        assert meaning_of(key, found[key]).endswith(".")
