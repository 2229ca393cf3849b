"""The cache of steps and circuits."""

from dataclasses import replace

import opticcl
from opticcl.ir import Transfers
from opticcl.ir.recent import OVERHEAD_BYTES
from opticcl.ir.step_cache import StepCache


def plan(counted):
    """A ring of eight; each generated step is appended to `counted`."""
    made = opticcl.compile("ideal:nodes=8", "all_reduce", 8, algorithm="ring").schedule
    return replace(made, step=lambda i: counted.append(i) or made.step(i))


def test_a_step_is_generated_once():
    """While it is cached."""
    counted = []
    schedule = StepCache().of_schedule(plan(counted))
    assert isinstance(schedule.step(3), Transfers)
    assert schedule.step(3) is schedule.step(3)
    assert counted == [3]


def test_the_least_recently_used_step_is_evicted():
    """A step of eight transfers is 8 x (4 x 4 + 1) bytes and an entry; two of them fit."""
    counted = []
    schedule = StepCache(2 * (136 + OVERHEAD_BYTES)).of_schedule(plan(counted))
    for i in (0, 1, 0, 2, 0, 1):
        schedule.step(i)
    assert counted == [0, 1, 2, 1]


def test_a_step_larger_than_the_cache_is_generated_every_time():
    """And evicts nothing."""
    counted = []
    schedule = StepCache(100 + OVERHEAD_BYTES).of_schedule(plan(counted))
    schedule.step(0)
    schedule.step(0)
    assert counted == [0, 0]


def test_two_schedules_do_not_mix():
    """Nor do the steps and the circuits of one plan."""
    cache = StepCache()
    ring, tree = (
        opticcl.compile("ideal:nodes=8", "all_reduce", 8, algorithm=name).circuits for name in ("ring", "tree")
    )
    kept = [cache.of_schedule(one.schedule) for one in (ring, tree)]
    assert len(kept[0].step(0)) == 8 != len(kept[1].step(0))
    circuits = cache.of_plan(ring)
    assert circuits.rounds(0) is circuits.rounds(0)
    assert len(circuits.rounds(0)[0]) == 8


def test_runs_and_classes_remain():
    """The verifier reads what defines the steps, not thousands of them; a run is looked up, not compared step by step."""
    from opticcl.ir.circuit_plan import ClassRounds

    cache, made = StepCache(), opticcl.compile("terarack:nodes=16", "all_reduce", 16, algorithm="ring").circuits
    schedule = cache.of_schedule(cache.of_schedule(made.schedule))
    assert schedule.steps is made.schedule.steps
    plan = cache.of_plan(made)
    assert isinstance(plan.rounds, ClassRounds)
    assert plan.rounds(3) is plan.rounds(0)
    assert plan == made


def test_generated_steps_and_circuits_are_kept():
    """So that who verifies and simulates a plan generates them once; another plan of the same request has its own circuits."""
    one, other = (opticcl.compile("sip_ring:nodes=8", "all_gather", 8, algorithm="ring").circuits for _ in range(2))
    assert one.schedule.step(2) is one.schedule.step(2) is other.schedule.step(2)
    assert one.rounds(2) is one.rounds(2) is not other.rounds(2)
    assert one == other


def test_steps_that_do_not_depend_on_the_fabric_are_shared():
    """Those of another fabric, too; not those of other nodes, of a step function of one's own, or in another cache."""
    cache = StepCache()

    def cached(fabric):
        made = opticcl.compile(fabric, "all_reduce", 8, algorithm="lumorph").schedule
        return made, cache.of_schedule(made)

    (made, one), (_, other), (_, more) = map(cached, ("ideal:nodes=8", "torus:shape=4x2", "ideal:nodes=16"))
    assert one.step(1) is other.step(1) is not more.step(1)
    assert StepCache().of_schedule(made).step(1) == one.step(1)
    own = cache.of_schedule(replace(made, step=lambda i: made.step(i).take([0])))
    assert len(own.step(1)) == 1


def test_what_is_said_of_each_step_is_kept_with_it():
    """Once for all schedules with equal steps, several together; a function of one's own is asked for each schedule."""
    cache, counted = StepCache(), []

    def amount(step, numbers):
        several = [len(step(i)) for i in numbers]
        counted.append(len(several))
        return several

    made = [
        cache.of_schedule(opticcl.compile(f, "all_reduce", 8, algorithm="lumorph").schedule)
        for f in ("ideal:nodes=8", "torus:shape=4x2")
    ]
    assert [cache.each(one, amount)(i) for one in made for i in (0, 1, 0)] == [8] * 6
    assert counted == [6]
    for _ in range(2):
        assert cache.each(cache.of_schedule(plan([])), amount)(3) == 8
    assert len(counted) == 3


def test_only_what_nobody_shares_is_cleared():
    """Circuits, and steps of one's own."""
    cache, counted = StepCache(), []
    own, shared = (
        cache.of_schedule(plan(counted)),
        cache.of_schedule(opticcl.compile("ideal:nodes=8", "all_reduce", 8, algorithm="lumorph").schedule),
    )
    step = shared.step(0)
    own.step(0)
    cache.clear_unshared()
    own.step(0)
    assert counted == [0, 0]
    assert shared.step(0) is step
    cache.clear()
    assert counted == [0, 0]


def test_what_is_cleared_is_generated_again():
    """And the memory is free for other steps."""
    counted = []
    cache = StepCache(136 + OVERHEAD_BYTES)
    schedule = cache.of_schedule(plan(counted))
    schedule.step(0)
    cache.clear()
    for i in (0, 1, 1):
        schedule.step(i)
    assert counted == [0, 0, 1]
