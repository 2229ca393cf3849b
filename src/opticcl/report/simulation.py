"""What `opticcl simulate` answers: a record and a text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opticcl.registry import write_call
from opticcl.report.traffic import critical_path_lines, critical_path_rows
from opticcl.simulate import moved_share
from opticcl.simulate.bottleneck import Bottleneck, Load, bottleneck, loads, loads_of_traffic
from opticcl.units import format_bytes, format_quantity, format_seconds

if TYPE_CHECKING:
    from opticcl.plan import Plan
    from opticcl.simulate.traffic import Played

__all__ = ["Simulation"]


@dataclass(frozen=True)
class Simulation:
    """A plan and what an engine made of it.

    Args:
        plan: what was played.
        engine: by which engine.
        mode: barrier or asynchronous.
        played: what came out.
    """

    plan: Plan
    engine: str
    mode: str
    played: Played

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """What every part carried: what the engine saw, else what the circuits say."""
        traffic = self.played.traffic
        if traffic is not None and self.plan.fabric.is_packet_switched:
            return loads_of_traffic(self.plan.fabric, traffic)
        return loads(self.plan.circuits, self.plan.size_bytes)

    @cached_property
    def bottleneck(self) -> Bottleneck | None:
        """The part that is busy longest."""
        return bottleneck(self.plan.fabric, self.loads, self.played.timeline.total_s)

    @property
    def algorithm_bytes_per_s(self) -> float:
        """Message over time, "algbw" of nccl-tests [byte/s]."""
        total_s = self.played.timeline.total_s
        return self.plan.size_bytes / total_s if total_s else 0.0

    @property
    def bus_bytes_per_s(self) -> float:
        """What a node's ports carry at least for that, "busbw" of nccl-tests [byte/s]."""
        return self.algorithm_bytes_per_s * moved_share(self.plan.schedule.collective)

    def record(self) -> dict[str, Any]:
        """As `opticcl simulate --json` prints it."""
        plan, timeline, fullest = self.plan, self.played.timeline, self.bottleneck
        made_from = {k: v for k, v in plan.fabric.parameters.items() if v is not None}
        found: dict[str, Any] = {
            "fabric": write_call(plan.fabric.name, made_from),
            "algorithm": plan.algorithm,
            "collective": plan.schedule.collective.name,
            "num_nodes": plan.fabric.num_nodes,
            "size_bytes": plan.size_bytes,
            "engine": self.engine,
            "mode": self.mode,
            "total_s": timeline.total_s,
            "num_steps": timeline.num_steps,
            "num_rounds": timeline.num_rounds,
            **timeline.totals(),
            "lower_bound_s": timeline.lower_bound_s,
            "algorithm_bytes_per_s": self.algorithm_bytes_per_s,
            "bus_bytes_per_s": self.bus_bytes_per_s,
            "bottleneck": fullest and fullest.name,
            "bottleneck_bytes": fullest.carried_bytes if fullest else 0.0,
            "bottleneck_utilisation": fullest.utilisation if fullest else 0.0,
            "bottleneck_alike": fullest.alike if fullest else 0,
            "assumptions": dict(timeline.assumptions),
        }
        if self.mode == "asynchronous" and self.played.traffic is not None:
            found["critical_path"] = critical_path_rows(self.played.traffic.critical)
        return found

    def lines(self) -> list[str]:
        """What stands below the table of steps."""
        timeline, fullest = self.played.timeline, self.bottleneck
        said = [self._rates()]
        if fullest is not None:
            others = f" (and {fullest.alike - 1:,} as busy)" if fullest.alike > 1 else ""
            said.append(
                f"bottleneck: {fullest.name}{others}, {format_bytes(fullest.carried_bytes)}, busy for "
                f"{format_seconds(fullest.busy_s)}, {fullest.utilisation:.1%} of the time"
            )
        lost = sum(float(load.dropped_bytes.sum()) for load in self.loads)
        if lost:
            said.append(f"lost in full queues and sent again: {format_bytes(lost)}")
        if self.played.traffic is not None:
            said += critical_path_lines(self.plan.fabric, self.played.traffic.critical)
        assumed = ", ".join(
            f"{key}={format_quantity(value, 'byte/s') if key == 'memory_bytes_per_s' else value}"
            for key, value in timeline.assumptions.items()
        )
        return [*said, f"lower bound {format_seconds(timeline.lower_bound_s)}; assumed: {assumed}"]

    def headline(self) -> str:
        """Engine, time and bandwidth in one line."""
        how = self.engine.replace("_", " ") + (f" engine, {self.mode}" if self.engine != "closed_form" else "")
        fullest = self.bottleneck
        busiest = f"; {fullest.name} busy {fullest.utilisation:.1%} of the time" if fullest else ""
        return f"{how}: {format_seconds(self.played.timeline.total_s)}, {self._rates()}{busiest}"

    def _rates(self) -> str:
        pairs = (("algorithm", self.algorithm_bytes_per_s), ("bus", self.bus_bytes_per_s))
        return ", ".join(f"{name} bandwidth {format_quantity(rate, 'byte/s')}" for name, rate in pairs)
