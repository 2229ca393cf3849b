"""Light whose paths are straight, beside a count of every link of every path."""

from collections import Counter
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Resource, Schedule, Transfers, Usage, no_progress, same_columns
from opticcl.ir.circuit_plan import CircuitPlan
from opticcl.ir.fabric import StraightUsage
from opticcl.ir.pieces import Pieces
from opticcl.ir.step_blocks import FEWEST, ArcBlock, BlockSteps, StepBlock, step_blocks
from opticcl.kernels import always_compiled, never_compiled
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.arcs import _overlapping, clean_steps, steps_to_list
from opticcl.verify.data import check_data


def walked(where, src, dst, port):
    """Segments from one node to the other, one after the other: s to node s + 1, nodes + s back; none to itself."""
    found = []
    while src != dst:
        after = (src + 1 - 2 * (port % 2)) % where.nodes
        found.append(src if port % 2 == 0 else where.nodes + after)
        src = after
    return found


def listed(where, src, dst, port, wavelength):
    """Circuits with lists of their segments."""
    paths = [walked(where, *ends) for ends in zip(src.tolist(), dst.tolist(), port.tolist(), strict=True)]
    offsets = np.cumsum([0, *map(len, paths)])
    hops = np.array([hop for path in paths for hop in path], int)
    return Circuits.of(np.arange(len(src)), src, dst, port, wavelength, 1, (hops, offsets))


def counted(where, rows):
    """Whether no segment, modulator or filter of a step has two circuits on one wavelength, and each circuit leads anywhere."""
    taken = Counter()
    for src, dst, port, wavelength in rows:
        path = walked(where, src, dst, port)
        if not path:
            return False
        for part in [("fibre", port // 2, hop) for hop in path] + [("out", src, port), ("in", dst, port)]:
            taken[part, wavelength] += 1
    return max(taken.values(), default=1) == 1


@st.composite
def blocks(draw):
    """A ring, and circuits of a few steps on it, most of which are longer than half of the ring."""
    where = fabric(
        "terarack", nodes=draw(st.integers(1, 9)), wavelengths=draw(st.integers(1, 2)), rings=draw(st.integers(1, 2))
    )
    node = st.integers(0, where.nodes - 1)
    row = st.tuples(node, node, st.integers(0, 2 * where.rings - 1), st.integers(0, where.wavelengths - 1))
    return where, draw(st.lists(st.lists(row, max_size=5), min_size=1, max_size=4))


def block_of(steps):
    """Rows of each step as columns."""
    rows = np.array([row for step in steps for row in step], np.int32).reshape(-1, 4)
    src, dst, port, wavelength = rows.T
    transfers = Transfers(src, dst, dst, np.ones_like(src), np.full(len(src), Op.MOVE, np.uint8), np.ones_like(src))
    return StepBlock(0, transfers, np.cumsum([0, *map(len, steps)])), ArcBlock(src, dst, port, wavelength)


@pytest.mark.parametrize("compiled", [False, True])
@given(drawn=blocks())
@examples(150)
def test_a_step_is_clean_exactly_if_no_link_has_two_circuits(compiled, drawn):
    """By sorted arcs as by a count of all links."""
    where, steps = drawn
    due = [counted(where, rows) for rows in steps]
    with always_compiled() if compiled else never_compiled():
        assert clean_steps(where, *block_of(steps)).tolist() == due


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ((0, 7, 0, 0), False),
        ((-1, 2, 0, 0), False),
        ((0, 2, 2, 0), False),
        ((0, 2, 0, -1), False),
        ((0, 2, 0, 3), False),
        ((0, 2, 1, 2), True),
    ],
)
def test_circuits_that_do_not_exist_are_not_clean(row, found):
    """One step of three; the others are judged without it."""
    where = fabric("terarack:nodes=7,wavelengths=3")
    steps = [[(0, 3, 0, 0), (3, 0, 0, 0)], [(4, 5, 0, 1), row], [(0, 3, 0, 0), (2, 0, 0, 0)]]
    assert clean_steps(where, *block_of(steps)).tolist() == [True, found, False]


def test_circuits_of_other_transfers_are_not_clean():
    """Their step alone; nor are too few circuits judged."""
    where = fabric("terarack:nodes=7,wavelengths=3")
    steps, circuits = block_of([[(0, 3, 0, 0)], [(4, 5, 0, 1)]])
    other = replace(circuits, dst=np.array([3, 6], np.int32))
    assert clean_steps(where, steps, other).tolist() == [True, False]
    assert clean_steps(where, steps, replace(circuits, src=circuits.src[1:])) is None


