"""The computed pages, each on a small case."""

import re
from typing import NamedTuple

import pytest

import opticcl
from opticcl.assumptions import values
from opticcl.collective import COLLECTIVES, Request
from opticcl.fabrics import FABRICS
from opticcl.schedule import ALGORITHMS
from tests.matrix import at_scale, compiled, sizes
from tests.pages.beyond import table, worst_gap
from tests.pages.declined import declined_lines
from tests.pages.faults import MACHINES, ONE_PORT, single_points
from tests.pages.sensitivity import distances_doubled, growth, values_doubled
from tests.pages.wins import Win, by_algorithm, by_fabric, wins_of


def cells(line):
    """Of a row of a table."""
    return line.strip("| ").split(" | ")


def test_a_winner_is_what_auto_chooses():
    """On 16 nodes of a SiPAC, with a gain over the fastest other algorithm."""
    won = [win for collective in ("all_reduce", "broadcast", "barrier") for win in wins_of("sipac", 16, collective)]
    assert len(won) == 7
    for win in won:
        size = win.size or "1 MB"
        auto = opticcl.compile("sipac:radix=4,levels=2", win.collective, size, algorithm="auto")
        assert win.gain == 1 or auto.schedule.name == win.algorithm, win
        assert win.gain is None or win.gain >= 1


def test_winners_are_counted_and_listed():
    """Three messages, two by one algorithm."""
    won = [
        Win("torus", 16, "all_reduce", 1_000, "mesh", 1.5),
        Win("torus", 16, "all_reduce", 1_000_000, "ring", 1.0),
        Win("torus", 16, "all_reduce", 100_000_000, "mesh", 2.5),
    ]
    counted = by_algorithm(won)
    assert "| `mesh` | 2 | 2 | 2.5 | torus, 16 nodes, all_reduce of 100 MB | torus |" in counted
    assert "`sipco`" in counted[-1]
    assert "| 16 | all_reduce | `mesh` 1.5 | `ring` = | `mesh` 2.5 |" in list(by_fabric(won))


def test_no_algorithm_beyond_a_paper_is_slower():
    """Nor faster than the bound."""
    lines = [cells(line) for line in table("lightpath", 16, "all_reduce") if line.startswith("| ")][1:]
    assert len(lines) > 3
    assert all(float(speed_up) >= 1 and float(ratio) >= 1 for *_, speed_up, _, ratio in lines)


def test_the_worst_gap_is_that_of_the_fastest_plan(monkeypatch):
    """Of every size on one machine."""
    monkeypatch.setattr("tests.pages.beyond.NODES", {"broadcast": (16,)})
    gap, nodes, size, algorithm, binds = worst_gap("sipac", "broadcast")
    fastest = opticcl.compile(opticcl.fabric("sipac", 16), "broadcast", size, ignore_light=True)
    timeline = fastest.simulate()
    assert (nodes, algorithm, binds) == (16, fastest.schedule.name, timeline.bound_by)
    assert gap == pytest.approx(timeline.gap, abs=1e-6)


def test_every_cell_has_a_plan_or_a_line():
    """On five nodes."""
    lines = [re.fullmatch(r"(\w+): .* \((.*?); (.*)\)", line, re.DOTALL) for line in declined_lines([5])]
    declined = set()
    for algorithm, collectives, fabrics in (line.groups() for line in lines if line):
        of = COLLECTIVES if collectives == "every collective" else collectives.split(", ")
        on = FABRICS.names() if fabrics == "every fabric" else fabrics.split(", ")
        declined |= {(algorithm, collective, name) for collective in of for name in on}
    for algorithm in ALGORITHMS.names():
        for name in FABRICS.names():
            for collective in COLLECTIVES:
                if 5 in sizes(name, collective) and not isinstance(at_scale(name, 5), str):
                    plan = compiled(name, algorithm, 5, Request(collective))
                    assert not isinstance(plan, str) or (algorithm, collective, name) in declined


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        pytest.param(ONE_PORT[1], "comb_laser, switch, input_fibre, output_fibre", marks=pytest.mark.deep),
        (ONE_PORT[3], "transmitter, receiver, input_fibre, output_fibre, switch, control_switch"),
        (MACHINES[2], "none"),
    ],
)
def test_single_points_of_failure(spec, kinds):
    """A ring of ODDL and one level of SiPAC have some, a TeraRack has none; docs/operating.md says so."""
    assert single_points(spec) == kinds


class Doubled(NamedTuple):
    """Time of an ideal switch and of a TeraRack with a value doubled, over that without."""

    terarack: str
    ideal: str


def test_a_doubled_value_lengthens_what_it_is_part_of():
    """On 16 nodes: a TeraRack changes circuits, an ideal switch has none to change."""
    rows = [cells(line) for line in values_doubled(16) if line.startswith("| ")]
    of = {key: Doubled(others[4], others[-1]) for key, *others in rows}
    assert of["`reconfiguration`"].ideal == "0" != of["`reconfiguration`"].terarack
    assert float(of["`endpoint`"].ideal.strip("%+")) > 10
    assert growth(1.5, 1.0) == "+50.0%"
    assert len([line for line in distances_doubled(16) if line.startswith("| ")]) == 1 + len(values("floor"))
