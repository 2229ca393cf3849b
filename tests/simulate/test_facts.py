"""What a search knows of a schedule before its circuits are made: never more than the circuits need."""

from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collectives import nothing_required
from tests.profiles import examples

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale
from opticcl.fabrics.job import job
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps, part
from opticcl.schedule import all_variants, generate, reason_declined, search_space
from opticcl.simulate import class_bounds, profile, schedule_facts
from opticcl.simulate import parts as parts_module
from opticcl.simulate.closed_form import facts as facts_module
from opticcl.simulate.closed_form.ends import StepEnds, ends_of_steps
from opticcl.simulate.closed_form.engine import costs
from opticcl.simulate.closed_form.facts import BusiestNode, PlanFacts, ScheduleFacts
from opticcl.simulate.latency import path_latency

PACKETS = [one for one in FABRICS.names() if fabric_at_scale(one, 16).hops_are_links]


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
    for bound, cost in zip(
        class_bounds(plan.schedule, where, assumed), costs(PlanFacts(plan), plan.fabric, assumed), strict=True
    ):
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


def of_rows(where, rows, transfers):
    """What the busiest node and the pairs of a step need, from rows (src, dst, chunks, links between them) of its transfers."""
    splits = any(resource.splits for resource in where.resources)
    ends = [1] if splits else [0, 1]

    def most(value, sides):
        return max(sum(value(row) for row in mine) for side in sides for mine in grouped(rows, side))

    pairs = {row[:2] for row in rows}
    partners = max(len({row[1 - side] for row in mine}) for side in ends for mine in grouped(rows, side))
    links = sum(row[3] for row in rows)
    return {
        "most": most(lambda row: 1, ends), "chunks": most(lambda row: row[2], ends), "ends": asdict(counted(transfers)),
        "link_chunks": sum(row[2] * row[3] for row in rows), "partners": partners * (where.reconfiguration_s > 0),
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
    rows = list(zip(src.tolist(), dst.tolist(), count.tolist(), apart.tolist(), strict=True))
    assert asdict(ScheduleFacts(schedule, where, distances=True).of_run(0)) == of_rows(where, rows, transfers)
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


def test_ranks_that_are_none_are_refused():
    """NumPy counts no negative numbers."""
    where = fabric("ideal:nodes=4")
    for ends in (([0, -1], [1, 2]), ([0, 1], [1, -1])):
        transfers = Transfers.of(*ends, 0, 1, Op.REDUCE)
        schedule = Schedule("by hand", nothing_required(4, 8), 1, lambda i, t=transfers: t)
        with pytest.raises(ValueError, match="negative"):
            schedule_facts(schedule, where).of_run(0)
    with pytest.raises(ValueError, match="negative"):
        parts_module.summed_chunks(Transfers.of([0, 1], [1, -1], 0, 1, Op.REDUCE), "chain")


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
    steps = Steps.of_lists(4, 8, [step, step.take(np.zeros(0, int))])
    assert ends_of_steps(steps, [0, 1]) == [StepEnds(3, 2, 6, 5, 6, 6, 2), StepEnds()]


def counted(step):
    """Ends of a step from its transfers one by one."""
    sent, received, chunks_sent, chunks_received, added = (Counter() for _ in range(5))
    messages, sums = {}, {}
    columns = (step.src, step.dst, step.op, step.size_chunks(), step.chunk_lo, step.chunk_n)
    apart = np.ones(len(step), int) if step.chunk_step is None else step.chunk_step
    for src, dst, op, size, lo, n, by in zip(*(c.tolist() for c in (*columns, apart)), strict=True):
        sent[src] += 1
        received[dst] += 1
        chunks_sent[src] += size
        chunks_received[dst] += size
        messages.setdefault(src, set()).add((dst, op))
        if op & Op.REDUCE:
            added[dst] += n
            sums.setdefault(dst, set()).update(range(lo, lo + n * by, by))
    most = [max(each.values(), default=0) for each in (sent, received, chunks_sent, chunks_received)]
    fused = max((many + 2 * len(sums[rank]) for rank, many in added.items()), default=0)
    return StepEnds(*most, 3 * max(added.values(), default=0), fused, max(map(len, messages.values()), default=0))


@pytest.mark.parametrize("name", FABRICS.names())
def test_ends_from_rows_are_those_of_the_list(name):
    """Of some steps of every algorithm and variant, evaluated together and one by one."""
    where = fabric_at_scale(name, 16)
    for collective in ("all_reduce", "all_to_all", "reduce_scatter", "gather"):
        wanted = Request(collective)
        for algorithm in search_space(wanted, where)[0]:
            if reason_declined(algorithm, wanted, where):
                continue
            steps = generate(algorithm, wanted, where).steps
            some = sorted(
                {0, steps.num_steps // 3, steps.num_steps - 2, steps.num_steps - 1} & {*range(steps.num_steps)}
            )
            together = ends_of_steps(steps, some)
            apart = [ends_of_steps(steps, [i])[0] for i in some]
            assert apart == [counted(steps(i)) for i in some], algorithm
            assert together == apart[: len(together)], algorithm


def test_ends_that_are_known_need_no_transfers():
    """On a fabric where nothing is set, without distances."""

    def step(i):
        raise AssertionError

    schedule = Schedule("never made", nothing_required(4, 1), 2, step)
    known = (StepEnds(2, 3, 5, 7, 12, 6, 1), StepEnds(3, 2, 7, 5, 12, 6, 2))
    facts = ScheduleFacts(schedule, fabric("ideal:nodes=4"), distances=False, ends=known.__getitem__)
    assert [facts.of_run(run) for run in (0, 1)] == [BusiestNode(3, 7.0, ends) for ends in known]


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
    due = [tuple(costs(PlanFacts(plan), plan.fabric, assumed)) for assumed in sets]
    facts = PlanFacts(replace(plan, rounds=lambda i: asked.append(i) or plan.rounds(i)))
    assert [tuple(costs(facts, plan.fabric, assumed)) for assumed in sets] == due
    known = len(asked)
    assert known
    assert [tuple(costs(facts, plan.fabric, assumed)) for assumed in sets] == due
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


def of_steps(where, steps):
    """What class_bounds needs of each step, from lists of its transfers, by sets; None where there are none."""
    stay = where.links_set(Circuits.of([], [], [])) is not None
    at_once = where.num_nodes if where.is_packet_switched else where.ports_per_node * where.lasers_per_port
    standing = None
    for step in steps:
        src, dst = step.src.tolist(), step.dst.tolist()
        if not src:
            yield None
            continue
        apart = where.distance(step.src, step.dst)
        links = [0] * len(src) if apart is None else apart.tolist()
        found = of_rows(where, list(zip(src, dst, step.size_chunks().tolist(), links, strict=True)), step)
        pairs = set(zip(src, dst, strict=True))
        found["changes"] = where.reconfiguration_s > 0 and (standing is None or not pairs <= standing)
        if found["changes"] or found["partners"] > at_once:
            kept = standing if stay and standing is not None else set()
            if where.ports_per_node == 1:
                kept = {(s, d) for s, d in kept if s not in set(src) and d not in set(dst)}
            standing = kept | pairs
        yield found


def generated(algorithm, collective, machine):
    """The schedule; None where the algorithm declines."""
    try:
        return generate(algorithm, collective, machine)
    except UnsupportedError:
        return None


@pytest.mark.parametrize(
    "collective",
    ["all_to_all", "broadcast", *(pytest.param(name, marks=pytest.mark.deep) for name in ("all_reduce", "all_gather"))],
)
@pytest.mark.parametrize(
    "where",
    [
        "torus:shape=3x4",
        "terarack:nodes=12",
        "sipac:radices=3x4",
        "ramp:groups=2,racks=2,wavelengths=2",
        "ocs:nodes=8,planes=1",
        "ocs:nodes=8,planes=2",
        "lightpath:shape=2x4,lasers=2",
    ],
)
@pytest.mark.parametrize("nodes", [None, (0, 1, 2, 3, 5, 7)])
def test_facts_of_representatives_are_those_of_all_transfers(where, nodes, collective):
    """Of every algorithm: nodes of a job are not equally far from others; cut boxes are two transfers, and one message."""
    machine = fabric(where) if nodes is None else job(fabric(where), list(nodes))
    for algorithm in all_variants(Request(collective), machine):
        if (schedule := generated(algorithm, collective, machine)) is not None:
            firsts = [steps.start for steps in schedule.step_classes()]
            facts = ScheduleFacts(schedule, machine, distances=True)
            found = [facts.of_run(run) for run in range(len(firsts))]
            due = list(of_steps(machine, map(schedule.step, firsts)))
            assert [one and asdict(one) for one in found] == due, algorithm
            assert [schedule.steps.num_transfers(i) for i in firsts] == [len(schedule.step(i)) for i in firsts]


@st.composite
def phases(draw):
    """Steps of some rows whose digits move or stay, of boxes that are whole, cut or one chunk."""
    radices = draw(st.sampled_from([(6,), (2, 3), (3, 2), (2, 2, 2)]))
    count = int(np.prod(radices))
    order = draw(st.sampled_from([None, np.random.default_rng(count).permutation(count)]))
    digit = st.tuples(*(st.integers(0, radix - 1) for radix in radices))
    made = []
    for _ in range(draw(st.integers(1, 4))):
        moves = tuple(draw(st.lists(st.booleans(), min_size=len(radices), max_size=len(radices))))
        rows = draw(
            st.lists(
                st.tuples(digit, digit, digit, st.sampled_from(range(-1, len(radices))), st.integers(1, 6)),
                min_size=1,
                max_size=5,
            )
        )
        wide = np.ones((len(rows), len(radices)), int)
        for at, (_, _, _, of_digit, size) in enumerate(rows):
            if of_digit >= 0:
                wide[at, of_digit] = min(size, radices[of_digit])
        src, dst, lo = (np.array([row[end] for row in rows]) for end in range(3))
        op = [draw(st.sampled_from([Op.COPY, Op.REDUCE])) for _ in rows]
        made.append(Phase(PhaseRows.of(len(radices), src * ~np.array(moves), dst, lo, wide, op=op), moves))
    return Steps(Space(radices, order), [part(radices, range(len(radices)))], made)


@examples(80)
@given(phases(), st.sampled_from(["ocs:planes=1", "ocs:planes=2", "terarack", "ramp:groups=1,racks=1"]))
def test_facts_of_any_phases(steps, where):
    """As from lists; where phases move other digits, pairs may stand that do not, so that no bound is above the time."""
    n = steps.space.num_ranks
    name, _, more = where.partition(":")
    size = f"wavelengths={n}" if name == "ramp" else f"nodes={n}"
    machine = fabric(f"{name}:{','.join(filter(None, [size, more]))}")
    schedule = Schedule.of("drawn", nothing_required(n, steps.num_chunks), steps)
    facts = ScheduleFacts(schedule, machine, distances=True)
    due = list(of_steps(machine, map(schedule.step, range(steps.num_steps))))
    found = [facts.of_run(run) and asdict(facts.of_run(run)) for run in range(len(schedule.step_classes()))]
    firsts = [due[run.start] for run in schedule.step_classes()]
    same = len({phase.moves for phase in steps.phases}) == 1
    for one, other in zip(found, firsts, strict=True):
        if one is not None and not same:
            assert other["changes"] or not one["changes"]
            one["changes"] = other["changes"]
        assert one == other
    for step in range(steps.num_steps):
        listed = schedule.step(step)
        rows = [
            row
            for ends in steps.ends(step, 10, np.arange(n))
            for row in zip(ends.src.tolist(), ends.dst.tolist(), ends.chunks.tolist(), strict=True)
        ]
        assert sorted(rows) == sorted(
            zip(listed.src.tolist(), listed.dst.tolist(), listed.size_chunks().tolist(), strict=True)
        )
