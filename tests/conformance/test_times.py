"""Every plan of the conformance matrix on circuits, timed by every engine and judged by the laws of time."""

import pytest
from tests.matrix import OPTICAL, cases, cells, compiled, shared_out

from opticcl.assumptions import assumptions
from opticcl.simulate import programme, simulate
from opticcl.verify.time.programme import check_programme, rules_of

CIRCUITS = (*OPTICAL, "sip_ring", "terarack_torus")
ENGINES = ("closed_form", "flow", "flow:mode=asynchronous", "packet", "packet:mode=asynchronous", "device")
SETS = [assumptions(name, initial=initial) for name in ("common", "published") for initial in ("cold", "warm")]
SIZES = (10**6, 0, 777)
CELLS = [cell for cell in cells() if cell[0] in CIRCUITS]
FEW_NODES = 9


def judge(plan, size, assumed, engine):
    """The programme is lawful and ends with the time of the engine."""
    where = f"{plan.schedule!r} on {plan.fabric!r}, {size} bytes, {engine}, {assumed.name}"
    found = programme(plan, size, assumed, engine=engine)
    total_s = simulate(plan, size, assumed, engine=engine).timeline.total_s
    assert found.total_s == pytest.approx(total_s, rel=1e-9, abs=1e-18), where
    verdict = check_programme(plan, found, rules_of(found))
    assert verdict.ok, f"{where}: {verdict}"


@pytest.mark.parametrize(("name", "algorithm", "turn"), shared_out(CELLS))
def test_a_plan_of_each_cell_is_lawful(name, algorithm, turn):
    """The first with few nodes; one engine a cell."""
    found = (compiled(name, algorithm, *case) for case in cases(name) if 1 < case[0] <= FEW_NODES)
    plan = next((plan for plan in found if not isinstance(plan, str)), None)
    if plan is not None:
        judge(plan, SIZES[turn % 3], SETS[turn % 4], ENGINES[turn % 6])


@pytest.mark.deep
@pytest.mark.parametrize(("name", "algorithm"), CELLS)
def test_every_plan_is_lawful_by_every_engine(name, algorithm):
    """Cold and warm, under both sets of assumptions."""
    for turn, case in enumerate(cases(name)):
        plan = compiled(name, algorithm, *case)
        for j, engine in enumerate(() if isinstance(plan, str) else ENGINES):
            judge(plan, SIZES[(turn + j) % 3], SETS[(turn // 3 + j) % 4], engine)
