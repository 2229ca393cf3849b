"""Replay of faults: the reader, goodput against host availability, and the arithmetic of recovery."""

import json
from math import comb

import numpy as np
import pytest
from tests.optional import shared_file

from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, WorkloadError
from opticcl.fabrics import fabric
from opticcl.ir import no_progress
from opticcl.operations.fault_replay.fault_trace import OUT, SOUND, WEAK, read_fault_trace, servers_at
from opticcl.operations.fault_replay.replay import ReplaySetup, recovery_times, replay

HOUR = 1 / 24


def event(server, day, kind="start", cause="GPU", about="xid"):
    """An event as the trace has it."""
    return {
        "node_id": server,
        "event_time": day,
        "event_type": f"fault_{kind}",
        "fault_type": {"Level": "Hardware Failure", "Class": cause, "Desc": about},
    }


def written(tmp_path, events):
    """The trace of some events, read back."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    return read_fault_trace(path)


def run(trace, machine="oddl:shape=4x4", ranks=8, spares=2, **given):
    """Runs of all policies by name; a plan takes 1 s, no time to reprogram."""
    times = recovery_times(**{"replan": 1.0, "reprogram": 0.0, **given})
    setup = ReplaySetup(
        fabric(machine), trace, ranks, spares, "all_reduce", "1MB", "auto", assumptions("common"), times, 0
    )
    return {one.policy: one for one in replay(setup, progress=no_progress)}


def test_overlapping_and_open_faults(tmp_path):
    """A server is sound when all its faults have ended; what is open ends with the record; cables weaken."""
    trace = written(
        tmp_path,
        [
            event("a", 1.0),
            event("a", 2.0, about="other"),
            event("a", 3.0, "end"),
            event("b", 3.5, cause="NIC"),
            event("a", 4.0, "end", about="other"),
            event("b", 5.0, cause="Fan"),
            event("b", 6.0, "end", cause="Fan"),
        ],
    )
    assert (trace.servers, trace.faults, trace.overlapping, trace.open) == (("a", "b"), 4, 2, 1)
    days = [(start / 86400, end / 86400, health.tolist()) for start, end, health in trace.states(2, np.arange(2))]
    assert days == [
        (0.0, 1.0, [SOUND, SOUND]),
        (1.0, 3.5, [OUT, SOUND]),
        (3.5, 4.0, [OUT, WEAK]),
        (4.0, 5.0, [SOUND, WEAK]),
        (5.0, 6.0, [SOUND, OUT]),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a list of fault events"),
        ("{}", "is not a list of fault events"),
        ("[]", "no events"),
        (json.dumps([event("a", 1.0), event("a", 0.5, "end")]), "event 2: event_time is 0.5, before 1"),
        (json.dumps([event("a", 1.0, "end")]), "event 1: a fault of a ends, GPU, that did not start before"),
        (json.dumps([event("a", -1.0)]), "event 1: event_time is -1, not 0 to"),
        (json.dumps([event("a", 1.0) | {"colour": "red"}]), "event 1: Object contains unknown field `colour`"),
        (json.dumps([event("a", 1.0) | {"event_type": "fault"}]), "event 1: Invalid enum value 'fault'"),
        (json.dumps([{"node_id": "a"}]), "event 1: Object missing required field"),
        ("[" * 5000, "is not a list of fault events"),
    ],
)
def test_wrong_traces_are_refused_with_their_event(tmp_path, text, says):
    """One line, printable."""
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(WorkloadError) as refused:
        read_fault_trace(path)
    assert says in str(refused.value)
    assert str(refused.value).isprintable()


def expected_goodput(availability, num_cubes, hosts_per_cube, cubes_per_job, *, any_cubes):
    """Expected share of the cubes that run a job where hosts fail independently."""
    healthy = availability**hosts_per_cube
    if not any_cubes:
        return num_cubes // cubes_per_job * cubes_per_job / num_cubes * healthy**cubes_per_job
    chances = [comb(num_cubes, h) * healthy**h * (1 - healthy) ** (num_cubes - h) for h in range(num_cubes + 1)]
    return sum(p * (h // cubes_per_job) * cubes_per_job / num_cubes for h, p in enumerate(chances))


@pytest.mark.parametrize(
    ("chips", "any_cubes", "percent"),
    [
        (1024, True, (75, 75, 84)),
        (1024, False, (8, 28, 77)),
        (2048, True, (50, 50, 68)),
        (2048, False, (1, 8, 60)),
        (3072, True, (74, 75, 75)),
        (3072, False, (0, 2, 35)),
    ],
)
def test_goodput_against_host_availability(chips, any_cubes, percent):
    """64 cubes of 16 hosts and 64 chips; hosts that are there 99, 99.5 and 99.9 % of the time."""
    expected = [expected_goodput(a, 64, 16, chips // 64, any_cubes=any_cubes) for a in (0.99, 0.995, 0.999)]
    assert tuple(round(100 * value) for value in expected) == percent


def goodput_of_hosts(out, *, any_cubes):
    """Share of 64 cubes of 16 hosts that run a job of 16 cubes, any healthy ones or those of fixed cabling."""
    healthy = ~out.reshape(64, 16).any(axis=1)
    jobs = healthy.sum() // 16 if any_cubes else healthy.reshape(4, 16).all(axis=1).sum()
    return jobs * 16 / 64


@pytest.mark.parametrize(("availability", "any_cubes"), [(0.99, True), (0.999, True), (0.995, False), (0.999, False)])
def test_a_record_of_independent_faults_has_that_goodput(tmp_path, availability, any_cubes):
    """1,024 hosts that fail and are repaired at random, written as events, read and replayed: within four points."""
    draw, events = np.random.default_rng(1), []
    up = 0.04 * availability / (1 - availability)  # mean days between faults
    for host in range(1024):
        day = 0.0
        while True:
            day += draw.exponential(up) if day or draw.random() < availability else 0.0
            back = day + draw.exponential(up * (1 - availability) / availability)
            if day >= 12:
                break
            events += [event(f"h{host}", day), event(f"h{host}", min(back, 12.0), "end")]
            day = back
            if day >= 12:
                break
    events.sort(key=lambda one: (one["event_time"], one["event_type"] == "fault_start"))
    trace = written(tmp_path, events)
    servers = servers_at(trace, 1024, 0)
    running = [
        (end_s - start_s) * goodput_of_hosts(health == OUT, any_cubes=any_cubes)
        for start_s, end_s, health in trace.states(1024, servers)
    ]
    assert sum(running) / trace.end_s == pytest.approx(
        expected_goodput(availability, 64, 16, 16, any_cubes=any_cubes), abs=0.04
    )


def test_a_spare_takes_the_place_of_a_rank(tmp_path):
    """One fault of two days in ten: detect, plan and load by replan; detect, start and half a checkpoint by restart."""
    trace = written(tmp_path, [event("a", 1.0), event("a", 3.0, "end"), event("b", 10.0)])
    found = run(trace, machine="oddl:shape=3x3", ranks=8, spares=1)
    inside = found["replan"].stretches[1]
    assert (inside.action, inside.ranks) == ("replan", 8)  # seed 0: the server that fails is a rank
    work_s = 86400 + (9 * 86400 - 63) / (0.7 + 0.3 * inside.slow_down)
    assert found["replan"].longest_outage_s == pytest.approx(2 + 1 + 60)
    assert found["restart"].longest_outage_s == pytest.approx(2 + 1800 + 1800)
    assert found["replan"].goodput == pytest.approx(work_s / (10 * 86400))
    assert found["best"].goodput >= found["replan"].goodput >= found["restart"].goodput
    assert found["replan"].stretches[-1].ranks == 8
    assert found["replan"].plans == 2


def test_without_a_spare_the_job_goes_on_with_fewer_ranks(tmp_path):
    """7 of 8 ranks, at (7/8) / ((1 - c) + c s); a repaired server comes back without detection."""
    trace = written(tmp_path, [event("a", 1.0), event("a", 2.0, "end"), event("b", 3.0)])
    found = run(trace, machine="oddl:shape=2x4", ranks=8, spares=0)["replan"]
    assert [one.ranks for one in found.stretches] == [8, 7, 8]
    assert [one.action for one in found.stretches] == ["keep", "replan", "replan"]
    seven = found.stretches[1]
    assert seven.rate == pytest.approx(7 / 8 / (0.7 + 0.3 * seven.slow_down))
    assert seven.stopped_until_s - seven.start_s == pytest.approx(2 + 1)
    assert found.stretches[2].stopped_until_s - found.stretches[2].start_s == pytest.approx(1 + 60)


def test_a_weak_server_stays_or_is_left_out(tmp_path):
    """Of 8 ranks, at 0.95 of the rate: it stays, and the collective takes 1/0.95; at 0.1 it is left out."""
    trace = written(tmp_path, [event("a", 1.0, cause="NIC"), event("a", 2.0, "end", cause="NIC")])
    stays = run(trace, machine="oddl:shape=2x4", spares=0, weak=0.95)["replan"].stretches[1]
    assert (stays.ranks, stays.slow_down) == (8, pytest.approx(1 / 0.95))
    left_out = run(trace, machine="oddl:shape=2x4", spares=0, weak=0.1)["replan"].stretches[1]
    assert left_out.ranks == 7


def test_best_is_never_below_the_others(tmp_path):
    """Many short faults at random on a small machine; the same seed gives the same runs."""
    draw, events, open_servers = np.random.default_rng(4), [], set()
    for day in np.cumsum(draw.exponential(0.1, 24)):
        server = int(draw.integers(6))
        events.append(event(f"s{server}", float(day), "end" if server in open_servers else "start"))
        open_servers ^= {server}
    trace = written(tmp_path, events)
    found = run(trace, machine="sipac:radix=3,levels=2", ranks=8, spares=1)
    again = run(trace, machine="sipac:radix=3,levels=2", ranks=8, spares=1)
    assert found["best"].goodput >= max(found["replan"].goodput, found["restart"].goodput)
    assert [again[name].goodput for name in again] == [found[name].goodput for name in found]
    assert 0 < found["restart"].goodput < found["replan"].goodput <= 1.0


def test_recorded_faults_on_a_small_machine():
    """159 of 400 servers fail; 14 ranks and 2 spares are 16 of them."""
    trace = read_fault_trace(shared_file("faults/infinitehbd-first-half.json"))
    assert (len(trace.servers), trace.faults, trace.open) == (159, 312, 3)
    found = run(trace, machine="oddl:shape=4x4", ranks=14, spares=2)
    assert found["best"].goodput >= found["restart"].goodput > 0.8


@pytest.mark.deep
@pytest.mark.parametrize("machine", ["oddl:shape=20x20", "sipac:radix=20,levels=2"])
def test_half_a_year_of_400_servers(machine):
    """384 ranks and 16 spares; the mark is 0.97."""
    trace = read_fault_trace(shared_file("faults/infinitehbd-first-half.json"))
    found = run(trace, machine=machine, ranks=384, spares=16)
    assert found["best"].goodput >= 0.97
    assert found["best"].goodput >= found["restart"].goodput


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ranks": 16, "spares": 1}, "16 ranks and 1 spares are 17 servers, and oddl has 16 nodes"),
        ({"ranks": 1}, "1 ranks"),
        ({"detect": -1.0}, "detect=-1 s is negative"),
        ({"communication": 1.5}, "communication=1.5 is not 0 to 1"),
        ({"weak": 1.0}, "weak=1 is not between 0 and 1"),
    ],
)
def test_wrong_replays_are_refused(tmp_path, given, says):
    """With what to try."""
    trace = written(tmp_path, [event("a", 1.0)])
    with pytest.raises(ParameterError) as refused:
        run(trace, **given)
    assert says in str(refused.value)
