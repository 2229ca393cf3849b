"""What a search knows of a schedule before its circuits are made: never more than the circuits need."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collectives import nothing_required
from tests.images import not_listed
from tests.profiles import examples

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale
from opticcl.fabrics.job import job
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.schedule import all_variants, generate
from opticcl.simulate import class_bounds, profile, schedule_facts
from opticcl.simulate import facts as facts_module
from opticcl.simulate import parts as parts_module
from opticcl.simulate.closed_form import costs
from opticcl.simulate.facts import BusiestNode, PlanFacts, ScheduleFacts, StepEnds, ends_of_step, step_ends
from opticcl.simulate.latency import path_latency

PACKETS = [one for one in FABRICS.names() if fabric_at_scale(one, 16).hops_are_links]


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [("all_to_all", "steps=1"), ("all_to_all", "steps=2"), ("all_reduce", "steps=2"), ("all_reduce", "steps=4")],
)
@pytest.mark.parametrize("slot", ["0s", "20ns"])
def test_steps_that_are_not_listed_count_as_row_by_row(monkeypatch, collective, algorithm, slot):
    """Their partners are no sums; which pairs stand behind them is not known, so no later step counts as a change."""
    where = fabric(f"ramp:groups=3,racks=2,wavelengths=6,slot={slot}")
    schedule = generate(f"skewed_exchange:{algorithm}", collective, where)
    plans = not_listed(monkeypatch, where, collective, f"skewed_exchange:{algorithm}")
    one, other = (profile(plan.circuits, assumptions("common")).costs for plan in plans)
    assert one == other
    listed = schedule_facts(schedule, where)
    runs = range(len(schedule.step_classes()))
    of_listed = [listed.of_run(run) for run in runs]
    monkeypatch.setattr(facts_module, "MOST_LISTED", 0)
    defined = schedule_facts(schedule, where)
    for run in runs:
        one, other = asdict(of_listed[run]), asdict(defined.of_run(run))
        assert other.pop("changes") is (run == 0 and slot == "0s")
        assert one.pop("changes") is (slot == "0s") or run
        assert one == other


WHERE = (
    "ocs:nodes=5,planes=1", "ocs:nodes=4,planes=2", "ocs:nodes=4,planes=3", "terarack:nodes=5,wavelengths=2",
    "lightpath:shape=2x2,lasers=2", "oddl:shape=4,wavelengths=3", "topoopt:nodes=4,degree=3",
)  # fmt: skip
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=0, max_size=4, unique=True)


@examples(60)
@given(st.sampled_from(WHERE), st.lists(PAIRS, min_size=1, max_size=5), st.sampled_from(["cold", "warm"]))
def test_a_step_is_never_bounded_above_its_time(where, steps, initial):
    """Pairs that come back among others: on an optical switch a link stands until one of its ends gets another."""
    where = fabric(where)
    rows = [np.array([(src, (src + ahead) % 4) for src, ahead in step], int).reshape(-1, 2) for step in steps]

    def step(i):
        return Transfers.of(*rows[i].T, np.arange(len(rows[i])), 1, Op.COPY)

    plan = lower(where, Schedule("by hand", nothing_required(where.num_nodes, 8), len(rows), step))
    assumed = assumptions("common", initial=initial)
    for bound, cost in zip(class_bounds(plan.schedule, where, assumed), costs(plan, assumed), strict=True):
        fixed_s = cost.reconfiguration_s + cost.latency_s + cost.control_s
        assert bound.fixed_s <= fixed_s * (1 + 1e-9)
        for chunk_bytes in (1.0, 1e6):
            due_s = cost.total_s(where, assumed, chunk_bytes)
            assert bound.fixed_s + (bound.moving_s + bound.summing_s) * chunk_bytes * 8 <= due_s * (1 + 1e-9)


@pytest.mark.parametrize(
    ("planes", "due"), [(1, [True, True, False, True, True]), (2, [True, True, False, True, False])]
)
def test_a_link_that_stands_is_not_set_again(planes, due):
    """0 -> 1; 2 -> 3 beside it; 0 -> 1 again; 0 -> 3 in place of both, or on another plane: 2 -> 3 is gone, or not."""
    where = fabric(f"ocs:nodes=6,planes={planes}")
    pairs = [(0, 1), (2, 3), (0, 1), (0, 3), (2, 3)]
    steps = [Transfers.of([src], [dst], [0], 1, Op.COPY) for src, dst in pairs]
    schedule = Schedule("by hand", nothing_required(6, 1), len(steps), lambda i: steps[i])
    facts = schedule_facts(schedule, where)
    assert [facts.of_run(run).changes for run in range(len(steps))] == due


def of_rows(where, rows):
    """What the busiest node and the pairs of a step need: (src, dst, chunks, links between them, whether it adds)."""
    splits = any(resource.splits for resource in where.resources)
    ends = [1] if splits else [0, 1]

    def most(value, sides):
        return max(sum(value(row) for row in mine) for side in sides for mine in grouped(rows, side))

    adds = grouped([row for row in rows if row[4]], 1)
    busiest = max(adds, key=lambda mine: (sum(row[2] for row in mine), -mine[0][1]), default=[])
    pairs = {row[:2] for row in rows}
    partners = max(len({row[1 - side] for row in mine}) for side in ends for mine in grouped(rows, side))
    links = sum(row[3] for row in rows)
    return {
        "most": most(lambda row: 1, ends), "chunks": most(lambda row: row[2], ends),
        "messages": max(len({(row[1], row[4]) for row in mine}) for mine in grouped(rows, 0)),
        "link_chunks": sum(row[2] * row[3] for row in rows), "added": sum(row[2] for row in busiest),
        "sums": max((row[2] for row in busiest), default=0), "partners": partners * (where.reconfiguration_s > 0),
        "changes": where.reconfiguration_s > 0, "hops": links,
        "pair_hops": links * (len(pairs) == len(rows) and where.reconfiguration_s > 0),
    }  # fmt: skip


def grouped(rows, side):
    """Rows of each sender (0) or receiver (1)."""
    return [[row for row in rows if row[side] == end] for end in {row[side] for row in rows}]


@examples(40)
@given(
    st.sampled_from(
        ["sip_ring:nodes=4", "terarack:nodes=4", "ramp:groups=2,racks=1,wavelengths=2,slot=0s", "ideal:nodes=4"]
    ),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 4), st.booleans()), min_size=1, max_size=6),
)
def test_the_busiest_node_of_any_step(where, drawn):
    """Counted row by row; all chunks begin with the first, so that the longest range of sums covers the others."""
    where = fabric(where)
    src, ahead, count, adds = map(np.array, zip(*drawn, strict=True))
    dst = (src + ahead) % 4
    transfers = Transfers.of(src, dst, 0, count, np.where(adds, Op.REDUCE, Op.COPY))
    apart = where.distance(src, dst)
    apart = np.zeros(len(src), int) if apart is None else apart
    schedule = Schedule("by hand", nothing_required(4, 8), 1, lambda i: transfers)
    rows = list(zip(src.tolist(), dst.tolist(), count.tolist(), apart.tolist(), adds.tolist(), strict=True))
    assert asdict(ScheduleFacts(schedule, where, distances=True).of_run(0)) == of_rows(where, rows)
    far = asdict(ScheduleFacts(schedule, where, distances=False).of_run(0))
    assert far["link_chunks"] == far["hops"] == far["pair_hops"] == 0


def test_pairs_that_stand():
    """LIGHTPATH, one laser: pairs of one round stand while others do; of several rounds, the last ones at most."""
    where = fabric("lightpath:shape=2x2,lasers=1")

    def changes(*steps):
        rows = [np.array(step, int).reshape(-1, 2) for step in steps]
        step = [Transfers.of(*row.T, 0, 1, Op.COPY) for row in rows]
        facts = schedule_facts(Schedule("by hand", nothing_required(4, 1), len(steps), lambda i: step[i]), where)
        return [facts.of_run(run).changes for run in range(len(steps))]

    assert changes([(0, 1), (2, 3)], [(0, 1)], [(2, 3)], [(2, 1)], [(0, 1)]) == [True, False, False, True, True]
    assert changes([(0, 1), (0, 2), (3, 1)], [(0, 1), (0, 2)], [(3, 1)]) == [True, False, True]


@pytest.mark.parametrize(("options", "first"), [("steps=4,block=3", 0), ("steps=4", 1)])
def test_behind_a_step_that_is_not_listed_no_change_counts(monkeypatch, options, first):
    """Whatever a listed step joins: the pairs of the other may stand; and what stood before it is not a first setting."""
    where = fabric("ramp:groups=3,racks=3,wavelengths=6,slot=0s")
    schedule = generate(f"skewed_exchange:{options}", "all_reduce", where)
    sizes = [schedule.steps.num_transfers(i) for i in range(4)]
    monkeypatch.setattr(facts_module, "MOST_LISTED", min(sizes))
    listed = [size <= min(sizes) for size in sizes]
    assert len(set(listed)) == 2
    assert listed.index(False) == first
    facts = schedule_facts(schedule, where)
    found = [facts.of_run(run).changes for run in range(4)]
    assert found == [run < first or (run == first == 0) for run in range(4)]


def test_ranks_that_are_none_are_refused():
    """NumPy counts no negative numbers."""
    where = fabric("ideal:nodes=4")
    for ends in (([0, -1], [1, 2]), ([0, 1], [1, -1])):
        transfers = Transfers.of(*ends, 0, 1, Op.REDUCE)
        schedule = Schedule("by hand", nothing_required(4, 8), 1, lambda i, t=transfers: t)
        with pytest.raises(ValueError, match="negative"):
            schedule_facts(schedule, where).of_run(0)
    with pytest.raises(ValueError, match="negative"):
        parts_module.busiest_sum(Transfers.of([0, 1], [1, -1], 0, 1, Op.REDUCE))


def test_a_transfer_of_several_circuits_is_shared_among_them():
    """Half a chunk by each of two wavelengths, and by each of two ways round a ring."""
    chunk = Transfers.of([0], [1], 0, 1, Op.COPY)
    plan = lower(fabric("oddl:shape=2,wavelengths=2"), Schedule("one", nothing_required(2, 1), 1, lambda i: chunk))
    assert profile(plan, assumptions("common")).costs[0].slowest == (0.5,)
    ring = fabric("torus:shape=4")
    far = Transfers.of([0], [2], 0, 1, Op.COPY)
    there, _ = ring.route(np.array([0, 1]), np.array([1, 2]))
    back, _ = ring.route(np.array([0, 3]), np.array([3, 2]))
    both = Circuits.of([0, 0], [0, 0], [2, 2], path=(np.concatenate([there, back]), np.array([0, 2, 4])))
    plan = CircuitPlan(ring, Schedule("one", nothing_required(4, 1), 1, lambda i: far), lambda i: (both,))
    link = ring.resources[0].capacity
    assert profile(plan, assumptions("common")).costs[0].slowest == pytest.approx((8 / 2 / link,))


def test_circuits_are_found_behind_transfers():
    """Whichever of the two is asked for first."""
    chunk = Transfers.of([0], [1], 0, 1, Op.COPY)
    plan = lower(fabric("oddl:shape=2"), Schedule("one", nothing_required(2, 1), 1, lambda i: chunk))
    run = PlanFacts(plan).of_run(0)
    assert run.transfers is chunk
    assert len(run.rounds[0]) == 1


def test_ends_of_a_step():
    """Three of rank 0, in two messages, two to rank 3, of which it adds one; none without transfers."""
    step = Transfers.of([0, 0, 2, 0], [1, 3, 3, 1], [0, 0, 0, 5], [4, 1, 2, 1], [Op.COPY, Op.COPY, Op.REDUCE, Op.COPY])
    assert step_ends(step) == StepEnds(4, 3, 2, 6, 5, 2, 2, 2)
    assert set(asdict(step_ends(step.take(np.zeros(0, int)))).values()) == {0}


def test_ends_that_are_known_need_no_transfers():
    """On a fabric where nothing is set, without distances."""

    def step(i):
        raise AssertionError

    schedule = Schedule("never made", nothing_required(4, 1), 2, step)
    known = (StepEnds(9, 2, 3, 5, 7, 4, 1, 1), StepEnds(9, 3, 2, 7, 5, 4, 1, 2))
    facts = ScheduleFacts(schedule, fabric("ideal:nodes=4"), distances=False, ends=known.__getitem__)
    for run, messages in enumerate((1, 2)):
        assert facts.of_run(run) == BusiestNode(3, messages, 7.0, 0.0, 4, 1)


def test_rounds_that_steps_share_carry_what_each_of_them_sends():
    """The same circuits for other amounts, of which the larger one counts; and again for the first."""
    where = fabric("lightpath:shape=2x2,lasers=1")
    step = Transfers.of([0, 2], [1, 3], 0, 1, Op.COPY)
    plan = lower(where, Schedule("by hand", nothing_required(4, 8), 1, lambda i: step))
    facts, rounds = PlanFacts(plan), plan.rounds(0)
    for amount in ([1, 3], [5, 2], [1, 3], [4, 4]):
        assert facts.of_rounds(rounds).slowest(np.array(amount)) == (max(amount),)


def test_circuits_of_a_run_are_made_once():
    """However often it is costed: what is known needs none, also after they were released."""
    where, asked = fabric("lightpath:shape=2x2,lasers=2"), []
    step = Transfers.of([0, 2, 3], [1, 3, 0], 0, [1, 3, 2], Op.REDUCE)
    plan = lower(where, Schedule("by hand", nothing_required(4, 8), 1, lambda i: step))
    sets = [assumptions("common", **more) for more in ({}, {"waveguide": 1e-3}, {"memory_bytes_per_s": 1e6})]
    due = [tuple(costs(plan, assumed)) for assumed in sets]
    facts = PlanFacts(replace(plan, rounds=lambda i: asked.append(i) or plan.rounds(i)))
    assert [tuple(costs(plan, assumed, facts)) for assumed in sets] == due
    known = len(asked)
    assert known
    assert [tuple(costs(plan, assumed, facts)) for assumed in sets] == due
    laws = [path_latency(where, assumed) for assumed in sets]
    assert [facts.of_run(0).longest_s(law) for law in laws] == [facts.of_run(0).longest_s(law) for law in laws]
    assert len(asked) == known


@pytest.mark.parametrize("where", PACKETS)
def test_the_busiest_link_is_that_of_the_resources(monkeypatch, where):
    """Loads of links by the numbers of hops are those by the resources that circuits occupy, to the last bit; on a job too."""
    machine = fabric_at_scale(where, 16)
    generator = np.random.default_rng(5)
    for on in (machine, job(machine, range(0, 16, 2))):
        src, dst = (generator.integers(0, on.num_nodes, 90) for _ in range(2))
        transfers = Transfers.of(src, dst, 0, 1, Op.COPY)
        schedule = Schedule("drawn", nothing_required(on.num_nodes, 1), 1, lambda i, given=transfers: given)
        (circuits,) = lower(on, schedule).rounds(0)
        chunks = generator.random(len(circuits)) * 10
        found = facts_module._busiest_link(on, chunks, circuits)
        assert on.hops_are_links
        assert found > 0
        with monkeypatch.context() as patch:
            patch.setattr(type(machine), "hops_are_links", False)
            assert facts_module._busiest_link(on, chunks, circuits) == found


def test_links_that_do_not_exist_are_left_to_the_resources():
    """A hop beyond the last link takes no memory of others: the resources say what it occupies."""
    machine = fabric_at_scale("fat_tree", 16)
    far = sum(r.count for r in machine.resources) + 3
    circuits = Circuits.of([0, 0], [0, 1], [1, 2], path=np.array([[0, far], [0, 1]]))
    inside = Circuits.of([0, 0], [0, 1], [1, 2], path=np.array([[0], [0]]))
    assert facts_module._busiest_link(machine, np.ones(2), circuits) == facts_module._busiest_link(
        machine, np.ones(2), inside
    )


def test_a_machine_whose_hops_are_no_links_is_asked_what_circuits_use(monkeypatch):
    """Paths of a machine of others may name something else, or nothing: four chunks leave one node by its port."""
    machine = fabric_at_scale("ideal", 8)
    monkeypatch.setattr(type(machine), "hops_are_links", False)
    circuits = Circuits.of([0, 1, 2, 3], [0, 0, 0, 0], [1, 2, 3, 4])
    assert facts_module._busiest_link(machine, np.ones(4), circuits) == 4 * 8 / machine.node_rate_bits_per_s


@pytest.mark.parametrize("algorithm", ["mesh", "bruck", "lumorph"])
@pytest.mark.parametrize("where", ["torus:shape=4x6", "terarack:nodes=24"])
@pytest.mark.parametrize("nodes", [None, (0, 1, 2, 3, 4, 9, 13)])
def test_the_size_from_which_steps_are_not_listed_changes_no_load(where, nodes, algorithm, monkeypatch):
    """Nodes of a job are not equally far from others, and boxes that are cut at the last value of a digit are two messages."""
    machine = fabric(where) if nodes is None else job(fabric(where), list(nodes))
    schedule = generate(algorithm, "all_to_all", machine)

    def found():
        facts = ScheduleFacts(schedule, machine, distances=True)
        return [replace(facts.of_run(i), changes=False) for i in range(len(schedule.step_classes()))]

    whole = found()
    monkeypatch.setattr(facts_module, "MOST_LISTED", 0)
    assert found() == whole


def generated(algorithm, collective, machine):
    """The schedule; None where the algorithm declines."""
    try:
        return generate(algorithm, collective, machine)
    except UnsupportedError:
        return None


@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all", "all_gather", "broadcast"])
@pytest.mark.parametrize(
    "where", ["torus:shape=3x4", "terarack:nodes=12", "sipac:radices=3x4", "ramp:groups=2,racks=2,wavelengths=2"]
)
def test_ends_of_a_step_follow_from_one_rank_where_all_do_the_same(monkeypatch, where, collective):
    """As from a list of all transfers, and so does the number of them."""
    monkeypatch.setattr(facts_module, "RANKS_TO_LIST", 0)
    machine, identical = fabric(where), 0
    for algorithm in all_variants(Request(collective), machine):
        if (schedule := generated(algorithm, collective, machine)) is None:
            continue
        for steps in schedule.step_classes():
            listed = schedule.step(steps.start)
            assert ends_of_step(schedule.step, steps.start) == step_ends(listed)
            assert schedule.steps.num_transfers(steps.start) == len(listed)
            identical += schedule.steps.identical_ranks(steps.start)
    assert identical or collective == "broadcast"
