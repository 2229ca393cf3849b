"""opticcl machine traffic"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._output import PICTURE, RECORD, TABLE
from opticcl.cli._request import FabricRequest, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import Result

if TYPE_CHECKING:
    from opticcl.ir import ProgressCallback
    from opticcl.operations.dynamic_traffic.beside import BesidePlan
    from opticcl.operations.dynamic_traffic.simulation import TrafficSetup
    from opticcl.report.dynamic_traffic import TrafficRow

LEAST_SLOTS = 10_000
"""Slots of a run unless `--slots` says otherwise and no flow needs more [count]."""


@dataclass(frozen=True, kw_only=True)
class TrafficRequest(FabricRequest):
    """What `opticcl machine traffic` is asked: values of its options."""

    READ = "beside"
    OPTIONS = "fabric nodes load flows gaps skew placement between_racks scheduler slots seed * notes json"

    load: tuple[float, ...] = option(
        "--load",
        metavar="<share>",
        default=(0.9,),
        help="Load of the busiest port, such as 0.9; 1 fills it. Repeat for several.",
    )
    flows: tuple[str, ...] = option(
        "--flows",
        metavar="<sizes>",
        default=("cell",),
        help="Sizes of the flows: cell, uniform, university, private_enterprise, commercial_cloud, social_media_cloud. "
        "Repeat for several.",
    )
    gaps: str | None = option(
        "--gaps",
        metavar="<gaps>",
        default=None,
        help="Gaps: poisson, uniform, weibull, lognormal, two_modes, four_modes; default: those of the flows.",
    )
    skew: tuple[float, ...] = option(
        "--skew",
        metavar="<factor>",
        default=(),
        help="Weight of a fifth of the nodes over that of the others; default: that of the flows. Repeat for several.",
    )
    placement: str = option(
        "--placement", default="spread", help="Hot nodes: spread over the machine, or group: side by side."
    )
    between_racks: float | None = option(
        "--between-racks",
        default=None,
        help="Share of the flows that leaves its rack, 0 to 1; 1: any node. Default: that of the flows.",
    )
    scheduler: tuple[str, ...] = option(
        "--scheduler",
        metavar="<scheduler>",
        default=("native",),
        help="native, native:iterations=2, rack, cyclic, cyclic:hops=2, or reference (small machines). Repeat for several.",
    )
    slots: int | None = option(
        "--slots", default=None, help="Length of a run; default: 10,000, or 20 times the longest flow if that is more."
    )
    verify: bool = option(
        "--verify", default=False, help="Check every slot of every epoch by the law of light; takes longer."
    )
    beside: Path | None = option(
        "--beside", default=None, help="A plan file of the same machine that runs beside the traffic."
    )
    reserve: str | None = option(
        "--reserve",
        metavar="<what>=<count>",
        default=None,
        help="Cells of that plan: slots=3 (of an epoch; default) or planes=2.",
    )
    out: tuple[Path, ...] = out_option(PICTURE, TABLE, RECORD)


def run(request: TrafficRequest) -> Result:
    """Simulate dynamic traffic on RAMP, slot by slot. Exit code 1 unless every load is carried and no slot breaks a rule."""
    from opticcl.operations.dynamic_traffic.simulation import assumptions_of
    from opticcl.report.dynamic_traffic import TrafficReport

    if request.reserve is not None and request.beside is None:
        raise ParameterError("traffic: --reserve gives cells to a plan; give --beside plan.parquet too")
    setups, notes = _setups(request)
    shared = None if request.beside is None else _beside(request.beside, request.reserve, setups[0])
    rows = [_row(setup, request.verify, shared, request.progress) for setup in setups]
    return TrafficReport(rows, assumptions_of(setups[0]), notes, shared)


def _setups(request: TrafficRequest) -> tuple[list[TrafficSetup], list[str]]:
    """All runs of a call, checked before the first one, and notes on their lengths."""
    from opticcl.operations.dynamic_traffic.flows import flow_mix
    from opticcl.operations.dynamic_traffic.schedulers import make_scheduler
    from opticcl.operations.dynamic_traffic.simulation import TrafficSetup, least_slots

    machine, slots, share = request.machine(), request.slots, request.between_racks
    if share is not None and not 0 <= share <= 1:
        raise ParameterError(f"--between-racks: {share:g} is not 0 to 1; try 0.7")
    skews: tuple[float | None, ...] = request.skew or (None,)
    setups, notes = [], []
    for name in request.flows:
        mixes = [flow_mix(name, request.gaps, skew, share) for skew in skews]
        for mix, scheduler, load in product(mixes, request.scheduler, request.load):
            length = LEAST_SLOTS if slots is None else slots
            setup = TrafficSetup(machine, mix, load, request.placement, scheduler, length, request.seed)
            least = least_slots(setup)
            setups.append(setup if slots is not None else replace(setup, slots=max(LEAST_SLOTS, least)))
        if slots is not None and slots < least:
            notes.append(
                f"{name}: {slots:,} slots are fewer than 20 times the longest flow, {least:,}; delays may still change"
            )
    for text in request.scheduler:
        make_scheduler(text, setups[0].machine)
    for setup in setups:
        setup.limit()
    return setups, notes


def _beside(path: Path, reserve: str | None, setup: TrafficSetup) -> BesidePlan:
    """The plan of a file and the cells reserved for it.

    Args:
        path: of the plan file.
        reserve: value of `--reserve`.
        setup: whose machine it must be for.
    """
    from opticcl.operations.dynamic_traffic.beside import BesidePlan
    from opticcl.operations.dynamic_traffic.simulation import epoch_slots
    from opticcl.plans.plan import load

    kind, equals, number = (part.strip() for part in (reserve or f"slots={epoch_slots() // 2}").partition("="))
    if not equals or not re.fullmatch("[0-9]{1,9}", number):
        raise ParameterError(f"--reserve: {reserve!r} is not slots=3 or planes=2")
    plan = load(path)
    machine = plan.fabric.machine
    if machine != setup.fabric:
        mine, its = ({"name": f.name, **f.parameters} for f in (setup.fabric, machine))
        key = next(key for key in mine if mine[key] != its.get(key))
        raise ParameterError(f"--beside: {path} is for {key}={its.get(key)}, and --fabric has {key}={mine[key]}")
    return BesidePlan(plan, kind, int(number))


def _row(setup: TrafficSetup, verify: bool, shared: BesidePlan | None, progress: ProgressCallback) -> TrafficRow:
    """Simulate a run, judged if requested, and the same without the plan.

    Args:
        setup: of the run.
        verify: whether every epoch is judged.
        shared: the plan beside it.
        progress: called with (what, done, total).
    """
    from opticcl.operations.dynamic_traffic.judged import judged_run
    from opticcl.operations.dynamic_traffic.simulation import simulate_traffic
    from opticcl.report.dynamic_traffic import TrafficRow

    limit = setup.limit()
    if setup.load > limit.largest_load * (1 + 1e-12):
        return TrafficRow(setup, limit)
    free = None if shared is None else shared.free
    verdict = None
    if verify:
        light = None if shared is None else shared.light
        result, verdict = judged_run(setup, progress=progress, free=free, reserved=light)
    else:
        result = simulate_traffic(setup, progress=progress, free=free)
    alone = None if shared is None else simulate_traffic(setup, progress=progress)
    return TrafficRow(setup, limit, result, verdict, alone)
