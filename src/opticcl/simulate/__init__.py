"""Time of a plan. An engine simulates a circuit plan for a message size and returns a `Timeline`; one folder an engine."""

from __future__ import annotations

from opticcl.simulate.bounds import (
    LowerBound,
    RunBound,
    class_bounds,
    least_fixed_s,
    least_transfer_s,
    lower_bound,
    lower_bound_s,
    moved_share,
    schedule_facts,
)
from opticcl.simulate.closed_form.ends import ends_of_steps, pairs_of_steps
from opticcl.simulate.closed_form.engine import Cost, Profile, costs, profile
from opticcl.simulate.closed_form.facts import PlanFacts
from opticcl.simulate.closed_form.uneven import UnevenExchange, port_bytes
from opticcl.simulate.engines import (
    ENGINES,
    Engine,
    SimulationResult,
    engine_options,
    programme,
    register_engine,
    simulate,
)
from opticcl.simulate.links import link_bytes, link_names

__all__ = [
    "ENGINES",
    "Cost",
    "Engine",
    "LowerBound",
    "PlanFacts",
    "Profile",
    "RunBound",
    "SimulationResult",
    "UnevenExchange",
    "class_bounds",
    "costs",
    "ends_of_steps",
    "engine_options",
    "least_fixed_s",
    "least_transfer_s",
    "link_bytes",
    "link_names",
    "lower_bound",
    "lower_bound_s",
    "moved_share",
    "pairs_of_steps",
    "port_bytes",
    "profile",
    "programme",
    "register_engine",
    "schedule_facts",
    "simulate",
]
