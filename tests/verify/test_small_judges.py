"""Judges of cuts, of sets, of power and of emulated light, one rule at a time, on parts made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.collective import as_request
from opticcl.ir import Circuits, Fault, Schedule, Violation
from opticcl.verify import budget, cut, emulated
from opticcl.verify.budget import RULE, check_budget
from opticcl.verify.circuit_rows import part_faults
from opticcl.verify.cut import check_cut
from opticcl.verify.emulated import WorstLeak, emulate

# --- cuts ---------------------------------------------------------------------------------------------------------------


def machine(*ways):
    """Four nodes, ten more than their ranks; the given ways work, and every pair has two."""
    asked = []

    def options(src, dst):
        asked.append(len(src))
        both = np.repeat(src, 2), np.repeat(dst, 2)
        return SimpleNamespace(circuits=Circuits.of(np.arange(2 * len(src)), *both))

    def broken(circuits):
        pairs = list(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True))
        first = np.arange(len(pairs)) % 2 == 0
        yield Fault("failed", np.flatnonzero(first), "a part")
        yield Fault("failed", np.array([i for i, pair in enumerate(pairs) if pair not in ways], int), "another part")

    return asked, SimpleNamespace(
        num_nodes=4,
        machine_nodes=lambda ranks: ranks + 10,
        options=options,
        part_faults=broken,
        node_name=lambda i: f"n{i}",
    )


def test_cuts(monkeypatch):
    """Every way out has a failed part, of pairs that are tried a few at a time; ways in and within do not count."""
    _, none = machine()
    for inside, many in ((np.arange(4), 4), (np.zeros(0, int), 0)):
        assert check_cut(none, inside) == (Violation("cut_empty", -1, -1, "cut", "1 to 3 ranks", f"{many}", 1),)
    for size, tried in ((3, [3, 1]), (1 << 12, [4])):
        monkeypatch.setattr(cut, "PAIRS_AT_ONCE", size)
        asked, shut = machine((12, 11), (10, 11), (12, 13), (13, 10))
        assert check_cut(shut, np.array([1, 3]))[0].where == "n13 to n10"
        asked, shut = machine((12, 11), (11, 13), (10, 12))
        assert check_cut(shut, np.array([1, 3])) == ()
        assert asked == tried
    monkeypatch.setattr(cut, "PAIRS_AT_ONCE", 3)
    asked, open_ = machine((13, 12), (13, 10), (11, 10))
    due = Violation("cut_open", -1, -1, "n11 to n10", "a failed part on every way", "one that works", 2)
    assert check_cut(open_, np.array([1, 3])) == (due,)
    assert asked == [3]
    assert check_cut(open_, np.array([3]))[0].count == 2


def test_faults_of_parts():
    """A machine on which nothing has failed is not asked."""
    fault = Fault("failed", np.arange(1), "a part")
    for conditions, found in (((), []), (("one",), [fault])):
        fabric = SimpleNamespace(conditions=conditions, part_faults=lambda circuits: [fault])
        assert list(part_faults(fabric, Circuits.of([0], [0], [1]))) == found


# --- sets ---------------------------------------------------------------------------------------------------------------


# --- power --------------------------------------------------------------------------------------------------------------

CHAIN = {
    "loss_db": np.array([0.0, 1.0, 0.0, 0.0]),
    "once_db": np.array([0.0, 1.0, 0.0, 0.5]),
    "gain_db": np.array([0, 0, 3.0, 0]),
}
KINDS = ("switch", "fibre", "amplifier", "splitter")


def lit(margins, steps=range(1), received=-20.0, counts=(1, 1, 2, 0), number=0, powers=(0.0, -3.0, -9.0, 1.0)):
    """Circuits of a round with these margins."""
    n = len(margins)
    chain = SimpleNamespace(
        **CHAIN, sensitivity_dbm=-18.0, floor_dbm=-7.0, received_dbm=lambda c: np.array([received]),
        powers_dbm=lambda c: np.array([powers]),
    )  # fmt: skip
    circuits = Circuits.of(np.arange(n), np.arange(n), np.arange(n) + 1)
    every = np.tile(np.array(counts), (n, 1))
    return SimpleNamespace(
        steps=steps, round=number, circuits=circuits, margin_db=np.array(margins), counts=every, chain=chain
    )


@pytest.fixture
def power(monkeypatch):
    """The report on rounds, and what was told."""
    path = SimpleNamespace(extremes=[0], elements=[SimpleNamespace(kind=kind) for kind in KINDS])
    monkeypatch.setattr(budget, "light_path_of", lambda fabric: path)

    def report(*found):
        monkeypatch.setattr(budget, "round_budgets", lambda plan, values: found)
        told = []
        plan = SimpleNamespace(
            schedule=Schedule("own", as_request("all_reduce").on(2, 2), 5, None), fabric=None, has_images=False
        )
        return check_budget(plan, SimpleNamespace(preset="typical"), progress=lambda *one: told.append(one)), told

    return report


def test_the_least_margin_is_named(power):
    """The first of equal ones; circuits of a class count for all of its steps."""
    found, told = power(lit([3.0, 2.0]), lit([2.0, 5.0], range(1, 4)), lit([4.0], range(4, 5)))
    assert (found.violations, found.circuits) == ((), 2 + 6 + 1)
    assert found.notes == ("light: least margin 2 dB, circuit 1 -> 2 of step 0 (preset typical)",)
    assert told == [("follow the light", 1, 5), ("follow the light", 4, 5), ("follow the light", 5, 5)]
    assert power()[0].notes == ()


def test_power_that_is_short(power):
    """At the detector, else at the darkest place of the path; rounding is no shortage."""
    rounding = budget.ROUNDING_DB
    assert power(lit([0.0, -rounding, rounding / 2]))[0].violations == ()
    (one,) = power(lit([1.0, -2 * rounding, -2.0, -1.0], range(2, 5), number=3))[0].violations
    through = "circuit 2 -> 3 through 1 fibre, 2 amplifier"
    assert one == Violation(RULE, 2, 3, through, "at least -18 dBm at the detector", "-20 dBm: 2 dB short", 3)
    for received, text in ((-18.0, "-7 dBm all along the path"), (-18.0 - rounding, "-7 dBm all along the path"),
                           (-18.0 - 3 * rounding, "-18 dBm at the detector")):  # fmt: skip
        assert power(lit([-2.0], received=received))[0].violations[0].expected == f"at least {text}"
    (one,) = power(lit([-2.0], received=-1.0, counts=(0, 0, 0, 1)))[0].violations
    assert (one.where, one.found) == ("circuit 0 -> 1 through 1 splitter", "-9 dBm behind the amplifier: 2 dB short")


@pytest.mark.parametrize(("paths", "symmetric", "listed"), [(1, True, True), (2, True, False), (1, False, False)])
def test_listed_circuits_stand_for_all_where_all_have_one_path(monkeypatch, paths, symmetric, listed):
    """Only then, and only of steps that symmetries define."""
    seen = []
    monkeypatch.setattr(budget, "light_path_of", lambda fabric: SimpleNamespace(extremes=[0] * paths))
    monkeypatch.setattr(budget, "listed_plan", lambda plan: "listed")
    monkeypatch.setattr(budget, "round_budgets", lambda plan, values: seen.append(plan) or ())
    plan = SimpleNamespace(schedule=None, fabric=None, has_images=symmetric)
    check_budget(plan, SimpleNamespace(preset="typical"))
    assert seen == ["listed" if listed else plan]


# --- emulated light -----------------------------------------------------------------------------------------------------


def leaking(*ratios, leaks=4):
    """A round whose photodiodes get these ratios of light that leaks; None: nothing is followed."""
    crosstalk = (
        None if ratios == (None,) else SimpleNamespace(ratio=np.array(ratios), leaks=leaks + np.arange(len(ratios)))
    )
    lanes = SimpleNamespace(photodiode=np.arange(len(ratios)) + 7)
    return SimpleNamespace(light=SimpleNamespace(crosstalk=crosstalk, lanes=lanes))


def test_the_worst_leak():
    """Of all rounds the first with the largest ratio; its photodiode and its leaks."""
    netlist = SimpleNamespace(photodiodes=SimpleNamespace(place=lambda number: f"node {number}"))
    worst = WorstLeak()
    for one in (leaking(None), leaking(), leaking(0.0)):
        assert worst.beside(one, netlist) == worst
    assert worst.note() == "crosstalk: nothing leaks to a photodiode that is listened to"
    worst = worst.beside(leaking(0.001, 0.01, 0.002), netlist)
    assert worst == WorstLeak(0.01, 5, "node 8")
    assert worst.beside(leaking(0.01, leaks=9), netlist) == worst
    assert worst.beside(leaking(None), netlist) == worst.beside(leaking(), netlist) == worst
    assert worst.note() == "crosstalk: 20.0 dB below the signal at worst, 5 leaks at photodiode of node 8"


class Lanes(list):
    """Signals, with the photodiode of each."""

    photodiode = np.zeros(9, int)


def test_what_was_emulated_is_counted(monkeypatch):
    """Rounds, signals, lines without data, elements; leaks where they are followed."""

    def one(lanes, idle, *ratios):
        crosstalk = SimpleNamespace(ratio=np.array(ratios), leaks=np.ones(len(ratios), int))
        report = SimpleNamespace(idle=idle)
        return SimpleNamespace(
            violations=[idle], light=SimpleNamespace(lanes=Lanes(lanes), report=report, crosstalk=crosstalk)
        )

    idle = [0]
    netlist = SimpleNamespace(num_elements=12, photodiodes=SimpleNamespace(place=lambda number: f"node {number}"))
    rounds = {0: ["ab", "c"], 2: ["def"]}
    light = SimpleNamespace(
        emulator=SimpleNamespace(netlist=netlist),
        rounds=lambda step, transfers: [one(lanes, idle[0], 0.1) for lanes in rounds[step]],
    )
    monkeypatch.setattr(emulated, "PlanLight", lambda plan, isolation_db: light)
    schedule = SimpleNamespace(step_classes=lambda: [range(2), range(2, 3)], step=lambda i: None, num_steps=3)
    told = []
    found = emulate(SimpleNamespace(schedule=schedule), progress=lambda *one: told.append(one))
    assert found.notes == ("emulated: 3 rounds with 6 signals at photodiodes, through 12 elements",)
    assert told == [("follow the light", 2, 3), ("follow the light", 3, 3)]
    idle[0] = 3
    found = emulate(SimpleNamespace(schedule=schedule), isolation_db={})
    beside = "; 9 lines of light without data end at others"
    assert found.notes[0] == f"emulated: 3 rounds with 6 signals at photodiodes, through 12 elements{beside}"
    assert found.notes[1] == "crosstalk: 10.0 dB below the signal at worst, 1 leak at photodiode of node 0"
    assert found.violations == (3, 3, 3)
