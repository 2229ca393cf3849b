"""Options that several verbs share, and the objects that they describe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from opticcl.cli._parameters import argument, option
from opticcl.errors import FabricError, ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import Fabric
    from opticcl.ir.device_settings import DeviceSettings
    from opticcl.plans.machines import ExcludedFabric
    from opticcl.plans.plan import Plan

MOST_NODES = 1 << 22
"""Largest fabric that a verb builds; a larger one would take hours [count]."""

DEFAULT_SET = "common"
"""`opticcl.assumptions.DEFAULT_SET`, without the import of NumPy that `--help` would wait for."""

FileArgument = Annotated[
    Path | None,
    argument(help="A plan file (.parquet, .csv, .json) or MSCCL XML of any origin, instead of --fabric."),
]
_FABRIC = "A fabric, name:key=value,... such as ramp:groups=4,racks=4,wavelengths=8."
FabricOption = Annotated[str, option("--fabric", "-f", help=_FABRIC)]
FabricOrFileOption = Annotated[str | None, option("--fabric", "-f", help=_FABRIC)]
FabricsOption = Annotated[
    list[str],
    option("--fabric", "-f", help="A fabric, name:key=value,...; default: every fabric. Repeat for several."),
]
NodesOption = Annotated[int | None, option("--nodes", "-n", help="Number of nodes; scales the fabric to them.")]
NodeRateOption = Annotated[
    str | None,
    option("--node-rate", help="Rate of every node, such as 2.4Tb/s; default: the rate in the fabric's paper."),
]
EqualOption = Annotated[
    str | None,
    option(
        "--equal",
        help="Nodes of equal rate, price or power: rate=800Gb/s, cost=9000 (USD), power=100 (W); --node-rate X is rate=X.",
    ),
]
CollectiveOption = Annotated[
    str, option("--collective", "-c", help="all_reduce, all_gather, all_to_all, ...; see opticcl list.")
]
AlgorithmOption = Annotated[
    str,
    option("--algorithm", "-a", help="An algorithm, name:key=value,...; auto: the fastest whose light closes."),
]
RootOption = Annotated[int, option("--root", help="Root rank of a broadcast, scatter, reduce or gather.")]
JobOption = Annotated[
    str | None,
    option("--job", help="Nodes of the job in the order of their ranks, such as 0-7,16,18; default: all nodes."),
]
StartOption = Annotated[
    Path | None, option("--start", metavar="PLAN", help="A plan file whose last circuits stand at the start.")
]
SizeOption = Annotated[str, option("--size", "-s", help="Size of the whole message, such as 100MB.")]
WorkloadsOption = Annotated[
    list[str],
    option(
        "--workload",
        "-w",
        help="A trace (.et, .json, .log, .fbuf, .txt), a list of sizes (.toml), or resnet50_ddp. Traces of several ranks: a "
        "directory, a .tar.gz or a pattern such as 'w.*.et', or repeat the option.",
    ),
]
EngineOption = Annotated[
    str,
    option(
        "--engine",
        help="closed_form: formulas; flow: transfers share links fairly; packet: cells wait in queues. With options: "
        "packet:cell_bytes=9kB,queue=input.",
    ),
]
LARGE = 256
"""Nodes from which several processes are used unless `--jobs` says otherwise [count]."""
JobsOption = Annotated[
    int | None,
    option("--jobs", help="Processes; default: one a core. The result is the same with any number."),
]
AssumptionsOption = Annotated[
    str,
    option(
        "--assumptions",
        help="Named set of time assumptions, which chooses and charges: common, published (what each paper prints), or the "
        "rules of one paper: ramp, sipac, wrht, oddl, lumorph.",
    ),
]
AssumeOption = Annotated[
    list[str],
    option(
        "--assume",
        metavar="KEY=VALUE",
        help="One assumption of the set, such as endpoint=2.7us or compute=none. Repeat for several.",
    ),
]
OpticsOption = Annotated[
    str | None,
    option(
        "--optics",
        help="Losses and gains with which the light of a plan that auto chooses must close: literal (those of the paper), "
        "typical, ...; default: literal where the paper prints all that are needed, else typical.",
    ),
]
IgnoreLightOption = Annotated[
    bool,
    option("--ignore-light", help="Choose and rank plans without regard to whether their light budget closes."),
]
JsonOption = Annotated[bool, option("--json", help="Print one JSON value on standard output and nothing else.")]
SampleOption = Annotated[
    int | None,
    option(
        "--sample",
        help="Follow only this number of chunks, drawn by --seed. The others get no verdict, and the exit code is 1.",
    ),
]
SeedOption = Annotated[int, option("--seed", help="Seed of every random choice.")]


def make_fabric(specification: str, nodes: int | None, node_rate: str | None) -> Fabric:
    """Build the fabric that the options describe.

    Args:
        specification: value of `--fabric`.
        nodes: value of `--nodes` [count].
        node_rate: value of `--node-rate`.
    Raises: UnknownNameError, FabricError, ParameterError.
    """
    from opticcl.plans.machines import build_fabric

    check_nodes(nodes)
    return _not_too_large(specification, build_fabric(specification, nodes, parse_node_rate(node_rate)))


def make_fabrics(
    given: Sequence[str], nodes: int | None, node_rate: str | None
) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric]]:
    """Build the fabrics that the options name, or every registered one.

    Args:
        given: values of `--fabric`; empty: every fabric.
        nodes: value of `--nodes` [count].
        node_rate: value of `--node-rate`.
    Returns: text and fabric of each that could be built; those without a shape of this number of nodes, with reasons.
    Raises: UnknownNameError, ParameterError; FabricError: none could be built, or a shape that the text itself gives.
    """
    from opticcl.fabrics import FABRICS
    from opticcl.plans.machines import build_fabrics

    check_nodes(nodes)
    built, excluded = build_fabrics(given or FABRICS.names(), nodes, parse_node_rate(node_rate))
    return [(name, _not_too_large(name, fabric)) for name, fabric in built], excluded


def equal_machines(
    built: list[tuple[str, Fabric]], excluded: list[ExcludedFabric], equal: str | None, node_rate: str | None
) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric], list[str]]:
    """The fabrics with nodes of equal rate, price or power.

    Args:
        built: text and fabric of each.
        excluded: fabrics that are left out already.
        equal: value of `--equal`.
        node_rate: value of `--node-rate`.
    Returns: text and fabric of each; those left out; remarks on rates above those that systems are built for.
    Raises: ParameterError, UnitError: both are given, or a wrong value; FabricError: no fabric is left.
    """
    from opticcl.plans.equal import Equal, equal_fabrics, parse_equal

    if equal is not None and node_rate is not None:
        raise ParameterError("--equal: --node-rate is given too; --node-rate X is --equal rate=X, give one of them")
    rate = parse_node_rate(node_rate)
    if equal is None and rate is None:
        return built, excluded, []
    wanted = Equal("rate", rate) if rate is not None else parse_equal(equal or "")
    kept, left_out, notes = equal_fabrics(built, wanted)
    if not kept:
        raise FabricError(left_out[0].reason)
    return kept, [*excluded, *left_out], notes


def _not_too_large(specification: str, fabric: Fabric) -> Fabric:
    if fabric.num_nodes > MOST_NODES:
        raise ParameterError(f"--fabric: {specification} has {fabric.num_nodes:,} nodes, more than {MOST_NODES:,}")
    return fabric


def parse_node_rate(text: str | None) -> float | None:
    """Value of `--node-rate` [bit/s].

    Raises: UnitError: it is no rate; ParameterError: it is not positive.
    """
    from opticcl.units import quantity

    if text is None:
        return None
    rate = quantity(text, "bit/s", "--node-rate", bare=False)
    if rate <= 0:
        raise ParameterError(f"--node-rate: {text!r} is not positive; try 2.4Tb/s")
    return rate


def check_nodes(nodes: int | None) -> None:
    """Refuse a number of nodes before a fabric is built.

    Raises: ParameterError: less than one, or more than `MOST_NODES`.
    """
    if nodes is not None and nodes < 1:
        raise ParameterError(f"--nodes: {nodes} nodes; there is at least 1")
    if nodes is not None and nodes > MOST_NODES:
        raise ParameterError(f"--nodes: {nodes:,} nodes are more than {MOST_NODES:,}; try {MOST_NODES} or fewer")


def make_plan(
    fabric: str,
    nodes: int | None,
    node_rate: str | None,
    collective: str,
    algorithm: str,
    size: str,
    root: int = 0,
    job: str | None = None,
    assumed: str | Assumptions = DEFAULT_SET,
    optics: str | None = None,
    ignore_light: bool = False,
) -> Plan:
    """Compile the plan that the options describe.

    Args:
        fabric: value of `--fabric`.
        nodes: value of `--nodes` [count].
        node_rate: value of `--node-rate`.
        collective: value of `--collective`.
        algorithm: value of `--algorithm`.
        size: value of `--size`.
        root: value of `--root`.
        job: value of `--job`.
        assumed: under which the fastest is chosen.
        optics: value of `--optics`.
        ignore_light: value of `--ignore-light`.
    Raises: UnknownNameError, ParameterError, FabricError; UnsupportedError: the fabric cannot carry it.
    """
    from opticcl.plans.plan import compile

    ranks = None if job is None else parse_nodes(job)
    machine = make_fabric(fabric, nodes, node_rate)
    return compile(
        machine, collective, size, algorithm=algorithm, root=root, nodes=ranks, assumptions=assumed, optics=optics,
        ignore_light=ignore_light,
    )  # fmt: skip


_PLAN_OPTIONS = ("nodes", "node_rate", "collective", "algorithm", "size", "root", "job", "optics", "ignore_light")


def refuse_beside_file(verb: str, context: click.Context, file: Path | None, fabric: str | None) -> None:
    """Refuse options that contradict a plan file: a plan comes from a file or from options.

    Args:
        verb: for the message.
        context: of the call; knows which options were given.
        file: the plan file.
        fabric: value of `--fabric`.
    Raises: ParameterError: neither or both are given, or an option that the file determines.
    """
    if (file is None) == (fabric is None):
        raise ParameterError(f"{verb}: give either a plan file or --fabric")
    if file is not None:
        refuse_options(verb, context, file, _PLAN_OPTIONS)


def refuse_options(verb: str, context: click.Context, file: Path, names: Sequence[str]) -> None:
    """Refuse options whose values a file determines.

    Args:
        verb: for the message.
        context: of the call; knows which options were given.
        file: that is read.
        names: of the parameters of those options.
    Raises: ParameterError: one of them is given.
    """
    for name in names:
        if is_given(context, name):
            option = "--" + name.replace("_", "-")
            raise ParameterError(f"{verb}: {option} is part of {file}; leave {option} out")


def is_given(context: click.Context, name: str) -> bool:
    """Whether an option is on the command line, by the name of its parameter."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def parse_nodes(text: str, option: str = "--job") -> list[int]:
    """Node numbers of "0-3,8,12", in that order.

    >>> parse_nodes("0-3,8")
    [0, 1, 2, 3, 8]

    Raises: ParameterError: a part that is neither a number nor a range.
    """
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        if not re.fullmatch("[0-9]{1,18}", low) or (
            dash and not (re.fullmatch("[0-9]{1,18}", high) and int(low) <= int(high))
        ):
            raise ParameterError(f"{option}: {part!r} is neither a node nor a range; write 0-7,16,18")
        if dash and int(high) - int(low) > MOST_NODES:
            raise ParameterError(f"{option}: {part!r} is more than {MOST_NODES:,} nodes")
        found += range(int(low), int(high) + 1) if dash else [int(low)]
    return found


def make_assumptions(name: str, assume: list[str], start: Path | None = None) -> Assumptions:
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
