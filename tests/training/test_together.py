"""Messages of an iteration planned together: against all sequences, against the judge of time, never slower than alone."""

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.collective import Request
from opticcl.errors import OpticclError, ParameterError
from opticcl.fabrics import fabric
from opticcl.ir.device_settings import DeviceSettings
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.plans.plan import Plan, compile
from opticcl.schedule import all_variants
from opticcl.training.in_turn import START, Ready, Turn, fastest_in_turn
from opticcl.training.iteration import Runtime, simulate_iteration
from opticcl.training.runtime import TimesInTurn
from opticcl.training.train import train
from opticcl.verify.time.programme import check_programme, rules_of

FIXED = Runtime(fusion="none", order="job")


def chain(where, messages, between):
    """Computation, then a message, in turn; each waits for the one before."""
    tasks = []
    for i, ((collective, size), seconds) in enumerate(zip(messages, between, strict=True)):
        tasks.append(Task(f"c{i}", seconds, after=(len(tasks) - 1,) if tasks else ()))
        tasks.append(Task(f"m{i}", 0.0, collective, size, "all", after=(len(tasks) - 1,)))
    n = fabric(where).num_nodes
    return TaskGraph("chain", "", n, tuple(tasks), {"all": ProcessGroup("all", range(n))})


def behind(where, messages, between):
    """Messages that computation does not wait for."""
    tasks = []
    for i, ((collective, size), seconds) in enumerate(zip(messages, between, strict=True)):
        tasks.append(Task(f"c{i}", seconds))
        tasks.append(Task(f"m{i}", 0.0, collective, size, "all", after=(len(tasks) - 1,)))
    n = fabric(where).num_nodes
    return TaskGraph("behind", "", n, tuple(tasks), {"all": ProcessGroup("all", range(n))})


@cache
def _totals(plan, before):
    return plan.simulate(initial=before.configuration if isinstance(before, Plan) else before).totals()


class Given(TimesInTurn):
    """Plans in a given order, timed by the closed form from the circuits of the plan before."""

    def __init__(self, plans):
        self.plans, self.number, self.free_s, self.before = plans, 0, 0.0, "cold"

    def at(self, now_s, collective, group, size_bytes):
        """What has to be set is set early, unless control messages go before."""
        plan = self.plans[self.number]
        times, warm = (_totals(plan, one) for one in (self.before, "warm"))
        setting_s = max(0.0, times["reconfiguration_s"] - warm["reconfiguration_s"])
        if times["control_s"] > warm["control_s"]:
            setting_s = 0.0
        end_s = max(now_s, self.free_s + setting_s) + sum(times.values()) - setting_s
        self.number, self.free_s, self.before = self.number + 1, end_s, plan
        return end_s - now_s


def plans_of(where, collective, size):
    """All registered algorithms that this fabric carries, and `auto`; one of those that begin, end and take the same."""
    made, known = [], set()
    for name in [*all_variants(Request(collective), fabric(where)), "auto"]:
        try:
            plan = compile(where, collective, size, algorithm=name)
            times = tuple(tuple(plan.simulate(initial=one).totals().values()) for one in ("cold", "warm"))
        except OpticclError:
            continue
        first = DeviceSettings.of_circuits(plan.fabric, plan.circuits.rounds(0)[0])
        key = times, first, plan.configuration
        if key not in known:
            known.add(key)
            made.append(plan)
    return made


@pytest.mark.parametrize("shape", [chain, behind])
@pytest.mark.parametrize(
    ("where", "messages"),
    [
        ("ocs:nodes=4", [("reduce_scatter", 20_000), ("all_to_all", 6_000), ("all_gather", 20_000)]),
        pytest.param(
            "terarack:nodes=5,wavelengths=2",
            [("all_gather", 300_000), ("all_to_all", 90_000), ("all_gather", 9_000)],
            marks=pytest.mark.deep,
        ),
        pytest.param(
            "oddl:shape=2x2",
            [("all_gather", 3_000), ("all_to_all", 3_000), ("all_gather", 3_000)],
            marks=pytest.mark.deep,
        ),
    ],
)
def test_together_is_the_best_of_all_sequences(where, messages, shape):
    """Of every registered algorithm for three messages, each simulated, with short and long computation between them."""
    options = [plans_of(where, *message) for message in messages]
    for between in ([0.0, 0.0, 0.0], [1e-3, 12e-6, 3e-6]):
        job = shape(where, messages, between)
        least = min(simulate_iteration(job, Given(plans), FIXED).total_s for plans in product(*options))
        row = train(job, where, runtime=FIXED, together=True).rows[0]
        found = row.together
        assert found.iteration.total_s == pytest.approx(least, rel=1e-9)
        assert found.proven
        assert row.verified
        assert found.iteration.total_s <= found.handed_over_s <= found.alone_s == row.iteration.total_s
        again = Given([one.plan for one in found.messages])
        assert simulate_iteration(job, again, FIXED).total_s == pytest.approx(least, rel=1e-9)


def test_a_slower_plan_is_taken_for_the_circuits_that_it_holds():
    """Between two messages on the same circuits, where the fastest for the one in the middle would change them twice."""
    where = "terarack:nodes=12"
    job = chain(where, [("all_gather", 10**6), ("all_to_all", 10**5), ("all_gather", 10**6)], [0.0] * 3)
    found = train(job, where, runtime=FIXED, together=True).rows[0].together
    alone = [compile(where, one.collective, one.size_bytes) for one in found.messages]
    slower = [
        one.plan.simulate().total_s - plan.simulate().total_s for one, plan in zip(found.messages, alone, strict=True)
    ]
    assert max(slower) > 1e-9
    assert [one.stands for one in found.messages] == [False, True, True]
    starts = ["cold", *(one.plan.configuration for one in found.messages[:-1])]
    each = [one.plan.simulate(initial=start).total_s for one, start in zip(found.messages, starts, strict=True)]
    assert found.iteration.total_s == pytest.approx(sum(each))
    assert found.saved_s > 0.5 * found.alone_s


