"""One door to all engines, for those who want to know more than the time: what links carried, and when transfers ran."""

from __future__ import annotations

from typing import Any, Literal

from opticcl.errors import ParameterError
from opticcl.ir import CircuitPlan
from opticcl.simulate.assumptions import Assumptions
from opticcl.simulate.closed_form import closed_form
from opticcl.simulate.options import split_options
from opticcl.simulate.traffic import Played

__all__ = ["play"]


def play(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    *,
    engine: str = "closed_form",
    mode: Literal["barrier", "asynchronous"] = "barrier",
    record: bool = True,
    **given: Any,
) -> Played:
    """Play a plan with an engine.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: what the time rests on.
        engine: closed_form, flow or packet. The closed form sees no traffic.
        mode: flow and packet: barrier or asynchronous.
        record: whether the traffic is wanted; times are the same without.
        given: options of the engine; see `opticcl.simulate.options`.
    Raises: UnknownNameError, ParameterError, UnsupportedError, BoundError.
    """
    name, options, rest = split_options(engine, given)
    if rest:
        raise ParameterError(
            f"play: {next(iter(rest))} is no option of engine={name}; assumptions have their own place"
        )
    if name == "closed_form":
        if mode != "barrier":
            raise ParameterError(f"simulate: mode={mode} is of engine=flow and packet; the closed form has barriers")
        return Played(closed_form(plan, size_bytes, assumed))
    if name == "flow":
        from opticcl.simulate.flow import play_flow as engine_play
    else:
        from opticcl.simulate.packet import play_packet as engine_play
    return engine_play(plan, size_bytes, assumed, mode=mode, record=record, **options)
