"""What a verb is asked: options that several verbs share, each described once, and one frozen object with their values.

A verb has a subclass of `PlanRequest`, or of `VerbRequest` if it makes no plan. `OPTIONS` names the shared options that it
takes, in the order of its help, and the fields of the class are its own:

    @dataclass(frozen=True, kw_only=True)
    class SweepRequest(PlanRequest):
        OPTIONS = "fabrics nodes collective * json"
        factor: float = option("--factor", default=4.0, help="Ratio of each size to the previous one.")

    def run(request: SweepRequest) -> int: ...
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_type_hints

from opticcl.cli._output import FileKind, Outputs, ProgressLine
from opticcl.cli._parameters import Described, make_parameter
from opticcl.errors import ParameterError, printable
from opticcl.registry import user_parameters

if TYPE_CHECKING:
    import click

    from opticcl.assumptions import Assumptions
    from opticcl.cli._generated import OptionSource
    from opticcl.ir import Fabric
    from opticcl.ir.device_settings import DeviceSettings
    from opticcl.plans.equal import Contender, Equal
    from opticcl.plans.light import LightRule
    from opticcl.plans.machines import ExcludedFabric
    from opticcl.plans.plan import Plan

__all__ = [
    "DEFAULT_SET",
    "FabricRequest",
    "PlanRequest",
    "VerbRequest",
    "argument",
    "check_nodes",
    "configuration_of",
    "make_assumptions",
    "make_fabric",
    "make_fabrics",
    "option",
    "out_option",
    "parameters_of",
    "parse_nodes",
    "shared_option",
    "topics_of",
]

MOST_NODES = 1 << 22
"""Largest fabric that a verb builds; a larger one would take hours [count]."""

LARGE = 256
"""Nodes from which several processes are used unless `--jobs` says otherwise [count]."""

DEFAULT_SET = "common"
"""`opticcl.assumptions.DEFAULT_SET`, without the import of NumPy that `--help` would wait for."""

_DESCRIBED, _WRITES = "described", "writes"


def option(*flags: str, help: str, metavar: str = "", default: Any = MISSING, writes: FileKind | None = None) -> Any:
    """A field of a request that is an option.

    Args:
        flags, help, metavar: of `Described`.
        default: of the field; without it the option must be given.
        writes: kind of the file that is its value, if the verb writes it.
    """
    return field(default=default, metadata={_DESCRIBED: Described(flags, help, metavar), _WRITES: writes})


def argument(*, help: str, metavar: str = "", default: Any = MISSING) -> Any:
    """A field of a request that is an argument.

    Args: help, metavar, default: as of `option`.
    """
    return field(default=default, metadata={_DESCRIBED: Described((), help, metavar)})


def _described(request: type[VerbRequest]) -> dict[str, Described]:
    """Fields of a request that are options or arguments -> their descriptions."""
    return {one.name: one.metadata[_DESCRIBED] for one in fields(request) if _DESCRIBED in one.metadata}


def shared_option(request: type[VerbRequest], name: str, *, default: Any = MISSING, help: str = "") -> Any:
    """A field of a request that is an option of another request, with a default and a meaning of its own.

    Args:
        request: the other.
        name: of the field.
        default: as of `option`.
        help: its text, where that of the other does not hold.
    """
    shown = _described(request)[name]
    return option(*shown.flags, help=help or shown.help, metavar=shown.metavar, default=default)


def out_option(*kinds: FileKind | str) -> Any:
    """The field of the option `-o/--out FILE` of a verb that writes these kinds of file.

    Args: kinds: of file, or their description where the suffixes are registered.
    """
    known = ", ".join(map(str, kinds))
    text = f"Write this file; its suffix selects what is written: {known}. Repeat for several."
    shown = Described(("--out", "-o"), text, "FILE")
    written = tuple(kind for kind in kinds if not isinstance(kind, str))
    return field(default=(), metadata={_DESCRIBED: shown, _WRITES: written})


@dataclass(frozen=True, kw_only=True)
class VerbRequest:
    """Values of the options and arguments of a verb.

    Args:
        verb: its name, for messages.
        given: names of the fields that are on the command line.
        generated: values of the options of `sources` that are on the command line, by the names of their parameters.
        progress: called with (what, done, total).
        out, seed, jobs, notes, columns, format, json: of the options of those names.
    """

    OPTIONS: ClassVar[str] = "* json"
    """Fields that are options and arguments, in the order of the help. `*`: those of the class itself that are not named.
    A line may begin with a heading: "Time: engine assumptions"."""

    READ: ClassVar[str] = "file"
    """Field with the file, or the files, that the verb reads, which no output may replace."""

    verb: str
    given: frozenset[str] = frozenset()
    generated: Mapping[str, Any] = field(default_factory=dict)
    progress: ProgressLine = field(default_factory=ProgressLine)
    out: tuple[Path, ...] = ()
    seed: int = option("--seed", default=0, help="Seed of every random choice.")
    jobs: int | None = option(
        "--jobs", default=None, help="Processes; default: one a core. The result is the same with any number."
    )
    notes: bool = option("--notes", default=False, help="Print all notes below the answer, not only the first three.")
    columns: str = option(
        "--columns", metavar="<column>,...", default="", help="Columns of the table by their headings, or all."
    )
    format: str = option(
        "--format", default="table", help="table; csv: its rows, in units of the SI; md: Markdown; json: as --json."
    )
    json: bool = option("--json", default=False, help="Print one JSON value on standard output and nothing else.")

    FORMATS: ClassVar[tuple[str, ...]] = ("table", "csv", "md", "json")
    """Values of `--format`."""

    @property
    def form(self) -> str:
        """How the answer is printed: one of `FORMATS`.

        Raises: ParameterError: a form that the verb does not have, or two.
        """
        if self.format not in self.FORMATS:
            raise ParameterError(f"--format: {self.format!r} is not one of {', '.join(self.FORMATS)}")
        if self.json and self.format not in ("table", "json"):
            raise ParameterError(f"{self.verb}: --json and --format {self.format} contradict each other; give one")
        return "json" if self.json else self.format

    @classmethod
    def sources(cls) -> Sequence[OptionSource]:
        """Functions and classes whose parameters are options of the verb too."""
        return ()

    def generated_of(self, options: Callable[..., Any]) -> dict[str, Any]:
        """Values on the command line of the options of one of the sources.

        Args: options: the function or class.
        """
        return {p.name: self.generated[p.name] for p in user_parameters(options) if p.name in self.generated}

    def kinds(self) -> tuple[FileKind, ...]:
        """Kinds of the files of `--out` that this call can write."""
        return next(one.metadata.get(_WRITES, ()) for one in fields(self) if one.name == "out")

    @cached_property
    def outputs(self) -> Outputs:
        """The files that the call writes, which are checked before any work is done for them.

        Raises: OutputError: the option, the file, and what is wrong with it.
        """
        named = {
            self.flag(one.name): (getattr(self, one.name), one.metadata[_WRITES])
            for one in fields(self)
            if one.name != "out" and one.metadata.get(_WRITES)
        }
        read = getattr(self, self.READ, None) or ()
        return Outputs(self.files(), *self.kinds(), named=named, read=read if isinstance(read, tuple) else (read,))

    def files(self) -> Sequence[Path]:
        """Values of `--out` that are files, as opposed to folders."""
        return self.out

    def flag(self, name: str) -> str:
        """The option of a field, as in `--ignore-light`."""
        return _described(type(self))[name].flags[0]

    def first_given(self, *names: str) -> str:
        """Option of the first of these fields that is on the command line; "" for none."""
        return next((self.flag(name) for name in names if name in self.given), "")


@dataclass(frozen=True, kw_only=True)
class PlanRequest(VerbRequest):
    """Values of the options that describe plans, and what is made from them.

    Args: fields: values of the options of those names; a verb without one of them has its default.
    """

    file: Path | None = argument(
        default=None, help="A plan file (.parquet, .csv, .json) or MSCCL XML of any origin, instead of --fabric."
    )
    fabric: str | None = option(
        "--fabric",
        "-f",
        metavar="<fabric>",
        default=None,
        help="A fabric, name:key=value,... such as ramp:groups=4,racks=4,wavelengths=8.",
    )
    fabrics: tuple[str, ...] = option(
        "--fabric",
        "-f",
        metavar="<fabric>",
        default=(),
        help="A fabric, name:key=value,...; default: every fabric. Repeat for several, or separate names: ramp,fat_tree.",
    )
    nodes: int | None = option("--nodes", "-n", default=None, help="Number of nodes; the fabric is scaled to it.")
    equal: str | None = option(
        "--equal",
        metavar="<what>=<value>",
        default=None,
        help="Nodes of equal rate, price or power: rate=800Gb/s, cost=9000 (USD), power=100 (W). Default: rate=800Gb/s where "
        "fabrics are ranked, else as built.",
    )
    as_built: bool = option(
        "--as-built", default=False, help="Rank fabrics at the node rates of their papers, or as written with -f."
    )
    collective: str = option(
        "--collective",
        "-c",
        metavar="<collective>",
        default="all_reduce",
        help="all_reduce, all_gather, all_to_all, ...; see opticcl list.",
    )
    algorithm: str = option(
        "--algorithm",
        "-a",
        metavar="<algorithm>",
        default="auto",
        help="An algorithm, name:key=value,...; auto: the fastest whose light closes.",
    )
    optics: str | None = option(
        "--optics",
        metavar="<preset>",
        default=None,
        help="Preset of optical losses for the choice of a plan: literal (of the paper), typical, ...; default: literal if the "
        "paper prints all of them, else typical.",
    )
    ignore_light: bool = option(
        "--ignore-light",
        default=False,
        help="Choose and rank plans whether or not their light budget closes.",
    )
    size: str = option(
        "--size", "-s", metavar="<size>", default="100MB", help="Size of the whole message, such as 100MB."
    )
    root: int = option("--root", default=0, help="Root rank of a broadcast, scatter, reduce or gather.")
    job: str | None = option(
        "--job",
        metavar="<nodes>",
        default=None,
        help="Nodes of the job in the order of their ranks, such as 0-7,16,18 or 0-56:8; default: all nodes.",
    )
    workload: tuple[str, ...] = option(
        "--workload",
        "-w",
        metavar="<trace>",
        default=(),
        help="A trace (.et, .json, .sqlite, .log, .goal, .csv, .fbuf, .txt), a list of sizes (.toml), or resnet50_ddp. Traces "
        "of several ranks: a directory, a .zip or .tar.gz, or a pattern such as 'w.*.et', or repeat the option.",
    )
    clock: str | None = option(
        "--clock",
        metavar="<frequency>",
        default=None,
        help="Clock of the device, such as 1GHz, for an ASTRA-sim file, whose computation is in cycles.",
    )
    dialect: Literal["auto", "astra", "simai"] = option(
        "--dialect",
        default="auto",
        help="How a layer file is read, as ASTRA-sim's or SimAI's: sizes of all_gathers, and groups; auto: by its first line.",
    )
    kernel_sizes: Path | None = option(
        "--kernel-sizes",
        metavar="FILE",
        default=None,
        help="File (.toml) with message sizes of communication kernels that a trace has no record of, such as DeepEP's: "
        "[[kernels]] with name, collective, size.",
    )
    engine: str = option(
        "--engine",
        metavar="<engine>",
        default="closed_form",
        help="closed_form: formulas; flow: transfers share links fairly; packet: cells wait in queues; device: a circuit "
        "starts when its devices are set. With options: packet:cell_bytes=9kB,queue=input.",
    )
    assumptions: str = option(
        "--assumptions",
        metavar="<name>",
        default=DEFAULT_SET,
        help="Set of time assumptions, for choosing plans and for their times: common, published (what each paper prints), or "
        "the rules of one paper: ramp, sipac, wrht, oddl, lumorph.",
    )
    assume: tuple[str, ...] = option(
        "--assume",
        metavar="KEY=VALUE",
        default=(),
        help="One assumption of the set, such as endpoint=2.7us or compute=none. Repeat for several.",
    )
    start: Path | None = option(
        "--start", metavar="PLAN", default=None, help="A plan file whose last circuits stand at the start."
    )

    def __post_init__(self) -> None:
        separated = tuple(one for text in self.fabrics for one in _separated(text))
        object.__setattr__(self, "fabrics", separated)
        if self.file is not None and not self.file.exists():
            _refuse_fabric_as_file(self.file)

    def machine(self) -> Fabric:
        """The fabric that the options describe.

        Raises: UnknownNameError, FabricError, ParameterError.
        """
        assert self.fabric is not None, "the verb requires it"
        return make_fabric(self.fabric, self.nodes, self.equal, self.outputs.notes)

    def contenders(self, nodes: int | None) -> tuple[Equal | None, list[Contender], list[ExcludedFabric]]:
        """The fabrics that the options describe, on equal ground unless they say otherwise.

        Args: nodes: of each [count].
        Returns: what they have in common, None for nothing; the fabrics; those left out.
        Raises: UnknownNameError, ParameterError, UnitError: a wrong value; FabricError: no fabric is left.
        """
        from opticcl.plans.equal import on_ground

        fixed = nodes_of_fixed(self.fabrics)
        if fixed is not None and self.nodes not in (None, fixed):
            raise ParameterError(
                f"--nodes: {self.nodes:,}, and a fabric that is fixed has {fixed:,}; leave it out, the others get that number"
            )
        at_scale = fixed if nodes is None else nodes
        built, excluded = make_fabrics(self.fabrics, at_scale, self.outputs.notes)
        ground, kept, left_out = on_ground(built, self.equal, self.as_built)
        return ground, kept, [*excluded, *left_out]

    def num_processes(self, fabrics: Sequence[Fabric]) -> int:
        """Processes that share the work on fabrics [count].

        Raises: ParameterError: a wrong number.
        """
        from opticcl.processes import number_of_jobs

        return number_of_jobs(self.jobs, large=max(one.num_nodes for one in fabrics) >= LARGE)

    def assumed(self) -> Assumptions:
        """The time assumptions that the options describe.

        Raises: as of `make_assumptions`.
        """
        return make_assumptions(self.assumptions, self.assume, self.start)

    def read_options(self) -> dict[str, Any]:
        """What is added to a trace: arguments of the functions of `opticcl.traces` that load one.

        Raises: ParameterError: as of `clock_hz`.
        """
        dialect = None if self.dialect == "auto" else self.dialect
        return {"clock_hz": self.clock_hz(), "dialect": dialect, "kernel_sizes": self.kernel_sizes}

    def refuse_read_options(self, why: str) -> None:
        """Refuse options of traces where there is none.

        Args: why: what the job is instead.
        Raises: ParameterError: one is given.
        """
        if self.clock is not None:
            raise ParameterError(f"--clock: only a trace that counts cycles needs a clock; {why}")
        if self.dialect != "auto":
            raise ParameterError(f"--dialect: only a layer file has one; {why}")
        if self.kernel_sizes is not None:
            raise ParameterError(f"--kernel-sizes: only the trace of a profiler has kernels; {why}")

    def clock_hz(self) -> float | None:
        """Clock of files that count computation in cycles [Hz]; None: none is given.

        Raises: ParameterError: no frequency, or not positive.
        """
        from opticcl.units import quantity

        if self.clock is None:
            return None
        hertz = quantity(self.clock, "Hz", "--clock")
        if hertz <= 0:
            raise ParameterError(f"--clock: {self.clock!r} is not positive; try 1GHz")
        return hertz

    def ranks(self) -> list[int] | None:
        """Nodes of the job in the order of their ranks; None: all nodes.

        Raises: ParameterError: as of `parse_nodes`.
        """
        return None if self.job is None else parse_nodes(self.job)

    def rule(self, fabrics: Sequence[Fabric]) -> LightRule:
        """Which plans are chosen and ranked by their light.

        Args: fabrics: that the plans are for.
        Raises: UnknownNameError: no fabric has such values of optics.
        """
        from opticcl.plans.light import light_rule

        return light_rule(fabrics, self.optics, self.ignore_light)

    def compiled(self, assumed: str | Assumptions = DEFAULT_SET, machine: Fabric | None = None, **others: Any) -> Plan:
        """The plan that the options describe.

        Args:
            assumed: under which the fastest is chosen.
            machine: fabric of the plan; None: that of the options.
            others: arguments of `compile` in place of those of the options.
        Raises: UnknownNameError, ParameterError, FabricError; UnsupportedError: the fabric cannot carry it.
        """
        from opticcl.plans.plan import compile

        given: dict[str, Any] = {
            "collective": self.collective,
            "algorithm": self.algorithm,
            "root": self.root,
            "nodes": self.ranks(),
        }
        return compile(
            self.machine() if machine is None else machine,
            size=self.size,
            assumptions=assumed,
            optics=self.optics,
            ignore_light=self.ignore_light,
            **{**given, **others},
        )

    def plan(self, assumed: str | Assumptions = DEFAULT_SET) -> Plan:
        """The plan of the file, or that which the options describe; those of files and of plugins are verified.

        Args: assumed: under which the fastest is chosen.
        Raises: PlanFileError: the file holds no plan; VerificationError: a wrong one; others: as of `compiled`.
        """
        from opticcl.plans.plan import load

        if self.file is not None:
            return load(self.file)
        plan = self.compiled(assumed)
        if not plan.is_of_library:
            plan.verify().raise_if_bad(f"{plan.algorithm} on {plan.fabric.name}")
        return plan

    def plan_to_judge(self) -> Plan:
        """As `plan`, but a file may hold a wrong plan.

        Raises: PlanFileError: the file holds no plan; others: as of `compiled`.
        """
        from opticcl.plans.plan import read

        return self.compiled() if self.file is None else read(self.file)

    def refuse_beside_file(self, *, any_size: bool = False) -> None:
        """Refuse options that contradict a plan file: a plan comes from a file or from options.

        Args: any_size: whether a plan of a file is used for messages of other sizes too.
        Raises: ParameterError: neither or both are given, or an option that the file determines.
        """
        if self.file is None and self.fabric is None:
            raise ParameterError(f"{self.verb}: give either a plan file or --fabric")
        if self.file is not None:
            size = () if any_size else ("size",)
            self.refuse_of_file(
                "fabric", "nodes", "equal", "collective", "algorithm", *size, "root", "job", "optics", "ignore_light"
            )

    def refuse_of_file(self, *names: str) -> None:
        """Refuse options whose values the file determines.

        Args: names: of their fields.
        Raises: ParameterError: one of them is given.
        """
        if flag := self.first_given(*names):
            raise ParameterError(f"{self.verb}: {flag} is part of {self.file}; leave {flag} out")


@dataclass(frozen=True, kw_only=True)
class FabricRequest(PlanRequest):
    """Values of the options of a verb that needs `--fabric`.

    Args: fabric: value of that option.
    """

    fabric: str = shared_option(PlanRequest, "fabric")


def parameters_of(request: type[VerbRequest]) -> list[click.Parameter]:
    """Parameters of a verb, in the order of its help.

    Args: request: its class.
    """
    hints, described = get_type_hints(request), _described(request)
    defaults = {one.name: {} if one.default is MISSING else {"default": one.default} for one in fields(request)}
    return [make_parameter(name, hints[name], described[name], **defaults[name]) for name in topics_of(request)]


def topics_of(request: type[VerbRequest]) -> dict[str, str]:
    """Fields of a request that are options and arguments, in the order of its help -> the headings above them.

    Args: request: its class.
    """
    described = _described(request)
    named: dict[str, str] = {}
    topic = "Options"
    for line in request.OPTIONS.splitlines():
        heading, colon, names = line.rpartition(": ")
        topic = heading.strip() if colon else topic
        named |= dict.fromkeys(names.split(), topic)
    own = [name for name in inspect.get_annotations(request) if name in described and name not in named]
    assert not own or "*" in named, f"{own[0]} is in no help"
    return {name: topic for part, topic in named.items() for name in (own if part == "*" else [part])}


def make_fabric(specification: str, nodes: int | None, equal: str | None, notes: list[str]) -> Fabric:
    """Build the fabric that the options describe.

    Args:
        specification: value of `--fabric`.
        nodes: value of `--nodes` [count].
        equal: value of `--equal`; None: as built.
        notes: what is assumed when it is made is added.
    Raises: UnknownNameError, FabricError, ParameterError.
    """
    from opticcl.fabrics import as_fabric

    check_nodes(nodes)
    if len(several := _separated(specification)) > 1:
        raise ParameterError(
            f"--fabric: {specification!r} names {len(several)} fabrics; give one here, or compare them"
        )
    made = _not_too_large(specification, as_fabric(specification, nodes))
    notes += made.notes
    if equal is None:
        return made
    from opticcl.plans.equal import parse_equal

    return parse_equal(equal).on(made)


def make_fabrics(
    given: Sequence[str], nodes: int | None, notes: list[str]
) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric]]:
    """Build the fabrics that the options name, or every registered one.

    Args:
        given: values of `--fabric`; empty: every fabric.
        nodes: value of `--nodes` [count].
        notes: what is assumed when they are made is added.
    Returns: text and fabric of each that could be built; those without a shape of this number of nodes, with reasons.
    Raises: UnknownNameError, ParameterError; FabricError: none could be built, or a shape that the text itself gives.
    """
    from opticcl.fabrics import FABRICS
    from opticcl.plans.machines import build_fabrics

    check_nodes(nodes)
    built, excluded = build_fabrics(given or FABRICS.names(), nodes)
    for _, fabric in built:
        notes += fabric.notes
    return [(name, _not_too_large(name, fabric)) for name, fabric in built], excluded


def _refuse_fabric_as_file(file: Path) -> None:
    """Refuse a fabric in the place of a plan file.

    Raises: ParameterError: the text begins with the name of a fabric.
    """
    from opticcl.fabrics import FABRICS
    from opticcl.registry import canonical

    if canonical(str(file).partition(":")[0]) in FABRICS.names(unlisted=True):
        raise ParameterError(
            f"{printable(str(file))}: there is no such file; a fabric is given by -f {printable(str(file))}"
        )


def _separated(text: str) -> list[str]:
    """Fabrics of a text, "ramp,fat_tree": a name behind a comma begins another one.

    >>> _separated("ramp:groups=4,racks=4,oddl")
    ['ramp:groups=4,racks=4', 'oddl']
    """
    if "," not in text:
        return [text]
    from opticcl.fabrics import FABRICS
    from opticcl.registry import canonical

    names: list[str] = []
    for part in text.split(","):
        if not names or canonical(part.partition(":")[0]) in FABRICS.names():
            names.append(part.strip())
        else:
            names[-1] += f",{part}"
    return names


def _not_too_large(specification: str, fabric: Fabric) -> Fabric:
    """The fabric.

    Raises: ParameterError: it has too many nodes.
    """
    if fabric.num_nodes > MOST_NODES:
        raise ParameterError(f"--fabric: {specification} has {fabric.num_nodes:,} nodes, more than {MOST_NODES:,}")
    return fabric


def nodes_of_fixed(given: Sequence[str]) -> int | None:
    """Nodes of the first fabric that has a number of its own, such as a network from a file [count]; None: there is none.

    Args: given: values of `--fabric`.
    Raises: FabricError: it cannot be built.
    """
    from opticcl.fabrics import FABRICS, as_fabric
    from opticcl.registry import canonical

    for text in given:
        name = canonical(text.partition(":")[0])
        if name in FABRICS.names(unlisted=True) and FABRICS.get(name).is_fixed:
            return as_fabric(text).num_nodes
    return None


def check_nodes(nodes: int | None, option: str = "--nodes") -> None:
    """Refuse a number of nodes before a fabric is built.

    Args:
        nodes: to be checked [count].
        option: that gives them.
    Raises: ParameterError: less than one, or more than `MOST_NODES`.
    """
    if nodes is not None and nodes < 1:
        raise ParameterError(f"{option}: {nodes} nodes; must be at least 1")
    if nodes is not None and nodes > MOST_NODES:
        raise ParameterError(f"{option}: {nodes:,} nodes are more than {MOST_NODES:,}; try {MOST_NODES} or fewer")


def parse_nodes(text: str, option: str = "--job") -> list[int]:
    """Node numbers of "0-3,8,12" or "0-56:8", in that order.

    >>> parse_nodes("0-3,8,9-13:2")
    [0, 1, 2, 3, 8, 9, 11, 13]

    Raises: ParameterError: a part that is neither a number nor a range.
    """
    numbers: list[int] = []
    for part in text.split(","):
        piece = re.fullmatch(r"\s*([0-9]{1,18})(?:\s*-\s*([0-9]{1,18})(?:\s*:\s*([0-9]{1,18}))?)?\s*", part)
        low, high, step = (int(number) if number else None for number in piece.groups()) if piece else (None,) * 3
        if low is None or (high is not None and high < low) or step == 0:
            raise ParameterError(f"{option}: {part!r} is neither a node nor a range; write 0-7,16,18 or 0-56:8")
        nodes = range(low, (low if high is None else high) + 1, step or 1)
        if len(nodes) > MOST_NODES:
            raise ParameterError(f"{option}: {part!r} is more than {MOST_NODES:,} nodes")
        numbers += nodes
    return numbers


def make_assumptions(name: str, assume: Sequence[str], start: Path | None = None) -> Assumptions:
    """Time assumptions that the options describe.

    Args:
        name: value of `--assumptions`.
        assume: values of `--assume`, "key=value".
        start: value of `--start`: a plan file whose last circuits stand at the start.
    Raises: UnknownNameError: no such set; ParameterError: not key=value, no such key or value, or a key given twice;
        PlanFileError: a start that is no plan.
    """
    from opticcl.assumptions import Assumptions, assumptions
    from opticcl.registry import parse_call, unit_of

    given: dict[str, Any] = {}
    for item in assume:
        if "=" not in item:
            raise ParameterError(f"--assume: {item!r} is not key=value; write --assume compute=none")
        for key, value in parse_call(f"--assume:{item}")[1].items():
            if key in given:
                raise ParameterError(f"--assume: {key} is given twice; give it once")
            if unit_of(Assumptions, key) in ("s", "s/m") and re.fullmatch("0*[1-9][0-9]*", value):
                raise ParameterError(f"--assume: {key}={value} has no unit; write it, as in {key}={value}ns")
            given[key] = value
    if start is not None:
        if "initial" in given:
            raise ParameterError(f"--start: initial={given['initial']} is given too; leave one of both out")
        given["initial"] = configuration_of(start)
    return assumptions(name, **given)


def configuration_of(start: Path) -> DeviceSettings:
    """The last circuits of a plan file.

    Raises: PlanFileError: it is no plan; ParameterError, UnsupportedError: it has no circuits, or its fabric no devices.
    """
    from opticcl.plans.plan import read

    return read(start).configuration
