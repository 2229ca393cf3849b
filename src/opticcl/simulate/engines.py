"""The registry of the engines, and `simulate`, which runs any of them.

An engine is a file of this package, or part of a plugin, and registers itself with the class of its options:

    @register_engine("flow", options=FlowOptions)
    def run_flow(plan, size_bytes, assumed, options, /, *, progress, record) -> SimulationResult: ...

Its options are then accepted by `simulate`, `Plan.simulate` and `opticcl simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from opticcl.assumptions import DEFAULT_SET, KEYS, Assumptions, assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, ProgressCallback, Timeline, no_progress
from opticcl.ir.programme import Programme
from opticcl.registry import Registry, as_text, canonical, convert_arguments, nearest, parse_call
from opticcl.simulate.guards import refuse_links
from opticcl.simulate.traffic import Traffic

__all__ = ["ENGINES", "Engine", "SimulationResult", "engine_options", "programme", "register_engine", "simulate"]


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Result of a simulation.

    Args:
        timeline: time of the plan and its parts.
        traffic: bytes of the links and times of the transfers; None if they were not recorded, or by an engine that does
            not simulate transfers.
    """

    timeline: Timeline
    traffic: Traffic | None = None


class EngineFunction(Protocol):
    """Function that simulates a plan."""

    def __call__(
        self,
        plan: CircuitPlan,
        size_bytes: int,
        assumed: Assumptions,
        options: Any,
        /,
        *,
        progress: ProgressCallback,
        record: bool,
    ) -> SimulationResult:
        """Simulate a plan.

        Args:
            plan: schedule, fabric and circuits.
            size_bytes: message of every rank [bytes].
            assumed: time assumptions.
            options: instance of the options class that the engine registered.
            progress: called during the simulation.
            record: whether to record traffic; times are the same without.
        """


class ProgrammeFunction(Protocol):
    """Function that makes the programme of a plan on circuits."""

    def __call__(
        self,
        plan: CircuitPlan,
        size_bytes: int,
        assumed: Assumptions,
        options: Any,
        /,
        *,
        progress: ProgressCallback,
    ) -> Programme:
        """Absolute times of a plan.

        Args:
            plan: schedule, fabric and circuits.
            size_bytes: message of every rank [bytes].
            assumed: time assumptions.
            options: instance of the options class that the engine registered.
            progress: called during the simulation.
        """


Records = Literal["nothing", "transfers", "queues"]
"""Traffic that an engine can record; queues includes transfers."""

EngineFunctionT = TypeVar("EngineFunctionT", bound=EngineFunction)


class Engine(NamedTuple):
    """A registered engine.

    Args:
        name: registered name.
        run: function that simulates a plan.
        options: dataclass of its options; all of them have defaults.
        records: the traffic that it can record.
        programme: function that makes the programme of a plan, None: the engine makes none.
    """

    name: str
    run: EngineFunction
    options: type
    records: Records
    programme: ProgrammeFunction | None = None

    def option_names(self) -> tuple[str, ...]:
        """Names of its options."""
        return tuple(field.name for field in fields(self.options))


ENGINES: Registry[Engine] = Registry("engine", "opticcl.simulate")


def register_engine(
    name: str, *, options: type, records: Records = "transfers", programme: ProgrammeFunction | None = None
) -> Callable[[EngineFunctionT], EngineFunctionT]:
    """Decorator that registers an engine.

    Args:
        name: how users name it.
        options: frozen dataclass of its options; fields have types and defaults, and the docstring's Args describe them.
        records: traffic that it can record: nothing, times of transfers, or queues and losses as well.
        programme: makes the programme of a plan; its last event is the total of the timeline.
    Raises: ValueError: the name is taken, or an option has the name of an assumption (errors of the developer).
    """
    taken = {field.name for field in fields(options)} & set(KEYS)
    if taken:
        raise ValueError(f"engine {name!r}: {sorted(taken)} are names of assumptions")

    def add(run: EngineFunctionT) -> EngineFunctionT:
        ENGINES.register(name)(Engine(canonical(name), run, options, records, programme))
        return run

    return add


