"""Values of the points of one machine: the search, the judge, the bill and the light budget that every verb uses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from opticcl.assumptions import Assumptions, assumptions
from opticcl.collective import Request
from opticcl.errors import OpticclError, UnsupportedError
from opticcl.fabrics import FABRICS, as_fabric
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric
from opticcl.ir.task_graph import TaskGraph, median_step
from opticcl.ir.verdict import VERIFIED
from opticcl.plans.hardware import bill_record
from opticcl.plans.light import Light, LightRule, light_of_machine
from opticcl.plans.plan import Plan, compile
from opticcl.plans.search import Search, Searches
from opticcl.registry import parameter_types, parse_call, write_call
from opticcl.studies.lumorph import counted_by_circuits, edge_loads, rounds_needed
from opticcl.studies.space.axis_values import BEST
from opticcl.studies.space.design import (
    MEASURES,
    DesignPoint,
    DesignSpace,
    assumed_of,
    variation_of,
)
from opticcl.traces import load_steps
from opticcl.training.iteration import Runtime
from opticcl.training.models import MODELS
from opticcl.training.partition import partition
from opticcl.training.train import resolution_of, train

__all__ = ["Measured", "measured", "prepare"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a point.

    Args:
        number: of the point.
        values: by column of the results; empty if it was refused.
        refusal: why it has no values; "" if it has.
    """

    number: int
    values: Mapping[str, Any]
    refusal: str = ""

    def written(self) -> tuple[int, str, str]:
        """Number, refusal and values as JSON: what a process sends, so that no other one has to write them."""
        return self.number, self.refusal, json.dumps(dict(self.values))


@cache
def prepare() -> None:
    """Load what every point needs: modules of fabrics and algorithms, tables of the compiler; once a process.

    Processes that are forked afterwards begin with points at once. No point is computed, so none can end this process.
    """
    search = Searches("auto", assumptions()).of(as_fabric("ideal", 4, None), Request("all_reduce"))
    search.verdict(search.timed(1_000_000)[1])


def measured(space: DesignSpace, points: Sequence[DesignPoint], numbers: Sequence[int]) -> Iterator[Measured]:
    """Values of some points, in their order; plans and light are evaluated once for those of one machine that are neighbours.

    Args:
        space: what is measured, and constraints.
        points: all points.
        numbers: positions of the points.
    """
    machine, known = _Machine(space), None
    for number in numbers:
        if known != (known := points[number].machine):
            machine = _Machine(space)
        try:
            yield Measured(number, machine.values(points[number].values))
        except OpticclError as error:
            yield Measured(number, {}, str(error))


