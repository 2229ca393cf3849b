"""Second judge of light: the elements of the machine are set as the plan needs, and light is followed to the photodiodes.

It calls neither `usage` nor `faults`. Rules: `setting_clash`: two circuits need one device in two states; `light_missing`,
`light_collided`, `light_wrong`: a photodiode does not receive its signal alone; `light_stray`: one that no circuit leads to
receives data; `light_circulating`: light goes round for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opticcl.ir import CircuitPlan, ProgressCallback, Violation, no_progress
from opticcl.ir.limits import limit
from opticcl.ir.netlist import Netlist
from opticcl.ir.signals import lanes_of_each
from opticcl.optics.decibels import db_of_ratio
from opticcl.optics.plan_light import PlanLight, PlanRound
from opticcl.units import counted

__all__ = ["NEEDED", "EmulationReport", "emulate", "few_signals"]

NEEDED = frozenset(
    {"path_broken", "node_unknown", "port_unknown", "wavelength_unknown", "transfer_unknown", "circuit_astray"}
)
"""Rules of `verify.light` without which a circuit has no ends or no path, so that there is no light to follow."""


FEW_SIGNALS = limit("emulated.FEW_SIGNALS")
FEW_INPUTS = limit("emulated.FEW_INPUTS")


def few_signals(plan: CircuitPlan) -> bool:
    """Whether the light of a plan can be followed in passing: few signals on a machine with a netlist.

    Args: plan: whose circuits exist.
    """
    if plan.has_images:
        return False
    netlist = plan.fabric.netlist()
    if netlist is None or netlist.unlinked or netlist.num_inputs > FEW_INPUTS:
        return False
    signals = 0
    for steps in plan.schedule.step_classes():
        if signals + len(plan.schedule.step(steps.start)) > FEW_SIGNALS:  # each transfer has one at least
            return False
        signals += sum(int(lanes_of_each(plan.fabric, circuits).sum()) for circuits in plan.rounds(steps.start))
    return signals <= FEW_SIGNALS


@dataclass(frozen=True, slots=True)
class EmulationReport:
    """Result: violations, notes."""

    violations: tuple[Violation, ...]
    notes: tuple[str, ...]


def emulate(
    plan: CircuitPlan, *, isolation_db: Mapping[str, float] | None = None, progress: ProgressCallback = no_progress
) -> EmulationReport:
    """Follow the light of every round; of a run of equal steps the first is followed for all.

    Args:
        plan: circuits whose nodes, ports, wavelengths and paths exist.
        isolation_db: of groups or kinds of elements, to follow what leaks in them too [dB]; None: nothing leaks.
        progress: called after every class of steps.
    Raises: UnsupportedError, ParameterError: no netlist, or too many elements.
    """
    light = PlanLight(plan, isolation_db=isolation_db)
    worst = WorstLeak()
    violations: list[Violation] = []
    rounds = lanes = idle = 0
    for steps in plan.schedule.step_classes():
        for one in light.rounds(steps.start, plan.schedule.step(steps.start)):
            violations += one.violations
            rounds += 1
            lanes += len(one.light.lanes)
            idle += one.light.report.idle
            worst = worst.beside(one, light.emulator.netlist)
        progress("follow the light", steps.stop, plan.schedule.num_steps)
    netlist = light.emulator.netlist
    what = f"emulated: {counted(rounds, 'round')} with {counted(lanes, 'signal')} at photodiodes"
    beside = f"; {counted(idle, 'line')} of light without data end at others" if idle else ""
    note = f"{what}, through {counted(netlist.num_elements, 'element')}{beside}"
    return EmulationReport(tuple(violations), (note, *([] if isolation_db is None else [worst.note()])))


@dataclass(frozen=True, slots=True)
class WorstLeak:
    """The photodiode with the most crosstalk so far.

    Args:
        ratio: power that leaks over power of the signal.
        leaks: rows of light that leak to it [count].
        where: photodiode in words.
    """

    ratio: float = 0.0
    leaks: int = 0
    where: str = ""

    def beside(self, one: PlanRound, netlist: Netlist) -> WorstLeak:
        """The worse of this and those of a round."""
        crosstalk = one.light.crosstalk
        if crosstalk is None or not len(crosstalk.ratio) or crosstalk.ratio.max() <= self.ratio:
            return self
        at = int(crosstalk.ratio.argmax())
        where = netlist.photodiodes.place(int(one.light.lanes.photodiode[at]))
        return WorstLeak(float(crosstalk.ratio[at]), int(crosstalk.leaks[at]), where)

    def note(self) -> str:
        """In words."""
        if not self.where:
            return "crosstalk: nothing leaks to a photodiode that is listened to"
        below = f"{-float(db_of_ratio(self.ratio)):.1f} dB below the signal at worst"
        return f"crosstalk: {below}, {counted(self.leaks, 'leak')} at photodiode of {self.where}"