SIDE, LINES, SENDERS = 4, 3, 6
GUIDES, PORTS = Resource("waveguide", LINES * SIDE), Resource("tx_port", SENDERS)


def judged(steps, change=lambda usage: usage, resources=(GUIDES, PORTS)):
    """Clean steps of circuits that each occupy (first place, start, length, transmitter), on a wavelength of two."""
    columns = np.array([row for step in steps for row in step], int).reshape(-1, 5).T
    n = len(columns[0])

    def usage(circuits):
        first, start, length, port, _ = columns[:, circuits.src - 1]
        links = Pieces(first, np.full(len(first), SIDE), start, length)
        return change(StraightUsage(GUIDES, links, (Usage(PORTS, port),)))

    where = SimpleNamespace(
        machine_nodes=lambda ranks: ranks,
        num_machine_nodes=n + 1,
        num_wavelengths=2,
        ports_per_node=1,
        resources=resources,
        straight_usage=usage,
    )
    src, none = np.arange(1, n + 1), np.zeros(n, int)
    block = StepBlock(0, Transfers.of(src, none, 0, 1, Op.COPY), np.cumsum([0, *map(len, steps)]))
    return clean_steps(where, block, ArcBlock(src, none, none, columns[-1]))


def occupied_once(rows):
    """Whether all that circuits occupy is there, and no place of a line and no transmitter has two on one wavelength."""
    taken = []
    for first, start, length, port, wavelength in rows:
        exists = first in range(0, LINES * SIDE, SIDE) and start in range(SIDE) and port in range(SENDERS)
        if not exists or not 1 <= length <= SIDE:
            return False
        taken += [("guide", first + (start + k) % SIDE, wavelength) for k in range(length)]
        taken.append(("port", port, wavelength))
    return len(taken) == len(set(taken))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rarely", [0, 1])
def test_lines_and_transmitters_are_occupied_once(compiled, rarely):
    """Of 300 steps on a machine made by hand, without circuits that occupy what is not there, or with some."""
    random = np.random.default_rng(rarely)
    among = (0, 4, 8, -4, 12), (0, 1, 2, 3, -1, 4), (1, 1, 2, 4, 0, 5), (0, 1, 2, 3, 4, 5, -1, 6), (0, 1)

    def drawn(values):
        there = len(values) - 2 if len(values) > 2 else 2
        some = there if not rarely or random.random() < 0.9 else len(values)
        return values[random.integers(some)]

    steps = [[tuple(map(drawn, among)) for _ in range(random.integers(6))] for _ in range(300)]
    with always_compiled() if compiled else never_compiled():
        found = judged(steps).tolist()
    assert found == [occupied_once(rows) for rows in steps]
    assert 50 < sum(found) < 250


@pytest.mark.parametrize("count", [1, 17, 18, 60])
def test_many_arcs_of_a_line_are_sorted(count):
    """Few are compared, each with all before it: at most 8 times as many as there are."""
    none, start = np.zeros(count, np.int64), np.arange(count)
    found, compared = _overlapping(none, none, 1, start, none + 1, 64)
    assert compared == (count <= 17)
    assert not compared or not found.any()
    ring = fabric(f"terarack:nodes={count + 1},wavelengths=1")
    around = [(i, (i + 1) % (count + 1), 0, 0) for i in range(count + 1)]
    longer = [(0, 2, 0, 0), *around[2:]] if count > 1 else around
    twice = [(0, 2, 0, 0), *around[2:-1], (count, 1, 0, 0)] if count > 1 else [(0, 1, 0, 0), (0, 1, 0, 0)]
    with always_compiled():
        assert clean_steps(ring, *block_of([around, longer, twice, around])).tolist() == [True, True, False, True]


def test_the_same_transmitter_twice_and_a_whole_line():
    """With another one between them; a circuit may go all the way round."""
    apart = [(0, 0, 1, 3, 0), (4, 0, 1, 2, 0), (8, 0, 1, 3, 0)]
    round_and_round = [(0, 3, 4, 0, 0), (4, 0, 4, 1, 0), (0, 1, 4, 2, 1)]
    with never_compiled():
        assert judged([apart, apart[:2], round_and_round, [*round_and_round, (0, 2, 1, 3, 1)]]).tolist() == [
            False, True, True, False
        ]  # fmt: skip


OTHERS = [
    ("capacity", 2), ("per_wavelength", False), ("shared", True), ("once_per_job", True), ("one_setting", True),
    ("in_wavelengths", True),
]  # fmt: skip


