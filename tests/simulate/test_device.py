"""The device engine: whose times it takes, its bound, its traffic, and what it refuses."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.altered import altered

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.simulate import simulate
from opticcl.simulate.device import engine as device

PUBLISHED = assumptions("published")


def ring_of_four(collective="all_gather"):
    """Circuits on a ring of TeraRack."""
    return opticcl.compile("terarack:nodes=4", collective, "1 KB", algorithm="ring").circuits


def test_times_of_packets_are_those_of_the_flow_engine():
    """Without barriers; those of light are not, since what stands is not set again."""
    on_links = opticcl.compile("torus:shape=2x2", "all_reduce", "1 MB", algorithm="ring").circuits
    found, due = (simulate(on_links, 10**6, engine=engine) for engine in ("device", "flow:mode=asynchronous"))
    assert found.timeline.record() == due.timeline.record()
    early = assumptions("published", prepare="early")
    light = opticcl.compile("terarack:nodes=8", "broadcast", "1 KB", algorithm="ring").circuits
    found, due = (simulate(light, 1000, early, engine=engine) for engine in ("device", "flow:mode=asynchronous"))
    assert found.timeline.total_s == pytest.approx(25.35e-6, rel=1e-6)
    assert due.timeline.total_s > 2 * found.timeline.total_s


@pytest.mark.parametrize(("collective", "share"), [("broadcast", 1.0), ("all_gather", 0.75), ("all_reduce", 1.5)])
def test_the_bound_is_a_change_a_latency_and_the_bytes_of_a_node(collective, share, monkeypatch):
    """25 us, and at 64 wavelengths x 2 ports x 40 Gb/s; a time below it is a defect, which is said."""
    plan = ring_of_four(collective)
    assert plan.fabric.node_rate_bits_per_s == 64 * 2 * 40e9
    least_s = 25e-6 + 4.97e-13 + share * 1000 * 8 / (64 * 2 * 40e9)
    assert simulate(plan, 1000, PUBLISHED, engine="device").timeline.lower_bound_s == pytest.approx(least_s, rel=1e-9)
    monkeypatch.setattr(
        "opticcl.simulate.device.list_times.lower_bound",
        lambda *given, **more: SimpleNamespace(seconds=1.0, name="all"),
    )
    with pytest.raises(BoundError, match="by the device engine is below"):
        simulate(plan, 1000, PUBLISHED, engine="device")


def test_traffic_is_recorded_where_it_is_asked_for():
    """Each transfer once; the last one ends with the plan."""
    plan = ring_of_four()
    assert simulate(plan, 1000, PUBLISHED, engine="device").traffic is None
    found = simulate(plan, 1000, PUBLISHED, engine="device", record=True)
    rows = found.traffic.transfers
    pairs = sorted(zip(rows.src.tolist(), rows.dst.tolist(), strict=True))
    assert pairs == sorted([(rank, (rank + 1) % 4) for rank in range(4)] * 3)
    assert rows.end_s.max() == pytest.approx(found.timeline.total_s, rel=1e-12)


@pytest.mark.parametrize(
    ("chunks", "ranks", "taken"), [(1 << 60, 1 << 60, 0), (16, 1 << 60, 1), (17, 1 << 60, 0), (17, 4, 1), (17, 5, 0)]
)
def test_long_runs_are_for_many_chunks_or_many_ranks(chunks, ranks, taken, monkeypatch):
    """From either number on; four ranks have four chunks each."""
    plan = ring_of_four()
    due = simulate(plan, 1000, PUBLISHED, engine="device").timeline
    asked = []
    monkeypatch.setattr(device, "LARGE_CHUNKS", chunks)
    monkeypatch.setattr(device, "LARGE_RANKS", ranks)
    monkeypatch.setattr("opticcl.simulate.device.long_runs.has_long_run", lambda plan: True)
    monkeypatch.setattr(
        "opticcl.simulate.device.long_runs.long_run_timeline", lambda *given: asked.append(given) or due
    )
    assert simulate(plan, 1000, PUBLISHED, engine="device").timeline == due
    assert asked == [(plan, 1000, PUBLISHED)] * taken


@pytest.mark.parametrize("least", [0, 1])
def test_the_sooner_of_two_orders_is_taken(least, monkeypatch):
    """By devices, or asynchronously."""
    asked = []

    def times(plan, size_bytes, assumed, waits, limit, progress):
        asked.append(waits.devices)
        return SimpleNamespace(total_s=1.0 + (waits.devices == (least == 1)), programme=lambda *_: waits.devices)

    monkeypatch.setattr("opticcl.simulate.device.list_schedule.list_schedule", times)
    assert opticcl.simulate.programme(ring_of_four(), 1000, PUBLISHED, engine="device") == (least == 0)
    assert asked == [True, False]


def test_two_events_of_a_transfer_and_devices_with_names():
    """12 transfers are 24 events; where nothing is ever set, no names are missing."""
    plan = ring_of_four()
    assert simulate(plan, 1000, PUBLISHED, engine="device:max_events=24").timeline.total_s > 0
    with pytest.raises(ParameterError, match="about 24 events or more, and 23 are"):
        simulate(plan, 1000, PUBLISHED, engine="device:max_events=23")
    fixed = replace(plan, fabric=altered(plan.fabric, devices=(), reconfiguration_s=0.0, settings=lambda *_: ()))
    assert simulate(fixed, 1000, PUBLISHED, engine="device").timeline.total_s < 1e-6
    unnamed = replace(plan, fabric=altered(plan.fabric, devices=()))
    with pytest.raises(UnsupportedError, match="terarack names no devices"):
        simulate(unnamed, 1000, PUBLISHED, engine="device")
