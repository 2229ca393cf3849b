"""Circuits for a job beside running jobs on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from opticcl.assumptions import Assumptions
from opticcl.circuits.beside import lower_beside, taken_by
from opticcl.collective import Request
from opticcl.errors import AlgorithmError, FabricError, UnsupportedError
from opticcl.ir import CircuitPlan, Fabric
from opticcl.plans.light import DEFAULT_RULE, LightRule
from opticcl.plans.search import Search
from opticcl.registry import canonical
from opticcl.schedule import all_variants, generate
from opticcl.simulate import simulate

__all__ = ["circuits_beside"]


def circuits_beside(
    where: Fabric,
    wanted: Request,
    size_bytes: int,
    algorithm: str,
    beside: Sequence[CircuitPlan],
    assumed: Assumptions,
    rule: LightRule = DEFAULT_RULE,
) -> CircuitPlan:
    """Circuits that go around those of running jobs.

    "auto" takes the algorithm that is the fastest alone; where its transfers find no way, the fastest of those that do, with
    their default parameters.

    Args:
        where: the job on the machine, whose circuits are light.
        wanted: collective and root.
        size_bytes: message of every rank [bytes].
        algorithm: name with parameters, or auto.
        beside: plans of the running jobs.
        assumed: time assumptions.
        rule: the light that the plan of "auto" must have.
    Raises: FabricError: plans of another machine. UnsupportedError: no way is left.
    """
    for plan in beside:
        if plan.fabric.machine != where.machine:
            raise FabricError(
                f"compile: a plan beside is for another machine than {where.machine!r}; give jobs of one machine"
            )
    taken = taken_by(beside)
    if canonical(algorithm) != "auto":
        return lower_beside(where, generate(algorithm, wanted, where), taken)
    names = all_variants(wanted, where)
    search = Search(where, wanted, assumed, rule=rule)
    fastest, refused = search.fastest([size_bytes]), search.refusal()
    if fastest is not None:
        try:
            return lower_beside(where, fastest.plan().schedule, taken)
        except UnsupportedError as error:
            refused = error
    best: tuple[float, CircuitPlan | None] = (inf, None)
    for name in (name for name in names if ":" not in name):
        try:
            lowered = lower_beside(where, generate(name, wanted, where), taken)
        except (UnsupportedError, AlgorithmError):
            continue
        took_s = simulate(lowered, size_bytes, assumed).timeline.total_s
        if took_s < best[0]:
            best = took_s, lowered
    if best[1] is None:
        raise UnsupportedError(f"{refused}; plan the running jobs with fewer wavelengths, such as algorithm ring")
    return best[1]
