"""Rules of steps that are not listed, one by one, on machines of four nodes: moves, their images, and times of a step."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Fault, Op, Resource, Schedule, Transfers, Usage, Violation
from opticcl.ir.collective import Holders, HolderTable
from opticcl.ir.symmetric_steps import LightMove, Moves, SymmetricRounds, SymmetricStep, SymmetricSteps
from opticcl.ir.symmetry import Bundles, Digits, Symmetry, Table
from opticcl.verify._time_rows import StoredRound, StoredStep
from opticcl.verify._time_symmetric import data_missed, overlaps_of_images, refuse_other_machines, sums_missed
from opticcl.verify.light import _symmetric_violations
from opticcl.verify.symmetric_steps import (
    first_wrong,
    images_of_machine,
    light_violations,
    moves_wrong,
    orbits_of_chunks,
)

TURN = Digits((4,), 0, 1)
SAME, SWAP, HALF = [0, 1, 2, 3], [1, 0, 2, 3], [2, 3, 0, 1]
PAIRS, CYCLE = [1, 0, 3, 2], [1, 2, 3, 0]


def moves(*tables):
    """Moves by the images of four ranks and of four chunks, one after the other."""
    pairs = zip(tables[::2], tables[1::2], strict=True)
    return Moves([Symmetry(Table(np.array(ranks)), Table(np.array(chunks))) for ranks, chunks in pairs], 4, 4)


@pytest.mark.parametrize(
    ("tables", "where", "expected"),
    [
        ((HALF, HALF), "moves", "as many products of powers as ranks"),
        ((HALF, SAME, HALF, SAME), "moves", "each rank reached once from rank 0"),
        ((SWAP, SAME, HALF, SAME), "moves 0 and 1", "permutations that commute"),
        ((PAIRS, SWAP, HALF, HALF), "moves 0 and 1", "permutations that commute"),
        ((PAIRS, SAME, HALF, CYCLE), "move 1", "the identity after 2 turns"),
        ((PAIRS, CYCLE, HALF, SAME), "move 0", "the identity after 2 turns"),
    ],
)
def test_moves_that_define_no_step(tables, where, expected):
    """Each is refused for what it is."""
    found = moves_wrong(moves(*tables))
    assert found == Violation("moves_wrong", -1, -1, where, expected, found.found, 1)
    assert moves_wrong(moves(PAIRS, SAME, HALF, PAIRS)) is None


@pytest.mark.parametrize(
    ("src", "dst", "rule", "text"),
    [
        ([0, 1, 2], [1, 2, 3], "moves_wrong", "transfers of rank 0"),
        ([0, 0, 0], [1, -1, 4], "rank_unknown", "ranks 1..3"),
        ([0, 0, 0], [1, 4, 4], "rank_unknown", "ranks 1..3"),
    ],
)
def test_rows_that_are_not_those_of_rank_0(src, dst, rule, text):
    """Of another sender, or to ranks that do not exist."""
    first = Transfers.of(np.array(src), np.array(dst), 0, 1, Op.COPY)
    due = Violation(rule, -1, -1, "transfer 1", text, f"{src[1]} -> {dst[1]}", 2)
    assert first_wrong(SymmetricStep(first, moves(CYCLE, SAME))) == due
    assert first_wrong(SymmetricStep(first.take(slice(0, 1)), moves(CYCLE, SAME))) is None


def in_bundles(runs, count=8, inner=CYCLE):
    """A move of four ranks round a circle, and of the bundles of chunks."""
    return Moves([Symmetry(Table(np.array(CYCLE)), Bundles(Table(np.array(inner)), runs))], 4, count)


def test_bundles_that_define_no_step():
    """Of other numbers of chunks, or larger than those whose place they take."""
    found = moves_wrong(in_bundles(((4, 2),), count=7))
    assert found.found == "symmetry: bundles ((4, 2),) do not hold 7 chunks"
    found = moves_wrong(in_bundles(((2, 3), (2, 1))))
    due = "bundles that take the place of others as large"
    assert found == Violation("moves_wrong", -1, -1, "move 0", due, "of larger ones", 1)
    assert moves_wrong(in_bundles(((4, 2),))) is None


def test_rows_that_cut_a_bundle():
    """At either end, or by taking every second chunk; chunks that there are not are left to others."""

    def rows(lo, count, step=None):
        return Transfers.of(0, np.array([1, 2, 3]), np.array(lo), np.array(count), Op.MOVE, 1, step)

    moved, alone = in_bundles(((4, 2),)), moves(CYCLE, SAME)
    due = Violation("moves_wrong", -1, -1, "transfer 1", "bundles of chunks that go together", "a part of one", 2)
    assert first_wrong(SymmetricStep(rows([0, 1, 4], [4, 1, 3]), moved)) == due
    assert first_wrong(SymmetricStep(rows([0, 3, 5], [4, 3, 1]), moved)) == due
    assert first_wrong(SymmetricStep(rows([0, 2, 4], [2, 6, 4]), moved)) is None
    assert first_wrong(SymmetricStep(rows([8, 10, 4], [2, 2, 6]), moved)) is None
    every_second = first_wrong(SymmetricStep(rows([0, 2, 4], 2, np.array([2, 2, 2])), moved))
    assert every_second == replace(due, where="transfer 0", count=3)
    assert first_wrong(SymmetricStep(rows([0, 1, 1], 2, np.array([2, 2, 2])), alone)) is None
    mixed, last = in_bundles(((2, 1), (2, 3))), in_bundles(((3, 1), (1, 2)), count=5)
    assert first_wrong(SymmetricStep(rows([1, 2, 2], [4, 1, 4]), mixed)) == due
    assert first_wrong(SymmetricStep(rows([0, 1, 2], 1, np.array([2, 2, 2])), last)) == replace(
        due, where="transfer 0", count=3
    )


def test_holders_of_bundles():
    """The first chunk of a bundle represents it where holders are known to be those of all its chunks, before and after."""
    moved, owners = in_bundles(((4, 2),)), np.repeat(np.arange(4, dtype=np.int32), 2)
    schedule = Schedule(
        "mine", collective("all_to_all", 4, 8, owner=owners), 0, lambda i: Transfers.of([], [], [], 1, 0)
    )
    first, order, notes = orbits_of_chunks(schedule, moved)
    assert (first.tolist(), order, notes) == ([0], 4, [])
    every = HolderTable(np.ones((8, 4), bool))
    for unknown in ({"before": every}, {"after": every}, {"after": Holders("owner", 0, np.roll(owners, 1))}):
        other = replace(schedule, collective=replace(schedule.collective, **unknown))
        first, order, notes = orbits_of_chunks(other, moved)
        assert (first.tolist(), order) == (list(range(8)), 1)
        assert notes == ["claim refused: chunks of a bundle have different holders"]


# --- light --------------------------------------------------------------------------------------------------------------

LASERS, RECEIVERS = Resource("tx_port", 4, per_wavelength=False), Resource("photodiode", 4)


class Machine(SimpleNamespace):
    """A star of four nodes with two ports, two wavelengths and two numbers of hops; every circuit is possible."""

    def __init__(self, **more):
        of_star = {"num_machine_nodes": 4, "ports_per_node": 2, "num_wavelengths": 2, "node_of_rank": None}
        kept = {"resources": (LASERS, RECEIVERS), "conditions": (), "is_packet_switched": False, "wrong": ()}
        super().__init__(**{**of_star, **kept, **more})

    def resource_images(self, move):
        """Units are nodes."""
        return move.nodes, move.nodes

    def machine_nodes(self, ranks):
        """Ranks are nodes."""
        return ranks

    def usage(self, circuits):
        """Senders, and receivers row by row from the last one on."""
        back = np.roll(np.arange(len(circuits)), 1)
        yield Usage(LASERS, circuits.src)
        yield Usage(RECEIVERS, circuits.dst[back], back)

    def faults(self, circuits):
        """Senders that cannot."""
        for rule, node in self.wrong:
            yield Fault(rule, np.flatnonzero(circuits.src == node), f"node {node} does not send: {rule}")


def light(nodes=(1, 2, 3, 0), ports=(0, 1), wavelengths=(0, 1), hops=(0, 1)):
    """A move, by default of the nodes alone."""
    return LightMove(*(np.array(column, np.int64) for column in (nodes, ports, wavelengths, hops)))


def circuits(dst=(1, 2), wavelength=(0, 1), hop=(1, 0), **more):
    """Circuits of node 0, a row each."""
    given = {"port": np.zeros(len(dst), int), "wavelength_n": 1, "transfer": np.arange(len(dst)), **more}
    path = np.array(hop, np.int64)[:, None]
    transfer, port, n = (given[name] for name in ("transfer", "port", "wavelength_n"))
    return Circuits.of(transfer, np.zeros(len(dst), int), np.array(dst), port, np.array(wavelength), n, path)


def rounds(*each, senders=(0,), turns=None):
    """Rounds of node 0, whose images are those of the others."""
    return SymmetricRounds(np.array(senders, np.int64), each, (light(),) if turns is None else tuple(turns))


def spare(**more):
    """A machine whose receivers have that property as well."""
    return Machine(resources=(LASERS, replace(RECEIVERS, **more)))


def with_images(*images):
    """A machine that gives these images of its units."""
    return Machine(resource_images=lambda move: images)


PLAIN = "resources of one circuit"
SENDERS = "one of each set of nodes that the moves join"
THREE = (Machine(ports_per_node=3), [light(ports=(1, 0, 2)), light(SAME, ports=(0, 2, 1))])


@pytest.mark.parametrize(
    ("machine", "turns", "senders", "expected"),
    [
        (Machine(node_of_rank=np.arange(4)), None, [0], "ranks that are the nodes of the machine"),
        (Machine(num_machine_nodes=5), None, [0], "ranks that are the nodes of the machine"),
        (spare(capacity=2), None, [0], PLAIN),
        (spare(shared=True), None, [0], PLAIN),
        (spare(once_per_job=True), None, [0], PLAIN),
        (spare(one_setting=True), None, [0], PLAIN),
        (spare(in_wavelengths=True), None, [0], PLAIN),
        (Machine(), [light(ports=(0, 0))], [0], "a permutation of 2 elements"),
        (Machine(), [light(ports=(0, 1, 2))], [0], "a permutation of 2 elements"),
        (Machine(), [light(ports=(-1, 0))], [0], "a permutation of 2 elements"),
        (Machine(), [light(ports=(0, 2))], [0], "a permutation of 2 elements"),
        (Machine(), [light(SWAP)], [0, 2, 3], "nodes that move as ranks may"),
        (Machine(resource_images=lambda move: None), None, [0], "a machine that is what it was"),
        (with_images(np.zeros(4, int), np.arange(4)), None, [0], "each unit of a resource once"),
        (with_images(np.arange(4), np.arange(3)), None, [0], "each unit of a resource once"),
        (*THREE, [0], "permutations that commute"),
        (Machine(), [light(), light(SAME, hops=(0, 1, 2))], [0], "permutations that commute"),
        (Machine(), [light(SAME, hops=(0, 1, 2)), light()], [0], "permutations that commute"),
        (Machine(), None, [4], "ranks 0..3"),
        (Machine(), None, [-1], "ranks 0..3"),
        (Machine(), None, [], SENDERS),
        (Machine(), None, [0, 0], SENDERS),
        (Machine(), [light(HALF)], [0], SENDERS),
        (Machine(), [light(), light()], [0], "one product of powers for each node that a sender is moved to"),
    ],
)
def test_moves_of_light_that_define_no_circuits(machine, turns, senders, expected):
    """Each is refused for what it is."""
    found = images_of_machine(machine, moves(CYCLE, SAME), rounds(senders=senders, turns=turns))
    assert isinstance(found, Violation)
    assert found.expected == expected


def test_moves_without_hops():
    """A machine whose circuits have no paths, and no moves at all."""
    ((first, second),) = images_of_machine(Machine(), moves(CYCLE, SAME), rounds(turns=[light(hops=())]))
    assert np.array_equal(first, CYCLE)
    assert np.array_equal(second, CYCLE)
    assert images_of_machine(Machine(), moves(CYCLE, SAME), rounds(senders=range(4), turns=[])) == []


STEP = SymmetricStep(Transfers.of(np.zeros(2, int), np.array([1, 2]), 0, 1, Op.COPY), moves(CYCLE, SAME))
APART = [circuits([1], [0], [1]), circuits([2], [1], [0], transfer=[1])]


def judged(machine, *each, turns=None, step=STEP, senders=(0,)):
    """Violations, and the number of circuits."""
    return light_violations(machine, step, rounds(*each, turns=turns, senders=senders), 7)


def test_right_circuits_are_counted():
    """Those of four senders in two rounds."""
    assert judged(Machine(), *APART) == ([], 8)


@pytest.mark.parametrize(
    ("machine", "each", "due"),
    [
        (
            Machine(),
            [circuits(hop=(1, -1)), APART[0]],
            Violation("path_broken", 7, 0, "a path", "hops 0..1", "-1", 1),
        ),
        (Machine(), [circuits(hop=(1, 2))], Violation("path_broken", 7, 0, "a path", "hops 0..1", "2", 1)),
        (
            Machine(),
            [circuits(wavelength=(0, 0), wavelength_n=[1, 2])],
            Violation("wavelength_unknown", 7, 0, "circuit 1", "one wavelength", "2", 1),
        ),
        (
            Machine(wrong=[("path_broken", 0)]),
            [circuits()],
            Violation("path_broken", 7, 0, "0 -> 1", "node 0 does not send: path_broken", "another setting", 2),
        ),
        (
            Machine(),
            [circuits()],
            Violation("transmitter_shared", 7, 0, "tx_port 0", "at most 1 circuit(s)", "2", 4),
        ),
        (
            Machine(wrong=[("path_broken", 1), ("port_unknown", 1)]),
            APART,
            Violation("moves_wrong", 7, -1, "light move 0", "node 1 does not send: path_broken", "path_broken", 1),
        ),
        (
            with_images(np.array(CYCLE), np.array([2, 0, 1, 3])),
            APART,
            Violation("moves_wrong", 7, -1, "light move 0", "photodiode 1", "photodiode 3", 1),
        ),
    ],
)
def test_circuits_that_cannot_be(machine, each, due):
    """By name, with the round where it is known."""
    found, _ = judged(machine, *each)
    assert due in found, found


def test_receivers_on_one_wavelength():
    """A receiver hears one circuit a wavelength: whose circuit a use is, is what the fabric says."""
    senders, turns = (0, 1), [light(HALF)]
    step = SymmetricStep(Transfers.of(np.zeros(1, int), np.array([1]), 0, 1, Op.COPY), moves(CYCLE, SAME))
    two = Circuits.of(np.arange(2), np.array([0, 1]), np.array([1, 2]), 0, np.array([0, 1]), 1, np.zeros((2, 1), int))
    assert judged(Machine(), two, turns=turns, step=step, senders=senders) == ([], 4)
    first = SymmetricStep(Transfers.of(np.zeros(2, int), np.array([1, 3]), 0, 1, Op.COPY), moves(CYCLE, SAME))
    src, dst = np.array([0, 0, 1, 1]), np.array([1, 3, 2, 0])
    for wavelength, clash in (([0, 1, 0, 1], False), ([0, 0, 1, 1], True), ([0, 1, 1, 0], False)):
        every = Circuits.of(np.arange(4), src, dst, 0, np.array(wavelength), 1, np.zeros((4, 1), int))
        found, count = judged(Machine(), every, turns=turns, step=first, senders=senders)
        assert count == 8
        assert ("photodiode_shared" in {one.rule for one in found}) == clash, (wavelength, found)


def test_a_step_that_is_not_judged_has_no_circuits():
    """Senders that do not exist, idle circuits; paths need moves that say what they become."""
    assert judged(Machine(), *APART, senders=(9,))[1] == 0
    assert judged(Machine(), circuits([1], [0], [1]), circuits([2], [1], [0], transfer=[-1]))[1] == 0
    every = Circuits.of(np.arange(4), np.arange(4), np.array(CYCLE), 0, 0, 1, np.zeros((4, 1), int))
    found, count = judged(
        Machine(), every, turns=[], senders=range(4), step=SymmetricStep(STEP.first.take([0]), STEP.moves)
    )
    assert ([one.rule for one in found], count) == (["path_broken"], 4)


def test_steps_that_stand_for_others_or_have_no_circuits():
    """A class of several steps is refused, and so is a step whose circuits nobody defines."""
    plan = SimpleNamespace(fabric=Machine(), symmetric=lambda i: None)
    several = Violation("steps_unequal", 3, -1, "class range(3, 5)", "one step", "several", 2)
    assert _symmetric_violations(plan, STEP, range(3, 5)) == ([several], 0)
    none = Violation("not_judged", 3, -1, "8 transfers", "circuits", "no rounds", 1)
    assert _symmetric_violations(plan, STEP, range(3, 4)) == ([none], 0)
    plan.symmetric = lambda i: rounds(*APART)
    assert _symmetric_violations(plan, STEP, range(3, 4)) == ([], 8)


# --- times ----------------------------------------------------------------------------------------------------------------


def machine_of_slots(**more):
    """What the laws of time ask of a fabric."""
    given = {
        "slot_s": 1e-8, "reconfiguration_s": 0.0, "devices": (), "hop_latency_s": lambda hops: None,
        "hop_passages": lambda floor: None, "units_of_devices": tuple, "shortest_control_s": 0.0, **more,
    }  # fmt: skip
    return SimpleNamespace(**given)


def test_machines_whose_times_are_not_judged():
    """Each for what it has; one that has none of it is judged."""
    slow, floor = SimpleNamespace(setting_time_s=1e-6), object()
    for more, repeats, where, tables, text in (
        ({"slot_s": 0.0}, 1, None, False, "outside the guards of slots"),
        ({"reconfiguration_s": 1e-6}, 1, None, False, "outside the guards of slots"),
        ({"devices": (slow,)}, 1, None, False, "devices that take time to change"),
        ({"hop_latency_s": lambda hops: hops * 1e-9}, 1, None, False, "paths of different latencies"),
        ({"hop_passages": lambda floor: np.zeros(1)}, 1, floor, False, "paths of different latencies"),
        ({"units_of_devices": lambda: None}, 1, None, False, "part of no resource"),
        ({"shortest_control_s": 1e-6}, 1, None, False, "with control exchanges"),
        ({}, 1, None, True, "tables of devices or control"),
        ({}, 2, None, False, "repeated steps"),
    ):
        with pytest.raises(UnsupportedError, match=text):
            refuse_other_machines(machine_of_slots(**more), repeats, where, tables=tables)
    refuse_other_machines(machine_of_slots(), 1, floor, tables=False)
    passages = machine_of_slots(hop_passages=lambda floor: np.zeros(1) if floor is None else None)
    refuse_other_machines(passages, 1, None, tables=False)


def stored(*each, arrived=(10.0, 10.0), summed=None, transfers=None):
    """A step with rounds of (start, left) of each circuit, or None for an idle one."""
    made = []
    for number, times in enumerate(each):
        idle = np.array([one is None for one in times])
        start, end = (np.array([np.nan if one is None else one[k] for one in times]) for k in (0, 1))
        start[idle] = 0.0
        row = np.where(idle, -1, np.arange(len(times)))
        listed = Circuits.of(row, np.zeros(len(times), int), np.arange(len(times)) + 1)
        none = np.zeros(len(times))
        made.append(StoredRound(number, listed, start, end, none, none.astype(int), none.astype(int)))
    if transfers is None:
        transfers = Transfers.of(np.zeros(len(arrived), int), np.arange(len(arrived)) + 1, 0, 1, Op.REDUCE)
    times = np.array(arrived), np.array(arrived if summed is None else summed)
    return StoredStep(0, 1, 0.0, transfers, tuple(made), *times)


def test_data_of_a_step():
    """Sent once all data is there, and in place once the last bit of any round has left, idle circuits or not."""
    assert list(data_missed(stored([(5, 9), (5, 9)]), 5.0)) == []
    (early,) = data_missed(stored([(5, 9), (4, 9), (3, 9)]), 5.0)
    assert (early.law, early.round, early.where, early.missing_s, early.times) == (
        "sent_before_there", 0, "circuit 0 -> 2", 2.0, 2
    )  # fmt: skip
    for rounds_ in ([(5, 9), (5, 11)], [(5, 9)]), ([(5, 9)], [(5, 9), (5, 11)]), ([(5, 9), (5, 11), None],):
        (late,) = data_missed(stored(*rounds_, arrived=(11.0, 10.0, 11.0)), 0.0)
        assert late == ("overwritten_before_sent", -1, "transfer 1", 1.0, 1)
    (summed,) = data_missed(stored([(5, 9)], summed=(10.0, 9.5)), 0.0)
    assert summed == ("summed_too_fast", -1, "transfer 1", 0.5, 1)
    assert list(data_missed(stored(), 0.0)) == []


BYTES, RATE = 8.0, 4.0  # a pass over a chunk takes 2 s


def sums(rows, summed, compute):
    """What the sums of these rows (src, dst, chunk, chunks, op) miss, of which the last arrives at 10 s."""
    columns = (np.array(column) for column in zip(*rows, strict=True))
    step = stored(arrived=(10.0,) * len(rows), summed=summed, transfers=Transfers.of(*columns))
    return [(one.round, one.where, one.missing_s) for one in sums_missed(step, None, BYTES, compute, RATE)]


def test_sums_of_a_step():
    """All work of the busiest rank after the last arrival: three passes a sum, or one a chunk that arrives and two a chunk."""
    add, put = Op.REDUCE, Op.COPY
    rows = [(1, 0, 0, 2, add), (2, 0, 1, 2, add), (3, 0, 0, 1, put), (0, 1, 0, 1, add), (0, 2, 3, 1, add)]
    for compute, due in (("chain", 10 + 3 * 4 * 2.0), ("fused", 10 + (4 + 2 * 3) * 2.0)):
        right = (due, due, 10.0, due, due)
        assert sums(rows, right, compute) == []
        assert sums(rows, (due, due - 1, 10.0, due, due - 1), compute) == [(-1, "sums of transfer 1", 1.0)]
    assert sums(rows, (10.0,) * 5, "none") == []
    assert sums([(1, 0, 0, 1, put)], (10.0,), "chain") == []
    ranks = [(9, dst, chunk, 1, add) for dst, chunk in ((0, 2), (1, 0), (1, 1), (2, 0))]
    assert sums(ranks, (10 + 6 * 2.0,) * 4, "fused") == []
    assert sums(ranks, (10 + 6 * 2.0 - 1,) * 4, "fused") == [(-1, "sums of transfer 0", 1.0)]


def overlaps(*times, each=APART, machine=None, step=STEP, listed=False, turns=None):
    """What circuits of rounds with these (start, left) miss: those of node 0 and their images, or all of the step."""
    steps = SymmetricSteps(step.moves, lambda i: step.first, lambda i: step.first, 100 if listed else 0)
    fabric = machine or Machine()
    fabric.num_nodes = fabric.num_machine_nodes
    for name, value in (("units_of_devices", lambda: None), ("settings", lambda circuits: ())):
        setattr(fabric, name, getattr(fabric, name, value))
    plan = SimpleNamespace(
        fabric=fabric,
        schedule=SimpleNamespace(step=steps),
        symmetric=lambda i: None if listed else rounds(*each, turns=turns),
    )
    made = stored(*times)
    made = replace(made, rounds=tuple(replace(a, circuits=b) for a, b in zip(made.rounds, each, strict=True)))
    return [tuple(one) for one in overlaps_of_images(plan, steps, made)]


def test_circuits_whose_images_meet():
    """Two rounds of one sender follow each other, whichever is first; a unit that images share serves none of them."""
    assert overlaps([(0, 1)], [(1, 2)]) == []
    assert overlaps([(1, 2)], [(0, 1)]) == []
    assert overlaps([(0, 1)], [(0.5, 2)]) == [("overlap", 1, "tx_port 0, circuit 0 -> 2", 0.5, 1)]
    assert overlaps([(2, 3)], [(0.5, 4)]) == [("overlap", 0, "tx_port 0, circuit 0 -> 1", 2.0, 1)]
    fixed = with_images(np.array(CYCLE), np.array(SAME))
    assert overlaps([(3, 4)], [(5, 7)], machine=fixed) == [("overlap", 1, "photodiode 2, circuit 0 -> 2", 2.0, 2)]
    found = overlaps([(3, 4)], [(3, 7)], machine=fixed)
    assert [(one[0], one[4]) for one in found] == [("overlap", 1), ("overlap", 2)]


def test_circuits_that_are_all_listed():
    """A step that is small enough has no images: others may send at once, one sender may not."""
    both = [circuits([1], [0], [1]), circuits([1], [0], [1])]
    assert overlaps([(0, 1)], [(1, 2)], each=both, listed=True) == []
    found = overlaps([(0, 1)], [(0, 1)], each=both, listed=True)
    assert [one[2].partition(",")[0] for one in found] == ["tx_port 0", "photodiode 1"]
    other = Circuits.of(np.zeros(1, int), np.array([1]), np.array([2]), 0, 0, 1, np.zeros((1, 1), int))
    assert overlaps([(0, 1)], [(0, 1)], each=[both[0], other], listed=True) == []


def test_devices_of_other_units():
    """A device is part of the unit that its circuit occupies, whichever rows the fabric names."""
    setting = SimpleNamespace(kind="laser", index=np.array([1, 0]), circuit=None)
    machine = Machine(settings=lambda c: (setting,), units_of_devices=lambda: ((0, 2),))
    times = [(0, 1)], [(1, 2)]
    assert overlaps(*times, machine=machine) == []
    setting.index = np.array([2, 0])
    assert overlaps(*times, machine=machine) == [("set_in_flight", 0, "laser 2", 0.0, 1)]
    setting.circuit = np.array([1, 0])
    assert overlaps(*times, machine=machine) == [("set_in_flight", 1, "laser 2", 0.0, 1)]
    setting.index = np.array([2, 1])
    machine.units_of_devices = lambda: ((1, 1),)
    assert overlaps(*times, machine=machine) == []
    machine.usage = lambda c: (Usage(LASERS, c.src), Usage(RECEIVERS, c.dst[:1], np.zeros(1, int)))
    setting.index = np.array([1, 1])
    assert overlaps(*times, machine=machine) == [("set_in_flight", 1, "laser 1", 0.0, 1)]


def test_images_that_are_not_defined():
    """Moves, rows and moves of light that are wrong have no times; the message names what is."""
    first = STEP.first
    for more, text in (
        ({"step": replace(STEP, moves=moves(HALF, HALF))}, "as many products of powers as ranks"),
        ({"step": replace(STEP, first=replace(first, src=first.src + 1))}, "transfers of rank 0"),
        ({"turns": [light(), light()]}, "one product of powers"),
    ):
        with pytest.raises(UnsupportedError, match=text):
            overlaps([(0, 1)], [(1, 2)], **more)
