"""Counts of a plan: steps, rounds, transfers, circuits, wavelengths."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from opticcl.plans.plan import Plan
from opticcl.registry import write_call
from opticcl.units import counted

__all__ = ["PlanSummary", "RunSummary", "summarize"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Counts of a run of equal steps.

    Args:
        first: index of the first step.
        count: steps of the run [count].
        rounds: of each step [count].
        transfers: of each step [count].
        circuits: of each step, over all rounds [count].
        wavelengths: highest wavelength index in use, plus one [count].
        longest_path: of a circuit [hops].
    """

    first: int
    count: int
    rounds: int
    transfers: int
    circuits: int
    wavelengths: int
    longest_path: int


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """Counts of a plan.

    Args:
        plan: the plan.
        runs: of equal steps, in order.
    """

    plan: Plan
    runs: tuple[RunSummary, ...]

    def _total(self, field: str) -> int:
        return sum(getattr(run, field) * run.count for run in self.runs)

    def answer(self) -> str:
        """What the plan is, in a sentence."""
        plan, rounds = self.plan, self._total("rounds")
        steps, circuits = counted(plan.schedule.num_steps, "step"), counted(self._total("circuits"), "circuit")
        return f"{plan.algorithm} on {plan.fabric.name} takes {steps}, {counted(rounds, 'round')} and {circuits}."

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl compile --json` prints them."""
        plan, collective = self.plan, self.plan.schedule.collective
        parameters = {k: v for k, v in plan.fabric.parameters.items() if v is not None}
        return {
            "fabric": write_call(plan.fabric.name, parameters),
            "collective": collective.name,
            "algorithm": plan.algorithm,
            "num_nodes": plan.fabric.num_nodes,
            "size_bytes": plan.size_bytes,
            "num_chunks": collective.num_chunks,
            "num_steps": plan.schedule.num_steps,
            "num_rounds": self._total("rounds"),
            "num_transfers": self._total("transfers"),
            "num_circuits": self._total("circuits"),
            "steps": [asdict(run) for run in self.runs],
        }


def summarize(plan: Plan) -> PlanSummary:
    """Count the rounds, transfers and circuits of a plan; each run of equal steps is lowered once.

    Raises: UnsupportedError: the fabric cannot carry the schedule.
    """
    return PlanSummary(plan, tuple(_summary_of(plan, run) for run in plan.schedule.step_classes()))


def _summary_of(plan: Plan, run: range) -> RunSummary:
    step, sets = plan.circuits.images(run.start), plan.circuits.symmetric(run.start)
    transfers = plan.schedule.step(run.start) if step is None else step
    rounds = [circuits for one in sets for circuits in one.rounds] or plan.circuits.rounds(run.start)
    top = [int((c.wavelength_lo + (c.wavelength_n - 1) * c.wavelength_step).max(initial=-1)) + 1 for c in rounds]
    return RunSummary(
        first=run.start,
        count=len(run),
        rounds=len(circuits := plan.circuits.num_circuits(run.start)),
        transfers=len(transfers),
        circuits=sum(circuits),
        wavelengths=max(top, default=0),
        longest_path=max((int(c.num_hops().max(initial=0)) for c in rounds), default=0),
    )