@pytest.mark.parametrize("of_links", [True, False])
@pytest.mark.parametrize(("name", "value"), OTHERS)
def test_resources_with_another_rule_are_not_judged(name, value, of_links):
    """Links, or transmitters."""
    other = replace(GUIDES if of_links else PORTS, **{name: value})

    def change(usage):
        ports = usage.others if of_links else (replace(usage.others[0], resource=other),)
        return replace(usage, resource=other if of_links else GUIDES, others=ports)

    steps = [[(0, 0, 2, 0, 0), (4, 1, 2, 1, 0)]]
    assert judged(steps).tolist() == [True]
    assert judged(steps, change, (other, PORTS) if of_links else (GUIDES, other)) is None


UNJUDGED = {
    "no straight paths": lambda usage: None,
    "rows of circuits": lambda usage: replace(usage, others=(replace(usage.others[0], circuit=np.arange(2)),)),
    "amounts": lambda usage: replace(usage, others=(replace(usage.others[0], amount=np.ones(2, int)),)),
    "lines of two lengths": lambda usage: replace(usage, links=replace(usage.links, side=np.array([4, 2]))),
    "lines that begin within another": lambda usage: replace(usage, links=replace(usage.links, first=np.array([0, 6]))),
    "transmitters left out": lambda usage: replace(usage, others=()),
}


@pytest.mark.parametrize("what", UNJUDGED)
def test_usage_of_another_form_is_not_judged(what):
    """So that light is counted circuit by circuit."""
    assert judged([[(0, 0, 2, 0, 0), (4, 1, 1, 1, 0)]], UNJUDGED[what]) is None


@dataclass(frozen=True)
class Rounds:
    """Circuits of steps, by blocks and by lists."""

    where: object
    steps: tuple

    def __call__(self, i):
        """Circuits of a step."""
        return (listed(self.where, *np.array(self.steps[i], np.int32).reshape(-1, 4).T),)

    def block(self, steps):
        """Circuits of several steps."""
        return block_of(self.steps[steps.first : steps.first + len(steps)])[1]


EDITS = {
    "sender": lambda row, n: ((row[0] + 1) % n, *row[1:]),
    "receiver": lambda row, n: (row[0], (row[1] + 1) % n, *row[2:]),
    "port": lambda row, n: (row[0], row[1], 1 - row[2], row[3]),
    "no port": lambda row, n: (row[0], row[1], 2, row[3]),
    "wavelength": lambda row, n: (*row[:3], 1 - row[3]),
    "no wavelength": lambda row, n: (*row[:3], 2),
    "none": lambda row, n: row,
}


@pytest.mark.parametrize("nodes", [9, 15])
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("at", [0, 7])
def test_verdicts_are_those_of_steps_one_by_one(edit, nodes, at):
    """One circuit of an exchange is changed: the same violations, in the same words, and the same numbers."""
    where = fabric("terarack", nodes=nodes, wavelengths=2)
    plan = lower(where, generate("wavelength_exchange", Request("all_reduce"), where))
    assert plan.schedule.num_steps == {9: 10, 15: 28}[nodes]
    steps = [list(zip(c.src.tolist(), c.dst.tolist(), c.port.tolist(), c.wavelength_lo.tolist(), strict=True))
             for c in (plan.rounds(i)[0] for i in range(plan.schedule.num_steps))]  # fmt: skip
    steps[at][3] = EDITS[edit](steps[at][3], nodes)
    wrong = replace(plan, rounds=Rounds(where, tuple(steps)))
    slow = replace(wrong, rounds=lambda i: wrong.rounds(i))
    assert slow.block(None) is None
    found, due = verify(wrong), verify(slow)
    assert found == due
    assert found.ok == (edit == "none")
    left, _ = steps_to_list(wrong, progress=no_progress)
    assert (
        left == ([range(at, at + 1)] if edit != "none" else []) or nodes == 9
    )  # few steps are not evaluated in blocks


def test_what_is_left_and_what_is_counted(monkeypatch):
    """Circuits of clean steps, five steps of a half at a time; of a machine with a failed part all steps are left."""
    where = fabric("terarack", nodes=15, wavelengths=2)
    plan = lower(where, generate("wavelength_exchange", Request("all_reduce"), where))
    every = range(plan.schedule.num_steps)
    sizes = [len(plan.schedule.step(i)) for i in every]
    monkeypatch.setattr("opticcl.ir.step_blocks.ROWS", 5 * sizes[0])
    reports = []
    assert steps_to_list(plan, progress=lambda *call: reports.append(call)) == ([], sum(sizes))
    assert reports == [("count the light", done, 28) for done in (5, 10, 14, 19, 24, 28)]
    steps = [list(zip(c.src.tolist(), c.dst.tolist(), c.port.tolist(), c.wavelength_lo.tolist(), strict=True))
             for c in (plan.rounds(i)[0] for i in every)]  # fmt: skip
    steps[7][0] = EDITS["no port"](steps[7][0], 15)
    wrong = replace(plan, rounds=Rounds(where, tuple(steps)))
    assert steps_to_list(wrong, progress=no_progress) == ([range(7, 8)], sum(sizes) - sizes[7])
    broken = replace(wrong, fabric=fabric("terarack:nodes=15,wavelengths=2,failed=fibre:3"))
    assert broken.block(next(step_blocks(plan.schedule))) is not None
    assert steps_to_list(broken, progress=no_progress) == ([range(i, i + 1) for i in every], 0)


