"""Times of steps that are not listed: circuits of some senders have times, and their images have the same ones.

The laws are those of listed circuits, but for data and sums (`_data`) and for devices: images of circuits that meet one
unit of a resource are counted by the orbit of that unit; devices change within the guards of slots, and are parts of units that
serve one circuit at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Resource, Usage, Violation
from opticcl.ir.device import SettingUse
from opticcl.ir.floor_plan import FloorPlan
from opticcl.ir.representatives import SymmetricRounds
from opticcl.verify.light.images import Loads, images_of_machine, loads_by_orbits

__all__ = ["devices_apart", "orbits_of_step", "refuse_other_machines"]


def refuse_other_machines(fabric: Fabric, repeats: int, floor: FloorPlan | None, *, tables: bool) -> None:
    """Refuse what these laws do not cover.

    Args:
        fabric: of the plan.
        repeats: most repetitions of a step of the programme [count].
        floor: plan of which latencies are sums of parts; None: they are what the fabric's paper prints.
        tables: whether the programme has changes of devices or control exchanges.
    Raises: UnsupportedError: devices that take time, tables of them, or repeated steps.
    """
    for wrong, what in (
        (not fabric.slot_s or fabric.reconfiguration_s, "devices that change outside the guards of slots"),
        (any(device.setting_time_s for device in fabric.devices), "devices that take time to change"),
        (fabric.hop_latency_s(np.zeros(0, np.int64)) is not None, "paths of different latencies"),
        (floor is not None and fabric.hop_passages(floor) is not None, "paths of different latencies"),
        (fabric.units_of_devices() is None, "devices that are part of no resource"),
        (fabric.shortest_control_s, "control exchanges"),
        (tables, "tables of devices or control"),
        (repeats > 1, "repeated steps"),
    ):
        if wrong:
            raise UnsupportedError(f"programme: steps that are not listed, with {what}: not judged; take fewer nodes")


def orbits_of_step(plan: CircuitPlan, number: int, rounds: SymmetricRounds) -> dict[Resource, Loads]:
    """Units of all resources by orbits of the moves that define the circuits of a step.

    Args:
        plan: with the step.
        number: of the step.
        rounds: with the moves.
    Raises: UnsupportedError: they are no moves of the machine.
    """
    of_sets = images_of_machine(plan.fabric, plan.schedule.steps, number, (rounds,))
    if isinstance(of_sets, Violation):
        raise UnsupportedError(
            f"programme: {of_sets.where}: {of_sets.expected}, found {of_sets.found}; verify the plan first"
        )
    return loads_by_orbits(plan.fabric, rounds.moves)


def devices_apart(fabric: Fabric, circuits: Circuits) -> Iterator[tuple[str, IntArray, IntArray]]:
    """Kind, groups and circuits of devices that are part of no unit which their circuit takes, so that others may need them.

    Args:
        fabric: whose devices are parts of units.
        circuits: of a step.
    """
    usages = list(fabric.usage(circuits))
    for use, (at, many) in zip(fabric.settings(circuits), fabric.units_of_devices() or (), strict=True):
        unit = np.full(len(circuits), -1)
        unit[_rows(usages[at], circuits)] = usages[at].index
        row = _rows(use, circuits)
        apart = np.flatnonzero(use.index // many != unit[row])
        if len(apart):
            yield use.kind, use.index[apart], row[apart]


def _rows(use: Usage | SettingUse, circuits: Circuits) -> IntArray:
    """The circuit of each row."""
    return np.arange(len(circuits)) if use.circuit is None else use.circuit
