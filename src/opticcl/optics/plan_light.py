"""The light of a plan, round by round, and what is wrong with it in words: devices, photodiodes and circuits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Transfers, Violation, concatenate_circuits
from opticcl.ir.netlist import Netlist
from opticcl.optics.device_changes import NO_OWNER, device_change
from opticcl.optics.emulator import NO_DATA, Clash
from opticcl.optics.leaks import isolation_of
from opticcl.optics.rounds import RoundLight, emulator_of, needed_settings, round_light

__all__ = ["PlanLight", "PlanRound", "light_violations"]

NAMED = 4
"""Circuits and photodiodes that a violation names."""


class PlanRound(NamedTuple):
    """The light of one round.

    Args:
        number: of the round in its step.
        circuits: of the round.
        light: of the round.
        violations: empty if the light arrives.
    """

    number: int
    circuits: Circuits
    light: RoundLight
    violations: list[Violation]


class PlanLight:
    """Light of the rounds of a plan on an emulated machine.

    Args:
        plan: whose circuits exist: nodes, ports, wavelengths and paths of the machine.
        changes: devices that are set in another way, such as "tx_gate:17=0".
        isolation_db: of groups or kinds of elements, to follow what leaks in them too [dB].
    Raises: UnsupportedError, ParameterError: no netlist, too large, or a change or elements that the machine does not have.
    """

    def __init__(
        self, plan: CircuitPlan, changes: Sequence[str] = (), isolation_db: Mapping[str, float] | None = None
    ) -> None:
        self.plan = plan
        self.emulator = emulator_of(plan.fabric)
        netlist = self.emulator.netlist
        self._isolation_db = None if isolation_db is None else isolation_of(netlist, isolation_db)
        self._changed = [device_change(netlist, change) for change in changes]
        self._rounds: list[Circuits] = []
        self._standing = []
        if any(group.once_per_job for group in netlist.groups):
            starts = [steps.start for steps in plan.schedule.step_classes()]
            self._rounds = [circuits for start in starts for circuits in plan.rounds(start) if len(circuits)]
            if self._rounds:
                everything = concatenate_circuits(self._rounds)
                self._standing = [needed_settings(plan.fabric, netlist, everything, True)]
        self._ends = [0, *accumulate(map(len, self._rounds))]

    def rounds(self, step: int, transfers: Transfers) -> Iterator[PlanRound]:
        """The light of every round of a step."""
        netlist = self.emulator.netlist
        for number, circuits in enumerate(self.plan.rounds(step)):
            if not len(circuits):
                continue
            light = round_light(
                self.plan.fabric,
                self.emulator,
                circuits,
                transfers,
                self._standing,
                self._changed,
                owner=self._ends[-1],
                isolation_db=self._isolation_db,
            )
            broken = light_violations(netlist, light, circuits, self._name_of(circuits))
            violations = [replace(violation, step=step, round=number) for violation in broken]
            yield PlanRound(number, circuits, light, violations)

    def _name_of(self, circuits: Circuits) -> Callable[[int], str]:
        """Names of the owners of settings: circuits of this round, or of the round that set a device for the job."""

        def name(owner: int) -> str:
            if owner == NO_OWNER:
                return "--set-device"
            if owner >= self._ends[-1]:
                return _circuit(circuits, owner - self._ends[-1])
            which = bisect_right(self._ends, owner) - 1
            return _circuit(self._rounds[which], owner - self._ends[which])

        return name


def _circuit(circuits: Circuits, row: int) -> str:
    return f"{circuits.src[row]} -> {circuits.dst[row]}"


def light_violations(
    netlist: Netlist, found: RoundLight, circuits: Circuits, name: Callable[[int], str]
) -> list[Violation]:
    """What is wrong with the light of a round; step and round are for the caller to fill in.

    Args:
        netlist: of the machine.
        found: light of the round.
        circuits: of the round.
        name: owner of a setting -> circuit in words.
    """
    report, lanes, broken = found.report, found.lanes, []
    if report.clashes:
        broken.append(_of_clash(netlist, report.clashes[0], name, len(report.clashes)))
    rows = report.rows

    def lane(i: int) -> str:
        return f"{_circuit(circuits, int(lanes.circuit[i]))} wavelength {lanes.wavelength[i]}"

    def signal(number: int) -> str:
        same = np.flatnonzero(lanes.signal == number)
        if len(same):
            return _circuit(circuits, int(lanes.circuit[same[0]]))
        return "a laser without data" if number >= NO_DATA else f"signal {number}"

    def arrived(photodiode: int) -> str:
        signals = rows.signal[rows.photodiode == photodiode].tolist()
        return ", ".join(signal(number) for number in signals[:NAMED]) + (", ..." if len(signals) > NAMED else "")

    def diode(photodiode: int) -> str:
        return f"photodiode of {netlist.photodiodes.place(photodiode)}"

    for rule, listeners in (
        ("light_missing", report.missing),
        ("light_collided", report.collided),
        ("light_wrong", report.wrong),
    ):
        if len(listeners):
            i = int(listeners[0])
            at = int(lanes.photodiode[i])
            received = f"light of {arrived(at)}" if rule != "light_missing" else "darkness"
            broken.append(Violation(rule, -1, -1, diode(at), f"the light of {lane(i)} alone", received, len(listeners)))
    if len(report.stray):
        at = int(report.stray[0])
        where, count = diode(at), len(report.stray)
        broken.append(Violation("light_stray", -1, -1, where, "no data", f"light of {arrived(at)}", count))
    if report.circulating:
        received = "light that comes back to where it was"
        broken.append(
            Violation("light_circulating", -1, -1, netlist.name, "light that ends", received, report.circulating)
        )
    return broken


def _of_clash(netlist: Netlist, clash: Clash, name: Callable[[int], str], count: int) -> Violation:
    """A device that two circuits set in two ways.

    Args:
        netlist: of the machine.
        clash: of the device.
        name: owner of a setting -> circuit in words.
        count: devices with two settings [count].
    """
    group = netlist.groups[clash.group]
    where = f"{group.name}:{clash.number} ({group.place_of(clash.number)}"
    where += f", wavelength {clash.index})" if group.per_wavelength and group.kind != "wss" else ")"
    first, second = map(name, clash.owners)
    if group.kind in ("photodiode", "emitter", "modulator"):
        what = "one circuit", f"{first} and {second}"
    else:
        what = f"state {clash.values[0]} for {first}", f"state {clash.values[1]} for {second}"
    return Violation("setting_clash", -1, -1, where, *what, count)
