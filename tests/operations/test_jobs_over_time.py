"""Jobs over time: arithmetic of the queue, every change judged, wrong runs refused by name, lists of jobs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, WorkloadError
from opticcl.fabrics import fabric, job
from opticcl.ir import no_progress
from opticcl.operations.jobs_over_time.arrivals import Arrival, make_arrivals, read_arrivals
from opticcl.operations.jobs_over_time.simulation import JobsSetup, simulate_jobs
from opticcl.operations.policies import POLICIES
from opticcl.verify.time.jobs import JobsJudge


def run(machine, arrivals, policy="first", share=0.3):
    """All jobs do an all-reduce of 1 MB."""
    setup = JobsSetup(fabric(machine), arrivals, policy, "all_reduce", "1MB", "auto", assumptions("common"), share)
    return simulate_jobs(setup, progress=no_progress)


def test_jobs_wait_in_the_order_of_arrival():
    """Two jobs of 8 of 12 nodes: the second starts when the first ends, and a small third one behind it."""
    arrivals = [Arrival(0.0, "a", 8, 100.0), Arrival(10.0, "b", 8, 100.0), Arrival(20.0, "c", 2, 5.0)]
    found = run("lightpath:shape=3x4", arrivals)
    assert [job.start_s for job in found.jobs] == [0.0, 100.0, 100.0]
    assert [job.end_s for job in found.jobs] == [100.0, 200.0, 105.0]
    assert [job.wait_s for job in found.jobs] == [0.0, 90.0, 80.0]
    assert not any(job.blocked for job in found.jobs)
    means = found.over_time()
    assert means["utilisation"] == pytest.approx((8 * 100 + 8 * 100 + 2 * 5) / (12 * 200))
    assert (found.changes, found.disturbed, found.verdict.ok) == (6, 0, True)


def test_a_job_is_blocked_though_enough_nodes_are_free():
    """Nodes 2 and 3 of 6 are taken: a job of 3 fits nowhere, and starts when they are free."""
    arrivals = [
        Arrival(0.0, "left", 2, 10.0),
        Arrival(0.0, "middle", 2, 50.0),
        Arrival(20.0, "wide", 3, 10.0),
    ]
    found = run("terarack:nodes=6", arrivals)
    assert found.jobs[2].blocked
    assert found.jobs[2].start_s == found.jobs[1].end_s == pytest.approx(50, abs=3)
    means = found.over_time()
    (left_s, middle_s, wide_s) = (
        one.end_s for one in found.jobs
    )  # the shares of two jobs are slower than the ring alone
    assert means["blocked"] == pytest.approx((middle_s - 20) / wide_s)
    # free 2 and largest 2 until about 10 s, free 4 and largest 2 until about 50 s, then free 3 and largest 3
    assert means["fragmentation"] == pytest.approx(0.5 * (middle_s - left_s) / wide_s)


def test_iterations_and_slow_down_give_the_duration():
    """n iterations take n times the collective over its share."""
    machine = "terarack:nodes=6"
    alone_s = opticcl.compile(job(fabric(machine), [0, 1, 2]), "all_reduce", "1MB").simulate().total_s
    found = run(machine, [Arrival(0.0, "a", 3, None, 1000)], share=0.25)
    half_s = opticcl.compile(job(fabric(machine), [0, 1, 2], shares=True), "all_reduce", "1MB").simulate().total_s
    assert found.jobs[0].slow_down == pytest.approx(half_s / alone_s) != 1
    assert found.jobs[0].end_s == pytest.approx(1000 * (alone_s / 0.25 - alone_s + half_s))


@examples(4)
@given(
    st.sampled_from(
        ["lightpath:shape=4x5", "oddl:shape=4x4", "ramp:groups=3,racks=2,wavelengths=6", "terarack:nodes=11"]
    ),
    st.sampled_from(POLICIES),
    st.integers(0, 1000),
)
def test_all_jobs_are_isolated_at_every_change(machine, policy, seed):
    """Arrivals and departures at random: nothing is shared or disturbed, all end, and again in the same way."""
    jobs, _ = make_arrivals("poisson:load=1.2,count=12,smallest=1,largest=7", fabric(machine).num_nodes, seed)
    found = run(machine, jobs, policy)
    assert found.verdict.ok, str(found.verdict)
    assert found.disturbed == 0
    assert found.changes == 2 * sum(job.start_s is not None for job in found.jobs)
    assert (found.states[-1].asked, found.states[-1].held, found.states[-1].waiting) == (0, 0, 0)
    again = run(machine, jobs, policy)
    assert [job.end_s for job in again.jobs] == [job.end_s for job in found.jobs]


def plan_on(nodes, machine="terarack:nodes=8"):
    """A ring on some nodes."""
    return opticcl.compile(job(fabric(machine), nodes), "all_reduce", "1MB", algorithm="ring").circuits


def test_the_judge_refuses_by_name():
    """Nodes that are not released, jobs that share cells, and a running job whose circuits change."""
    usable = np.ones(8, bool)
    held = {"a": np.array([0, 1, 2])}
    judge = JobsJudge(usable)
    judge.arrive("a", plan_on([0, 1, 2]), held, np.arange(8) > 2)
    assert judge.verdict.ok
    judge.leave("a", {}, np.arange(8) > 2)  # still taken
    assert {v.rule for v in judge.verdict.violations} == {"cells_not_released"}

    judge = JobsJudge(usable)
    judge.arrive("a", plan_on([0, 2, 4]), {"a": np.array([0, 2, 4])}, ~np.isin(np.arange(8), [0, 2, 4]))
    both = {"a": np.array([0, 2, 4]), "b": np.array([1, 3, 5])}
    assert not judge.admissible("b", plan_on([1, 3, 5])).ok
    judge.arrive("b", plan_on([1, 3, 5]), both, np.arange(8) > 5)
    assert "shared_between_jobs" in {v.rule for v in judge.verdict.violations}

    plan = plan_on([0, 1, 2])
    moved = []

    def rounds(step):
        found = plan.rounds(step)
        return tuple(replace(c, wavelength_lo=c.wavelength_lo + 1) for c in found) if moved else found

    judge = JobsJudge(usable)
    judge.arrive("a", replace(plan, rounds=rounds), held, np.arange(8) > 2)
    moved.append(True)
    judge.arrive("b", plan_on([4, 5]), {**held, "b": np.array([4, 5])}, np.isin(np.arange(8), [3, 6, 7]))
    assert "job_disturbed" in {v.rule for v in judge.verdict.violations}
    assert judge.disturbed > 0


def test_poisson_arrivals_keep_the_load():
    """Node seconds over those of the machine, over many jobs; the same seed gives the same jobs."""
    jobs, _ = make_arrivals("poisson:load=0.7,count=20000,mean=100s,smallest=1,largest=16", 64, 3)
    offered = sum(job.num_nodes * job.duration_s for job in jobs) / (64 * jobs[-1].time_s)
    assert offered == pytest.approx(0.7, rel=0.03)
    assert {job.num_nodes for job in jobs} == set(range(1, 17))
    assert jobs == make_arrivals("poisson:load=0.7,count=20000,mean=100s,smallest=1,largest=16", 64, 3)[0]


def test_lists_of_jobs(tmp_path):
    """Our columns, and a log with dates, other columns and jobs without nodes."""
    path = tmp_path / "jobs.csv"
    path.write_text("time_s,name,nodes,duration_s\n5,b,4,10\n0,a,2,7.5\n")
    jobs, notes = read_arrivals(path, 8)
    assert jobs == [Arrival(0.0, "a", 2, 7.5), Arrival(5.0, "b", 4, 10.0)]
    assert notes == []
    path.write_text(
        'job_id,user,gpu_num,state,submit_time,duration\n7,"u, v",4,COMPLETED,2020-04-01 00:00:06,60\n'
        "8,u,0,COMPLETED,2020-04-01 00:00:07,1\n9,u,2,FAILED,2020-04-01 00:01:06,30\n"
    )
    jobs, notes = read_arrivals(path, 8)
    assert jobs == [Arrival(0.0, "7", 4, 60.0), Arrival(60.0, "9", 2, 30.0)]
    assert notes == ["1 jobs of 0 nodes are left out"]
    path.write_text("time_s,nodes,iterations\n0,2,10\n")
    assert read_arrivals(path, 8)[0] == [Arrival(0.0, "job-1", 2, None, 10)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: no column for time"),
        ("time_s,nodes\n0,2\n", "line 1: no column for duration"),
        ("time_s,submit,nodes,duration\n", "two columns for time"),
        ("time_s,nodes,duration_s\n", "no jobs"),
        ("time_s,nodes,duration_s\n0,2\n", "line 2: 2 cells"),
        ("time_s,nodes,duration_s\n0,2,-1\n", "line 2: the duration -1 s is not 0"),
        ("time_s,nodes,duration_s\n0,2,nan\n", "line 2: the duration is 'nan'"),
        ("time_s,nodes,duration_s\n-1,2,1\n", "line 2: the time -1 is negative"),
        ("time_s,nodes,duration_s\n0,9,1\n", "line 2: a job of 9 nodes; the machine has 8"),
        ("time_s,nodes,duration_s\n0,1.5,1\n", "line 2: '1.5' nodes"),
        ("time_s,nodes,duration_s\n0,-2,1\n", "line 2: '-2' nodes"),
        ("time_s,nodes,duration_s\n2020-13-01 00:00:06,2,1\n", "is not a time"),
        ("time_s,name,nodes,duration_s\n0,a,2,1\n1,a,2,1\n", "line 3: a job 'a' exists already"),
        ("time_s,name,nodes,duration_s\n0,\x1b[31m,2,1\n", "is not the name"),
        ("time_s,nodes,iterations\n0,2,1.5\n", "'1.5' iterations"),
    ],
)
def test_wrong_lists_are_refused_with_their_line(tmp_path, text, says):
    """One line, printable."""
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(WorkloadError) as refused:
        read_arrivals(path, 8)
    assert says in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("poisson:load=0", "load=0 is not above 0"),
        ("poisson", "load is missing"),
        ("poisson:load=1,count=0", "count=0 is not 1"),
        ("poisson:load=1,mean=-1s", "mean=-1 is not above 0"),
        ("poisson:load=1,smallest=4,largest=2", "smallest=4, largest=2"),
        ("poisson:load=1,largest=9", "largest=9 is above the 8 nodes"),
        ("poisson:lod=1", "did you mean 'load'?"),
    ],
)
def test_wrong_arrivals_are_refused(text, says):
    """With what to try."""
    with pytest.raises(ParameterError) as refused:
        make_arrivals(text, 8, 0)
    assert says in str(refused.value)