class _Machine:
    """A fabric with its searches.

    Args: space: what is measured, and constraints.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self._wanted = {column for name in space.measure for column in MEASURES[name]}
        self._fabric: Fabric | None = None
        self._fastest: dict[LightRule, Searches] = {}
        self._job: list[TaskGraph] | None = None
        self._choices: dict[tuple[Fabric, Assumptions, LightRule], Search] = {}

    def values(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Values of a point by column.

        Raises: OpticclError: it breaks a constraint, or the fabric, the algorithm or the bill does not exist.
        """
        fabric, assumed = self._fabric or _fabric(point), assumed_of(point)
        self._fabric = fabric
        variation = variation_of(point, assumed)
        bill = self._bill(fabric, point)
        results: dict[str, Any] = {"node_rate_bits_per_s": fabric.node_rate_bits_per_s}
        if self._space.needs_plans:
            where = fabric if variation is None else variation.on(fabric)
            times = self._iteration if "workload" in point else self._times
            results |= times(where, variation.assumed if variation else assumed, point)
        elif "margin" in self._space.measure:
            results |= light_of_machine(fabric, _preset(point)).record()
        return {key: value for key, value in (results | bill).items() if key in (*self._wanted, "node_rate_bits_per_s")}

    def _bill(self, fabric: Fabric, point: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of the price and the power of a node.

        Raises: UnsupportedError: it breaks a constraint.
        """
        space = self._space
        limits = {"watts": space.watts_per_node, "dollars": space.dollars_per_node}
        if not (any(limits.values()) or {"dollars", "watts"} & {*space.measure}):
            return {}
        bill = bill_record(fabric, point["prices"])
        for name, value in (("watts", bill["w_per_node"]), ("dollars", bill["usd_per_node"])):
            most = limits[name]
            if most is None:
                continue
            if value is None:
                raise UnsupportedError(f"constraint {name}_per_node: the {name} of {fabric.name} are unknown")
            if value > most:
                raise UnsupportedError(f"constraint {name}_per_node: {fabric.name} takes {value:.4g}, at most {most:g}")
        return bill

    def _light(self, light: Light, by: str, fabric: Fabric) -> dict[str, Any]:
        """Columns of the light of a plan.

        Raises: UnsupportedError: it breaks the constraint.
        """
        if self._space.light == "closes" and light.closes is False:
            raise UnsupportedError(
                f"constraint light: {by} on {fabric.name} lacks {-(light.margin_db or 0.0):.2f} dB of light"
            )
        return light.record()

    def _times(self, fabric: Fabric, assumed: Assumptions, point: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of time, bound and gap.

        Raises: UnsupportedError: no algorithm, or the named one declines.
        """
        choice = self._choice(fabric, assumed, point)
        if choice.declined:
            raise UnsupportedError(f"{point['algorithm']}: {choice.declined}")
        size = point["size"]
        timeline, one = choice.timed(size)
        plan, verdict = Plan(one.profile.plan, size), choice.verdict(one).verdict
        total_s, bound_s = timeline.total_s, timeline.lower_bound_s
        results = {
            "algorithm": plan.algorithm,
            "total_s": total_s,
            "verdict": verdict,
            "verified": VERIFIED[verdict],
            **self._light(choice.light(one), plan.algorithm, fabric),
            "not_tried": "; ".join(choice.not_tried),
            "lower_bound_s": bound_s,
            "bound_by": timeline.bound_by,
            "gap": total_s / bound_s if bound_s else None,
        }
        if "rounds" in self._space.measure:
            results |= {"rounds": timeline.num_rounds} | _rounds(plan)
        if "overlap" in self._space.measure:
            results |= _overlap(plan)
        return results

    def _iteration(self, fabric: Fabric, assumed: Assumptions, point: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of the time of an iteration of training.

        Raises: UnsupportedError, WorkloadError: the fabric cannot carry it, the trace has another number of ranks.
        """
        if self._job is None:
            self._job = _job_of(point["workload"], point["nodes"])
        fastest = self._search(assumed, point, resolution_of(median_step(self._job)))
        planner = fastest if assumed == fastest.assumed else fastest.under(assumed)
        is_model = parse_call(point["workload"])[0] in MODELS.names()
        runtime = Runtime() if is_model else Runtime(fusion="none")  # as of the verb train
        (row,) = train(self._job, fabric, planner=planner, runtime=runtime).rows
        return {
            "algorithm": " ".join(row.algorithms),
            "total_s": row.iteration.total_s,
            "verdict": row.verdict,
            "verified": VERIFIED[row.verdict],
            **self._light(row.light, " ".join(row.algorithms), fabric),
            "not_tried": "; ".join(row.not_tried),
            "compute_s": row.iteration.compute_s,
            "exposed_s": row.iteration.exposed_s,
        }

    def _search(self, assumed: Assumptions, point: Mapping[str, Any], resolution_s: float = 0.0) -> Searches:
        """The search of the points with the same rule on light, under the assumptions of the first of them.

        Args:
            resolution_s: as of `Search` [s].
        """
        rule = LightRule(_preset(point), self._space.light == "ignored")
        if rule not in self._fastest:
            self._fastest[rule] = Searches(point["algorithm"], assumed, resolution_s=resolution_s, rule=rule)
        return self._fastest[rule]

    def _choice(self, fabric: Fabric, assumed: Assumptions, point: Mapping[str, Any]) -> Search:
        """The search on a fabric under assumptions; candidates are shared between assumptions."""
        fastest = self._search(assumed, point)
        key = fabric, assumed, fastest.rule
        if key not in self._choices:
            base = fastest.of(fabric, Request(point["collective"]))
            self._choices[key] = base if assumed == fastest.assumed else base.under(assumed)
        return self._choices[key]


def _rounds(plan: Plan) -> dict[str, Any]:
    """Rounds of a plan; on a wafer also as figures 5 and 6 of LUMORPH count them, with a waveguide for each circuit of an edge.

    Raises: VerificationError: the plan with these rounds is wrong.
    """
    machine, counted = plan.fabric.machine, plan
    counts: dict[str, Any] = {"circuit_rounds": None, "least_rounds": None}
    if isinstance(machine, Lightpath):
        wide = _without_splits(plan)
        counted = counted_by_circuits(wide, machine.waveguides)
        counted.verify().raise_if_bad()
        rounds = counted.simulate(assumptions="lumorph").num_rounds
        counts = {"circuit_rounds": rounds, "least_rounds": rounds_needed(wide, machine.waveguides)}
    setting_s = plan.fabric.reconfiguration_s
    spent_s = counted.simulate(assumptions="published").totals()["reconfiguration_s"]
    return {**counts, "reconfigurations": round(spent_s / setting_s) if setting_s else None}


def _overlap(plan: Plan) -> dict[str, Any]:
    """Circuits on the most congested edge of a wafer, and those that have no waveguide there if each takes one.

    Raises: UnsupportedError: no wafer.
    """
    machine = plan.fabric.machine
    if not isinstance(machine, Lightpath):
        raise UnsupportedError(f"overlap: {plan.fabric.name} has no waveguides on edges; lightpath has")
    overlap = max((int(load.max(initial=0)) for _, load in edge_loads(_without_splits(plan))), default=0)
    return {"overlap": overlap, "without_waveguide": max(0, overlap - machine.waveguides)}


def _without_splits(plan: Plan) -> Plan:
    """The same algorithm and routes on a wafer with waveguides for all circuits, which splits no step."""
    wafer = plan.fabric.machine_as(Lightpath)
    enough = replace(wafer, waveguides=max(wafer.waveguides, plan.fabric.num_nodes), switch_unit="wavelength")
    return compile(enough, plan.schedule.collective.name, plan.size_bytes, algorithm=plan.algorithm)


def _job_of(workload: str, nodes: int) -> list[TaskGraph]:
    """Steps of a workload on some nodes: a model by its name, or a trace.

    Raises: ParameterError, WorkloadError: it cannot be divided among the nodes, or the trace cannot be read.
    """
    if parse_call(workload)[0] in MODELS.names():
        return [partition(workload, nodes)]
    return load_steps(workload, num_ranks=nodes)


def _preset(point: Mapping[str, Any]) -> str | None:
    """Values of the light budget of a point; None: the best that there are."""
    preset: str = point["optics"]
    return None if preset == BEST else preset


def _fabric(point: Mapping[str, Any]) -> Fabric:
    """The machine of a point."""
    name, written = parse_call(point["fabric"])
    own = {axis.partition(".")[2]: value for axis, value in point.items() if axis.startswith("parameter.")}
    known = {one: value for one, value in own.items() if one in parameter_types(FABRICS.get(name))}
    rate = None if point["node_rate"] == "built" else point["node_rate"]
    return as_fabric(write_call(name, {**written, **known}), point["nodes"], rate)
