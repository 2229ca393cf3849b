"""The judge of light, column by column: each part of a rule has a case that it alone decides."""

import numpy as np
import pytest

from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers, Usage, no_progress
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.simulate.standing import circuit_numbers
from opticcl.verify import verify
from opticcl.verify.data.contributions import check_data
from opticcl.verify.light.circuits import check_light as check_light_of
from opticcl.verify.light.circuits import distinct_signals


def check_light(plan):
    """Report on the light of a plan."""
    return check_light_of(plan, progress=no_progress)


RING = "terarack:nodes=6,wavelengths=4"


def circuits_of(rows, paths, step=1):
    """Circuits (src, dst, port, wavelength_lo, wavelength_n) with their paths; circuit i carries transfer i."""
    src, dst, port, lo, n = np.array(rows, np.int32).T
    ends = np.cumsum([0, *map(len, paths)])
    return Circuits(
        np.arange(len(rows), dtype=np.int32), src, dst, port, lo, n, np.concatenate(paths).astype(np.int32), ends, step
    )


# --- one signal -----------------------------------------------------------------------------------------------------------

SPLITTING = fabric("ramp:groups=3,racks=2,wavelengths=6")
ONE = {"index": 0, "src": 1, "port": 0, "lo": 0, "n": 1, "chunk_lo": 2, "chunk_n": 2, "chunk_step": 1, "dst": 5}


def signals(second):
    """Number of signals of two circuits on one resource that differ in what is given."""
    both = [ONE, ONE | {"dst": 6} | second]
    columns = {key: np.array([one[key] for one in both]) for key in ONE}
    names = ("src", "dst", "chunk_lo", "chunk_n")
    transfers = Transfers.of(*(columns[name] for name in names), Op.COPY, chunk_step=columns["chunk_step"])
    rows = [[one[key] for key in ("src", "dst", "port", "lo", "n")] for one in both]
    circuits = circuits_of(rows, [[0], [0]])
    resource = SPLITTING.resources[0]
    return len(distinct_signals(Usage(resource, columns["index"]), SPLITTING, transfers, circuits).index)


@pytest.mark.parametrize(
    "second",
    [
        {"index": 1}, {"src": 2}, {"port": 1}, {"lo": 1}, {"n": 2}, {"chunk_lo": 3}, {"chunk_n": 3}, {"chunk_step": 2},
    ],
    ids=lambda second: "".join(second),
)  # fmt: skip
def test_signals_differ_in_any_column(second):
    """Resource, sender, port, wavelengths, chunks and the distance between them."""
    assert signals(second) == 2
    assert signals({}) == 1


def test_idle_circuits_of_a_step_without_transfers_are_signals():
    """Two of one port are one, two of two ports are two."""
    resource = SPLITTING.resources[0]
    nothing = Transfers.of([], [], [], [], [])
    for ports, count in (([0, 0], 1), ([0, 1], 2)):
        circuits = Circuits.of(np.array([-1, -1]), np.array([1, 1]), np.array([5, 6]), ports)
        usage = Usage(resource, np.zeros(2, np.int64))
        assert len(distinct_signals(usage, SPLITTING, nothing, circuits).index) == count


def test_signals_are_told_apart_in_any_order_of_rows():
    """Three circuits, of which the first and the last are one signal."""
    resource = SPLITTING.resources[0]
    t = Transfers.of([1, 2, 1], [6, 6, 5], [2, 2, 2], 1, Op.COPY)
    circuits = Circuits.of(np.arange(3), t.src, t.dst)
    assert len(distinct_signals(Usage(resource, np.zeros(3, np.int64)), SPLITTING, t, circuits).index) == 2


# --- steps of a class -----------------------------------------------------------------------------------------------------


def ring_circuits(src, dst, n=1):
    """One circuit to the next node, clockwise."""
    return Circuits.of(np.arange(1), np.array([src]), np.array([dst]), 0, 0, n, np.array([[src]]))


def two_steps(first, second, light=None):
    """A plan of two steps that are said to be one class."""
    steps = [
        Transfers.of([one["src"]], [one["dst"]], [0], one["n"], one["op"], one["parts"], one["step"])
        for one in (first, second)
    ]
    schedule = Schedule("two", collective("all_reduce", 6, 8), 2, lambda i: steps[i], classes=(range(2),))
    shown = light or [(ring_circuits(one["src"], one["dst"]),) for one in (first, second)]
    return CircuitPlan(fabric(RING), schedule, lambda i: shown[i])


SAME = {"src": 0, "dst": 1, "n": 1, "op": Op.REDUCE, "parts": None, "step": None}


