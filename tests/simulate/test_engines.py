"""The registry of the engines: one dispatch for all callers, options from dataclasses, refusals by name."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.errors import ParameterError, UnknownNameError, UnsupportedError
from opticcl.plans.compare import compare_plans
from opticcl.plans.sweep import sweep
from opticcl.simulate import ENGINES, SimulationResult, engine_options, profile, programme, register_engine, simulate
from opticcl.training.train import train


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowOptions:
    """Options of the slow engine.

    Args:
        factor: times the closed form [count].
        rounding: of the result.
    """

    factor: int = 2
    rounding: Literal["up", "down"] = "up"


@pytest.fixture
def slow():
    """An engine of a plugin, registered for one test."""

    @register_engine("slow", options=SlowOptions, records="nothing")
    def run_slow(plan, size_bytes, assumed, options, /, *, progress, record):
        timeline = profile(plan, assumed).timeline(size_bytes)
        parts = {part: getattr(timeline, part) * options.factor for part in timeline.PARTS}
        return SimulationResult(dataclasses.replace(timeline, **parts))

    yield "slow"
    del ENGINES._entries["slow"]


@pytest.fixture(scope="module")
def plan():
    """A small plan on a packet fabric."""
    return opticcl.compile("torus:shape=4x2", "all_to_all", "1MB", algorithm="bruck")


def test_the_engines_are_found():
    """By discovery; each has a dataclass of options with defaults."""
    assert {"closed_form", "flow", "packet"} <= set(ENGINES.names())
    for name in ENGINES.names():
        engine = ENGINES.get(name)
        assert engine.name == name
        assert dataclasses.is_dataclass(engine.options())


def test_a_plan_simulates_by_the_same_function(plan):
    """`Plan.simulate` returns the timeline of `simulate`, whatever the engine."""
    for engine in ENGINES.names():
        result = simulate(plan.circuits, plan.size_bytes, engine=engine, assumed="published")
        assert plan.simulate(engine, assumptions="published").record() == result.timeline.record()


def test_an_engine_of_a_plugin_has_options_everywhere(slow, plan):
    """In Python by keyword or in the name, and beside the others in refusals."""
    once = plan.simulate(assumptions="published").total_s
    assert plan.simulate(slow, assumptions="published").total_s == pytest.approx(2 * once)
    assert (
        plan.simulate(slow, factor="3", assumptions="published").total_s
        == plan.simulate("slow:factor=3", assumptions="published").total_s
        == pytest.approx(3 * once)
    )
    with pytest.raises(ParameterError, match="factor is an option of engine=slow, not of flow"):
        plan.simulate("flow", factor=3, assumptions="published")
    with pytest.raises(ParameterError, match="'left' is not one of up, down"):
        plan.simulate(slow, rounding="left", assumptions="published")
    with pytest.raises(ValueError, match="registered twice"):
        register_engine("slow", options=SlowOptions)(lambda *_: None)


def test_an_engine_without_programmes_is_refused(slow, plan):
    """With the names of those that make programmes, which it is not one of."""
    with pytest.raises(
        UnsupportedError, match=r"engine slow makes none; try one of closed_form, device, flow, packet$"
    ):
        programme(plan.circuits, 1000, engine="slow:factor=3")


def test_traffic_is_recorded_where_it_is_asked_for(plan):
    """Times are the same with it and without."""
    found = simulate(plan.circuits, 1000, engine="flow")
    asked = simulate(plan.circuits, 1000, engine="flow", record=True)
    assert found.traffic is None
    assert len(asked.traffic.link)
    assert asked.timeline.record() == found.timeline.record()


def test_options_and_assumptions_have_different_names():
    """An option named as an assumption is an error of the developer."""

    @dataclass(frozen=True)
    class Wrong:
        compute: str = "none"

    with pytest.raises(ValueError, match="compute"):
        register_engine("wrong", options=Wrong)


@pytest.mark.parametrize("call", ["simulate", "compare", "sweep", "train"])
def test_an_unknown_engine_is_refused_before_any_work(call, plan):
    """With the nearest name, by every caller."""
    machine = [plan.fabric]
    calls = {
        "simulate": lambda: plan.simulate("flwo", assumptions="published"),
        "compare": lambda: compare_plans(machine, "all_reduce", [1000], engine="flwo", assumptions="published"),
        "sweep": lambda: sweep(plan.fabric, "all_reduce", [1000], engine="flwo", assumptions="published"),
        "train": lambda: train("lenet", machine, nodes=8, engine="flwo", assumptions="published"),
    }
    with pytest.raises(UnknownNameError, match="did you mean 'flow'"):
        calls[call]()


def test_wrong_requests_are_refused():
    """An option given twice, an unknown one, and an engine that is no text."""
    with pytest.raises(ParameterError, match="mode is given twice"):
        engine_options("flow:mode=barrier", {"mode": "barrier"})
    with pytest.raises(ParameterError, match="unknown option 'mood'; did you mean 'mode'"):
        engine_options("flow", {"mood": "barrier"})
    with pytest.raises(ParameterError, match="such as 'closed_form'"):
        engine_options(7, {})


def test_assumptions_are_a_name_an_object_or_changes(plan):
    """All three ways give the same time."""
    changed = simulate(plan.circuits, 1000, "sipac", compute="fused").timeline
    made = simulate(plan.circuits, 1000, assumptions("sipac", compute="fused")).timeline
    both = simulate(plan.circuits, 1000, assumptions("sipac"), compute="fused").timeline
    assert changed.record() == made.record() == both.record()
    assert changed.assumptions == {**assumptions("published", control="none").record(), "name": "sipac, changed"}


def test_sweep_and_training_use_the_engine(plan):
    """A row of a sweep has the time of its plan by that engine; a training job takes longer where cells wait."""
    rows = {
        engine: sweep(
            plan.fabric, Request("all_to_all"), [10**6], algorithm="bruck", engine=engine, assumptions="published"
        )
        .points[0]
        .total_s
        for engine in ("closed_form", "packet:cell_bytes=64KiB")
    }
    assert (
        rows["packet:cell_bytes=64KiB"]
        == plan.simulate("packet", cell_bytes="64KiB", assumptions="published").total_s
        != rows["closed_form"]
    )
    uses = {
        engine: train("lenet", [plan.fabric], nodes=8, algorithm="ring", engine=engine, assumptions="published")
        .rows[0]
        .plans[0]
        for engine in ("closed_form", "packet")
    }
    assert uses["packet"].messages == uses["closed_form"].messages
    assert uses["packet"].total_s > uses["closed_form"].total_s


def test_a_timeline_is_its_record(plan):
    """Totals, the bound and the assumptions, by the names of the command line."""
    timeline = plan.simulate("packet", assumptions="published")
    record = timeline.record()
    assert record["total_s"] == pytest.approx(sum(record[part] for part in timeline.PARTS))
    assert record["lower_bound_s"] <= record["total_s"]
    assert record["assumptions"]["cell_bytes"] == 4096
    assert (record["num_steps"], record["num_rounds"]) == (timeline.num_steps, timeline.num_rounds)
