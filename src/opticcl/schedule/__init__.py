"""Collective algorithms: which rank sends which chunks to which rank in which step. One file an algorithm family.

To add an algorithm, write `generate(collective, fabric, *, ...)` and `accepts(collective, fabric, *, ...)` (None, or the
reason why not) in a file here and register them; nothing else is edited. `collective` is a `Request`: a name and a root.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opticcl.collective import Request, as_request
from opticcl.errors import AlgorithmError, OpticclError, ParameterError, TooLargeError, UnsupportedError
from opticcl.ir import Fabric, Schedule, Transfers
from opticcl.ir.light import Limit
from opticcl.ir.phases import PhaseRows, Steps
from opticcl.registry import Registry, convert_arguments, failure_of, parse_call, user_parameters, write_call
from opticcl.schedule._grid import SizeLimit

__all__ = [
    "ALGORITHMS",
    "AlgorithmCall",
    "AlgorithmMaker",
    "GeneratedStep",
    "NotTried",
    "all_variants",
    "generate",
    "left_out",
    "reason_declined",
    "register_algorithm",
    "search_space",
    "variants_of",
]


class NotTried(NamedTuple):
    """What a search leaves out since evaluating it takes long; the algorithm can be requested by name.

    Args:
        what: parameters, in words; "" for the whole algorithm.
        reason: with the number that is too large and the most that is evaluated.
    """

    what: str
    reason: str


def left_out(count: int, most: int, what: str = "") -> NotTried:
    """What a search leaves out since its distinct steps have too many transfers.

    Args:
        count: transfers of all distinct steps [count].
        most: that a search evaluates [count].
        what: parameters, in words.
    """
    return NotTried(what, f"{count:,} transfers of its distinct steps; a search evaluates {most:,} at most")


Variants = Callable[[Request, Fabric], Iterable[dict[str, Any] | NotTried]]


Limits = Callable[[Fabric, tuple[Limit, ...]], tuple[Limit, ...]]


def _no_limits(fabric: Fabric, of_machine: tuple[Limit, ...]) -> tuple[Limit, ...]:
    return ()


def _default_variant(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
    return ({},)


class AlgorithmMaker(NamedTuple):
    """The functions of an algorithm.

    Args:
        generate: (collective, fabric, **parameters) -> Schedule.
        accepts: the same arguments -> None, or the reason why not.
        variants: (collective, fabric) -> parameters to try in a search for the fastest plan, and what it leaves out.
        limits: (fabric, limits of the machine) -> what a light budget means for this algorithm.
        systems: fabrics whose own algorithm it is, empty if it is for any; for a job on one of them its functions are given the
            whole machine that its nodes are like.
    """

    generate: Callable[..., Schedule]
    accepts: Callable[..., str | None]
    variants: Variants = _default_variant
    limits: Limits = _no_limits
    systems: tuple[str, ...] = ()

    def seen(self, fabric: Fabric) -> Fabric | str:
        """What its functions see of a fabric, or the reason why it has nothing for them."""
        if not self.systems:
            return fabric.member
        if fabric.name not in self.systems:
            name = self.systems[0]
            return f"it needs {'an' if name[0] in 'aeiou' else 'a'} {name} fabric"
        return fabric.equivalent or _no_part(fabric)


def _no_part(fabric: Fabric) -> str:
    """Why a system's own algorithm has nothing to run on, with some of the job's nodes on which it would."""
    fabric = fabric.member
    machine, nodes = fabric.machine, fabric.machine_nodes(np.arange(fabric.num_nodes))
    lengths = (*range(len(nodes) - 1, max(1, len(nodes) - 64), -1), *(len(nodes) >> k for k in range(1, 32)))
    first = next((count for count in lengths if count > 1 and machine.sub_machine(nodes[:count]) is not None), 0)
    such = f"; the first {first:,} of them are one" if first else ""
    return f"its {fabric.num_nodes:,} nodes are not part of the {fabric.name} on which it runs{such}; try ring, tree or lumorph"


ALGORITHMS: Registry[AlgorithmMaker] = Registry("algorithm", __name__)

Maker = TypeVar("Maker", bound=Callable[..., Schedule])


def register_algorithm(
    name: str,
    accepts: Callable[..., str | None],
    variants: Variants = _default_variant,
    limits: Limits = _no_limits,
    systems: tuple[str, ...] = (),
) -> Callable[[Maker], Maker]:
    """Decorator that registers a generating function; see `AlgorithmMaker`.

    Args:
        name: name of the algorithm.
        accepts: (collective, fabric, **parameters) -> None, or the reason why not.
        variants: (collective, fabric) -> parameters to try in a search for the fastest plan.
        limits, systems: as of `AlgorithmMaker`.
    Raises: ParameterError: `accepts` or `variants` do not accept the parameters of `generate`.
    """

    def add(function: Maker) -> Maker:
        maker = AlgorithmMaker(function, accepts, variants, limits, systems)
        _check_signatures(name, maker)
        ALGORITHMS.register(name)(maker)
        return function

    return add


def _check_signatures(name: str, maker: AlgorithmMaker) -> None:
    """Refuse functions that would fail when they are called."""
    own = {p.name: p.default for p in user_parameters(maker.generate, 2)}
    for what, function, keywords in (("accepts", maker.accepts, own), ("variants", maker.variants, {})):
        try:
            inspect.signature(function).bind("collective", "fabric", **keywords)
        except TypeError as error:
            due = ", ".join(["collective", "fabric", *(f"{key}={default!r}" for key, default in keywords.items())])
            raise ParameterError(f"{name}: {what}: {error}; write def {what}({due})") from None


def all_variants(collective: Request, fabric: Fabric) -> list[str]:
    """Every algorithm with every parameter set to try, as texts that `generate` accepts.

    Raises: AlgorithmError: `variants` of an algorithm raised an exception.
    """
    return search_space(collective, fabric)[0]


def search_space(collective: Request, fabric: Fabric) -> tuple[list[str], list[str]]:
    """`all_variants`, and what a search leaves out, a line each.

    Raises: AlgorithmError: `variants` of an algorithm raised an exception.
    """
    tried, skipped = list[str](), list[str]()
    for name in ALGORITHMS.names():
        for one in variants_of(name, collective, fabric):
            if isinstance(one, NotTried):
                skipped.append(f"{name}{' with ' * bool(one.what)}{one.what}: {one.reason}")
            else:
                tried.append(write_call(name, one))
    return tried, skipped


def variants_of(name: str, collective: Request, fabric: Fabric) -> list[dict[str, Any] | NotTried]:
    """Parameters of one algorithm to try in a search, and what it leaves out; none where it has nothing to run on.

    Args:
        name: of the algorithm.
        collective: requested.
        fabric: where it would run.
    Raises: UnknownNameError; AlgorithmError: `variants` of the algorithm raised an exception.
    """
    maker = ALGORITHMS.get(name)
    where = maker.seen(fabric)
    try:
        return [] if isinstance(where, str) else list(maker.variants(collective, where))
    except OpticclError:
        raise
    except Exception as error:
        raise _failed(name, "variants", error) from error


class AlgorithmCall(NamedTuple):
    """An algorithm with its arguments, read from a text once.

    Args:
        name: of the algorithm.
        maker: its functions.
        arguments: all of them, by name.
    """

    name: str
    maker: AlgorithmMaker
    arguments: dict[str, Any]

    @classmethod
    def of(cls, text: str) -> AlgorithmCall:
        """The call of "lumorph" or "lumorph:radix=4".

        Raises: UnknownNameError, ParameterError.
        """
        name, written = parse_call(text, lambda name: ALGORITHMS.get(name).generate)
        maker = ALGORITHMS.get(name)
        return cls(name, maker, convert_arguments(maker.generate, written, name, positional=2))

    def reason_declined(self, collective: Request, fabric: Fabric) -> str | None:
        """Why it cannot do that collective on that fabric, or None if it can.

        Args:
            collective: requested.
            fabric: where it would run.
        Raises: AlgorithmError: `accepts` raised an exception.
        """
        where = self.maker.seen(fabric)
        if isinstance(where, str):
            return where
        try:
            return self.maker.accepts(collective, where, **self.arguments)
        except OpticclError:
            raise
        except Exception as error:
            raise _failed(self.name, "accepts", error) from error


def reason_declined(algorithm: str, collective: Request | str, fabric: Fabric) -> str | None:
    """Why that algorithm cannot do that collective on that fabric, or None if it can.

    Args:
        algorithm: "lumorph" or "lumorph:radix=4".
        collective: its name, or a request with a root.
        fabric: where it would run.
    Raises: UnknownNameError, ParameterError; AlgorithmError: `accepts` of the algorithm raised an exception.
    """
    return AlgorithmCall.of(algorithm).reason_declined(as_request(collective), fabric)


def generate(algorithm: str, collective: Request | str, fabric: Fabric) -> Schedule:
    """The schedule of an algorithm.

    Args:
        algorithm: "lumorph" or "lumorph:radix=4".
        collective: its name, or a request with a root.
        fabric: where it will run.
    Raises: UnknownNameError, ParameterError; UnsupportedError: the algorithm declines, with its reason. AlgorithmError: the
        algorithm raised an exception, here or, later, in a step of the schedule.
    """
    wanted = as_request(collective)
    num_ranks = fabric.num_nodes // fabric.num_members
    if not 0 <= wanted.root < num_ranks:
        raise ParameterError(f"{wanted.name}: root={wanted.root} is not a rank; try 0 to {num_ranks - 1}")
    call = AlgorithmCall.of(algorithm)
    if (reason := call.reason_declined(wanted, fabric)) is not None:
        kind = TooLargeError if isinstance(reason, SizeLimit) else UnsupportedError
        raise kind(f"{call.name} cannot do {wanted.name} on {fabric.name}: {reason}")
    try:
        made = call.maker.generate(wanted, call.maker.seen(fabric), **call.arguments)
    except OpticclError:
        raise
    except Exception as error:
        raise _failed(call.name, "generate", error) from error
    if not isinstance(made, Schedule):
        raise AlgorithmError(f"algorithm {call.name}: generate returned {type(made).__name__}, not a Schedule")
    named = write_call(call.name, {k: v for k, v in call.arguments.items() if v is not None})
    steps = _with_names(made.steps, named, wanted, fabric.member)
    parameters = MappingProxyType(call.arguments)
    alone = Schedule.of(call.name, made.collective, steps, parameters=parameters, stands=made.stands, cut=made.cut)
    return alone.in_groups(fabric.num_members)


def _with_names(steps: Steps, algorithm: str, collective: Request, fabric: Fabric) -> Steps:
    """The steps, with functions of the step that name the algorithm in their exceptions and pickle as the request."""
    if all(isinstance(phase.rows, PhaseRows) for phase in steps.phases):
        return steps
    phases = [
        phase
        if isinstance(phase.rows, PhaseRows)
        else dataclasses.replace(phase, rows=GeneratedStep(algorithm, collective, fabric, number, first, phase.rows))
        for number, (phase, first) in enumerate(zip(steps.phases, steps.starts, strict=False))
    ]
    return Steps(steps.space, steps.parts, phases)


@dataclasses.dataclass(frozen=True, slots=True)
class GeneratedStep:
    """The function of a phase of a generated schedule; pickles as the request that it was generated from.

    Exceptions name the algorithm and the step.

    Args:
        algorithm: "name:key=value,..." with all parameters.
        collective: requested.
        fabric: where the schedule runs.
        phase: number of the phase.
        first: first step of the phase.
        function: step of the phase -> transfers.
    """

    algorithm: str
    collective: Request
    fabric: Fabric
    phase: int
    first: int
    function: Callable[[int], Transfers] = dataclasses.field(compare=False, repr=False)

    def __call__(self, k: int) -> Transfers:
        name = self.algorithm.partition(":")[0]
        try:
            made = self.function(k)
        except OpticclError:
            raise
        except Exception as error:
            raise _failed(name, f"step {self.first + k}", error) from error
        if not isinstance(made, Transfers):
            raise AlgorithmError(
                f"algorithm {name}: step {self.first + k} returned {type(made).__name__}, not Transfers"
            )
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _generated_step, (self.algorithm, self.collective, self.fabric, self.phase)


def _generated_step(algorithm: str, collective: Request, fabric: Fabric, phase: int) -> Callable[[int], Transfers]:
    rows = generate(algorithm, collective, fabric).steps.phases[phase].rows
    assert not isinstance(rows, PhaseRows)
    return rows


def _failed(algorithm: str, where: str, error: Exception) -> AlgorithmError:
    return AlgorithmError(failure_of(ALGORITHMS.get(algorithm).generate, f"algorithm {algorithm}: {where}", error))