@pytest.mark.parametrize(
    "changed",
    [{"src": 2}, {"dst": 2}, {"n": 2}, {"op": Op.COPY}, {"parts": np.array([1], np.int32)}, {"step": 2}],
    ids=lambda changed: "".join(changed),
)
def test_steps_of_a_class_are_equal_in_every_column(changed):
    """The circuits of the first step are right for the second; its transfers are others."""
    same = (ring_circuits(0, 1),)
    found = check_light(two_steps(SAME, SAME | changed, [same, same])).violations
    unequal = [(v.expected, v.step, v.round) for v in found if v.rule == "steps_unequal"]
    assert unequal == [("the transfers of step 0", 1, -1)]
    assert not check_light(two_steps(SAME, SAME, [same, same])).violations


def test_steps_of_a_class_have_equal_circuits():
    """Other wavelengths, or another number of rounds, in the second step alone."""
    same = (ring_circuits(0, 1),)
    for light in ((ring_circuits(0, 1, n=2),), (), (*same, *same)):
        found = check_light(two_steps(SAME, SAME, [same, light])).violations
        unequal = [(v.rule, v.expected, v.round) for v in found if v.step == 1]
        assert unequal == [("steps_unequal", "the circuits of step 0", -1)]
    equal = (ring_circuits(0, 1),)  # not the same object
    assert not check_light(two_steps(SAME, SAME, [same, equal])).violations


def test_circuits_that_are_equal_by_definition_are_made_once():
    """Those of the first step of each class; of steps in other classes than the circuits all are compared."""
    made = []

    def rounds(i):
        made.append(i)
        return (ring_circuits(0, 1),)

    plan = two_steps(SAME, SAME)
    for classes, due in (((range(2),), [0]), ((range(1), range(1, 2)), [0, 1])):
        made.clear()
        light = CircuitPlan(plan.fabric, plan.schedule, ClassRounds(classes, rounds))
        assert not check_light(light).violations
        assert made == due


@pytest.mark.parametrize(
    "classes",
    [
        (range(1),), (range(1), range(1)), (range(1, 3),), (range(2, 2), range(3)), (range(0, 3, 2),), (range(4),),
        (range(1), range(2, 3)), (range(2), range(1, 3)), (range(3), range(3)), (range(2, -1, -1),), (range(0), range(3)),
    ],
)  # fmt: skip
def test_classes_of_steps_have_every_step_once(classes):
    """Light of steps that no class has is judged too: the second and third step here have none."""
    transfers = Transfers.of([0], [1], [0], 1, Op.COPY)
    schedule = Schedule("three", collective("all_gather", 6, 6), 3, lambda i: transfers, classes=classes)
    plan = CircuitPlan(fabric(RING), schedule, lambda i: (ring_circuits(0, 1),) if i == 0 else ())
    found = check_light(plan).violations
    assert (found[0].rule, found[0].where) == ("steps_unequal", "the classes of steps")
    assert {v.step for v in found if v.rule == "transfer_not_carried"} == {1, 2}


# --- circuits that do not exist --------------------------------------------------------------------------------------------


def rules(rows, paths, step=1, offsets=None):
    """Rules that circuits break on the ring, each with a transfer of its own."""
    light = circuits_of(rows, paths, step)
    if offsets is not None:
        object.__setattr__(light, "hop_offsets", np.array(offsets))
    transfers = Transfers.of(light.src, light.dst, np.arange(len(rows)), 1, Op.COPY)
    schedule = Schedule("by hand", collective("all_gather", 6, 6), 1, lambda i: transfers)
    return {v.rule for v in check_light(CircuitPlan(fabric(RING), schedule, lambda i: (light,))).violations}


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ((0, 6, 0, 0, 1), "node_unknown"),
        ((-1, 0, 0, 0, 1), "node_unknown"),
        ((0, 1, 2, 0, 1), "port_unknown"),
        ((0, 1, -1, 0, 1), "port_unknown"),
        ((0, 1, 0, 4, 1), "wavelength_unknown"),
        ((0, 1, 0, 1, 4), "wavelength_unknown"),
        ((0, 1, 0, -1, 1), "wavelength_unknown"),
        ((0, 1, 0, 0, 0), "wavelength_unknown"),
    ],
)
def test_the_first_number_that_does_not_exist(row, rule):
    """One above the last and one below the first; the last of each is fine."""
    assert rule in rules([row], [[0]])
    assert rules([(4, 5, 0, 0, 4), (5, 0, 0, 3, 1)], [[4], [5]]) == set()
    assert rules([(1, 0, 1, 0, 1)], [[6]]) == set()


