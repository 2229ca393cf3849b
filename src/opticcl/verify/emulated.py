"""Second judge of light: the elements of the machine are set as the plan needs, and light is followed to the photodiodes.

It calls neither `usage` nor `faults`. Rules: `setting_clash`: two circuits need one device in two states; `light_missing`,
`light_collided`, `light_wrong`: a photodiode does not receive its signal alone; `light_stray`: one that no circuit leads to
receives data; `light_circulating`: light goes round for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.ir import CircuitPlan, ProgressCallback, Violation, no_progress
from opticcl.optics.plan_light import PlanLight
from opticcl.units import counted

__all__ = ["NEEDED", "EmulationReport", "emulate"]

NEEDED = frozenset(
    {"path_broken", "node_unknown", "port_unknown", "wavelength_unknown", "transfer_unknown", "circuit_astray"}
)
"""Rules of `verify.light` without which a circuit has no ends or no path, so that there is no light to follow."""


@dataclass(frozen=True, slots=True)
class EmulationReport:
    """Result: violations, notes."""

    violations: tuple[Violation, ...]
    notes: tuple[str, ...]


def emulate(plan: CircuitPlan, *, progress: ProgressCallback = no_progress) -> EmulationReport:
    """Follow the light of every round; of a run of equal steps the first is followed for all.

    Args:
        plan: circuits whose nodes, ports, wavelengths and paths exist.
        progress: called after every class of steps.
    Raises: UnsupportedError, ParameterError: no netlist, or too many elements.
    """
    light = PlanLight(plan)
    violations: list[Violation] = []
    rounds = lanes = idle = 0
    for steps in plan.schedule.step_classes():
        for one in light.rounds(steps.start, plan.schedule.step(steps.start)):
            violations += one.violations
            rounds += 1
            lanes += len(one.light.lanes)
            idle += one.light.report.idle
        progress("follow the light", steps.stop, plan.schedule.num_steps)
    netlist = light.emulator.netlist
    what = f"emulated: {counted(rounds, 'round')} with {counted(lanes, 'signal')} at photodiodes"
    beside = f"; {counted(idle, 'line')} of light without data end at others" if idle else ""
    return EmulationReport(tuple(violations), (f"{what}, through {counted(netlist.num_elements, 'element')}{beside}",))
