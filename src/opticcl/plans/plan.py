"""A compiled collective, as `opticcl.compile` returns it: verify, simulate, execute and save it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, ProgressCallback, Schedule, Timeline, Verdict, no_progress
from opticcl.picture import Plotted
from opticcl.registry import as_list, as_path, as_text, canonical, is_of_library, whole_number, write_call
from opticcl.units import counted, format_bytes, html_table, message_size

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from opticcl.ir.device_settings import DeviceSettings
    from opticcl.ir.light import Optics
    from opticcl.ir.programme import Programme
    from opticcl.verify import Emulate

__all__ = ["Plan", "compile", "load", "read"]


@dataclass(frozen=True, slots=True)
class Plan(Plotted):
    """A collective compiled to circuits.

    Args:
        circuits: schedule, fabric and the circuits of every step.
        size_bytes: message of every rank [bytes].
        not_tried: what the search that chose the algorithm left out, a line each.
    """

    circuits: CircuitPlan
    size_bytes: int
    not_tried: tuple[str, ...] = field(default=(), compare=False)

    @property
    def fabric(self) -> Fabric:
        """The fabric that runs it."""
        return self.circuits.fabric

    @property
    def schedule(self) -> Schedule:
        """Transfers of every step."""
        return self.circuits.schedule

    @property
    def configuration(self) -> DeviceSettings:
        """The circuits of its last round, with which another plan may start: `plan.simulate(initial=before.configuration)`.

        Raises: ParameterError: it has no circuits. UnsupportedError: the fabric names no devices.
        """
        from opticcl.ir.device_settings import DeviceSettings

        return DeviceSettings.of_plan(self.circuits)

    @property
    def algorithm(self) -> str:
        """The algorithm that generated it, with its parameters other than defaults: "lumorph:radix=4"."""
        from opticcl.schedule import ALGORITHMS

        if self.schedule.name not in ALGORITHMS.names():  # a plan that was loaded
            return self.schedule.name
        defaults = inspect.signature(ALGORITHMS.get(self.schedule.name).generate).parameters
        given = {k: v for k, v in self.schedule.parameters.items() if v != defaults[k].default}
        return write_call(self.schedule.name, given)

    @property
    def is_of_library(self) -> bool:
        """Whether its fabric, algorithm and circuit rule are those of this library, not of a plugin or a file."""
        from opticcl.circuits import RULES
        from opticcl.schedule import ALGORITHMS

        machine, algorithm = self.fabric.machine, self.schedule.name
        if algorithm not in ALGORITHMS.names():
            return False
        rule = () if machine.is_packet_switched else (RULES.get(machine.name),)
        return all(map(is_of_library, (type(machine), ALGORITHMS.get(algorithm).generate, *rule)))

    def __repr__(self) -> str:
        return f"<Plan {self}>"

    def __str__(self) -> str:
        c = self.schedule.collective
        return (
            f"{c.name} of {format_bytes(self.size_bytes)} on {self.fabric.name} with {counted(c.num_ranks, 'node')} by "
            f"{self.algorithm}: {counted(self.schedule.num_steps, 'step')}, message cut into {counted(c.num_chunks, 'chunk')}"
        )

    def _repr_html_(self) -> str:
        c = self.schedule.collective
        facts = {
            "collective": c.name,
            "message": format_bytes(self.size_bytes),
            "fabric": self.fabric.name,
            "nodes": f"{c.num_ranks:,}",
            "algorithm": self.algorithm,
            "steps": f"{self.schedule.num_steps:,}",
            "chunks": f"{c.num_chunks:,}",
        }
        return html_table(tuple(facts), [tuple(facts.values())], self.not_tried)

    def verify(
        self,
        *,
        num_chunks: int | None = None,
        seed: int = 0,
        every_chunk: bool = False,
        exact: bool = False,
        budget: str | Optics | None = None,
        emulate: Emulate = "auto",
        isolation_db: Mapping[str, float] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Verdict:
        """Verify it: data by contribution counts, circuits by the capacity of resources and, with `budget`, optical power.

        Args:
            num_chunks: follow a seeded sample of that many chunks, which gives no verdict on the others; None judges all.
            every_chunk, exact: do nothing; every verdict is exact, and on all chunks.
            seed: of that sample.
            budget: preset of the fabric's optics (literal, typical, ...) or values from `opticcl.optics.values.optics`.
            emulate: follow light through the elements of the machine too, as a second judge. auto: where the first one finds
                nothing wrong, of up to 20,000 signals on machines whose elements are known; always (or True), never (or
                False).
            isolation_db: with `emulate="always"`, of groups or kinds of elements, to follow what leaks in them too [dB].
            progress: called with (what, done, total) after every step.
        Raises: ParameterError: no whole numbers; with UnsupportedError and UnknownNameError: a budget that cannot be
            computed.
        """
        from opticcl.verify import verify

        num_chunks = None if num_chunks is None else whole_number(num_chunks, "verify: num_chunks")
        seed = whole_number(seed, "verify: seed")
        values = None
        if budget is not None:
            from opticcl.optics.values import light_path_of, optics

            table = light_path_of(self.fabric).table
            values = optics(table, budget) if isinstance(budget, str) else budget
        return verify(
            self.circuits,
            num_chunks=num_chunks,
            seed=seed,
            every_chunk=every_chunk,
            exact=exact,
            budget=values,
            emulate=emulate,
            isolation_db=isolation_db,
            progress=progress or no_progress,
        )

    def simulate(
        self, engine: str = "closed_form", *, assumptions: str | Assumptions = DEFAULT_SET, **options: Any
    ) -> Timeline:
        """Compute the time of the plan and its parts.

        Args:
            engine: closed_form; flow: packets share links fairly; packet: cells wait in queues; device: circuits wait for
                their devices alone. Circuits have their wavelengths to themselves in all of them.
            assumptions: named set of time assumptions (common, published, ramp, sipac, wrht, oddl, lumorph), or a custom
                set.
            options: options of the engine, such as mode, `progress`, and fields of `opticcl.assumptions.Assumptions` to
                change; see `opticcl.simulate.simulate`.
        Raises: UnknownNameError, ParameterError; VerificationError: the time of a wrong plan is below the lower bound;
            BoundError: that of a right one is.
        """
        from opticcl.plans.times import judged_below_bound
        from opticcl.simulate import simulate

        with judged_below_bound(self.circuits):
            return simulate(self.circuits, self.size_bytes, assumptions, engine=engine, **options).timeline

    def programme(
        self, engine: str = "closed_form", *, assumptions: str | Assumptions = DEFAULT_SET, **options: Any
    ) -> Programme:
        """Compute the absolute times of its circuits, data, control exchanges and device settings.

        Args:
            engine: closed_form, flow, packet or device.
            assumptions: as of `simulate`.
            options: as of `simulate`.
        Raises: as `simulate`; UnsupportedError: a packet fabric.
        """
        self._refuse_groups()
        from opticcl.simulate import programme

        return programme(self.circuits, self.size_bytes, assumptions, engine=engine, **options)

    def save(self, path: str | Path, *, listed: bool = False, progress: ProgressCallback | None = None) -> int:
        """Write every circuit to a .parquet, .csv or .json file, whole or not at all.

        Args:
            path: file to write.
            listed: whether every step is listed in rows, for programs that know no phases, or to be changed by hand.
            progress: called with (what, done, total) after every step.
        Returns: number of circuits written.
        Raises: OutputError: not writable, or more circuits than that kind of file should hold.
        """
        self._refuse_groups()
        from opticcl.formats.plan_file import write_plan_file

        where = Path(as_path(path, "save", "plan.parquet"))
        return write_plan_file(
            where, self.circuits, self.size_bytes, self.algorithm, progress or no_progress, listed=listed
        )

    def export(self, path: str | Path, *, listed: bool = False, progress: ProgressCallback | None = None) -> str:
        """Write the plan in any format that holds plans, chosen by the suffix; see `opticcl list formats`.

        Args:
            path: file to write.
            listed: as of `save`.
            progress: called with (what, done, total) after every step.
        Returns: a line on what was written and what the format cannot express.
        Raises: OutputError: an unknown suffix, not writable, or a plan that the format cannot hold.
        """
        self._refuse_groups()
        from opticcl.formats import PlanToWrite, format_to_write

        where = Path(as_path(path, "export", "plan.xml"))
        write = format_to_write(where).write
        assert write is not None
        plan = PlanToWrite(self.circuits, self.size_bytes, self.algorithm, self._step_starts_s, listed)
        return write(where, plan, progress or no_progress)

    def _step_starts_s(self) -> npt.NDArray[np.float64]:
        """When each step starts, with barriers, float64 (num_steps,) [s]."""
        import numpy as np

        parts = [(len(steps), sum(times.values())) for steps, _, times in self.simulate()]
        step_s = np.repeat([whole_s / n for n, whole_s in parts], [n for n, _ in parts])
        starts: npt.NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(step_s)])[:-1]
        return starts

    def execute(self, arrays: Sequence[npt.ArrayLike | None] | np.ndarray) -> list[np.ndarray | None]:
        """Execute it on arrays, one per rank, of any size; `size_bytes` has no effect. See `opticcl.execute.execute`.

        Raises: ParameterError: not one array per rank, or arrays that differ in shape or type.
        """
        self._refuse_groups()
        from opticcl.execute import execute

        return execute(self.schedule, as_list(arrays, "execute: arrays", "one array per rank"))

    def _refuse_groups(self) -> None:
        """Refuse what is made of the plan of one group.

        Raises: UnsupportedError: several groups at once.
        """
        if self.schedule.member is not None:
            many = self.fabric.num_members
            raise UnsupportedError(
                f"a plan of {many:,} groups at once has no file, programme or data; compile that of one group"
            )


def load(path: str | Path) -> Plan:
    """Load a plan file that `Plan.save` or another program wrote, and verify it.

    Raises: PlanFileError: the file is damaged or of another format; VerificationError: the plan is wrong.
    """
    plan = read(path)
    plan.verify().raise_if_bad()
    return plan


def read(path: str | Path) -> Plan:
    """Load a plan file without verifying it.

    Raises: PlanFileError: the file is damaged or of another format.
    """
    from opticcl.formats.plan_file import read_plan_file

    loaded = read_plan_file(Path(as_path(path, "load", "plan.parquet")))
    return Plan(loaded.plan, loaded.size_bytes)


def compile(
    fabric: Fabric | str,
    collective: str | Request,
    size: str | float,
    *,
    algorithm: str = "auto",
    root: int = 0,
    nodes: Sequence[int] | None = None,
    beside: Sequence[Plan] = (),
    assumptions: str | Assumptions = DEFAULT_SET,
    optics: str | None = None,
    ignore_light: bool = False,
) -> Plan:
    """Compile a collective onto a fabric.

    Args:
        fabric: a fabric, or "name:key=value,...".
        collective: such as "all_reduce"; `opticcl.collective.COLLECTIVES` has all names.
        size: message of every rank: "100 MB" or bytes; see `opticcl.collective` for what counts.
        algorithm: "name:key=value,..."; "auto" selects the fastest whose light closes (by the closed form), and the fastest of
            all where none does.
        root: rank that a rooted collective starts or ends at.
        nodes: the nodes of the fabric that take part, in the order of the ranks; None: all.
        beside: plans of jobs that run on other nodes of the same machine; the circuits go around theirs, whatever round
            they are in.
        assumptions: named set of time assumptions, or a custom set, under which "auto" takes the fastest.
        optics: preset of the light budget that the plan of "auto" closes if one does; None: the values of the paper where
            they suffice, else the typical ones.
        ignore_light: "auto" takes the fastest without regard to light.
    Returns: a plan to `verify`, `simulate`, `execute` or `save`; its steps and circuits are generated on demand.
    Raises: UnknownNameError, ParameterError, FabricError; UnsupportedError: this fabric cannot carry it.
    """
    from opticcl.assumptions import assumptions as assumptions_of
    from opticcl.circuits import lower
    from opticcl.fabrics import as_fabric, job
    from opticcl.plans.light import light_rule
    from opticcl.plans.search import Search
    from opticcl.schedule import generate

    assumed = assumptions_of(assumptions)
    where = as_fabric(fabric)
    where = where if nodes is None else job(where, nodes)
    rule = light_rule([where], optics, ignore_light)
    size_bytes = message_size(size)
    root, algorithm = whole_number(root, "root"), as_text(algorithm, "algorithm", "auto")
    wanted = as_request(collective, root)
    if wanted.name == "barrier":
        size_bytes = 0  # it carries no data
    beside = as_list(beside, "compile: beside", "[plan]")
    for other in beside:
        if not isinstance(other, Plan):
            raise ParameterError(f"compile: beside: {other!r} is not a plan; give those that compile returns")
    if beside and not where.is_packet_switched:
        from opticcl.plans.jobs_beside import circuits_beside

        others = [plan.circuits for plan in beside]
        return Plan(circuits_beside(where, wanted, size_bytes, algorithm, others, assumed, rule), size_bytes)
    if canonical(algorithm) != "auto":
        return Plan(lower(where, generate(algorithm, wanted, where)), size_bytes)
    search = Search(where, wanted, assumed, rule=rule)
    fastest = search.fastest([size_bytes])
    if fastest is None:
        raise search.refusal()
    search.release()
    return Plan(fastest.plan(), size_bytes, search.not_tried)
