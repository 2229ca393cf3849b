"""Output of `opticcl simulate`: a record and a text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opticcl.assumptions import assumptions, value_text
from opticcl.plans.machines import specification
from opticcl.plans.sentences import not_tried_line
from opticcl.report.kit.words import ratio, shares
from opticcl.report.traffic import critical_path_lines, critical_path_rows
from opticcl.simulate import moved_share
from opticcl.simulate.bottleneck import Bottleneck, Load, bottleneck, loads, loads_of_traffic
from opticcl.units import counted, format_bytes, format_quantity, format_seconds

if TYPE_CHECKING:
    from opticcl.plans.plan import Plan
    from opticcl.simulate import SimulationResult

__all__ = ["Simulation"]


@dataclass(frozen=True)
class Simulation:
    """A plan and its simulation.

    Args:
        plan: that was simulated.
        engine: name of the engine.
        result: of the simulation.
        beside: another set of assumptions, and the time of the same plan under it [s].
    """

    plan: Plan
    engine: str
    result: SimulationResult
    beside: tuple[str, float] | None = None

    @property
    def mode(self) -> str:
        """When a transfer may start: barrier or asynchronous."""
        return str(self.result.timeline.assumptions.get("mode", "barrier"))

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """Load of every part: as the engine recorded it, else from the circuits."""
        traffic = self.result.traffic
        if traffic is not None and self.plan.fabric.is_packet_switched:
            return loads_of_traffic(self.plan.fabric, traffic)
        return loads(self.plan.circuits, self.plan.size_bytes)

    @cached_property
    def bottleneck(self) -> Bottleneck | None:
        """The part that is busy longest."""
        return bottleneck(self.plan.fabric, self.loads, self.result.timeline.total_s)

    @property
    def algorithm_bytes_per_s(self) -> float:
        """Message over time, "algbw" of nccl-tests [byte/s]."""
        total_s = self.result.timeline.total_s
        return self.plan.size_bytes / total_s if total_s else 0.0

    @property
    def bus_bytes_per_s(self) -> float:
        """Bandwidth of a node's ports that this requires, "busbw" of nccl-tests [byte/s]."""
        return self.algorithm_bytes_per_s * moved_share(self.plan.schedule.collective)

    def record(self) -> dict[str, Any]:
        """Output of `opticcl simulate --json`."""
        plan, timeline, busiest = self.plan, self.result.timeline, self.bottleneck
        found: dict[str, Any] = {
            "fabric": specification(plan.fabric),
            "algorithm": plan.algorithm,
            "collective": plan.schedule.collective.name,
            "num_nodes": plan.fabric.num_nodes,
            "size_bytes": plan.size_bytes,
            "engine": self.engine,
            "mode": self.mode,
            **timeline.record(),
            **({f"{self.beside[0]}_s": self.beside[1]} if self.beside else {}),
            "algorithm_bytes_per_s": self.algorithm_bytes_per_s,
            "bus_bytes_per_s": self.bus_bytes_per_s,
            "bottleneck": busiest and busiest.name,
            "bottleneck_bytes": busiest.carried_bytes if busiest else 0.0,
            "bottleneck_utilisation": busiest.utilisation if busiest else 0.0,
            "bottleneck_alike": busiest.num_equal if busiest else 0,
            "not_tried": list(plan.not_tried),
        }
        found["steps"] = [
            {"first": steps.start, "last": steps.stop - 1, "rounds": rounds, **parts}
            for steps, rounds, parts in timeline
        ]
        if self.mode == "asynchronous" and self.result.traffic is not None:
            found["critical_path"] = critical_path_rows(self.result.traffic.critical)
        return found

    def lines(self) -> list[str]:
        """Lines below the table of steps."""
        timeline, busiest = self.result.timeline, self.bottleneck
        lines = [self._rates()]
        if busiest is not None:
            lines.append(str(busiest))
        dropped = sum(float(load.dropped_bytes.sum()) for load in self.loads)
        if dropped:
            lines.append(f"dropped at full queues and sent again: {format_bytes(dropped)}")
        if self.result.traffic is not None:
            lines += critical_path_lines(self.plan.fabric, self.result.traffic.critical)
        if self.beside:
            lines.append(f"under {self.beside[0]} the same plan takes {format_seconds(self.beside[1])}")
        lines += filter(
            None, [not_tried_line({self.plan.fabric.name: self.plan.not_tried} if self.plan.not_tried else {})]
        )
        name = timeline.assumptions["name"]
        whole = assumptions(name.removesuffix(", changed"))
        own = {key: value for key, value in timeline.assumptions.items() if value != getattr(whole, key, None)}
        changed = [f"{key}={value_text(key, value)}" for key, value in own.items() if key != "name"]
        return [*lines, f"assumptions: {', '.join([name, *changed])}"]

    def answer(self) -> str:
        """Time of the plan, how far it is from its bound, and what takes most of it, in a sentence."""
        timeline, plan = self.result.timeline, self.plan
        seconds, bound = timeline.total_s, timeline.lower_bound_s
        parts = shares(timeline.totals())
        most = max(parts, key=lambda name: parts[name])
        near = f", {ratio(seconds / bound)} its lower bound" if seconds and bound else ""
        what = f"; {most} is {parts[most]:.0%} of it" if seconds else ""
        collective = f"{plan.schedule.collective.name} of {format_bytes(plan.size_bytes)}"
        nodes = counted(plan.fabric.num_nodes, "node")
        where = f"on {plan.fabric.name} with {nodes} by {plan.algorithm}"
        return f"{collective} takes {format_seconds(seconds)} {where}{near}{what}."

    def headline(self) -> str:
        """Engine, time and bandwidth in one line."""
        how = self.engine.replace("_", " ") + (f" engine, {self.mode}" if self.engine != "closed_form" else "")
        busiest = self.bottleneck
        load = f"; {busiest.name} busy {busiest.utilisation:.1%} of the time" if busiest else ""
        return f"{how}: {format_seconds(self.result.timeline.total_s)}, {self._rates()}{load}"

    def _rates(self) -> str:
        pairs = (("algorithm", self.algorithm_bytes_per_s), ("bus", self.bus_bytes_per_s))
        return ", ".join(f"{name} bandwidth {format_quantity(rate, 'byte/s')}" for name, rate in pairs)
