"""Answers to failed parts beside their bounds: times, slots of dead planes, and whether every part has an answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from measure import Run, command, register

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Condition, no_progress
from opticcl.operations.faults.answers import FaultReport, Healthy, answer, recovery_parameters
from opticcl.operations.faults.sweep import classes_to_try, sweep
from opticcl.plans.plan import compile
from opticcl.verify.time.programme import check_programme, rules_of

SMALL = (
    "ramp:groups=3,racks=2,wavelengths=3",
    "sipac:radix=3,levels=2",
    "terarack:nodes=8,wavelengths=4",
    "oddl:shape=4x4",
    "lightpath:shape=3x3,waveguides=4",
)
ONE_WAY = ("sipac:radix=4,levels=1", "oddl:shape=4", "ramp:groups=1,racks=1,wavelengths=4")
TWO_WAYS = ("sipac:radix=3,levels=2", "oddl:shape=4x4", "ramp:groups=3,racks=2,wavelengths=3")
MACHINES = ("sipac:radix=4,levels=2", "oddl:shape=4x4", "sipac:radix=8,levels=2", "oddl:shape=8x8")


def healthy(spec: str, size_bytes: int = 100_000_000, streamed: bool = False) -> Healthy:
    """An all_reduce without the time of sums, as the marks have it."""
    assumed = assumptions("common", compute="none")
    return Healthy(fabric(spec), Request("all_reduce"), size_bytes, "auto", assumed, recovery_parameters(), streamed)


def over_bound(name: str, spec: str, part: Condition) -> None:
    """Time over the bound at 100 MB and 1 GB, where pieces go on as they arrive, and where steps wait for those before."""

    def run() -> dict[str, float]:
        found: dict[str, float] = {"violations": 0.0}
        for size, label in ((10**8, "100mb"), (10**9, "1gb")):
            before = healthy(spec, size, streamed=True)
            report = answer(before, [part])
            left = before.fabric.without([part])
            plan = compile(left, before.wanted, size, algorithm=report.algorithm, assumptions=before.assumed)
            times = plan.programme("device", assumptions=before.assumed)
            found["violations"] += not check_programme(plan.circuits, times, rules_of(times)).ok
            found["violations"] += abs(times.total_s / (report.time_s or 0.0) - 1) > 1e-9
            found[f"ratio_{label}"] = report.ratio or float("inf")
            found[f"with_barriers_{label}"] = answer(healthy(spec, size), [part]).ratio or float("inf")
            found[f"of_healthy_{label}"] = (report.bound_s or 0.0) / report.healthy_s
        return found

    register(f"faults.{name}", f"all_reduce on {spec} without {part}, over the bound", lambda: run)


over_bound("sipac_comb", "sipac:radix=4,levels=2", Condition("comb_laser", 3))
over_bound("sipac_switch", "sipac:radix=4,levels=2", Condition("switch", 3))
over_bound("oddl_wss", "oddl:shape=4x4", Condition("switch", 3))
over_bound("lightpath_laser", "lightpath:shape=4x4", Condition("laser", 80))


def planes(groups: int, racks: int, wavelengths: int) -> None:
    """Slots of an all_to_all of one slot a block with none, one and two planes dead."""

    def run() -> dict[str, float]:
        machine = Ramp(groups=groups, racks=racks, wavelengths=wavelengths)
        ports, found = machine.ports_per_node, {}
        for dead in range(3):
            lost = [
                Condition("transmitter", node * ports + plane)
                for node in range(machine.num_nodes)
                for plane in range(dead)
            ]
            left = machine.without(lost) if lost else machine
            plan = compile(left, "all_to_all", 950 * machine.num_nodes, algorithm="skewed_exchange:steps=1")
            plan.verify().raise_if_bad()
            found[f"slots_{dead}"] = float(plan.simulate().num_rounds)
        return found

    name = f"{groups}x{racks}x{wavelengths}"
    register(f"faults.planes_{name}", f"slots of an all_to_all on RAMP {name} with 0, 1, 2 planes dead", lambda: run)


planes(3, 3, 6)
planes(4, 4, 8)
planes(8, 4, 8)


def answered(reports: list[FaultReport]) -> float:
    """Share of the parts that have a verified plan, or a cut that the judge confirmed."""
    good = sum(r.equal_parts for r in reports if r.answer == "cut" or (r.verdict is not None and r.verdict.ok))
    return good / sum(r.equal_parts for r in reports)


def every_part() -> dict[str, float]:
    """All parts of five small machines."""
    return {"answered": answered(list(chain.from_iterable(sweep(healthy(spec), no_progress) for spec in SMALL)))}


def single_points() -> dict[str, float]:
    """Parts other than nodes and control switches that alone cut ranks off, with one way to join a pair and with two."""
    found = {}
    for name, specs in (("one_way", ONE_WAY), ("two_ways", TWO_WAYS)):
        reports = chain.from_iterable(sweep(healthy(spec), no_progress) for spec in specs)
        cuts = [r for r in reports if r.answer == "cut" and r.conditions[0].kind not in ("node", "control_switch")]
        found[name] = float(len({(r.conditions[0].kind, r.healthy_s) for r in cuts}))
    return found


def every_node() -> dict[str, float]:
    """One node of each class on machines of 16 and 64 nodes."""
    found = []
    for spec in MACHINES:
        before = healthy(spec)
        nodes = [each for each in classes_to_try(before) if each.condition.kind == "node"]
        found += [answer(before, [each.condition], each.equal_parts) for each in nodes]
    return {"planned": answered([r for r in found if r.answer != "cut"])}


def replan_64() -> Run:
    """CPU time of a plan around a failed switch of 64 nodes; the healthy plan is there."""
    small, large = healthy("sipac:radix=4,levels=2"), healthy("sipac:radix=8,levels=2")
    answer(small, [Condition("switch", 3)])
    assert large.time_s > 0
    return lambda: {"plan_s": answer(large, [Condition("switch", 3)]).recovery.plan}


def equal_lasers() -> dict[str, float]:
    """Times with one laser of a tile dead, the largest over the least."""
    before = healthy("lightpath:shape=4x4,waveguides=4")
    times = [answer(before, [Condition("laser", 80 + number)]).time_s or 0.0 for number in (0, 4, 8, 15)]
    return {"largest_over_least": max(times) / min(times)}


def whole_sweep(spec: str) -> Callable[[], Run]:
    """Every part of a machine, by the command; kernels are there."""

    def prepare() -> Run:
        list(sweep(healthy("sipac:radix=3,levels=2"), no_progress))
        return command("faults", "-f", spec, "--sweep", "-s", "100MB", "--json")

    return prepare


register("faults.sweep_sipac_64", "every part of a SiPAC of 64 nodes", whole_sweep("sipac:radix=8,levels=2"))
register("faults.sweep_sipac_1024", "every part of a SiPAC of 1,024 nodes", whole_sweep("sipac:radix=32,levels=2"))
register(
    "faults.sweep_lightpath_1024", "every part of a LIGHTPATH of 1,024 tiles", whole_sweep("lightpath:shape=32x32")
)
register("faults.every_part", "every part of five small machines has a plan or a proven cut", lambda: every_part)
register("faults.single_points", "kinds of parts that alone cut ranks off", lambda: single_points)
register("faults.every_node", "loss of any node, ODDL and SiPAC of 16 and 64 nodes", lambda: every_node)
register("faults.replan_64", "a plan around a failed switch, SiPAC 8x8", replan_64)
register("faults.equal_lasers", "one dead laser of a LIGHTPATH tile, whichever it is", lambda: equal_lasers)
