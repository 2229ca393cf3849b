"""opticcl cost"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._options import FabricsOption, JsonOption, NodeRateOption, NodesOption, make_fabric
from opticcl.cli._output import Progress, print_json, print_table
from opticcl.errors import FabricError, ParameterError, UnsupportedError

if TYPE_CHECKING:
    from opticcl.evaluate.cost import Bill
    from opticcl.ir import Fabric, Timeline

SCALES = tuple(1 << bits for bits in range(4, 17, 2))  # of a picture


def run(
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    prices: Annotated[
        str, typer.Option("--prices", help="List of datasheets: default, ramp_hpc or ramp_dcn.")
    ] = "default",
    change: Annotated[
        list[str],
        typer.Option("--set", help="Another price or power: wss.usd=300, transceiver.w=5. Repeat for several."),
    ] = [],  # noqa: B006
    collective: Annotated[
        str | None,
        typer.Option("--collective", "-c", help="Also the energy of this collective by the fastest algorithm."),
    ] = None,
    size: Annotated[str, typer.Option("--size", "-s", help="Its message.")] = "100MB",
    picture: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw price and power of a node against scale: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """What fabrics cost and draw: bill of materials, dollars and watts. One fabric gives its bill, several a comparison."""
    from opticcl.evaluate.cost import bill_of

    changes = dict(map(_change, change))
    made, left_out = _fabrics(fabric, nodes, node_rate)

    def bill(one: Fabric) -> Bill:
        return bill_of(one, prices, changes)

    bills: list[Bill] = []
    for one in made:
        try:
            bills.append(bill(one))
        except UnsupportedError as error:
            left_out.append(str(error))
    if not bills:
        raise UnsupportedError(left_out[0])
    timelines = _timelines([b.fabric for b in bills], collective, size)
    if picture:
        _draw(picture, fabric, node_rate, bill)
    if json:
        from opticcl.report.cost import bill_row

        print_json([bill_row(b, timelines.get(b.fabric.name)) for b in bills])
        return
    from opticcl.report.cost import bill_table, bills_table

    doing = f"{collective} of {size}"
    side_by_side = bills_table(bills, timelines, doing)
    if len(bills) == 1:
        print_table(bill_table(bills[0]), *([side_by_side] if timelines else []))
    else:
        print_table(side_by_side, *(f"left out: {reason}" for reason in left_out))
    if picture:
        print(f"picture: {picture}")


def _change(text: str) -> tuple[str, float]:
    """Name and value of "wss.usd=300"."""
    name, equals, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        if equals and value:
            raise ParameterError(f"--set: {text!r}: {value!r} is not a number; write --set wss.usd=300") from None
        raise ParameterError(
            f"--set: {text!r} is not part.usd=number or part.w=number; write --set wss.usd=300"
        ) from None


def _fabrics(given: Sequence[str], nodes: int | None, node_rate: str | None) -> tuple[list[Fabric], list[str]]:
    """The fabrics that the options name, and why others are left out."""
    from opticcl.fabric import FABRICS

    if nodes is None and not given:
        raise ParameterError("cost: how many nodes? give --nodes N, or fabrics with their shapes")
    made, left_out = [], []
    for specification in given or FABRICS.names():
        try:
            made.append(make_fabric(specification, nodes, node_rate))
        except FabricError as error:
            if given:
                raise
            left_out.append(str(error))
    if not made:
        raise FabricError(left_out[0])
    return made, left_out


def _timelines(fabrics: Sequence[Fabric], collective: str | None, size: str) -> dict[str, Timeline]:
    """Time of the collective on each fabric by its fastest algorithm."""
    if collective is None:
        return {}
    from opticcl.plan import compile

    found = {}
    with Progress() as progress:
        for one in fabrics:
            progress(f"compile {collective} on {one.name}")
            plan = compile(one, collective, size)
            plan.verify().raise_if_bad()
            found[one.name] = plan.simulate()
    return found


def _draw(path: Path, given: Sequence[str], node_rate: str | None, bill: Callable[[Fabric], Bill]) -> None:
    """Price and power against scale."""
    from opticcl.fabric import FABRICS
    from opticcl.registry import parse_call
    from opticcl.report.cost import cost_figure
    from opticcl.report.svg import save_picture

    names = list(dict.fromkeys(parse_call(text)[0] for text in given)) or list(FABRICS.names())
    bills: dict[str, list[Bill]] = {}
    for name in names:
        for scale in SCALES:
            try:
                bills.setdefault(name, []).append(bill(make_fabric(name, scale, node_rate)))
            except (FabricError, UnsupportedError):
                continue  # a machine that does not exist at that scale has no point in the picture
    bills = {name: found for name, found in bills.items() if found}
    label = "Price of a Gb/s and energy of a bit against scale: " + ", ".join(bills)
    save_picture(path, lambda: cost_figure(bills), label)
