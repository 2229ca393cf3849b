"""A compiled collective: what `opticcl.compile` returns, with a method for every question one can ask of it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticcl.collective import collective_name
from opticcl.errors import UnknownNameError, UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, Schedule, Timeline, Verdict
from opticcl.registry import canonical, nearest, write_call
from opticcl.units import format_bytes, message_size

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from opticcl.verify import Progress

__all__ = ["ENGINES", "Plan", "candidates", "compile"]

ENGINES = ("closed_form",)


@dataclass(frozen=True, slots=True)
class Plan:
    """A collective compiled to light.

    Args:
        circuits: schedule, fabric and the circuits of every step.
        size_bytes: message of every rank [bytes].
    """

    circuits: CircuitPlan
    size_bytes: int

    @property
    def fabric(self) -> Fabric:
        """Where it runs."""
        return self.circuits.fabric

    @property
    def schedule(self) -> Schedule:
        """Who sends what in which step."""
        return self.circuits.schedule

    @property
    def algorithm(self) -> str:
        """What made it, with the parameters that are not its defaults: "lumorph:radix=4"."""
        from opticcl.schedule import ALGORITHMS

        defaults = inspect.signature(ALGORITHMS.get(self.schedule.name).generate).parameters
        given = {k: v for k, v in self.schedule.parameters.items() if v != defaults[k].default}
        return write_call(self.schedule.name, given)

    def __str__(self) -> str:
        c = self.schedule.collective
        return (
            f"{c.name} of {format_bytes(self.size_bytes)} on {self.fabric.name} with {c.num_ranks} nodes by {self.algorithm}: "
            f"{self.schedule.num_steps} steps, message cut into {c.num_chunks} chunks"
        )

    def verify(self, *, num_chunks: int | None = None, seed: int = 0, progress: Progress | None = None) -> Verdict:
        """Judge it: data by contribution counts, light by the resource law.

        Args:
            num_chunks: chunks to follow; None follows all of a small plan and a seeded sample of 64 of a large one.
            seed: of that sample.
            progress: told (what, done, total) after every step.
        """
        from opticcl.verify import verify

        if progress is None:
            return verify(self.circuits, num_chunks=num_chunks, seed=seed)
        return verify(self.circuits, num_chunks=num_chunks, seed=seed, progress=progress)

    def simulate(self, engine: str = "closed_form", *, preset: str = "default", **assumed: Any) -> Timeline:
        """How long it takes.

        Args:
            engine: see `ENGINES`.
            preset: whose assumptions: default, ramp, sipac, wrht, oddl or lumorph.
            assumed: fields of `opticcl.simulate.Assumptions` that differ from the preset.
        Raises: UnknownNameError, ParameterError; BoundError: the time is below the lower bound.
        """
        from opticcl.simulate import assumptions, closed_form

        if canonical(engine) not in ENGINES:
            raise UnknownNameError(f"unknown engine {engine!r}; {nearest(canonical(engine), ENGINES)}")
        return closed_form(self.circuits, self.size_bytes, assumptions(preset, **assumed))

    def execute(self, arrays: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]) -> list[np.ndarray]:
        """Run it on real arrays, one a rank; the arrays' size decides, not `size_bytes`.

        Raises: ParameterError: not one array a rank, or arrays that differ in shape or type.
        """
        from opticcl.execute import execute

        return execute(self.schedule, arrays)


def compile(fabric: Fabric | str, collective: str, size: str | float, *, algorithm: str = "auto") -> Plan:
    """Compile a collective onto a fabric.

    Args:
        fabric: a fabric, or "name:key=value,...".
        collective: "all_reduce".
        size: message of every rank: "100 MB" or bytes.
        algorithm: "name:key=value,..."; "auto" takes the fastest of those that the fabric can carry (by the closed form).
    Returns: a plan; its steps and circuits are made when asked for.
    Raises: UnknownNameError, ParameterError, FabricError; UnsupportedError: this fabric cannot carry it.
    """
    from opticcl.circuits import lower
    from opticcl.fabric import fabric as make_fabric
    from opticcl.schedule import generate

    where = make_fabric(fabric) if isinstance(fabric, str) else fabric
    size_bytes = message_size(size)
    name = collective_name(collective)
    if canonical(algorithm) != "auto":
        return Plan(lower(where, generate(algorithm, name, where)), size_bytes)
    fastest = min(candidates(where, name, size_bytes), key=lambda plan: plan.simulate().total_s, default=None)
    if fastest is None:
        raise UnsupportedError(f"no algorithm does {name} on {where.name} with {where.num_nodes} nodes")
    return fastest


def candidates(fabric: Fabric, collective: str, size_bytes: int) -> list[Plan]:
    """A plan by every algorithm that this fabric can carry, with every parameter set worth trying."""
    from opticcl.schedule import all_variants

    plans = []
    for algorithm in all_variants(collective, fabric):
        try:
            plans.append(compile(fabric, collective, size_bytes, algorithm=algorithm))
        except UnsupportedError:
            continue
    return plans
