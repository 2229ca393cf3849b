"""Dynamic traffic on RAMP: every cell is accounted for, every slot is judged, loads are known before they are simulated."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.fabrics import fabric
from opticcl.fabrics.ramp import Ramp
from opticcl.files import read_toml
from opticcl.ir.epochs import EpochRequest
from opticcl.operations.dynamic_traffic import simulation
from opticcl.operations.dynamic_traffic.cyclic import Cyclic
from opticcl.operations.dynamic_traffic.demand import Channels, NodeDemand, node_weights
from opticcl.operations.dynamic_traffic.flows import flow_mix
from opticcl.operations.dynamic_traffic.judged import judged_run
from opticcl.operations.dynamic_traffic.reference import ages
from opticcl.operations.dynamic_traffic.schedulers import Native, all_free, make_scheduler
from opticcl.operations.dynamic_traffic.simulation import FlowArrivals, TrafficSetup, epoch_slots, simulate_traffic
from opticcl.operations.dynamic_traffic.statistics import stability

SCHEDULERS = ("native", "native:iterations=2", "rack", "cyclic", "cyclic:hops=2")
SUBNETS = ("broadcast", "route_broadcast", "route_switch")


def machine(groups=2, racks=2, wavelengths=4, **more):
    """A small RAMP."""
    return Ramp(groups=groups, racks=racks, wavelengths=wavelengths, **more)


def setup(where=None, load=0.6, flows="cell", scheduler="native", slots=240, **more):
    """A short run."""
    mix = {key: more.pop(key) for key in ("skew", "gap", "between_racks") if key in more}
    return TrafficSetup(where or machine(), flow_mix(flows, **mix), load, scheduler=scheduler, slots=slots, **more)


@st.composite
def setups(draw):
    """Odd shapes, all kinds of subnet, sizes, loads up to saturation and all schedulers."""
    groups = draw(st.integers(1, 4))
    racks = draw(st.integers(1, groups))
    where = machine(
        groups,
        racks,
        groups * draw(st.integers(2, 3)),
        transceivers_per_group=draw(st.integers(1, 2)),
        subnet=draw(st.sampled_from(SUBNETS)),
    )
    mix = flow_mix(
        draw(st.sampled_from(("cell", "uniform", "social_media_cloud"))),
        skew=draw(st.sampled_from((1.0, 6.0))),
        between_racks=draw(st.sampled_from((None, 0.5))) if groups * racks > 1 else 0.0,
    )
    return TrafficSetup(
        where,
        mix,
        draw(st.sampled_from((0.2, 0.8, 1.3))),
        draw(st.sampled_from(("spread", "group"))),
        draw(st.sampled_from(SCHEDULERS)),
        draw(st.integers(6, 60)),
        draw(st.integers(0, 99)),
    )


@examples(8)
@given(setups())
def test_offered_is_sent_and_pending_and_every_epoch_is_judged(run):
    """No cell is lost or invented, and no slot breaks the law of light, at any load."""
    result, verdict = judged_run(run)
    assert verdict.ok, str(verdict)
    assert result.offered_cells == result.sent_cells + result.pending_cells
    assert result.counts.sent_by.sum() <= result.sent_cells


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_seed_gives_the_same_run(scheduler):
    """And another seed another one."""
    runs = [simulate_traffic(setup(scheduler=scheduler, seed=seed)) for seed in (3, 3, 4)]
    assert np.array_equal(runs[0].counts.delays, runs[1].counts.delays)
    assert not np.array_equal(runs[0].counts.delays, runs[2].counts.delays)


@pytest.mark.parametrize("subnet", SUBNETS)
@pytest.mark.parametrize("between_racks", [None, 0.3, 0.0, 1.0])
def test_loads_of_ports_and_channels_are_sums_of_the_matrix(subnet, between_racks):
    """Formulas without a matrix against the matrix."""
    where = machine(3, 2, 6, subnet=subnet)
    weights = np.random.default_rng(1).uniform(1, 4, where.num_nodes)
    demand = NodeDemand(where, weights, between_racks)
    rack = np.arange(where.num_nodes) // where.wavelengths
    same = rack[:, None] == rack[None]
    chance = np.tile(weights, (len(weights), 1))
    np.fill_diagonal(chance, 0)
    if between_racks is not None:
        inside, outside = chance * same, chance * ~same
        chance = (1 - between_racks) * inside / inside.sum(axis=1, keepdims=True)
        chance += between_racks * outside / outside.sum(axis=1, keepdims=True)
    sent = weights[:, None] * chance / chance.sum(axis=1, keepdims=True)
    sent *= where.ports_per_node / max(sent.sum(axis=1).max(), sent.sum(axis=0).max())
    channels = Channels(where)
    channel = channels.send_part[:, None] + channels.receive_part[None]
    carried = np.bincount(channel.ravel(), sent.ravel(), channels.count)
    assert demand.channel_cells == pytest.approx(carried)
    assert demand.cells_per_slot == pytest.approx(sent.sum())
    assert demand.worst.largest_load == pytest.approx(min(1, where.ports_per_node / carried.max()))


@pytest.mark.parametrize("subnet", SUBNETS)
def test_circuits_of_a_channel_are_those_that_the_verifier_counts_together(subnet):
    """Two circuits have the same channel exactly if they occupy the same resource and wavelength between the gates."""
    where = machine(2, 2, 4, subnet=subnet)
    node = np.arange(where.num_nodes)
    src, dst = (a.ravel() for a in np.meshgrid(node, node))
    from opticcl.operations.dynamic_traffic.judged import _every_plane

    circuits = _every_plane(where, src, dst)[0]
    *_, usage = where.usage(circuits)
    depth = where.num_wavelengths if usage.resource.per_wavelength else 1
    cell = usage.index * depth + (circuits.wavelength_lo if usage.resource.per_wavelength else 0)
    channels = Channels(where)
    channel = channels.send_part[src] + channels.receive_part[dst]
    pairs = {(a, b) for a, b in zip(cell.tolist(), channel.tolist(), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_arrivals_have_the_load_and_the_shares():
    """Cells of the busiest port, share between racks, share of hot nodes."""
    run = setup(machine(4, 4, 8), load=0.5, flows="uniform", between_racks=0.7, skew=6.0)
    demand, arrivals = run.demand(), FlowArrivals(run)
    epochs = [arrivals.epoch(e) for e in range(3000)]
    src, dst, cells = (np.concatenate([getattr(e, c) for e in epochs]) for c in ("src", "dst", "cells"))
    assert cells.sum() / (3000 * epoch_slots()) == pytest.approx(0.5 * demand.cells_per_slot, rel=0.02)
    assert (src // 8 != dst // 8).mean() == pytest.approx(0.7, abs=0.01)
    assert (src != dst).all()
    hot = demand.weights > 1
    assert hot.sum() == round(0.2 * 128)
    assert hot[src].mean() == pytest.approx(0.2 * 6 / (0.2 * 6 + 0.8), abs=0.02)
    assert np.all(np.diff(np.concatenate([e.arrival for e in epochs])) >= 0)


def test_every_mix_and_every_gap_has_the_mean_of_its_source():
    """Gaps have mean one; log-normal and Weibull sizes their closed forms, as far as they are not cut."""
    file = read_toml("opticcl.operations.dynamic_traffic", "traffic.toml")
    for name in file["flows"]:
        for gap in file["gaps"]:
            assert flow_mix(name, gap).gaps.mean() == pytest.approx(1)
    assert np.median(flow_mix("university").size_bytes) == pytest.approx(np.exp(7), rel=1e-3)
    assert flow_mix("social_media_cloud").size_bytes.mean() == pytest.approx(42_000, rel=0.01)
    assert flow_mix("university").size_bytes.max() <= 20_000_000
    assert flow_mix("university").skew == pytest.approx(0.55 / 0.2 / (0.45 / 0.8))


def test_a_lone_cell_waits_for_two_epochs():
    """It arrives in epoch 0 and is sent in the first slot of epoch 2."""
    where = machine()
    native = Native(where)
    native.add(EpochRequest(*(np.array([v], np.int32) for v in (0, 5, 1, 4))))
    grants = native.schedule(2, all_free(where))
    assert (grants.src, grants.dst, grants.bit, grants.arrival) == (0, 5, 0, 4)
    assert grants.ended_slot == 2 * epoch_slots() + 1


def test_the_oldest_request_comes_first():
    """Two senders want the only free cell of a receiver."""
    where = machine()
    native = Native(where)
    native.add(EpochRequest(*(np.array(v, np.int32) for v in ([0, 1], [5, 5], [1, 1], [0, 3]))))
    free = all_free(where)
    free.receive[5] = 2
    grants = native.schedule(2, free)
    assert grants.src.tolist() == [0]
    assert grants.bit.tolist() == [1]
    assert native.pending_cells == 1


def test_the_reference_reaches_its_bound_or_less_and_the_others_no_more():
    """Ages of the cells that are sent, on the same requests."""
    where = machine(2, 2, 2)
    rng = np.random.default_rng(5)
    src = rng.integers(0, 8, 40)
    dst = (src + rng.integers(1, 8, 40)) % 8
    requests = EpochRequest(
        *(np.array(c, np.int32) for c in (src, dst, rng.integers(1, 4, 40), np.sort(rng.integers(0, 12, 40))))
    )
    found = {}
    for name in ("native", "native:iterations=3", "rack", "reference"):
        scheduler = make_scheduler(name, where)
        scheduler.add(requests)
        found[name] = ages(scheduler.schedule(4, all_free(where)), 24)
        if name == "reference":
            assert found[name] <= scheduler.bound + 1e-6
    assert max(found.values()) == found["reference"]


def test_the_reference_is_judged():
    """Its claim that no request waits in vain included."""
    result, verdict = judged_run(setup(machine(2, 2, 2), scheduler="reference", load=0.4, slots=24))
    assert verdict.ok, str(verdict)
    assert 0.9 < result.of_bound <= 1 + 1e-9


def test_a_cycle_meets_every_pair_once():
    """N permutations, each without two circuits that meet."""
    where = machine(3, 2, 6)
    cyclic = Cyclic(where)
    n = where.num_nodes
    src, dst = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n)))
    apart = src != dst
    src, dst = (a[apart].astype(np.int32) for a in (src, dst))
    cyclic.add(EpochRequest(src, dst, np.ones(len(src), np.int32), np.full(len(src), -1, np.int32)))
    epochs = [cyclic.schedule(e, all_free(where)) for e in range(-(-n // (3 * epoch_slots())))]
    assert cyclic.pending_cells == 0
    assert sum(map(len, epochs)) == n * (n - 1)


def test_uniform_load_is_carried_and_the_restricted_ones_stop_earlier():
    """At 0.9 of the ports: native carries it, one plane a pair of racks and two hops do not."""
    where = machine(4, 4, 16)
    found = {
        name: simulate_traffic(setup(where, 0.9, scheduler=name, slots=900)) for name in ("native", "cyclic:hops=2")
    }
    assert found["native"].stable
    assert found["native"].throughput.value == pytest.approx(found["native"].offered.value, rel=0.005)
    assert not found["cyclic:hops=2"].stable
    assert found["cyclic:hops=2"].throughput.value < 0.6


def test_too_many_waiting_cells_end_a_run(monkeypatch):
    """It stops with its backlog; nothing is dropped."""
    values = {**simulation.run_values(), "most_pending": 500}
    monkeypatch.setattr(simulation, "run_values", lambda: values)
    result = simulate_traffic(setup(load=2.0, slots=6000))
    assert result.ended_early
    assert result.stability == "undecided"  # before the measured part
    assert result.pending_cells > 500
    assert result.offered_cells == result.sent_cells + result.pending_cells
    values["most_pending"] = 15 * result.pending_cells
    longer = simulate_traffic(setup(load=2.0, slots=400))
    assert (longer.ended_early, longer.stability) == (True, "unstable")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep), pytest.param(2, marks=pytest.mark.deep)])
@pytest.mark.parametrize("slots", [600, *(pytest.param(n, marks=pytest.mark.deep) for n in (1500, 6000))])
@pytest.mark.parametrize(
    ("scheduler", "load", "skew"),
    [("native", 0.9, 1.0), ("rack", 0.9, 1.0), ("rack", 0.8, 1.0), ("cyclic", 0.5, 1.0), ("rack", 0.9, 6.0)],
)
def test_a_load_that_is_carried_is_never_called_unstable(scheduler, load, skew, slots, seed):
    """While the backlog still fills, the run is undecided; 0.5 is carried by a cycle, the others by far."""
    found = simulate_traffic(setup(machine(4, 4, 16), load, skew=skew, scheduler=scheduler, slots=slots, seed=seed))
    assert found.stability in (("stable",) if (scheduler, slots) == ("native", 600) else ("stable", "undecided"))


@pytest.mark.deep
def test_a_load_that_fills_for_long_is_carried_in_the_end():
    """0.9 with a plane for each pair of racks: the throughput that RAMP 3.2 names."""
    found = simulate_traffic(setup(machine(4, 4, 16), 0.9, scheduler="rack", slots=6000))
    assert found.stability == "stable"
    assert found.throughput.value == pytest.approx(found.offered.value, rel=0.005)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep), pytest.param(2, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    ("scheduler", "load", "skew"),
    [
        pytest.param("native", 1.1, 1.0, marks=pytest.mark.deep),
        pytest.param("rack", 1.1, 1.0, marks=pytest.mark.deep),
        ("cyclic", 0.9, 6.0),
        pytest.param("cyclic:hops=2", 0.6, 1.0, marks=pytest.mark.deep),
        pytest.param("cyclic:hops=2", 0.8, 1.0, marks=pytest.mark.deep),
    ],
)
def test_a_load_that_is_not_carried_is_called_unstable(scheduler, load, skew, seed):
    """Above the largest load, or above what a scheduler can send, with skew or without."""
    found = simulate_traffic(setup(machine(4, 4, 16), load, skew=skew, scheduler=scheduler, slots=3000, seed=seed))
    assert found.stability == "unstable"
    assert found.throughput.value < 0.98 * found.offered.value


@pytest.mark.parametrize("batches", [20, 12])
def test_stability_of_drawn_backlogs(batches):
    """A line is unstable; a level, a square root and what approaches a level are not; with more noise nothing is decided."""
    random, slots, offered = np.random.default_rng(3), 240.0, 900.0
    t = np.arange(batches) / batches * 0.8 + 0.2  # the first fifth is left out
    for _ in range(20):
        noise = random.normal(0, 100, batches)
        walk = np.cumsum(noise)
        line = 20 * slots * batches * t
        assert stability(line + walk, slots, offered) == "unstable"
        assert stability(5e4 + noise, slots, offered) == "stable"
        assert stability(5e4 + walk, slots, offered) != "unstable"
        for fills in (np.sqrt(t), 1 - np.exp(-3 * t), 1 - np.exp(-8 * t)):
            assert stability(1e5 * fills + walk, slots, offered) != "unstable"
        assert stability(1e5 * np.sqrt(t) + noise, slots, offered) == "undecided"
        assert stability(5e4 + 4000 * noise, slots, offered) == "undecided"
        assert stability(line + walk, slots, 100 * offered) != "unstable"  # a small share of what arrives
    assert stability(np.arange(8.0), slots, offered) == "undecided"  # too few


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"load": 0}, "load: 0 is not above 0"),
        ({"load": float("nan")}, "load: nan"),
        ({"skew": 0.5}, "skew: 0.5 is not 1"),
        ({"slots": 5}, "slots: 5 are fewer than the 6 of an epoch"),
        ({"slots": 10**9}, "give fewer"),
        ({"seed": -1}, "seed: -1"),
        ({"where": fabric("torus", shape=(2, 2))}, "torus has no slots"),
        ({"where": machine(slot=0.0)}, "without slots"),
        ({"between_racks": -0.1}, "between_racks: -0.1"),
        ({"placement": "middle"}, "neither spread nor group"),
        ({"where": machine(1, 1, 1)}, "one node has no other"),
        ({"where": machine(1, 1, 4), "between_racks": 0.5}, "there is one rack"),
        ({"scheduler": "native:iterations=99"}, "iterations=99"),
        ({"scheduler": "cyclic:hops=3"}, "hops=3"),
        ({"scheduler": "reference", "where": machine(transceivers_per_group=2)}, "planes of 1 transceiver"),
        ({"scheduler": "reference", "where": machine(4, 4, 8), "load": 0.9}, "variables"),
    ],
)
def test_bad_input_is_named(wrong, text):
    """The field, its value and what to try."""
    with pytest.raises(ParameterError, match=text):
        simulate_traffic(setup(**wrong))


def test_unknown_names():
    """With the nearest known one."""
    with pytest.raises(UnknownNameError, match="did you mean 'native'"):
        simulate_traffic(setup(scheduler="nativ"))
    with pytest.raises(UnknownNameError, match="did you mean 'university'"):
        flow_mix("universty")
    with pytest.raises(UnknownNameError, match="unknown gaps"):
        flow_mix("cell", "comb")


def test_hot_nodes_side_by_side_are_inadmissible_earlier():
    """The channel between hot groups is the limit, by its name."""
    where = machine(4, 4, 16)
    mix = flow_mix("cell", skew=6.0)
    spread, group = (NodeDemand(where, node_weights(where, mix, p)).worst for p in ("spread", "group"))
    assert group.largest_load < 0.6 < spread.largest_load
    assert group.name.startswith("channel (g_src=0, g_dst=0")
    assert replace(mix, skew=1.0).skew == 1
