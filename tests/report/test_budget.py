"""Budgets on paper: what is assumed is marked, and the waterfall ends where the light does."""

import pytest

from opticcl.estimate.budget import budget
from opticcl.fabrics import fabric, light_table
from opticcl.optics.values import optics
from opticcl.plans.limits import limits
from opticcl.report.budget import budget_answer, legend, waterfall_figure, waterfall_label
from opticcl.report.kit.svg import to_svg


def of(spec, preset):
    """Worst path of a fabric."""
    made = fabric(spec)
    return budget(made, optics(made.light_path.table, preset))


@pytest.mark.parametrize(
    ("spec", "preset", "marks"),
    [("oddl:shape=8", "literal", ()), ("ramp", "typical", ("assumed",)), ("ramp", "fitted", ("assumed", "fitted"))],
)
def test_what_the_paper_does_not_print_is_marked(spec, preset, marks):
    """In the table's legend and in the picture; nothing is marked that the paper has."""
    found = of(spec, preset)
    for word in ("assumed", "fitted"):
        assert (word in legend(found)) is (word in marks)
    svg = to_svg(lambda: waterfall_figure(found), "it", waterfall_label(found))
    assert ("soa gate°" in svg) is ("fitted" in marks)


@pytest.mark.parametrize(("spec", "preset"), [("ramp", "typical"), ("terarack", "typical"), ("lightpath", "typical")])
def test_the_waterfall_holds_all_that_it_shows(spec, preset):
    """Every power, the floor and what is needed lie within the axes, however deep the light falls."""
    found = of(spec, preset)
    low, high = waterfall_figure(found).axes[0].get_ylim()
    shown = [found.launch_dbm, found.received_dbm, found.sensitivity_dbm, *(line.power_dbm for line in found.lines)]
    assert low < min(shown)
    assert max(shown) < high


def test_a_record_is_plain_and_agrees():
    """Numbers of the budget, limits by name, and the sentence says the same."""
    made = fabric("oddl:shape=8")
    found = of("oddl:shape=8", "literal")
    record = found.record() | {"limits": {x.name: x.value for x in limits(made, optics(light_table("oddl")))}}
    assert record["closes"] is True
    assert record["elements"][-1]["power_dbm"] == pytest.approx(found.received_dbm)
    assert record["limits"]["margin_16_ports_db"] is None
    assert "a margin of 8.10 dB" in budget_answer(found)
