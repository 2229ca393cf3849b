"""Rounds, and so reconfigurations, of an all-reduce against the number of waveguides."""

from __future__ import annotations

from math import ceil
from typing import Literal

import numpy as np

from opticcl.fabrics import fabric
from opticcl.fabrics.lightpath import Numbering, near_square
from opticcl.ir import ProgressCallback
from opticcl.plans.plan import Plan, compile
from opticcl.studies import Chart, Study, register_study
from opticcl.studies.lumorph import RADICES, check_power_of_two, counted_by_circuits, label

__all__ = ["reconfigurations", "rounds_needed"]

WAVEGUIDES = (10, 20, 30, 40)

Reading = Literal["circuits", "wavelength", "waveguide"]


@register_study("reconfigurations")
def reconfigurations(
    progress: ProgressCallback,
    *,
    nodes: int = 256,
    numbering: Numbering = "random",
    reading: Reading = "circuits",
    seed: int = 0,
) -> Study:
    """How many reconfigurations do few waveguides cause (figure 6)?

    Every plan is compiled and verified; its rounds are counted.

    Args:
        progress: called with (what, done, total).
        nodes: GPUs, a power of two [count].
        numbering: of the GPUs on the tiles.
        reading: circuits, as the figure counts: one a waveguide on each edge; or what a switch moves by itself,
            `switch_unit` of the machine: wavelength, where circuits of other lasers share a waveguide, or waveguide, where a
            circuit keeps its own from end to end.
        seed: of the random numbering and routes.
    Source: LUMORPH section 5, figure 6: 20 and 40 waveguides.
    """
    check_power_of_two("reconfigurations: nodes", nodes)
    cases = [(radix, routes, count) for radix in RADICES for routes in ROUTES for count in WAVEGUIDES]
    rows = []
    for done, (radix, routes, count) in enumerate(cases):
        progress("compile and verify", done, len(cases))
        where = fabric(
            "lightpath",
            shape=near_square(nodes),
            numbering=numbering,
            seed=seed,
            waveguides=nodes if reading == "circuits" else count,
            switch_unit="wavelength" if reading == "circuits" else reading,
            routing=routes,
        )
        plan = compile(where, "all_reduce", 0, algorithm=f"lumorph:radix={radix}")
        plan = counted_by_circuits(plan, count) if reading == "circuits" else plan
        plan.verify().raise_if_bad()
        changes = plan.simulate(assumptions="published").totals()["reconfiguration_s"] / where.reconfiguration_s
        rows.append(
            {
                "waveguides": count,
                "algorithm": label(radix),
                "routes": ROUTES[routes],
                "reconfigurations": plan.simulate(assumptions="lumorph").num_rounds,
                "at_least": rounds_needed(plan, count, reading),
                "changes": round(changes),
            }
        )
    return Study(
        f"reconfigurations:nodes={nodes},numbering={numbering},reading={reading},seed={seed}",
        f"Reconfigurations in an all-reduce of {nodes} GPUs, {numbering} numbering",
        "LUMORPH figure 6",
        rows,
        Chart(
            "waveguides",
            "reconfigurations",
            ("algorithm", "routes"),
            "waveguides on each edge",
            "rounds of an all-reduce",
        ),
        (
            "reconfigurations: one a round; at_least: no split of these routes has fewer rounds",
            "changes: rounds with a circuit that the previous round does not have",
        ),
    )


ROUTES = {"random": "random", "dimension_order": "row-column", "least_overlap": "least overlap"}


def rounds_needed(plan: Plan, waveguides: int, reading: Reading) -> int:
    """Lower bound on the rounds of any split of the plan's routes: load over waveguides of the most congested edge, rounded up.

    Args:
        plan: of one circuit a path in a round, unless a switch moves single wavelengths.
        waveguides: of each edge [count].
        reading: with wavelength an edge carries at most waveguides times wavelengths of them.
    """
    shared = reading == "wavelength"
    capacity = waveguides * (plan.fabric.num_wavelengths if shared else 1)
    needed = 0
    for steps in plan.schedule.step_classes():
        rounds = plan.circuits.rounds(steps.start)
        load = np.zeros(4 * plan.fabric.num_machine_nodes)
        for circuits in rounds:
            weight = circuits.wavelength_n[circuits.hop_owner()] if shared else None
            load += np.bincount(circuits.hops, weight, minlength=len(load))
        needed += len(steps) * max(1, ceil(load.max(initial=0) / capacity))
    return needed
