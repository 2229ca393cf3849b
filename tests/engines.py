"""Engines by name, as tests call them: `flow(plan, size, assumed, mode=...)` is the timeline, `flow_result` records too."""

from functools import partial

from opticcl.simulate import simulate


def timeline(plan, size_bytes, assumed, *, engine, **options):
    """Time of a plan by an engine."""
    return simulate(plan, size_bytes, assumed, engine=engine, **options).timeline


closed_form = partial(timeline, engine="closed_form")
flow = partial(timeline, engine="flow")
packet = partial(timeline, engine="packet")
flow_result = partial(simulate, engine="flow", record=True)
packet_result = partial(simulate, engine="packet", record=True)