@pytest.mark.parametrize("where", ["ocs:nodes=6", "terarack:nodes=8", "lightpath:shape=3x3", "oddl:shape=2x2"])
def test_the_judge_of_time_accepts_every_message_from_what_stands(where):
    """And counts the same time: what the iteration charges, and what passed during computation."""
    messages = [("all_gather", 40_000), ("all_to_all", 8_000), ("reduce_scatter", 40_000), ("all_gather", 40_000)]
    job = chain(where, messages, [1e-3, 1e-6, 0.0, 1e-3])
    found = train(job, where, runtime=FIXED, together=True).rows[0].together
    before = None
    assert any(one.hidden_s or one.stands for one in found.messages)
    for one in found.messages:
        times = one.plan.programme(initial="cold" if before is None else before.configuration)
        standing = None if before is None else before.configuration.table
        verdict = check_programme(one.plan.circuits, times, rules_of(times), standing=standing)
        assert verdict.ok, str(verdict)
        assert times.total_s == pytest.approx(one.total_s + one.hidden_s, rel=1e-9)
        before = one.plan


def test_a_change_fits_behind_computation():
    """Long enough, all of it; with prepare=none, none of it."""
    where = "terarack:nodes=8"
    job = chain(where, [("all_gather", 100_000)], [1e-3])
    early, late = (
        train(job, where, runtime=FIXED, together=True, assumptions=assumed).rows[0].together
        for assumed in (_common(), _common(prepare="none"))
    )
    plan = early.messages[0].plan
    assert early.iteration.total_s == pytest.approx(1e-3 + plan.simulate(initial="warm").total_s)
    assert early.saved_s == pytest.approx(fabric(where).reconfiguration_s)
    assert late.saved_s == 0
    assert late.messages == ()
    assert "as each message alone" in str(late)


def _common(**changed):
    from opticcl.assumptions import assumptions

    return assumptions("common", **changed)


SIZES = st.sampled_from([1_000, 200_000, 5_000_000])
NAMES = st.sampled_from(["all_gather", "reduce_scatter", "all_reduce"])
SECONDS = st.sampled_from([0.0, 2e-6, 5e-5])


@given(st.lists(st.tuples(NAMES, SIZES, SECONDS), min_size=1, max_size=5), st.sampled_from([chain, behind]), st.data())
@examples(8)
def test_never_slower_than_each_alone(drawn, shape, data):
    """Whatever the runtime: fusion, order, negotiation, overlap."""
    where = data.draw(
        st.sampled_from(["ocs:nodes=4", "terarack:nodes=5,wavelengths=2", "ramp:groups=2,racks=2,wavelengths=2"])
    )
    runtime = data.draw(
        st.sampled_from(
            [Runtime(), Runtime(overlap=False), Runtime(order="ready", latency_s=4e-6), Runtime(cycle_s=1e-5)]
        )
    )
    job = shape(where, [one[:2] for one in drawn], [one[2] for one in drawn])
    row = train(job, where, runtime=runtime, together=True).rows[0]
    assert row.together.iteration.total_s <= row.iteration.total_s
    assert row.together.alone_s == row.iteration.total_s
    if shape is chain and not runtime.cycle_s:
        assert row.together.proven


@given(st.data())
@examples(25)
def test_labels_find_the_best_sequence(data):
    """Of random times and dependencies on any earlier messages."""
    count = data.draw(st.integers(0, 4))
    some = st.integers(0, 9)
    options = [data.draw(st.integers(1, 3)) for _ in range(count)]
    turns = {
        (i, q, p): Turn(float(data.draw(some)), float(data.draw(some)))
        for i in range(count)
        for q in (range(options[i - 1]) if i else [START])
        for p in range(options[i])
    }
    ready = [
        Ready(
            float(data.draw(some)),
            tuple((j, float(data.draw(some))) for j in range(i) if data.draw(st.booleans())),
        )
        for i in range(count + 1)
    ]

    def ends(plans):
        found, free = [], 0.0
        for i, p in enumerate(plans):
            one = turns[i, plans[i - 1] if i else START, p]
            begin = max([ready[i].from_s, free + one.setting_s, *(found[j] + d for j, d in ready[i].after)])
            free = begin + one.rest_s
            found.append(free)
        return max([ready[-1].from_s, *(found[j] + d for j, d in ready[-1].after)])

    found = fastest_in_turn(options, lambda i, q, p: turns[i, q, p], ready)
    assert found.proven
    assert found.total_s == min(map(ends, product(*map(range, options))))
    assert ends(found.plans) == found.total_s
    few = fastest_in_turn(options, lambda i, q, p: turns[i, q, p], ready, most_labels=1)
    assert few.total_s >= found.total_s


def test_what_cannot_be_planned_together():
    """Other engines and starts are refused; several streams keep the plans of each alone, with the reason."""
    job = chain("ocs:nodes=4", [("all_gather", 1000)], [0.0])
    with pytest.raises(ParameterError, match="leave engine=flow out"):
        train(job, "ocs:nodes=4", together=True, engine="flow")
    with pytest.raises(ParameterError, match="leave initial=warm out"):
        train(job, "ocs:nodes=4", together=True, assumptions=_common(initial="warm"))
    row = train(job, "ocs:nodes=4", together=True, runtime=Runtime(streams=2)).rows[0]
    assert row.together is None
    assert "give --streams 1" in row.remarks[0]