@pytest.mark.parametrize("nodes", range(1, 24, 2))
@pytest.mark.parametrize("collective", ["all_to_all", "reduce_scatter", "all_gather", "all_reduce"])
def test_blocks_of_an_exchange_are_its_steps(nodes, collective):
    """Transfers and circuits, whose paths are walked here segment by segment."""
    for wavelengths in (1, 3):
        where = fabric("terarack", nodes=nodes, wavelengths=wavelengths)
        plan = lower(where, generate("wavelength_exchange", Request(collective), where))
        inner = plan.schedule.step.function
        assert isinstance(inner, BlockSteps)
        done = 0
        while done < plan.schedule.num_steps:
            block = inner.block(done, 5)
            circuits = plan.block(block)
            for at in range(len(block)):
                rows = slice(*block.starts[at : at + 2])
                assert same_columns(block.transfers.take(rows), plan.schedule.step(done + at))
                columns = [getattr(circuits, name)[rows] for name in ("src", "dst", "port", "wavelength")]
                assert same_columns(listed(where, *columns), plan.rounds(done + at)[0])
            done += len(block)


def test_other_circuits_are_evaluated_step_by_step():
    """On two rings, with idle wavelengths used, around a part that has failed, and on part of a machine."""
    for more in ("rings=2", "striping=yes", "failed=fibre:3"):
        where = fabric(f"terarack:nodes=13,wavelengths=1,{more}")
        plan = lower(where, generate("wavelength_exchange", Request("all_to_all"), where))
        blocks_there = list(step_blocks(plan.schedule) or ())
        assert all(plan.block(one) is None for one in blocks_there)
        assert verify(plan).ok


CHANGES = {
    "dropped": lambda t: t.take(slice(1, None)),
    "doubled": lambda t: t.take(np.r_[0, np.arange(len(t))]),
    "other sender": lambda t: replace(t, src=np.r_[t.src[1:2], t.src[1:]]),
    "other chunk": lambda t: replace(t, chunk_lo=(t.chunk_lo + 1) % 13),
    "no chunk": lambda t: replace(t, chunk_lo=t.chunk_lo + 13),
    "no rank": lambda t: replace(t, dst=t.dst - 20),
    "other size": lambda t: replace(t, parts=None if t.parts is None else t.parts + 1),
    "copied": lambda t: replace(t, op=np.zeros_like(t.op)),
    "none": lambda t: t,
}


@pytest.mark.parametrize("collective", ["all_to_all", "all_reduce"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("at", [0, 11, 20])
def test_data_of_blocks_are_those_of_steps_one_by_one(collective, change, at):
    """One step is changed: the same violations, in the same words, and the same numbers."""
    where = fabric("terarack:nodes=13,wavelengths=1")
    plan = generate("wavelength_exchange", Request(collective), where)
    steps = [CHANGES[change](plan.step(i)) if i == at else plan.step(i) for i in range(plan.num_steps)]

    def block(first, count):
        some = steps[first : first + min(count, 6)]
        columns = [
            np.concatenate([getattr(t, name) for t in some]) for name in ("src", "dst", "chunk_lo", "chunk_n", "op")
        ]
        parts = None if some[0].parts is None else np.concatenate([t.parts for t in some])
        return StepBlock(first, Transfers(*columns, parts), np.cumsum([0, *map(len, some)]))

    assert len(steps) >= FEWEST
    fast = Schedule("own", plan.collective, len(steps), BlockSteps(block))
    slow = Schedule("own", plan.collective, len(steps), lambda i: steps[i])
    assert step_blocks(slow) is None
    found, due = check_data(fast), check_data(slow)
    assert found == due
    assert (not found.violations) == (change == "none" or (collective, change) == ("all_reduce", "other size"))


def test_a_plan_of_blocks_is_equal_to_its_steps():
    """By value, and as a plan whose rounds are functions."""
    where = fabric("terarack:nodes=13,wavelengths=1")
    plan = lower(where, generate("wavelength_exchange", Request("all_to_all"), where))
    assert plan == CircuitPlan(where, plan.schedule, lambda i: plan.rounds(i))
