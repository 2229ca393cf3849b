"""Parts of the judge of light, each against the same by hand: counts, settings, names in messages, steps of runs, one slot."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.altered import altered
from tests.verify.timing import Bench

import opticcl
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Resource, Schedule, Transfers, Usage, no_progress
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.occupied import Occupied
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import skewed_exchange
from opticcl.verify import sweep
from opticcl.verify.light import circuits as circuits_module
from opticcl.verify.light.circuits import check_light, check_slot, distinct_signals
from opticcl.verify.sweep import cells_of, loads_of

RING = "terarack:nodes=6,wavelengths=4"


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("depth", [1, 7])
def test_loads_of_cells(owned, depth):
    """Rows of circuits in any order, wavelengths one or two apart, each of an amount: as counted one by one."""
    draw = np.random.default_rng(3)
    lo, n = draw.integers(0, 2, 6), draw.integers(1, 4, 6)
    index, owner = draw.integers(0, 5, 6), np.array([5, 0, 0, 3, 2, 1])
    resource = Resource("fibre", 5, per_wavelength=depth > 1)
    for step, amount in ((1, None), (2, None), (1, np.arange(6))):
        if depth > 1 and amount is not None:
            continue
        usage = Usage(resource, index, owner if owned else None, amount=amount)
        circuits = Circuits.of(-1, [0] * 6, 1, 0, lo, n, wavelength_step=step)
        due = Counter()
        for row in range(6):
            circuit = owner[row] if owned else row
            for nth in range(n[circuit] if depth > 1 else 1):
                cell = index[row] * depth + (lo[circuit] + nth * step if depth > 1 else 0)
                due[cell] += 1 if amount is None else amount[row]
        loads = [due[cell] for cell in range(5 * depth)]
        assert cells_of(usage, circuits, depth).loads().tolist() == loads
        assert loads_of(usage, circuits, depth).tolist() == loads


@pytest.mark.parametrize(("n", "per_wavelength", "lists"), [(1, True, 1), (2, True, 0), (1, False, 1), (2, False, 1)])
def test_cells_are_listed_where_each_circuit_has_one(monkeypatch, n, per_wavelength, lists):
    """Of circuits of several wavelengths, which would be long lists, beginnings and ends alone are counted."""
    calls = []
    monkeypatch.setattr(sweep, "cells_of", lambda *given: calls.append(given) or cells_of(*given))
    circuits = Circuits.of(-1, [0, 0], 1, 0, [0, 2], n)
    usage = Usage(Resource("fibre", 1, per_wavelength=per_wavelength), np.zeros(2, np.int64))
    assert sweep.loads_of(usage, circuits, 4).tolist() == ([int(n == 2), 1][::-1] * 2 if per_wavelength else [2])
    assert len(calls) == lists


def phase_of(number, count, parts_step=0):
    """Steps from node 0 to node 1, of as many chunks as the number of the phase and one more."""
    return Phase(PhaseRows.of(1, 0, 1, 0, unit_count=[number + 1], op=Op.COPY, parts_step=parts_step), (), count)


@pytest.mark.parametrize(
    ("counts", "parts_step", "classes", "equal"),
    [
        ((2, 2), 0, (range(2), range(2, 4)), True), ((2, 2), 0, (range(4),), False),
        ((2, 2), 0, (range(1), range(1, 4)), False), ((2, 2), 0, (range(3), range(3, 4)), False),
        ((1, 3), 0, (range(1), range(1, 4)), True), ((4,), 0, (range(4),), True), ((4,), 1, (range(4),), False),
        ((1, 1, 2), 0, (range(1), range(1, 4)), False), ((1, 3), 0, (range(2), range(2, 4)), False),
        ((2, 2), 0, (range(1), range(1, 3), range(3, 4)), False),
    ],
)  # fmt: skip
def test_steps_of_a_class_that_phases_define(counts, parts_step, classes, equal):
    """A class within a phase needs no comparison; one that reaches over its end is compared, and one whose parts grow."""
    phases = [phase_of(number, count, parts_step) for number, count in enumerate(counts)]
    steps = Steps(Space((6,)), [MessagePart(((UNIT, 1, 4),), 4)], phases)
    schedule = Schedule("phases", collective("barrier", 6, 4), 4, steps, classes)
    light = (Circuits.of(np.arange(1), np.array([0]), np.array([1]), 0, 0, 1, np.array([[0]])),)
    report = check_light(CircuitPlan(fabric(RING), schedule, lambda i: light), progress=no_progress)
    assert {v.rule for v in report.violations} == (set() if equal else {"steps_unequal"})


def test_steps_of_one_phase_are_listed_once(monkeypatch):
    """They are equal by definition."""
    listed, given = [], Steps.__call__
    monkeypatch.setattr(Steps, "__call__", lambda self, i: listed.append(i) or given(self, i))
    rows = PhaseRows.of(1, [[0], [1]], [[1], [2]], 0, unit_shift=[1, 2], op=Op.COPY)
    steps = Steps(Space((6,)), [MessagePart(((UNIT, 1, 4),), 4)], [Phase(rows, (), 2)])
    schedule = Schedule("phases", collective("barrier", 6, 4), 2, steps, (range(2),))
    light = (one_circuit(0, 0, 1), one_circuit(1))
    report = check_light(CircuitPlan(fabric(RING), schedule, lambda i: light), progress=no_progress)
    assert not report.violations
    assert set(listed) == {0}


def test_circuits_of_other_classes_are_compared():
    """Circuits that are equal by definition in classes of their own say nothing about those of the schedule."""
    step = Transfers.of([0], [1], [0], 1, Op.COPY)
    schedule = Schedule("two", collective("barrier", 6, 1), 2, lambda i: step, (range(2),))
    light = [(Circuits.of(np.arange(1), np.array([0]), np.array([1]), 0, 0, 1 + i, np.array([[0]])),) for i in range(2)]
    for classes, rules in (((range(1), range(1, 2)), {"steps_unequal"}), ((range(2),), set())):
        plan = CircuitPlan(fabric(RING), schedule, ClassRounds(classes, lambda i: light[i]))
        assert {v.rule for v in check_light(plan, progress=no_progress).violations} == rules


def test_circuits_of_one_slot():
    """Other nodes than those of their transfers, or two into one receiver."""
    where = fabric(RING)
    t = Transfers.of([0, 1], [1, 2], [0, 1], 1, Op.COPY)

    def slot(src, dst, paths):
        found = check_slot(where, t, Circuits.of(np.arange(2), np.array(src), np.array(dst), 0, 0, 1, paths))
        return [(v.rule, v.step, v.round) for v in found]

    right = (np.array([0, 1]), np.array([0, 1, 2]))
    assert slot([0, 1], [1, 2], right) == []
    assert slot([0, 1], [1, 3], (np.array([0, 1, 2]), np.array([0, 1, 3]))) == [("circuit_astray", 0, 0)]
    shared = slot([0, 1], [1, 2], (np.array([0, 0, 1]), np.array([0, 1, 3])))
    assert shared == [("path_broken", -1, -1)]
    t = Transfers.of([0, 0], [1, 1], [0, 1], 1, Op.COPY)
    assert {rule for rule, _, _ in slot([0, 0], [1, 1], (np.array([0, 0]), np.array([0, 1, 2])))} == {
        "laser_shared", "photodiode_shared", "wavelength_clash",
    }  # fmt: skip


class Hall(Bench):
    """One waveguide of two shares, and a switch with a setting."""

    num_wavelengths = 3
    resources = (
        Resource("waveguide", 2, capacity=4, per_wavelength=False, one_setting=True),
        Resource("subnet", 1, per_wavelength=False),
    )
    whole = False

    def usage(self, circuits):
        """Circuits of even senders take three of four shares; all pass the coupler."""
        even = np.flatnonzero(circuits.src % 2 == 0)
        yield Usage(
            self.resources[0], np.ones(len(even), np.int64), even, setting=circuits.dst[even].astype(np.int64),
            amount=np.full(len(even), 3),
        )  # fmt: skip
        yield Usage(self.resources[1], np.zeros(len(circuits), np.int64))


def messages(rows):
    """(rule, place, found) of circuits (src, dst)."""
    src, dst = np.array(rows).T
    t = Transfers.of(src, dst, np.arange(len(rows)), 1, Op.COPY)
    schedule = Schedule("by hand", collective("barrier", 12, len(rows)), 1, lambda i: t)
    circuits = Circuits.of(np.arange(len(rows)), src, dst)
    report = check_light(CircuitPlan(Hall(nodes=12), schedule, lambda i: (circuits,)), progress=no_progress)
    assert report.circuits == len(rows)
    return {(v.rule, v.where, v.expected, v.found, v.step, v.round) for v in report.violations}


def test_messages_name_what_clashes():
    """Shares of a waveguide; the two circuits whose settings differ; four circuits, and dots for more."""
    assert messages([(1, 2)]) == set()
    assert messages([(1, 2), (2, 3), (4, 3)]) == {
        ("waveguide_overfull", "waveguide 1", "at most 4 shares", "6: 2 -> 3, 4 -> 3", 0, 0),
        ("wavelength_clash", "subnet 0", "at most 1 circuit(s)", "3: 1 -> 2, 2 -> 3, 4 -> 3", 0, 0),
    }
    found = messages([(1, 2), (2, 3), (3, 9), (4, 5), (5, 7)])
    assert (
        "mzi_clash", "waveguide 1", "one setting of its switches, as 2 -> 3 needs it", "another for 4 -> 5", 0, 0,
    ) in found  # fmt: skip
    assert any(one[3] == "5: 1 -> 2, 2 -> 3, 3 -> 9, 4 -> 5, ..." for one in found)
    assert any(one[3] == "4: 1 -> 2, 3 -> 4, 5 -> 6, 7 -> 8" for one in messages([(1, 2), (3, 4), (5, 6), (7, 8)]))


def test_a_long_path_is_cut_in_messages():
    """After eight hops."""
    where = fabric("terarack:nodes=12,wavelengths=4")
    for hops, shown in ((8, "path [1 2 3 4 5 6 7 8]"), (9, "path [1 2 3 4 5 6 7 8 ...]")):
        path = np.arange(1, hops + 1)[None]
        circuits = Circuits.of(np.arange(1), np.array([0]), np.array([hops]), 0, 0, 1, path)
        t = Transfers.of([0], [hops], [0], 1, Op.COPY)
        schedule = Schedule("by hand", collective("barrier", 12, 1), 1, lambda i, t=t: t)
        plan = CircuitPlan(where, schedule, lambda i, circuits=circuits: (circuits,))
        (found,) = check_light(plan, progress=no_progress).violations
        assert found.rule == "path_broken"
        assert found.found.endswith(shown)
        assert replace(found, count=1) == found


class Given(Bench):
    """Every circuit takes instance 0 of each resource that is given; those of one setting are set to their receiver."""

    num_wavelengths = 4
    resources: tuple[Resource, ...] = ()
    amount = None

    def usage(self, circuits):
        """In reverse order of circuits, so that rows and circuits differ."""
        back = np.arange(len(circuits))[::-1]
        for resource in self.resources:
            amount = None if self.amount is None else np.full(len(back), self.amount)
            setting = circuits.dst[back].astype(np.int64) if resource.once_per_job else None
            yield Usage(resource, np.zeros(len(back), np.int64), back, setting=setting, amount=amount)


def judged(resources, rows, chunk=0, amount=None, step=1):
    """Violations of circuits (src, dst, wavelength_lo, wavelength_n) of one round, which send one chunk or those given."""
    where = Given(nodes=12)
    object.__setattr__(where, "resources", resources)
    object.__setattr__(where, "amount", amount)
    src, dst, lo, n = np.array(rows).T
    t = Transfers.of(src, dst, np.full(len(rows), 0) + chunk, 1, Op.COPY)
    schedule = Schedule("by hand", collective("barrier", 12, 9), 1, lambda i: t)
    circuits = replace(Circuits.of(np.arange(len(rows)), src, dst, 0, lo, n), wavelength_step=step)
    return check_light(CircuitPlan(where, schedule, lambda i: (circuits,)), progress=no_progress)


def test_light_is_split_where_optics_split_it_alone():
    """One signal to several receivers is one circuit of a coupler that splits; what receivers may take is theirs to count."""
    rows = [(1, 5, 0, 1), (1, 6, 0, 1)]
    for splits, refused in ((True, 0), (False, 1)):
        resource = Resource("subnet", 1, splits=splits)
        assert len(judged((resource,), rows).violations) == refused
    assert not judged((Resource("subnet", 1, splits=True),), [(1, 5, 0, 1), (1, 6, 0, 1), (1, 5, 0, 1)]).violations
    rows = [(1, 5, 0, 1), (2, 6, 0, 1), (1, 7, 0, 1)]
    (found,) = judged((Resource("subnet", 1, splits=True),), rows).violations
    assert found.found.startswith("2: ")


def test_signals_of_two_times_are_two():
    """One signal has one time."""
    t = Transfers.of([1, 1], [5, 6], [0, 0], 1, Op.COPY)
    usage = Usage(Resource("subnet", 1, splits=True), np.zeros(2, np.int64))
    circuits = Circuits.of(np.arange(2), t.src, t.dst)
    for time_s, count in (([0.0, 0.0], 1), ([0.0, 1e-6], 2)):
        assert len(distinct_signals(usage, fabric("ideal:nodes=8"), t, circuits, (np.array(time_s),)).index) == count


def test_shares_are_counted_beyond_31_bits():
    """Three circuits of 2^30 shares are more than a capacity of 2^31."""
    resource = Resource("waveguide", 1, capacity=2**31, per_wavelength=False, in_wavelengths=True)
    (found,) = judged((resource,), [(1, 5, 0, 1), (2, 6, 0, 1), (3, 7, 0, 1)], amount=2**30).violations
    assert (found.rule, found.found[:11]) == ("waveguide_overfull", "3221225472:")
    assert not judged((resource,), [(1, 5, 0, 1), (2, 6, 0, 1)], amount=2**30).violations


def test_a_clash_names_circuits_on_its_wavelength_alone():
    """Wavelengths 0 and 2, 1, 2, and 0 of steps of two: on 2 there are the first and the third; any on a whole fibre."""
    rows = [(1, 5, 0, 2), (2, 6, 1, 1), (3, 7, 2, 1), (4, 8, 0, 1)]
    found = [v.found for v in judged((Resource("fibre", 1),), [rows[k] for k in (0, 1, 2)], step=2).violations]
    assert found == ["2: 3 -> 7, 1 -> 5"]
    found = [v.found for v in judged((Resource("fibre", 1, capacity=2),), [*rows, (9, 10, 0, 1)], step=2).violations]
    assert found == ["3: 9 -> 10, 4 -> 8, 1 -> 5"]
    found = [v.found for v in judged((Resource("fibre", 1),), [rows[2], rows[3], (9, 10, 2, 1)], step=2).violations]
    assert found == ["2: 9 -> 10, 3 -> 7"]
    whole = judged((Resource("fibre", 1, per_wavelength=False),), [(1, 5, 2, 1), (2, 6, 3, 1)]).violations
    assert [(v.where, v.found) for v in whole] == [("fibre 0", "2: 2 -> 6, 1 -> 5")]


def test_settings_of_a_job_name_the_circuit():
    """One setting for all wavelengths: of three receivers, two clash, first the second row from behind."""
    resource = Resource("switch_port", 1, per_wavelength=False, once_per_job=True)
    (found,) = judged((resource,), [(1, 5, 0, 1), (2, 6, 1, 1), (3, 7, 2, 1)]).violations
    assert (found.rule, found.count, found.found) == ("switch_reset", 2, "6")
    assert found.where == "switch_port 0 for 2 -> 6"
    assert not judged((resource,), [(1, 5, 0, 1), (2, 5, 3, 1)]).violations


@pytest.mark.parametrize(("lo", "n", "found"), [(0, 1, []), (1, 1, ["2: 1 -> 5"]), (2, 2, []), (0, 2, ["2: 1 -> 5"])])
def test_light_of_stuck_parts_takes_cells(lo, n, found):
    """Of the second kind: wavelength 1 of the first fibre; the second has too much of it, and no circuit."""
    resources = Resource("laser", 1, capacity=9), Resource("fibre", 2)
    t = Transfers.of([1], [5], [0], 1, Op.COPY)
    schedule = Schedule("by hand", collective("barrier", 12, 9), 1, lambda i: t)
    for more in ((), ((1, 1, 0, 2),)):
        where = altered(
            Given(nodes=12), resources=resources, occupied=Occupied.of([(1, 0, 1, 1), *more], "stuck parts")
        )
        plan = CircuitPlan(where, schedule, lambda i: (Circuits.of(np.arange(1), [1], [5], 0, lo, n),))
        assert [v.found for v in check_light(plan, progress=no_progress).violations] == found


def test_settings_of_a_job_are_for_any_number_of_signals():
    """Two circuits of one setting on one port, which carry one chunk in the first step of their class, two in the second."""
    where = altered(Given(nodes=12), resources=(Resource("switch_port", 1, once_per_job=True, per_wavelength=False),))
    steps = [Transfers.of([1, 2], [5, 5], lo, 1, Op.COPY) for lo in ([0, 0], [0, 1])]
    schedule = Schedule("by hand", collective("barrier", 12, 9), 2, lambda i: steps[i], (range(2),))
    plan = CircuitPlan(where, schedule, lambda i: (Circuits.of(np.arange(2), [1, 2], [5, 5]),))
    assert not check_light(plan, progress=no_progress).violations


@pytest.mark.parametrize("order", [(0, 5), (5, 0)])
def test_a_setting_of_zero_stands_as_others_do(order):
    """A later step may not change it, nor make it of another."""
    where = altered(Given(nodes=12), resources=(Resource("switch_port", 1, per_wavelength=False, once_per_job=True),))
    steps = [Transfers.of([1], [dst], [0], 1, Op.COPY) for dst in order]
    schedule = Schedule("by hand", collective("barrier", 12, 9), 2, lambda i: steps[i])
    plan = CircuitPlan(where, schedule, lambda i: (Circuits.of(np.arange(1), [1], [order[i]]),))
    found = check_light(plan, progress=no_progress).violations
    assert [(v.rule, v.step, v.found) for v in found] == [("switch_reset", 1, str(order[1]))]


def test_links_that_packets_share_beside_light():
    """Are not counted; receivers that are used twice are noted."""
    link, receiver = Resource("link", 1, shared=True), Resource("rx_port", 1)
    report = judged((link, receiver), [(1, 5, 0, 1), (2, 6, 0, 1), (3, 7, 1, 1)])
    assert [v.rule for v in report.violations] == ["receiver_shared"]
    assert report.notes == ("step 0: 1 receivers used twice",)
    assert judged((link, Resource("fibre", 1)), [(1, 5, 0, 1), (2, 6, 0, 1)]).notes == ()


def by_hand(light, count=1, classes=(), calls=None):
    """Report on steps of two transfers on the ring whose rounds are given."""
    t = Transfers.of([0, 1], [1, 2], [0, 1], 1, Op.COPY)
    schedule = Schedule("by hand", collective("barrier", 6, 2), count, lambda i: t, classes)
    progress = no_progress if calls is None else (lambda *what: calls.append(what))
    return check_light(CircuitPlan(fabric(RING), schedule, lambda i: light), progress=progress)


def one_circuit(transfer, src=1, dst=2):
    """From a node to the next."""
    return Circuits.of(np.array([transfer]), np.array([src]), np.array([dst]), 0, 0, 1, np.array([[src]]))


@pytest.mark.parametrize(
    ("light", "found"),
    [
        ((0, 1, 1), [("transfer_carried_twice", 2, "transfer 1", 1)]),
        ((0,), [("transfer_not_carried", -1, "transfer 1 -> 2", 1)]),
        ((0, 1, -2), [("transfer_unknown", 2, "circuit 0", 1)]), ((0, 1, -1), []),
        ((0, 1, 2), [("transfer_unknown", 2, "circuit 0", 1)]),
    ],
)  # fmt: skip
def test_transfers_and_their_circuits(light, found):
    """Two rounds for one transfer, none, a number that no transfer and no idle circuit has."""
    report = by_hand(tuple(one_circuit(transfer, max(transfer, 0), max(transfer, 0) + 1) for transfer in light))
    assert [(v.rule, v.round, v.where, v.count) for v in report.violations] == found


def test_circuits_that_carry_nothing_are_no_unknown_ones():
    """Idle ones beside one of a transfer that does not exist, and beside one of the first transfer with other ends."""
    for transfer, rule, count in ((-2, "transfer_unknown", 1), (0, "circuit_astray", 1)):
        light = Circuits.of(np.array([-1, transfer]), [1, 2], [2, 3], 0, [0, 1], 1, np.array([[1], [2]]))
        found = by_hand((light,)).violations[0]
        assert (found.rule, found.where, found.count) == (rule, "circuit 1", count)


@pytest.mark.parametrize(
    ("index", "lo", "n", "step", "apart"),
    [
        ((0, 0), (0, 1), 2, 2, True), ((0, 1), (0, 0), 2, 2, True), ((0, 0), (0, 2), 1, 1, False),
        ((0, 1), (0, 0), 1, 1, False), ((0, 0), (0, 2), 2, 2, False), ((0, 0), (1, 3), 2, 2, False),
    ],
)  # fmt: skip
def test_combs_that_are_apart_are_not_counted(monkeypatch, index, lo, n, step, apart):
    """Circuits of several wavelengths on different units or with different remainders; all of these where a unit takes two."""
    transfers = Transfers.of([1, 2], [5, 6], [0, 1], 1, Op.COPY)
    circuits = Circuits.of(np.arange(2), [1, 2], [5, 6], 0, lo, n, wavelength_step=step)
    schedule, counted = Schedule("by hand", collective("barrier", 12, 9), 1, lambda i: transfers), []
    monkeypatch.setattr(circuits_module, "loads_of", lambda *given: counted.append(given) or loads_of(*given))
    for owner, capacity, per_wavelength in product((None, np.arange(2)), (1, 2), (True, False)):
        resource = Resource("fibre", 2, capacity=capacity, per_wavelength=per_wavelength)
        usage = Usage(resource, np.array(index), owner)
        members = {
            "num_wavelengths": 8,
            "resources": (resource,),
            "usage": lambda self, circuits, usage=usage: (usage,),
        }
        where = altered(Given(nodes=12), **members)
        counted.clear()
        check_light(CircuitPlan(where, schedule, lambda i: (circuits,)), progress=no_progress)
        assert bool(counted) is not (per_wavelength and n > 1 and (apart or capacity == 2))


def test_amounts_of_wavelengths_are_counted():
    """Of combs that are apart, too."""
    rows, resource = [(1, 5, 0, 2), (2, 6, 1, 2)], Resource("fibre", 1, capacity=3)
    assert not judged((resource,), rows, amount=3, step=2).violations
    (found,) = judged((resource,), rows, amount=4, step=2).violations
    assert (found.count, found.found) == (4, "4: 1 -> 5")


def test_what_is_said_while_light_is_counted():
    """A class at a time; where classes are wrong, a step at a time, each counted once."""
    light = (one_circuit(0, 0, 1), one_circuit(1))
    calls: list[tuple[str, int, int]] = []
    assert by_hand(light, 3, (range(2), range(2, 3)), calls).circuits == 6
    assert calls == [("count the light", 2, 3), ("count the light", 3, 3)]
    calls.clear()
    report = by_hand(light, 3, (range(1),), calls)
    assert [(v.step, v.round, v.found, v.count) for v in report.violations] == [(1, -1, "range(3, 4) for step 1", 1)]
    assert (report.circuits, [done for _, done, _ in calls]) == (6, [1, 2, 3])


def test_progress_of_steps_that_are_not_listed(monkeypatch):
    """Is said as well."""
    monkeypatch.setattr(skewed_exchange, "MOST_LISTED", 0)
    plan = opticcl.compile("ramp:groups=3,racks=2,wavelengths=6", "all_to_all", 8, algorithm="skewed_exchange:steps=1")
    calls: list[tuple[str, int, int]] = []
    check_light(plan.circuits, progress=lambda *what: calls.append(what))
    assert calls == [("count the light", 1, 1)]


@pytest.mark.parametrize(("offsets", "step"), [([1, 1, 2], 1), ([0, 3, 2], 1), ([0, 1, 2], 0)])
def test_columns_that_cannot_be_read_end_the_check(offsets, step):
    """One violation for all circuits."""
    light = Circuits.of(np.arange(2), np.array([0, 1]), np.array([1, 2]), 0, 0, 1, np.array([[0], [1]]))
    object.__setattr__(light, "hop_offsets", np.array(offsets))
    object.__setattr__(light, "wavelength_step", step)
    (found,) = by_hand((light,)).violations
    assert found.where == ("the paths of all circuits" if step else "all circuits")
    assert found.count == 1


def test_one_slot_with_other_nodes_is_not_counted():
    """What its circuits share is not said as well."""
    t = Transfers.of([0, 0], [1, 1], [0, 1], 1, Op.COPY)
    circuits = Circuits.of(np.arange(2), np.array([0, 0]), np.array([2, 2]), 0, 0, 1, np.array([[0, 1], [0, 1]]))
    assert [v.rule for v in check_slot(fabric(RING), t, circuits)] == ["circuit_astray"]