def test_steps_of_wavelengths():
    """0 and 2 with a step of 2 exist, 2 and 4 do not; a step of 0 is none."""
    assert rules([(0, 1, 0, 0, 2)], [[0]], step=2) == set()
    assert rules([(0, 1, 0, 2, 2)], [[0]], step=2) == {"wavelength_unknown"}
    assert rules([(0, 1, 0, 0, 2)], [[0]], step=0) == {"wavelength_unknown"}


@pytest.mark.parametrize("offsets", [[0, 1], [1, 1, 2], [0, 1, 3], [0, 3, 2], [0, 1, 2, 2]])
def test_ends_of_paths_cut_the_hops_in_order(offsets):
    """Too few, a first that is not 0, a last behind the hops, backwards, too many."""
    assert rules([(0, 1, 0, 0, 1), (1, 2, 0, 0, 1)], [[0], [1]], offsets=offsets) == {"path_broken"}


def test_a_clash_names_the_circuits_that_make_it():
    """Of six on one fibre, the two on the second of wavelengths 0 and 2, and no other."""
    light = circuits_of([(0, 1, 0, 0, 2), (0, 1, 0, 1, 1), (0, 1, 0, 2, 1)], [[0], [0], [0]], step=2)
    transfers = Transfers.of(light.src, light.dst, np.arange(3), 1, Op.COPY)
    schedule = Schedule("by hand", collective("all_gather", 6, 6), 1, lambda i: transfers)
    found = [
        v
        for v in check_light(CircuitPlan(fabric(RING), schedule, lambda i: (light,))).violations
        if v.rule == "wavelength_clash"
    ]
    assert [(v.where, v.found) for v in found] == [("fibre 0 wavelength 2", "2: 0 -> 1, 0 -> 1")]


def test_settings_of_a_job_may_not_change_either_way():
    """ODDL: input 0 leads wavelength 0 to node 1; a later round that leads it to node 2, or first 2 and then 1, is refused."""
    where = fabric("oddl:shape=4")
    for order in ((1, 2), (2, 1)):
        light = [Circuits.of(np.arange(1), np.array([0]), np.array([dst]), 0, 0, 1, np.array([[0]])) for dst in order]
        steps = [Transfers.of([0], [dst], [0], 1, Op.COPY) for dst in order]
        schedule = Schedule("by hand", collective("broadcast", 4, 1), 2, lambda i, steps=steps: steps[i])
        found = check_light(CircuitPlan(where, schedule, lambda i, light=light: (light[i],))).violations
        assert {v.rule for v in found} == {"switch_reset"}


# --- what stands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["src", "dst", "port", "wavelength_lo", "wavelength_n", "path"])
def test_a_circuit_stands_only_as_it_is(column):
    """Its number changes with every column."""
    row, path = {"src": 0, "dst": 1, "port": 0, "wavelength_lo": 1, "wavelength_n": 1}, [0, 1]
    other = row if column == "path" else row | {column: row[column] + 1}
    numbers = [
        circuit_numbers(circuits_of([tuple(one.values())], [hops]))[0]
        for one, hops in ((row, path), (other, [1, 0] if column == "path" else path), (row, path))
    ]
    assert numbers[0] == numbers[2] != numbers[1]


# --- data -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ops", [(Op.COPY, Op.REDUCE), (Op.REDUCE, Op.COPY), (Op.COPY, Op.COPY)])
@pytest.mark.parametrize("sends", [False, True])
def test_a_copy_and_a_sum_into_one_chunk(sends, ops):
    """In one step, in either order, whether or not the receiver sends that chunk in the same step."""
    transfers = Transfers.of([1, 2, 0][: 2 + sends], [0, 0, 1][: 2 + sends], 0, 1, [*ops, Op.REDUCE][: 2 + sends])
    schedule = Schedule("by hand", collective("all_reduce", 3, 1), 1, lambda i: transfers)
    assert "chunk_overwritten" in {v.rule for v in check_data(schedule).violations}


def test_sums_alone_into_one_chunk_are_right():
    """Two arrivals that are both added."""
    transfers = Transfers.of([1, 2], [0, 0], [0, 0], 1, Op.REDUCE)
    plan = CircuitPlan(
        fabric("ideal:nodes=3"),
        Schedule("by hand", collective("reduce", 3, 1), 1, lambda i: transfers),
        lambda i: (Circuits.of(np.arange(2), np.array([1, 2]), np.array([0, 0]), 0, 0, 1, np.array([[1, 3], [2, 3]])),),
    )
    assert verify(plan).ok
