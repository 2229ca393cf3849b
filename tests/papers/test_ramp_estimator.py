"""RAMP's estimator: the checked values of the notes, the library where it can compile as much, and bad input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.errors import ParameterError, UnknownNameError
from opticcl.fabrics import fabric
from opticcl.papers.ramp_estimator import COLLECTIVES, RIVALS, estimate, fastest, matched, setting, speed_up, strategies

GB = 1e9
P = setting("p")
BETTER = setting("p", memory="2.039TB/s", bytes_factor=2, slot_efficiency=0.95)


def test_parts_of_a_reduce_scatter() -> None:
    """1 GB: RAMP 5.6 + 645 + 685 us in 4 steps; the fat tree 10.01 ms by levels of 8, 20, 20 and 20.48."""
    ramp = estimate("ramp", "ramp", "reduce_scatter", GB, P)
    assert (ramp.steps, round(ramp.h2h_s * 1e6, 1)) == (4, 5.6)
    assert (round(ramp.h2t_s * 1e6), round(ramp.compute_s * 1e6)) == (645, 685)
    tree = estimate("fat_tree", "hierarchical", "reduce_scatter", GB, P)
    assert tree.steps == pytest.approx(7 + 19 + 19 + 19.48)
    assert f"{tree.total_s * 1e3:.2f}" == "10.01"


@pytest.mark.parametrize(
    ("collective", "printed"),
    [("reduce_scatter", "7.50"), ("all_gather", "12.4"), ("scatter", "12.4"), ("gather", "12.4"), ("all_reduce", "9.1"),
     ("barrier", "29.3"), ("all_to_all", "173.9")],
)  # fmt: skip
def test_speed_ups_of_the_notes(collective: str, printed: str) -> None:
    """Section 2.6, set P, published strategies."""
    digits = len(printed.partition(".")[2])
    assert f"{speed_up(collective, GB, P).times:.{digits}f}" == printed


def test_the_torus_with_half_of_its_links() -> None:
    """A ring both ways round makes the torus the fastest rival of a reduce_scatter: 6.70."""
    made = speed_up("reduce_scatter", GB, setting("p", torus_share=0.5))
    assert (f"{made.times:.2f}", made.rival.system, made.rival.strategy) == ("6.70", "torus", "torus2d")


@pytest.mark.parametrize(
    ("strategy", "milliseconds", "times"), [("flat", 381, 174), ("hierarchical", 85.6, 39), ("square", 81.5, 37)]
)
def test_all_to_all_of_the_fat_tree(strategy: str, milliseconds: float, times: float) -> None:
    """Pairs, servers of 8 and 256 x 256, against 2.193 ms."""
    ramp = fastest("ramp", "all_to_all", GB, P).total_s
    time = estimate("fat_tree", strategy, "all_to_all", GB, P).total_s
    assert ramp * 1e3 == pytest.approx(2.193, abs=5e-4)
    assert time * 1e3 == pytest.approx(milliseconds, rel=2e-3)
    assert time / ramp == pytest.approx(times, rel=5e-3)
    assert speed_up("all_to_all", GB, P, "best").rival.strategy == "square"


@pytest.mark.parametrize(("rule", "times"), [("all", 173.9), ("printed", 154.5), ("one", 32.1)])
def test_transceivers_of_the_last_step(rule: str, times: float) -> None:
    """32, 17 or one of them towards the one peer."""
    assert speed_up("all_to_all", GB, setting("p", peer_transceivers=rule)).times == pytest.approx(times, abs=0.05)


@pytest.mark.parametrize(
    ("made", "times", "rival"),
    [(P, 8.42, "topoopt"), (BETTER, 7.35, "topoopt"), (setting("p", torus_share=0.5), 7.76, "torus")],
)
def test_all_reduce_of_10_gb(made, times: float, rival: str) -> None:
    """8.4 with P, 7.35 with a faster memory and wider sums, 7.76 against the torus."""
    found = speed_up("all_reduce", 10 * GB, made)
    assert (round(found.times, 2), found.rival.system) == (times, rival)


@pytest.mark.parametrize(
    ("size", "ring", "hierarchical"), [(10 * GB, 10.2, 1.140), (GB / 100, 7.9e3, 4.8), (GB / 1000, 3.6e4, 18)]
)
def test_matched_bandwidth(size: float, ring: float, hierarchical: float) -> None:
    """Figure 21: all at 2.4 Tb/s without oversubscription."""
    made = matched(P, 2.4e12)
    ramp = fastest("ramp", "all_reduce", size, made).total_s
    for strategy, times in (("ring", ring), ("hierarchical", hierarchical)):
        assert estimate("fat_tree", strategy, "all_reduce", size, made).total_s / ramp == pytest.approx(
            times, rel=0.012
        )


@pytest.mark.parametrize(
    ("made", "microseconds"),
    [(P, 5.21), (setting("once"), 3.28), (setting("p", switches="1x1x3x5", nvswitches=2), 4.71)],
)
def test_delays_of_the_longest_path(made, microseconds: float) -> None:
    """Each link up and down or once; switches and NVSwitches as often as the setting has them."""
    pairs = estimate("fat_tree", "flat", "all_to_all", GB, made)
    assert pairs.h2h_s / pairs.steps * 1e6 == pytest.approx(microseconds)


def test_a_broadcast_along_a_ring_is_pipelined() -> None:
    """k chunks pass N - 1 nodes in N + k - 2 steps, with no fewer steps by another k."""
    made = setting("once", num_nodes=64)
    found = estimate("fat_tree", "ring", "broadcast", GB, made)
    chunks = found.steps - 62
    step_s, data_s = found.h2h_s / found.steps, 8 * GB / made.card_rate
    assert found.h2t_s == pytest.approx(found.steps * data_s / chunks)
    times = {k: (k + 62) * (step_s + data_s / k) for k in range(1, 4 * round(chunks))}
    assert min(times.values()) == pytest.approx(found.total_s, rel=1e-6)
    assert strategies("fat_tree", "broadcast", made) == ("ring",)
    assert len(strategies("fat_tree", "broadcast", P)) == 3


# --- the library, where it can compile as much ------------------------------------------------------------------------


def test_ring_on_topoopt_is_the_librarys() -> None:
    """65,536 nodes: the compiled ring takes what the formula says, sums included."""
    plan = opticcl.compile("topoopt:nodes=65536", "all_reduce", "1GB", algorithm="ring")
    found = estimate("topoopt", "ring", "all_reduce", GB, P)
    timeline = plan.simulate(compute="chain", assumptions="published")
    assert timeline.num_steps == found.steps
    assert timeline.totals()["latency_s"] == pytest.approx(found.h2h_s, rel=1e-12)
    assert timeline.totals()["transfer_s"] == pytest.approx(found.h2t_s, rel=1e-12)
    assert timeline.totals()["compute_s"] == pytest.approx(found.compute_s, rel=1e-12)


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "all_reduce"])
def test_torus2d_on_a_superpod_is_the_librarys(collective: str) -> None:
    """512 nodes: rings of 8 over NVLink, then rings of 64 over cards and three switches."""
    machine = fabric("superpod:nodes=512")
    plan = opticcl.compile(machine, collective, "1GB", algorithm="torus2d:shape=64x8")
    seconds = {"io": 0, "tier_1": 0, "nvswitch": "140ns"}  # the fabric has NVLink's 20 ns on NVLink alone
    made = setting("p", num_nodes=512, switches="1x1x3x5", **seconds)
    found = estimate("fat_tree", "torus2d", collective, GB, made)
    timeline = plan.simulate(assumptions="published")
    assert timeline.num_steps == found.steps
    assert timeline.totals()["latency_s"] == pytest.approx(found.h2h_s, rel=1e-12)
    assert timeline.totals()["transfer_s"] == pytest.approx(found.h2t_s, rel=1e-12)
    assert timeline.totals()["compute_s"] == pytest.approx(found.compute_s, rel=1e-12)


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "all_reduce", "all_to_all", "barrier"])
def test_ramp_is_the_librarys(collective: str) -> None:
    """1,024 nodes in steps of 8, 8, 8 and 2, without slots."""
    machine = fabric("ramp:groups=8,racks=8,wavelengths=16,transceivers_per_group=1,slot=0s,switching=0s")
    plan = opticcl.compile(machine, collective, "1GB", algorithm="ramp")
    made = setting("p", num_nodes=1024, transceivers=8, ramp_rate=machine.node_rate_bits_per_s)
    found = estimate("ramp", "ramp", collective, 0 if collective == "barrier" else GB, made)
    timeline = plan.simulate(assumptions="published")
    assert timeline.num_steps == found.steps * (1 if collective != "barrier" else timeline.num_steps / found.steps)
    assert timeline.totals()["transfer_s"] == pytest.approx(found.h2t_s, rel=1e-12)
    assert timeline.totals()["compute_s"] == pytest.approx(found.compute_s, rel=1e-12)
    assert timeline.totals()["latency_s"] == pytest.approx(found.h2h_s, rel=1e-12)


# --- laws and bad input -----------------------------------------------------------------------------------------------


@given(st.sampled_from(COLLECTIVES), st.floats(0, 1e11), st.floats(1.0, 10.0))
@examples(60)
def test_more_bytes_take_longer_and_more_rate_does_not(collective: str, size: float, factor: float) -> None:
    """On every system by every strategy; nothing takes a negative time."""
    faster = setting("p", ramp_rate=factor * 12.8e12, fast_rate=factor * 2.4e12, card_rate=factor * 2e11)
    for system in ("ramp", *RIVALS):
        for strategy in strategies(system, collective, P):
            one = estimate(system, strategy, collective, size, P)
            assert min(one.h2h_s, one.h2t_s, one.compute_s) >= 0
            assert estimate(system, strategy, collective, size * factor, P).total_s >= one.total_s * (1 - 1e-12)
            assert estimate(system, strategy, collective, size, faster).total_s <= one.total_s * (1 + 1e-12)


@pytest.mark.parametrize("nodes", [1, 2, 7, 8, 9, 31, 100, 1024])
def test_other_sizes(nodes: int) -> None:
    """Few nodes, primes, part of a level: no time for one node, and never below the port bound of RAMP."""
    made = setting("p", num_nodes=nodes, torus_shape=(1, nodes))
    for collective in COLLECTIVES:
        times = [fastest(system, collective, GB, made).total_s for system in ("ramp", *RIVALS)]
        assert all(t == 0 for t in times) if nodes == 1 else all(t > 0 for t in times)
    gathered = fastest("ramp", "all_gather", GB, made).h2t_s
    assert gathered >= GB * 8 * (nodes - 1) / nodes / made.ramp_rate * (1 - 1e-12)


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({"memory": 0}, "memory=0; it must be above 0"),
        ({"torus_share": 1.5}, "torus_share=1.5; it is a fraction"),
        ({"slot_efficiency": 0}, "slot_efficiency=0"),
        ({"num_nodes": 0}, "num_nodes=0; at least 1"),
        ({"crossings": 0}, "crossings=0; at least 1"),
        ({"nvswitches": -1}, "nvswitches=-1; at least 0"),
        ({"broadcast_depth": 2}, "broadcast_depth=2"),
        ({"hierarchy": "8x20"}, "four levels"),
        ({"io": "-1us"}, "io=-1e-06; 0 or more"),
        ({"memori": 1}, "memory"),
        ({"peer_transceivers": "some"}, "not one of"),
    ],
)
def test_bad_values_are_refused(given_values: dict[str, object], message: str) -> None:
    """In a line that names the field."""
    with pytest.raises(ParameterError, match=message):
        setting("p", **given_values)


def test_unknown_names_are_refused() -> None:
    """Presets, systems, collectives, strategies; sizes below zero; a torus of another size; nodes that no step joins."""
    with pytest.raises(UnknownNameError, match="literal"):
        setting("litteral")
    with pytest.raises(UnknownNameError, match="torus"):
        estimate("thorus", "ring", "all_reduce", GB, P)
    with pytest.raises(UnknownNameError, match="all_reduce"):
        estimate("torus", "ring", "allreduce", GB, P)
    with pytest.raises(UnknownNameError, match="no strategy 'hierarchical'"):
        estimate("topoopt", "hierarchical", "all_reduce", GB, P)
    with pytest.raises(UnknownNameError, match="unknown choice 'worst'; known: best, published"):
        speed_up("all_to_all", GB, P, "worst")
    with pytest.raises(ParameterError, match="rate=0 bit/s"):
        matched(P, 0)
    with pytest.raises(ParameterError, match="0 or more"):
        estimate("topoopt", "ring", "all_reduce", -1, P)
    with pytest.raises(ParameterError, match="torus_shape=128x512"):
        estimate("torus", "torus2d", "all_reduce", GB, setting("p", num_nodes=1024))
    with pytest.raises(ParameterError, match="joins at most 32 nodes"):
        estimate("ramp", "ramp", "all_reduce", GB, setting("p", num_nodes=37))