class _Split(NamedTuple):
    """A request: the engine, its options, and changed assumptions."""

    engine: Engine
    options: Any
    changed: dict[str, Any]


def simulate(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: str | Assumptions = DEFAULT_SET,
    *,
    engine: str = "closed_form",
    progress: ProgressCallback = no_progress,
    record: bool = False,
    **options: Any,
) -> SimulationResult:
    """Simulate a plan with any engine.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions, or the name of a set.
        engine: closed_form, flow, packet or another registered engine; options may follow: "packet:cell_bytes=9kB".
        progress: called during the simulation.
        record: whether to record the traffic of links and transfers; the closed form records none.
        options: options of the engine (see `opticcl.simulate.options`), and fields of `Assumptions` to change.
    Returns: the timeline, and the traffic if it was recorded.
    Raises: UnknownNameError: no such engine or set. ParameterError: a wrong option or value, or more events than
        allowed. UnsupportedError: a plan that the engine cannot simulate. BoundError: a time below the lower bound, a
        defect of the engine.
    """
    chosen = _split(engine, options)
    assumed = assumptions(assumed, **chosen.changed)
    return chosen.engine.run(plan, size_bytes, assumed, chosen.options, progress=progress, record=record)


def programme(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: str | Assumptions = DEFAULT_SET,
    *,
    engine: str = "closed_form",
    progress: ProgressCallback = no_progress,
    **options: Any,
) -> Programme:
    """Absolute times of the circuits, data, control exchanges and device settings of a plan, by any engine.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions, or the name of a set.
        engine: closed_form, flow, packet, device or another engine that makes programmes; options may follow.
        progress: called during the simulation.
        options: as of `simulate`.
    Raises: as `simulate`; UnsupportedError: a packet fabric, an engine without programmes, or more circuits than a programme
        holds.
    """
    chosen = _split(engine, options)
    if chosen.engine.programme is None:
        able = ", ".join(name for name in ENGINES.names() if ENGINES.get(name).programme is not None)
        raise UnsupportedError(f"programme: engine {chosen.engine.name} makes none; try one of {able}")
    refuse_links(plan)
    assumed = assumptions(assumed, **chosen.changed)
    return chosen.engine.programme(plan, size_bytes, assumed, chosen.options, progress=progress)


def engine_options(engine: str, options: Mapping[str, Any]) -> tuple[Engine, Any]:
    """The engine of a request and its converted options, to refuse a wrong request before a plan is compiled.

    >>> engine_options("packet:queue=input", {"cell_bytes": "9 kB"})[1].cell_bytes
    9000.0

    Args:
        engine: name, perhaps with options, as `simulate` takes it.
        options: options and changed assumptions, as `simulate` takes them.
    Raises: UnknownNameError: no such engine. ParameterError: an option of another engine, or a wrong value.
    """
    return _split(engine, options)[:2]


def _split(engine: str, given: Mapping[str, Any]) -> _Split:
    """Sort what a caller passed; options are converted, assumptions are not."""
    name, written = parse_call(as_text(engine, "simulate: engine", "closed_form"))
    chosen = ENGINES.get(name)
    mine: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    for key, value in (*written.items(), *given.items()):
        option = canonical(key)
        if option in mine:
            raise ParameterError(f"simulate: {option} is given twice")
        if option in KEYS:
            changed[option] = value
        elif option in chosen.option_names():
            mine[option] = value
        else:
            raise ParameterError(f"simulate: {_refusal(option, chosen)}")
    return _Split(chosen, chosen.options(**convert_arguments(chosen.options, mine, chosen.name)), changed)


def _refusal(option: str, chosen: Engine) -> str:
    """Why an option is refused: it belongs to other engines, or to none."""
    owners = [name for name in ENGINES.names() if option in ENGINES.get(name).option_names()]
    if owners:
        return f"{option} is an option of engine={' and '.join(owners)}, not of {chosen.name}"
    return f"unknown option {option!r}; {nearest(option, {*chosen.option_names(), *KEYS})}"
