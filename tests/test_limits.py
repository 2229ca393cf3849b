"""Limits of memory: no plan, time or verdict changes with them."""

import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

import opticcl
from opticcl.ir.limits import LIMITS
from opticcl.ir.recent import RECENT

MEMORY = [name for name, one in LIMITS.items() if one.kind == "memory"]
CASES = [
    ("torus:shape=4x4", "all_to_all", "auto", ("closed_form", "flow", "packet")),
    ("leaf_spine:nodes=16", "all_reduce", "ring", ("closed_form", "flow", "packet:mode=asynchronous")),
    ("lightpath:shape=3x3", "all_reduce", "auto", ("closed_form", "device")),
    ("ramp:groups=2,racks=2,wavelengths=4", "all_to_all", "skewed_exchange", ("closed_form", "device")),
    ("ocs:nodes=8", "all_to_all", "auto", ("closed_form",)),
]
"""Fabric, collective, algorithm and engines."""


def answers():
    """Plan, verdict and times of every case."""
    RECENT.clear()
    for where, collective, algorithm, engines in CASES:
        plan = opticcl.compile(where, collective, "1 MB", algorithm=algorithm)
        verdict = plan.verify()
        times = [plan.simulate(engine) for engine in engines]
        yield plan.algorithm, verdict.verdict, [one.num_rounds for one in times], [one.total_s for one in times]


def moved(monkeypatch, name, value):
    """Set a limit in every module that reads it."""
    constant = name.partition(".")[2]
    modules = [one for key, one in sys.modules.items() if key.startswith("opticcl.")]
    reading = [one for one in modules if getattr(one, constant, None) == LIMITS[name].value]
    assert reading
    for module in reading:
        monkeypatch.setattr(module, constant, value)


@pytest.fixture(scope="module")
def due():
    """The answers as the table is, with every module loaded that reads one of them."""
    for package in ("schedule", "circuits", "routing", "simulate", "verify", "plans"):
        for module in walk_packages(import_module(f"opticcl.{package}").__path__, f"opticcl.{package}."):
            import_module(module.name)
    return list(answers())


@pytest.mark.parametrize("change", [lambda value: value // 2, lambda value: 2 * value, lambda value: 8])
def test_no_limit_of_memory_changes_an_answer(monkeypatch, due, change):
    """All of them halved, doubled, and so small that every case has more."""
    for name in MEMORY:
        moved(monkeypatch, name, change(LIMITS[name].value))
    for found, expected in zip(answers(), due, strict=True):
        assert found[:-1] == expected[:-1]
        assert found[-1] == pytest.approx(expected[-1], rel=1e-9)
