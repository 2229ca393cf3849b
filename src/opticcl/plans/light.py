"""The light of a plan: whether the circuits that it uses receive enough power, and the rule by which a search chooses.

Every verb that names a plan asks `light_of_plan`; a machine without a plan has the worst path between any two of its nodes,
`light_of_machine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, Literal

import numpy as np

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.estimate.budget import TYPICAL, best_budget, budget
from opticcl.ir import CircuitPlan, Fabric, Schedule
from opticcl.ir.light import LITERAL, Counts, LightPath, Optics
from opticcl.ir.limits import ROUTES_AT_ONCE
from opticcl.optics.budget import counts_of_rounds, least_margin_db
from opticcl.optics.chain import ROUNDING_DB
from opticcl.optics.values import light_path_of, optics

__all__ = [
    "DEFAULT_RULE",
    "Light",
    "LightRule",
    "light_differs",
    "light_of_machine",
    "light_of_plan",
    "light_rule",
    "no_circuits_close",
    "step_is_dark",
]


@dataclass(frozen=True, slots=True)
class Light:
    """Margin of a light budget.

    Args:
        margin_db: of the worst circuit of a plan, or of the worst path of a machine [dB]; None: no light goes from end to
            end, or no preset has all values.
        optics: preset of the values; "" without a margin.
        of: whose margin it is.
    """

    margin_db: float | None
    optics: str
    of: Literal["plan", "machine"]

    @property
    def closes(self) -> bool | None:
        """Whether the light budget closes; None without a margin."""
        return None if self.margin_db is None else self.margin_db >= -ROUNDING_DB

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "light_closes": self.closes,
            "light_margin_db": self.margin_db,
            "light_optics": self.optics,
            "light_of": self.of,
        }


@dataclass(frozen=True, slots=True)
class LightRule:
    """The light that a plan must have to be chosen.

    Args:
        optics: preset of the values; None: those of the paper where they suffice, else the typical ones.
        ignored: whether plans are chosen without regard to light.
    """

    optics: str | None = None
    ignored: bool = False

    def of(self, plan: CircuitPlan) -> Light:
        """The light of a plan under the preset."""
        return light_of_plan(plan, self.optics)

    def allows(self, light: Light) -> bool:
        """Whether a plan with that light may be chosen before others."""
        return self.ignored or light.closes is not False


DEFAULT_RULE = LightRule()


def light_rule(fabrics: Iterable[Fabric], preset: str | None, ignored: bool) -> LightRule:
    """The rule that a caller describes.

    Args:
        fabrics: that it is for.
        preset: values of the light budget, one that the optics of all these fabrics have; None: chosen.
        ignored: whether plans are chosen without regard to light.
    Raises: UnknownNameError: no such preset.
    """
    for fabric in fabrics:
        if preset is not None and fabric.light_path is not None:
            optics(fabric.light_path.table, preset)
    return LightRule(None if preset is None else preset.strip().lower().replace("-", "_"), ignored)


def light_of_plan(plan: CircuitPlan, preset: str | None = None) -> Light:
    """Light of the circuits of a plan: the margin that `opticcl machine budget --algorithm` and `opticcl verify --budget` find.

    Args:
        plan: compiled.
        preset: values of the light budget; None: those of the paper where they suffice, else the typical ones.
    """

    def margin_db(values: Optics) -> float:
        path = light_path_of(plan.fabric)
        rounds = counts_of_rounds(plan)
        return least_margin_db(path, values, islice(rounds, 1) if path.uniform else rounds)

    margin = _found_or_none(plan.fabric, preset, margin_db)
    return Light(None, "", "plan") if margin is None or margin[1] == inf else Light(margin[1], margin[0].preset, "plan")


def light_of_machine(fabric: Fabric, preset: str | None = None) -> Light:
    """Light of the worst path of a machine, whichever nodes a plan joins; for questions without a plan.

    Args:
        fabric: the machine.
        preset: as of `light_of_plan`.
    """
    margin = _found_or_none(fabric, preset, lambda values: budget(fabric, values).margin_db)
    return Light(None, "", "machine") if margin is None else Light(margin[1], margin[0].preset, "machine")


def light_differs(fabric: Fabric, preset: str | None = None) -> bool:
    """Whether the light of some plans of a machine may close and that of others not.

    It cannot where all circuits pass the same elements, or where the worst path closes.

    Args:
        fabric: the machine.
        preset: as of `light_of_plan`.
    """
    path = fabric.light_path
    if path is None or path.uniform or (preset is not None and preset not in path.table.presets):
        return False
    values = optics(path.table, preset or LITERAL)
    light = light_of_machine(fabric, preset)
    return not (light.closes and light.optics == values.preset)


def step_is_dark(plan: CircuitPlan, steps: range, preset: str | None = None) -> bool:
    """Whether a circuit of a step receives too little light, whichever preset the whole plan is judged by.

    Args:
        plan: with the step.
        steps: its class.
        preset: as of `light_of_plan`.
    """
    return _are_dark(light_path_of(plan.fabric), list(counts_of_rounds(plan, [steps])), preset)


def no_circuits_close(fabric: Fabric, schedule: Schedule, runs: Sequence[range], preset: str | None = None) -> bool:
    """Whether a pair of some steps receives too little light whatever circuit joins it, as far as its distance shows.

    Args:
        fabric: that the schedule runs on.
        schedule: between its ranks.
        runs: classes of the steps.
        preset: as of `light_of_plan`.
    """
    path = light_path_of(fabric)
    if path.least is None:
        return False
    ranks = np.arange(schedule.steps.space.num_ranks)
    pairs = (ends for run in runs for ends in schedule.steps.ends(run.start, ROUTES_AT_ONCE, ranks))
    nodes = ((fabric.machine_nodes(ends.src), fabric.machine_nodes(ends.dst)) for ends in pairs if len(ends))
    return any(_are_dark(path, [path.least(*ends)], preset) for ends in nodes)


def _are_dark(path: LightPath, rounds: Sequence[Counts], preset: str | None) -> bool:
    """Whether a path of some rounds receives too little light under every preset that has the values.

    Args:
        path: of the fabric.
        rounds: elements that circuits pass, (paths, elements) each.
        preset: as of `light_of_plan`.
    """
    margins = []
    for name in (LITERAL, TYPICAL) if preset is None else (preset,):
        if name == LITERAL or name in path.table.presets:
            with suppress(ParameterError):
                margins.append(least_margin_db(path, optics(path.table, name), rounds))
    return bool(margins) and max(margins) < -ROUNDING_DB


def _found_or_none(fabric: Fabric, preset: str | None, find: Callable[[Optics], float]) -> tuple[Optics, float] | None:
    """Values of a preset and a margin, or None where no light goes from end to end, or the preset or some values are missing.

    Args:
        fabric: optical or not.
        preset: as of `light_of_plan`.
        find: values -> margin [dB].
    """
    try:
        if preset is not None and preset not in light_path_of(fabric).table.presets:
            return None
        return best_budget(fabric, find, preset)[:2]
    except UnsupportedError:
        return None
    except ParameterError:
        return None
