"""Netlists of 1,024 nodes: their links made, and the light of all rounds of an all-reduce followed to the photodiodes."""

from __future__ import annotations

from collections.abc import Callable

from measure import Run, register

import opticcl
from opticcl.verify.light.emulated import emulate


def followed(specification: str, algorithm: str) -> Callable[[], Run]:
    """The second judge of light.

    Args:
        specification: of a fabric of 1,024 nodes.
        algorithm: of the all-reduce.
    """

    def prepare() -> Run:
        plan = opticcl.compile(specification, "all_reduce", "1MB", algorithm=algorithm).circuits
        for step in range(plan.schedule.num_steps):
            plan.rounds(step)  # kernels of the assignment

        def run() -> None:
            assert not emulate(plan).violations

        return run

    return prepare


for _name, _algorithm, _specification in (
    ("ramp", "ramp", "ramp:groups=32,racks=1,wavelengths=32"),
    ("sipac", "sipco", "sipac:radix=32,levels=2"),
    ("terarack", "wrht", "terarack:nodes=1024"),
    ("oddl", "halving_doubling", "oddl:shape=32x32"),
    ("lightpath", "lumorph", "lightpath:shape=32x32"),
):
    _title = f"light of an all_reduce followed through {_name} of 1,024 nodes"
    register(f"netlist.{_name}_1024", _title, followed(_specification, _algorithm))
