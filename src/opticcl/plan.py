"""A compiled collective: what `opticcl.compile` returns, with a method for every question one can ask of it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opticcl.collective import Request, collective_name
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, Schedule, Timeline, Verdict
from opticcl.registry import as_list, as_path, as_text, canonical, whole_number, write_call
from opticcl.simulate.options import ENGINES
from opticcl.units import counted, format_bytes, message_size

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from opticcl.physics.optics import Optics
    from opticcl.verify import Progress

__all__ = ["ENGINES", "Plan", "compile", "load", "read"]


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

        if self.schedule.name not in ALGORITHMS.names():  # a programme that was loaded
            return self.schedule.name
        defaults = inspect.signature(ALGORITHMS.get(self.schedule.name).generate).parameters
        given = {k: v for k, v in self.schedule.parameters.items() if v != defaults[k].default}
        return write_call(self.schedule.name, given)

    def __repr__(self) -> str:
        return f"<Plan {self}>"

    def __str__(self) -> str:
        c = self.schedule.collective
        return (
            f"{c.name} of {format_bytes(self.size_bytes)} on {self.fabric.name} with {counted(c.num_ranks, 'node')} by "
            f"{self.algorithm}: {counted(self.schedule.num_steps, 'step')}, message cut into {counted(c.num_chunks, 'chunk')}"
        )

    def verify(
        self,
        *,
        num_chunks: int | None = None,
        seed: int = 0,
        budget: str | Optics | None = None,
        progress: Progress | None = None,
    ) -> Verdict:
        """Judge it: data by contribution counts, light by the resource law and, if asked, by its budget.

        Args:
            num_chunks: chunks to follow; None follows all of a small plan and a seeded sample of 64 of a large one.
            seed: of that sample.
            budget: preset of the fabric's optics (literal, typical, ...) or values from `opticcl.physics.optics.optics`.
            progress: told (what, done, total) after every step.
        Raises: ParameterError: no whole numbers; with UnsupportedError and UnknownNameError: a budget that cannot be
            reckoned.
        """
        from opticcl.verify import verify

        num_chunks = None if num_chunks is None else whole_number(num_chunks, "verify: num_chunks")
        seed = whole_number(seed, "verify: seed")
        values = None
        if budget is not None:
            from opticcl.physics.light import light_path_of
            from opticcl.physics.optics import optics

            sheet = light_path_of(self.fabric).sheet
            values = optics(sheet, budget) if isinstance(budget, str) else budget
        if progress is None:
            return verify(self.circuits, num_chunks=num_chunks, seed=seed, budget=values)
        return verify(self.circuits, num_chunks=num_chunks, seed=seed, budget=values, progress=progress)

    def simulate(
        self,
        engine: str = "closed_form",
        *,
        preset: str = "default",
        mode: Literal["barrier", "asynchronous"] = "barrier",
        **given: Any,
    ) -> Timeline:
        """How long it takes.

        Args:
            engine: closed_form; flow: packets share links fairly, circuits have their own; packet: cells wait in queues.
            preset: whose assumptions: default, ramp, sipac, wrht, oddl or lumorph.
            mode: flow and packet engine: steps one after the other, or each transfer as soon as its data and ports are
                there.
            given: fields of `opticcl.simulate.Assumptions` that differ from the preset; options of the engine: of flow
                and packet max_events and progress, of packet the fields of `opticcl.simulate.PacketOptions`.
        Raises: UnknownNameError, ParameterError; BoundError: the time is below the lower bound.
        """
        from opticcl.simulate import assumptions, closed_form, split_options

        name, options, assumed = split_options(as_text(engine, "simulate: engine", "closed_form"), given)
        preset = as_text(preset, "simulate: preset", "default")
        if name == "closed_form":
            if mode != "barrier":
                raise ParameterError(
                    f"simulate: mode={mode} is of engine=flow and packet; the closed form has barriers"
                )
            return closed_form(self.circuits, self.size_bytes, assumptions(preset, **assumed))
        if name == "flow":
            from opticcl.simulate.flow import flow as play
        else:
            from opticcl.simulate.packet import packet as play
        return play(self.circuits, self.size_bytes, assumptions(preset, **assumed), mode=mode, **options)

    def save(self, path: str | Path, *, progress: Progress | None = None) -> int:
        """Write the programme of the light to a .parquet, .csv or .json file, whole or not at all.

        Returns: number of circuits written.
        Raises: OutputError: not writable, or more circuits than that kind of file should hold.
        """
        from opticcl.programme import write_programme

        told = progress or (lambda what, done, total: None)
        where = Path(as_path(path, "save", "plan.parquet"))
        return write_programme(where, self.circuits, self.size_bytes, self.algorithm, told)

    def execute(self, arrays: Sequence[npt.ArrayLike | None] | np.ndarray) -> list[np.ndarray | None]:
        """Run it on real arrays, one a rank; the arrays' size decides, not `size_bytes`. See `opticcl.execute.execute`.

        Raises: ParameterError: not one array a rank, or arrays that differ in shape or type.
        """
        from opticcl.execute import execute

        return execute(self.schedule, as_list(arrays, "execute: arrays", "one array a rank"))


def load(path: str | Path) -> Plan:
    """Load a programme that `Plan.save`, another program or a person wrote, and judge it.

    Raises: ProgrammeError: the file is damaged or none of ours; VerificationError: the programme is wrong.
    """
    plan = read(path)
    plan.verify().raise_if_bad()
    return plan


def read(path: str | Path) -> Plan:
    """Load a programme without judging it, for those who want to know what is wrong with it.

    Raises: ProgrammeError: the file is damaged or none of ours.
    """
    from opticcl.programme import read_programme

    found = read_programme(Path(as_path(path, "load", "plan.parquet")))
    return Plan(found.plan, found.size_bytes)


def compile(
    fabric: Fabric | str,
    collective: str | Request,
    size: str | float,
    *,
    algorithm: str = "auto",
    root: int = 0,
    nodes: Sequence[int] | None = None,
) -> Plan:
    """Compile a collective onto a fabric.

    Args:
        fabric: a fabric, or "name:key=value,...".
        collective: such as "all_reduce".
        size: message of every rank: "100 MB" or bytes; see `opticcl.collective` for what counts.
        algorithm: "name:key=value,..."; "auto" takes the fastest of those that the fabric can carry (by the closed form).
        root: rank that a rooted collective starts or ends at.
        nodes: the nodes of the fabric that take part, in the order of the ranks; None: all.
    Returns: a plan; its steps and circuits are made when asked for.
    Raises: UnknownNameError, ParameterError, FabricError; UnsupportedError: this fabric cannot carry it.
    """
    from opticcl.candidates import Candidates
    from opticcl.circuits import lower
    from opticcl.fabric import as_fabric, job
    from opticcl.schedule import all_variants, generate
    from opticcl.simulate import assumptions

    where = as_fabric(fabric)
    where = where if nodes is None else job(where, nodes)
    size_bytes = message_size(size)
    root, algorithm = whole_number(root, "root"), as_text(algorithm, "algorithm", "auto")
    wanted = collective if isinstance(collective, Request) else Request(collective_name(collective), root)
    if wanted.name == "barrier":
        size_bytes = 0  # it tells that all are there, and nothing else
    if canonical(algorithm) != "auto":
        return Plan(lower(where, generate(algorithm, wanted, where)), size_bytes)
    candidates = Candidates(where, wanted, all_variants(wanted, where), assumptions())
    found = candidates.fastest([size_bytes])
    if found is None:
        nodes_there, why = f"{where.num_nodes} nodes", candidates.why_none()
        raise UnsupportedError(f"no algorithm does {wanted.name} on {where.name} with {nodes_there}{why}")
    return Plan(found.plan(), size_bytes)
