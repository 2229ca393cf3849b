"""Dynamic traffic on a RAMP of 4,096 nodes. A small one of the same kind runs beforehand and compiles the kernels."""

from __future__ import annotations

from measure import Run, register

from opticcl.fabrics.ramp import Ramp
from opticcl.operations.dynamic_traffic.flows import flow_mix
from opticcl.operations.dynamic_traffic.simulation import TrafficSetup, simulate_traffic


def setup(load: float, slots: int, skew: float = 1.0, scheduler: str = "native", shape: int = 8) -> TrafficSetup:
    """Single cells; 8 groups of 8 racks of 64 nodes."""
    machine = Ramp(groups=shape, racks=shape, wavelengths=8 * shape)
    return TrafficSetup(machine, flow_mix("cell", skew=skew), load, scheduler=scheduler, slots=slots)


def traffic(load: float, slots: int, skew: float = 1.0, scheduler: str = "native") -> None:
    """A case for each mark."""
    name = f"traffic.{scheduler.partition(':')[0]}{scheduler[-1:] if ':' in scheduler else ''}_{load:g}_{skew:g}to1"

    def prepare() -> Run:
        simulate_traffic(setup(0.5, 600, skew, scheduler, 2))
        large = setup(load, slots, skew, scheduler)

        def run() -> dict[str, float]:
            found = simulate_traffic(large)
            figures = {"carried_of_ports": found.throughput.value, "growing": float(found.stability == "unstable")}
            if found.stable:
                figures["p99_us"] = found.counts.delay(0.99).value * large.machine.slot * 1e6
            return figures

        return run

    register(name, f"traffic on 4,096 nodes, {scheduler}, load {load:g}, {skew:g}:1, {slots:,} slots", prepare)


traffic(0.9, 10_000)
traffic(0.95, 3000)
traffic(0.95, 3000, 6.0)
traffic(0.9, 1800, scheduler="native:iterations=2")
traffic(1.05, 3000)
