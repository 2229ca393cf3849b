"""A plan for a job beside running jobs on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from opticcl.assumptions import Assumptions
from opticcl.circuits import lower
from opticcl.circuits.beside import lower_beside, taken_by
from opticcl.collective import Request
from opticcl.errors import AlgorithmError, FabricError, UnsupportedError
from opticcl.ir import Fabric
from opticcl.plans.plan import Plan, compile
from opticcl.registry import canonical
from opticcl.schedule import all_variants, generate

__all__ = ["beside_jobs"]


def beside_jobs(
    where: Fabric, wanted: Request, size_bytes: int, algorithm: str, beside: Sequence[Plan], assumed: Assumptions
) -> Plan:
    """The plan that goes around the circuits of running jobs.

    "auto" takes the algorithm that is the fastest alone; where its transfers find no way, the fastest of those that do, with
    their default parameters.

    Args:
        where: the job on the machine.
        wanted: collective and root.
        size_bytes: message of every rank [bytes].
        algorithm: name with parameters, or auto.
        beside: plans of the running jobs.
        assumed: time assumptions.
    Raises: FabricError: plans of another machine. UnsupportedError: no way is left.
    """
    for plan in beside:
        if plan.fabric.machine != where.machine:
            raise FabricError(
                f"compile: a plan beside is for another machine than {where.machine!r}; give jobs of one machine"
            )
    if where.is_packet_switched:
        return compile(where, wanted, size_bytes, algorithm=algorithm, assumptions=assumed)
    taken = taken_by(plan.circuits for plan in beside)
    if canonical(algorithm) != "auto":
        return Plan(lower_beside(where, generate(algorithm, wanted, where), taken), size_bytes)
    alone = compile(where, wanted, size_bytes, assumptions=assumed)
    try:
        return Plan(lower_beside(where, alone.schedule, taken), size_bytes)
    except UnsupportedError as error:
        refused = error
    best: tuple[float, Plan | None] = (inf, None)
    for name in (name for name in all_variants(wanted, where) if ":" not in name):
        try:
            schedule = generate(name, wanted, where)
            lower(where, schedule)
            plan = Plan(lower_beside(where, schedule, taken), size_bytes)
        except (UnsupportedError, AlgorithmError):
            continue
        took_s = plan.simulate(assumptions=assumed).total_s
        if took_s < best[0]:
            best = took_s, plan
    if best[1] is None:
        raise refused
    return best[1]
