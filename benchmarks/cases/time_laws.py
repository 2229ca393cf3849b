"""Verification of times. A small case of the same kind runs beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from measure import Run, register

import opticcl
from opticcl.collective import collective
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import CircuitPlan, Circuits, Fabric, FabricNumbers, Fault, Op, Resource, Schedule, Transfers, Usage
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.programme import CircuitTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.verify.time.programme import TimeRules, check_programme, rules_of

SETTING_S = 10e-6


@dataclass(frozen=True, kw_only=True, repr=False)
class Coupler(Fabric):
    """Nodes with one tunable transmitter and one receiver each, joined by a passive coupler."""

    nodes: int
    rate: float = 8e9
    latency: float = 1e-6

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The latency is that of every path."""
        return FabricNumbers(num_nodes=self.nodes, rate_bits_per_s=self.rate, latency_s=self.latency)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Transmitters and receivers."""
        return Resource("laser", self.nodes), Resource("photodiode", self.nodes)

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Those of its ends."""
        laser, photodiode = self.resources
        yield Usage(laser, circuits.src.astype(np.int64))
        yield Usage(photodiode, circuits.dst.astype(np.int64))

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """None."""
        return iter(())

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Transmitters."""
        return (Device("transmitter", self.nodes, SETTING_S),)

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Each transmitter is tuned to its receiver."""
        yield SettingUse("transmitter", circuits.src, circuits.dst)


def shifts(nodes: int) -> Callable[[], bool]:
    """An all-to-all of shifts: every circuit is another one, and all transmitters change before every step."""
    where = Coupler(nodes=nodes)
    ranks = np.arange(nodes, dtype=np.int32)

    def step(i: int) -> Transfers:
        dst = (ranks + i + 1) % nodes
        return Transfers.of(ranks, dst, dst, 1, Op.MOVE)

    def rounds(i: int) -> tuple[Circuits, ...]:
        return (Circuits.of(ranks, ranks, (ranks + i + 1) % nodes),)

    schedule = Schedule("shifts", collective("all_to_all", nodes, nodes), nodes - 1, step)
    size = nodes * 4000
    took = where.latency_s + 4000 * 8 / where.rate_bits_per_s
    steps = np.repeat(np.arange(nodes - 1), nodes)
    begin = (steps + 1) * SETTING_S + steps * took
    row = np.tile(ranks, nodes - 1)
    circuits = CircuitTimes.of(step=steps, round=0, row=row, start_s=begin, end_s=begin + took, slot=-1, slots=-1)
    data = DataTimes.of(step=steps, transfer=row, arrived_s=begin + took, summed_s=begin + took)
    devices = DeviceTable.of(
        kind=0, device=row, step=-1, begin_s=begin - SETTING_S, done_s=begin, setting=(row + steps + 1) % nodes
    )
    programme = Programme("by hand", size, float(begin[-1] + took), StepRuns.single(nodes - 1), circuits, data, devices)
    plan = CircuitPlan(where, schedule, rounds)
    return lambda: check_programme(plan, programme, TimeRules(control="none")).ok


def plan(system: str, engine: str) -> Callable[[], bool]:
    """Every time of an all_reduce of 1 MB on a system of 1,024 nodes, by the algorithm that `auto` chooses."""
    small, large = (
        opticcl.compile(fabric_at_scale(system, nodes), "all_reduce", 10**6, assumptions="common")
        for nodes in (16, 1024)
    )
    for one in (small, large):  # kernels of small and of large inputs are compiled
        programme = one.programme(engine)
        assert check_programme(one.circuits, programme, rules_of(programme)).ok
    return lambda: check_programme(large.circuits, programme, rules_of(programme)).ok


SYSTEMS = ("ramp", "sipac", "terarack", "oddl", "lightpath")
CASES: list[tuple[str, str, Callable[[], Callable[[], bool]]]] = [
    ("shifts_256", "all-to-all of shifts on 256 nodes, 65,280 circuits and changes", lambda: shifts(256)),
    ("shifts_1024", "all-to-all of shifts on 1,024 nodes, 1,047,552 circuits and changes", lambda: shifts(1024)),
    *(
        (
            f"{system}_1024{suffix}",
            f"times of all_reduce 1 MB on {system} of 1,024 nodes, {engine}",
            partial(plan, system, engine),
        )
        for engine, suffix in (("closed_form", ""), ("device", "_device"))
        for system in SYSTEMS
    ),
]


def prepared(make: Callable[[], Callable[[], bool]]) -> Callable[[], Run]:
    """Kernels compiled, programme made."""

    def prepare() -> Run:
        shifts(8)()
        verify = make()

        def run() -> None:
            assert verify()

        return run

    return prepare


for _name, _title, _make in CASES:
    register(f"time_laws.{_name}", _title, prepared(_make))
