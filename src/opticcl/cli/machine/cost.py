"""opticcl machine cost"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._output import PICTURE, RECORD
from opticcl.cli._request import PlanRequest, make_fabric, make_fabrics, option, out_option, shared_option
from opticcl.cli._settings import parse_settings
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.report.kit.result import Result

if TYPE_CHECKING:
    from opticcl.estimate.cost import Bill
    from opticcl.ir import Fabric
    from opticcl.plans.machines import ExcludedFabric
    from opticcl.report.cost import Billed

SCALES = tuple(1 << bits for bits in range(4, 17, 2))
"""Numbers of nodes of the picture [count]."""


@dataclass(frozen=True, kw_only=True)
class CostRequest(PlanRequest):
    """What `opticcl machine cost` is asked: values of its options."""

    OPTIONS = """fabrics nodes equal prices change of_collective size optics ignore_light assumptions assume
        out json"""

    prices: str = option(
        "--prices", metavar="<price list>", default="default", help="Price list: default, ramp_hpc or ramp_dcn."
    )
    change: tuple[str, ...] = option(
        "--set",
        metavar="NAME=VALUE",
        default=(),
        help="Change a price or power: wss.usd=300, transceiver.w=5. Repeat for several.",
    )
    of_collective: str | None = shared_option(
        PlanRequest,
        "collective",
        default=None,
        help="Compute the energy of this collective too, by the fastest algorithm.",
    )
    out: tuple[Path, ...] = out_option(PICTURE, RECORD)


def run(request: CostRequest) -> Result:
    """Add up price and power of the parts of a fabric, or compare several fabrics."""
    from opticcl.estimate.cost import bill_of
    from opticcl.report.cost import Billed, Bills

    changes = {name: _number(name, text) for name, text in parse_settings(request.change, "wss.usd=300").items()}
    built, left_out = _fabrics(request)

    def bill(one: Fabric) -> Bill:
        return bill_of(one, request.prices, changes)

    rows: list[Billed] = []
    for name, one in built:
        try:
            rows.append(Billed(name, bill(one)))
        except UnsupportedError as error:
            left_out.append(_excluded(name, error))
    if not rows:
        raise UnsupportedError(left_out[0].reason)
    if request.of_collective is not None:
        rows = _with_energy(request, rows, request.of_collective)
    what = f"{request.of_collective} of {request.size}"
    at_scales = _at_scales(request, bill) if request.outputs.of(PICTURE) else {}
    return Bills(tuple(rows), tuple(left_out), what, at_scales)


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


def _fabrics(request: CostRequest) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric]]:
    """The fabrics that the options name, each once and with a name of its own, and those that are left out."""
    if request.nodes is None and not request.fabrics:
        raise ParameterError("cost: how many nodes? give --nodes N, or fabrics with their shapes")
    built, excluded = make_fabrics(list(dict.fromkeys(request.fabrics)), request.nodes, request.outputs.notes)
    if request.equal is not None:
        from opticcl.plans.equal import on_ground

        _, contenders, unequal = on_ground(built, request.equal, as_built=False)
        built, excluded = [(one.text, one.fabric) for one in contenders], [*excluded, *unequal]
    count = Counter(one.name for _, one in built)
    return [(text if count[one.name] > 1 else one.name, one) for text, one in built], excluded


def _with_energy(request: CostRequest, rows: Sequence[Billed], collective: str) -> list[Billed]:
    """The bills with the collective on each fabric by its fastest algorithm, or the reason why there is none.

    Args:
        request: of the call.
        rows: bills.
        collective: its name.
    Raises: UnsupportedError: no fabric can carry it.
    """
    from opticcl.plans.ranks import beside
    from opticcl.report.cost import Billed, CollectiveTime

    assumed = request.assumed()
    billed, other = [], beside(assumed)
    for row in rows:
        request.progress(f"compile {collective} on {row.name}")
        try:
            plan = request.compiled(assumed, row.bill.fabric, collective=collective)
        except UnsupportedError as error:
            billed.append(Billed(row.name, row.bill, declined=str(error)))
            continue
        plan.verify().raise_if_bad()
        also = (other.name, plan.simulate(assumptions=other.assumed).total_s)
        time = CollectiveTime(plan.algorithm, plan.simulate(assumptions=assumed), also)
        billed.append(Billed(row.name, row.bill, time))
    if all(row.declined for row in billed):
        raise UnsupportedError(billed[0].declined)
    return billed


def _at_scales(request: CostRequest, bill: Callable[[Fabric], Bill]) -> dict[str, list[Bill]]:
    """Bills at every scale that a fabric has, by its text without the parameters that set its shape.

    Args:
        request: of the call.
        bill: of a fabric.
    """
    from opticcl.fabrics import FABRICS
    from opticcl.registry import parse_call, write_call

    bills: dict[str, dict[int, Bill]] = {}
    for text in request.fabrics or FABRICS.names():
        name, written = parse_call(text)
        for scale in SCALES:
            try:
                shape = FABRICS.get(name).parameters_at_scale(scale)
                kept = write_call(name, {key: value for key, value in written.items() if key not in shape})
                bills.setdefault(kept, {})[scale] = bill(make_fabric(kept, scale, request.equal, []))
            except (FabricError, UnsupportedError):
                continue  # the fabric does not exist at this scale, so the picture has no point there
    return {kept: list(at_scales.values()) for kept, at_scales in bills.items() if at_scales}
