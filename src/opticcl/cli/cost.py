"""opticcl cost"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._options import (
    FabricsOption,
    JsonOption,
    LeftOut,
    NodeRateOption,
    NodesOption,
    make_fabric,
    make_fabrics,
)
from opticcl.cli._output import PICTURES, Progress, check_outputs, print_json, print_table
from opticcl.cli._settings import parse_settings
from opticcl.errors import FabricError, ParameterError, UnsupportedError

if TYPE_CHECKING:
    from opticcl.evaluate.cost import Bill
    from opticcl.ir import Fabric
    from opticcl.report.cost import Billed

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
    from opticcl.report.cost import Billed, bill_row, bill_table, bills_table

    check_outputs({"--output": (picture, PICTURES)})
    changes = {name: _number(name, text) for name, text in parse_settings(change, "wss.usd=300").items()}
    made, left_out = _fabrics(fabric, nodes, node_rate)

    def bill(one: Fabric) -> Bill:
        return bill_of(one, prices, changes)

    rows: list[Billed] = []
    for name, one in made:
        try:
            rows.append(Billed(name, bill(one)))
        except UnsupportedError as error:
            left_out.append(LeftOut(name, str(error)))
    if not rows:
        raise UnsupportedError(left_out[0].reason)
    if collective is not None:
        rows = _collecting(rows, collective, size)
    if picture:
        _draw(picture, fabric, node_rate, bill)
    if json:
        print_json({"rows": [bill_row(row) for row in rows], "left_out": [one._asdict() for one in left_out]})
        return
    doing = f"{collective} of {size}"
    table = bill_table(rows[0], doing) if len(rows) == 1 else bills_table(rows, doing)
    declined = [f"no energy: {row.name}: {row.declined}" for row in rows if row.declined]
    print_table(table, *declined, *map(str, left_out))
    if picture:
        print(f"picture: {picture}")


def _number(name: str, text: str) -> float:
    """A price or power of "300"."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--set: {name}={text!r} is not a number; write --set wss.usd=300") from None


def _fabrics(
    given: Sequence[str], nodes: int | None, node_rate: str | None
) -> tuple[list[tuple[str, Fabric]], list[LeftOut]]:
    """The fabrics that the options name, each once and with a name of its own, and why others are left out."""
    if nodes is None and not given:
        raise ParameterError("cost: how many nodes? give --nodes N, or fabrics with their shapes")
    made, left_out = make_fabrics(list(dict.fromkeys(given)), nodes, node_rate)
    often = Counter(one.name for _, one in made)
    return [(text if often[one.name] > 1 else one.name, one) for text, one in made], left_out


def _collecting(rows: Sequence[Billed], collective: str, size: str) -> list[Billed]:
    """With the collective on each fabric by its fastest algorithm, or why there is none.

    Raises: UnsupportedError: none of the fabrics has one.
    """
    from opticcl.plan import compile
    from opticcl.report.cost import Billed, Collecting

    found = []
    with Progress() as progress:
        for row in rows:
            progress(f"compile {collective} on {row.name}")
            try:
                plan = compile(row.bill.fabric, collective, size)
            except UnsupportedError as error:
                found.append(Billed(row.name, row.bill, declined=str(error)))
                continue
            plan.verify().raise_if_bad()
            found.append(Billed(row.name, row.bill, Collecting(plan.algorithm, plan.simulate())))
    if all(row.declined for row in found):
        raise UnsupportedError(found[0].declined)
    return found


def _draw(path: Path, given: Sequence[str], node_rate: str | None, bill: Callable[[Fabric], Bill]) -> None:
    """Price and power against scale; what scales a fabric is not taken from its text."""
    from opticcl.fabric import FABRICS
    from opticcl.registry import parse_call, write_call
    from opticcl.report.cost import cost_figure
    from opticcl.report.svg import save_picture

    bills: dict[str, dict[int, Bill]] = {}
    for text in given or FABRICS.names():
        name, written = parse_call(text)
        for scale in SCALES:
            try:
                shape = FABRICS.get(name).at_scale(scale)
                kept = write_call(name, {key: value for key, value in written.items() if key not in shape})
                bills.setdefault(kept, {})[scale] = bill(make_fabric(kept, scale, node_rate))
            except (FabricError, UnsupportedError):
                continue  # a machine that does not exist at that scale has no point in the picture
    lines = {kept: list(at_scales.values()) for kept, at_scales in bills.items() if at_scales}
    label = "Price of a Gb/s and energy of a bit against scale: " + ", ".join(lines)
    save_picture(path, lambda: cost_figure(lines), label)
