"""opticcl cost"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from opticcl.cli._options import (
    DEFAULT_SET,
    AssumeOption,
    AssumptionsOption,
    FabricsOption,
    IgnoreLightOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    OpticsOption,
    SizeOption,
    make_assumptions,
    make_fabric,
    make_fabrics,
)
from opticcl.cli._output import PICTURE, RECORD, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.cli._settings import parse_settings
from opticcl.errors import FabricError, ParameterError, UnsupportedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.assumptions import Assumptions
    from opticcl.estimate.cost import Bill
    from opticcl.ir import Fabric
    from opticcl.plans.machines import ExcludedFabric
    from opticcl.report.cost import Billed

SCALES = tuple(1 << bits for bits in range(4, 17, 2))
"""Numbers of nodes of the picture [count]."""


def run(
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    prices: Annotated[str, option("--prices", help="Price list: default, ramp_hpc or ramp_dcn.")] = "default",
    change: Annotated[
        list[str],
        option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a price or power: wss.usd=300, transceiver.w=5. Repeat for several.",
        ),
    ] = [],  # noqa: B006
    collective: Annotated[
        str | None,
        option("--collective", "-c", help="Compute the energy of this collective too, by the fastest algorithm."),
    ] = None,
    size: SizeOption = "100MB",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    out: Annotated[list[Path], out_option(PICTURE, RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Cost and power of the parts of a fabric, or of several fabrics."""
    from opticcl.estimate.cost import bill_of
    from opticcl.report.cost import Billed, Bills, bill_table, bills_table

    outputs = Outputs(out, PICTURE, RECORD)
    changes = {name: _number(name, text) for name, text in parse_settings(change, "wss.usd=300").items()}
    built, left_out = _fabrics(fabric, nodes, node_rate)

    def bill(one: Fabric) -> Bill:
        return bill_of(one, prices, changes)

    rows: list[Billed] = []
    for name, one in built:
        try:
            rows.append(Billed(name, bill(one)))
        except UnsupportedError as error:
            left_out.append(_excluded(name, error))
    if not rows:
        raise UnsupportedError(left_out[0].reason)
    if collective is not None:
        chosen_by = {"optics": optics, "ignore_light": ignore_light}
        rows = _with_energy(rows, collective, size, make_assumptions(assumptions, assume), chosen_by)
    found = Bills(tuple(rows), tuple(left_out))
    if outputs.of(PICTURE):
        lines = _at_scales(fabric, node_rate, bill)
        outputs.write_pictures(
            lambda: _figure(lines), f"Price per Gb/s and energy per bit at scale: {', '.join(lines)}"
        )
    outputs.write_record(found.record)
    if json:
        print_json(found.record())
        return
    what = f"{collective} of {size}"
    table = bill_table(rows[0], what) if len(rows) == 1 else bills_table(rows, what)
    declined = [f"no energy: {row.name}: {row.declined}" for row in rows if row.declined]
    print_table(table, *declined, *map(str, found.left_out))
    outputs.print_lines()


def _number(name: str, text: str) -> float:
    """A price or power from "300"."""
    from opticcl.units import number_of

    try:
        return number_of(text)
    except ValueError as error:
        raise ParameterError(f"--set: {name}={text!r} {error}; write --set wss.usd=300") from None


def _excluded(name: str, error: UnsupportedError) -> ExcludedFabric:
    from opticcl.plans.machines import ExcludedFabric

    return ExcludedFabric(name, str(error))


def _fabrics(
    given: Sequence[str], nodes: int | None, node_rate: str | None
) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric]]:
    """The fabrics that the options name, each once and with a name of its own, and those that are left out.

    Args:
        given: values of `--fabric`; empty: every fabric.
        nodes: value of `--nodes` [count].
        node_rate: value of `--node-rate`.
    """
    if nodes is None and not given:
        raise ParameterError("cost: how many nodes? give --nodes N, or fabrics with their shapes")
    built, excluded = make_fabrics(list(dict.fromkeys(given)), nodes, node_rate)
    count = Counter(one.name for _, one in built)
    return [(text if count[one.name] > 1 else one.name, one) for text, one in built], excluded


def _with_energy(
    rows: Sequence[Billed], collective: str, size: str, assumed: Assumptions, chosen_by: Mapping[str, Any]
) -> list[Billed]:
    """The bills with the collective on each fabric by its fastest algorithm, or the reason why there is none.

    Args:
        rows: bills.
        collective: its name.
        size: message of every rank.
        assumed: time assumptions.
        chosen_by: preset of the light budget of plans, and whether light is ignored, as `opticcl.compile` takes them.
    Raises: UnsupportedError: no fabric can carry it.
    """
    from opticcl.plans.plan import compile
    from opticcl.plans.ranks import beside
    from opticcl.report.cost import Billed, CollectiveTime

    found, other = [], beside(assumed)
    with ProgressLine() as progress:
        for row in rows:
            progress(f"compile {collective} on {row.name}")
            try:
                plan = compile(row.bill.fabric, collective, size, assumptions=assumed, **chosen_by)
            except UnsupportedError as error:
                found.append(Billed(row.name, row.bill, declined=str(error)))
                continue
            plan.verify().raise_if_bad()
            also = (other.name, plan.simulate(assumptions=other.assumed).total_s)
            time = CollectiveTime(plan.algorithm, plan.simulate(assumptions=assumed), also)
            found.append(Billed(row.name, row.bill, time))
    if all(row.declined for row in found):
        raise UnsupportedError(found[0].declined)
    return found


def _at_scales(given: Sequence[str], node_rate: str | None, bill: Callable[[Fabric], Bill]) -> dict[str, list[Bill]]:
    """Bills at every scale that a fabric has, by its text without the parameters that set its shape.

    Args:
        given: values of `--fabric`; empty: every fabric.
        node_rate: value of `--node-rate`.
        bill: of a fabric.
    """
    from opticcl.fabrics import FABRICS
    from opticcl.registry import parse_call, write_call

    bills: dict[str, dict[int, Bill]] = {}
    for text in given or FABRICS.names():
        name, written = parse_call(text)
        for scale in SCALES:
            try:
                shape = FABRICS.get(name).parameters_at_scale(scale)
                kept = write_call(name, {key: value for key, value in written.items() if key not in shape})
                bills.setdefault(kept, {})[scale] = bill(make_fabric(kept, scale, node_rate))
            except (FabricError, UnsupportedError):
                continue  # the fabric does not exist at this scale, so the picture has no point there
    return {kept: list(at_scales.values()) for kept, at_scales in bills.items() if at_scales}


def _figure(lines: dict[str, list[Bill]]) -> Figure:
    from opticcl.report.cost import cost_figure

    return cost_figure(lines)
