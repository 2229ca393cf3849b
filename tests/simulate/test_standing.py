"""Which circuits stand: against sets of circuits, and against a comparison of all settings."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.simulate.plans import by_hand

from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError
from opticcl.fabrics import fabric
from opticcl.ir import Circuits
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.device_settings import DeviceSettings
from opticcl.plans.plan import compile
from opticcl.simulate.closed_form import profile
from opticcl.simulate.facts import PlanFacts
from opticcl.simulate.parts import Reconfiguration
from opticcl.simulate.standing import Standing

CIRCUIT_COLUMNS = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n")
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 4, st.integers(1, 2), st.integers(0, 2)), max_size=6)


def round_of(rows):
    """Circuits of (src, dst, port, first wavelength, wavelengths, hops)."""
    src, dst, port, lo, n, hops = np.array(rows, int).reshape(-1, 6).T
    offsets = np.concatenate([[0], np.cumsum(hops)])
    path = np.arange(offsets[-1]) - np.repeat(offsets[:-1], hops) + np.repeat(hops, hops)
    return Circuits.of(np.arange(len(src)), src, dst, port, lo, n, (path, offsets))


@given(st.lists(ROWS, min_size=1, max_size=5))
@examples(60)
def test_a_round_changes_what_stands_if_it_has_other_circuits(rounds):
    """On a fabric without devices; the circuits of a round that changes nothing leave those that stand."""
    standing = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
    stand = None
    for rows in rounds:
        new = None if stand is None else [row not in stand for row in rows]
        due = None if new is None else any(new)
        assert standing.copy().changes(round_of(rows)) == due
        assert standing.changes(round_of(rows)) == due
        stand = set(rows) if due in (None, True) else stand


def test_other_rows_of_equal_circuits_do_not_stand():
    """Between the same nodes, on the same wavelength, by another path."""
    paths = [(0, 1, 0, 0, 1, 1), (0, 1, 0, 0, 1, 2)]
    standing = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
    first, second = (round_of(paths).take(np.arange(2)).take(np.array([row])) for row in range(2))
    assert standing.changes(first) is None
    assert standing.changes(second) is True


def test_rows_with_other_paths_do_not_stand():
    """Equal rows of lists that differ in a path alone."""
    standing = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
    rows = np.array([1, 0])
    first, second = (
        round_of([(0, 1, 0, 0, 1, hops), (2, 3, 0, 0, 1, 1)]).take(np.arange(2)).take(rows) for hops in (1, 2)
    )
    assert standing.changes(first) is None
    assert standing.changes(second) is True


@pytest.mark.parametrize("column", range(6), ids=["src", "dst", "port", "wavelength_lo", "wavelength_n", "path"])
def test_a_round_that_differs_in_one_column_changes_what_stands(column):
    """Of one circuit, and of one among others that stand."""
    for rows in ([(0, 1, 0, 0, 1, 1)], [(0, 1, 0, 0, 1, 1), (2, 0, 1, 2, 1, 2)]):
        other = [tuple(value + (at == column) for at, value in enumerate(rows[0])), *rows[1:]]
        standing = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
        assert standing.changes(round_of(rows)) is None
        assert standing.changes(round_of(rows)) is False
        assert standing.changes(round_of(other)) is True


def test_circuits_of_the_start_stand_until_others_are_set():
    """On a ring: 0 -> 1 and 2 -> 3 stand, whichever of them is used first; 4 -> 5 replaces both."""
    where = fabric("terarack:nodes=6")

    def circuits(*pairs):
        return by_hand(where, [(0, *pair, 0, 1, 0) for pair in pairs]).rounds(0)[0]

    whole = Standing(where, DeviceSettings.of_circuits(where, circuits((0, 1), (2, 3))))
    for pair, due in (((0, 1), False), ((2, 3), False), ((4, 5), True), ((0, 1), True)):
        assert whole.changes(circuits(pair)) is due


def test_links_of_the_start_stand_until_an_end_is_used():
    """On an optical switch: 0 -> 1 and 2 -> 3 stand; 4 -> 5 uses no end of them, 0 -> 3 one of each."""
    where = fabric("ocs:nodes=6,planes=1")

    def links(*pairs):
        return by_hand(where, [(0, *pair, 0, 1, 0) for pair in pairs]).rounds(0)[0]

    standing = Standing(where, DeviceSettings.of_circuits(where, links((0, 1), (2, 3))))
    found = [standing.changes(links(pair)) for pair in ((4, 5), (0, 1), (0, 3), (2, 3), (4, 5))]
    assert found == [True, False, True, True, False]


def test_a_round_that_changes_nothing_leaves_all_that_stand():
    """A configuration of another machine is refused."""
    first = [(0, 1, 0, 0, 1, 1), (2, 3, 0, 0, 1, 1)]
    standing = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
    for rows, due in ((first, None), (first[:1], False), (first[1:], False)):
        assert standing.changes(round_of(rows)) is due
    larger, smaller = fabric("terarack:nodes=6"), fabric("terarack:nodes=5")
    start = DeviceSettings.of_circuits(larger, by_hand(larger, [(0, 0, 1, 0, 1, 0)]).rounds(0)[0])
    with pytest.raises(ParameterError, match="the start is of terarack with 6 nodes"):
        Standing(smaller, start)


class Linked:
    """A fabric on which circuits share links: input src, output dst, and input 10 + port, output 10 + first wavelength."""

    devices = ()

    def links_set(self, circuits):
        """Two links a circuit."""
        inputs, outputs = (
            [one, other + 10] for one, other in ((circuits.src, circuits.port), (circuits.dst, circuits.wavelength_lo))
        )
        return np.concatenate(inputs), np.concatenate(outputs), np.tile(np.arange(len(circuits)), 2)


@given(st.lists(ROWS, min_size=1, max_size=5))
@examples(60)
def test_a_link_stands_until_one_of_its_ends_gets_another(rounds):
    """Whatever other links are set."""
    standing = Standing(Linked())
    stand = None
    for rows in rounds:
        links = [{(src, dst), (port + 10, lo + 10)} for src, dst, port, lo, _, _ in rows]
        used = set().union(*links)

        def after(before, used=used):
            ends = [{link[side] for link in used} for side in (0, 1)]
            return used | {link for link in before or () if link[0] not in ends[0] and link[1] not in ends[1]}

        due = None if stand is None else not used <= stand
        assert standing.changes(round_of(rows)) == due
        stand = stand if due is False else after(stand)


def test_a_circuit_on_another_path_is_another():
    """Other hops, and the same hops on other circuits."""
    ends = (np.arange(2), np.array([0, 2]), np.array([1, 3]), 0, 0, 1)
    for hops, offsets in (([7, 8, 5], [0, 2, 3]), ([7, 8, 9], [0, 1, 3])):
        standing = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
        standing.changes(Circuits.of(*ends, (np.array([7, 8, 9]), np.array([0, 2, 3]))))
        assert standing.changes(Circuits.of(*ends, (np.array([7, 8, 9]), np.array([0, 2, 3])))) is False
        assert standing.changes(Circuits.of(*ends, (np.array(hops), np.array(offsets)))) is True


@pytest.mark.parametrize("where", [SimpleNamespace(devices=(), links_set=lambda circuits: None), Linked()])
def test_one_new_circuit_among_many_is_found(where):
    """Wherever it is: a few are looked up first."""
    rows = [(i, i + 1000, 0, 0, 1, 1) for i in range(300)]
    dark = Standing(where)
    assert dark.changes(round_of([])) is None
    assert dark.changes(round_of(rows)) is True
    for place in (0, 1, 149, 298, 299):
        standing = Standing(where)
        standing.changes(round_of(rows))
        assert standing.changes(round_of(rows[::-1])) is False
        assert standing.changes(round_of([*rows[:place], (place, 5000, 0, 0, 1, 1), *rows[place + 1 :]])) is True


class Divided:
    """A fabric with a device for each port and wavelength, set to the receiver, and a coupler a port for two wavelengths."""

    def __init__(self, pool, spread):
        self.devices = (Device("laser", 100 * spread, pool=pool), Device("coupler", 100, pool=pool))
        self.spread = spread

    def links_set(self, circuits):
        """None: circuits do not share links."""

    def settings(self, circuits):
        """One use a wavelength, and one a circuit of two."""
        row = np.repeat(np.arange(len(circuits)), circuits.wavelength_n)
        first = np.cumsum(circuits.wavelength_n) - circuits.wavelength_n
        wavelength = circuits.wavelength_lo[row] + np.arange(len(row)) - first[row]
        number = (circuits.src[row] * 3 + circuits.port[row]) * 5 + wavelength
        yield SettingUse("laser", number * self.spread, circuits.dst[row].astype(np.int64), row)
        two = np.flatnonzero(circuits.wavelength_n == 2)
        yield SettingUse("coupler", circuits.src[two] * 3 + circuits.port[two], np.ones(len(two), np.int64), two)


@given(ROWS, ROWS, st.sampled_from([1, 3]), st.sampled_from([1, 1000]))
@examples(60)
def test_light_that_is_divided_otherwise_stands_where_its_devices_do(before, rows, pool, spread):
    """On the same paths, every setting as often as it is needed in a pool; whether devices are numbered densely or not."""
    where = Divided(pool, spread)
    standing = Standing(where)
    standing.changes(round_of(before))
    changes = standing.changes(round_of(rows))

    def needed(wanted):
        found = {}
        for use in where.settings(round_of(wanted)):
            for key in zip(use.index.tolist(), use.setting.tolist(), strict=True):
                found[use.kind, *key] = found.get((use.kind, *key), 0) + 1
        return found

    def paths(wanted):
        return {(*row[:3], row[5]) for row in wanted}

    have = needed(before)
    covered = all(have.get(key, 0) >= (times if pool > 1 else 1) for key, times in needed(rows).items())
    assert changes == (not (set(rows) <= set(before) or (paths(rows) <= paths(before) and covered)))


@pytest.mark.parametrize(("pool", "spread"), [(1, 1), (1, 1000), (2, 1), (3, 1)])
def test_two_circuits_for_one_of_two_wavelengths_change_no_device(pool, spread):
    """Another wavelength, path or receiver does; and where no device is known, each circuit is set for itself."""
    before = [(0, 1, 0, 0, 2, 2), (2, 1, 0, 0, 1, 1)]
    halves = [(0, 1, 0, 0, 1, 2), (0, 1, 0, 1, 1, 2)]
    for rows, due in (
        (halves, False), (before[:1], False), ([(0, 1, 0, 0, 1, 2), *before[:1]], pool > 1),
        ([(0, 1, 0, 1, 2, 2)], True), ([*halves[:1], (0, 1, 0, 1, 1, 1)], True),
        ([*halves[:1], (0, 2, 0, 1, 1, 2)], True), ([(0, 1, 1, 0, 2, 2)], True),
    ):  # fmt: skip
        standing = Standing(Divided(pool, spread))
        standing.changes(round_of(before))
        assert standing.changes(round_of(rows)) is due, rows
    back = Standing(Divided(pool, spread))
    back.changes(round_of(halves))
    assert back.changes(round_of(before[:1])) is True  # no coupler was set
    few = Standing(Divided(pool, spread))
    few.changes(round_of(before[:1]))
    assert few.changes(round_of([(0, 1, 0, 0, 1, 2), *before[:1]])) is (pool > 1)  # of a pool, one member was set
    twice = Standing(Divided(pool, spread))
    twice.changes(round_of([*before[:1], (0, 2, 0, 0, 1, 2)]))  # both settings of one laser, which no machine has
    assert twice.changes(round_of(halves)) is False
    alone = Standing(SimpleNamespace(devices=(), links_set=lambda circuits: None))
    alone.changes(round_of(before))
    assert alone.changes(round_of(halves))


def test_one_other_path_among_many_is_found():
    """Their light is divided otherwise, and a few paths are looked up first."""
    before = [(i, i + 1000, 0, 0, 2, 1) for i in range(300)]
    halves = [(i, i + 1000, 0, lo, 1, 1) for i in range(300) for lo in (0, 1)]
    for place, hops in ((0, 1), (1, 2), (301, 2)):
        standing = Standing(Divided(1, 10))
        standing.changes(round_of(before))
        src, dst, port, lo, n, _ = halves[place]
        rows = [*halves[:place], (src, dst, port, lo, n, hops), *halves[place + 1 :]]
        assert standing.changes(round_of(rows)) is (hops == 2)


@pytest.mark.parametrize("where", ["terarack:nodes=16", "torus:shape=4x4", "lightpath:shape=4x4", "oddl:shape=4x4"])
def test_facts_hold_under_all_assumptions(where):
    """Costs from facts that other assumptions computed are those of a plan alone."""
    for algorithm in (
        ("halving_doubling",) if "oddl" in where else ("two_sided_ring:pieces=2", "lumorph", "double_tree")
    ):
        plan = compile(where, "all_reduce", 10**6, algorithm=algorithm).circuits
        facts, stands = PlanFacts(plan), DeviceSettings.of_circuits(plan.fabric, plan.rounds(0)[0])
        for changed in (
            {}, {"initial": "warm"}, {"reconfiguration_charge": "every_step"}, {"control_charge": "every_step"},
            {"reconfiguration_charge": "every_step", "control_charge": "on_change"}, {"initial": stands},
            {"control": "none"}, {"latency": "published"}, {"compute": "chain"}, {"rounds": "apart"}, {"hop": 1e-3},
        ):  # fmt: skip
            assumed = assumptions("common", **changed)
            assert profile(plan, assumed, facts).costs == profile(plan, assumed).costs


def test_of_runs_charges_the_first_step_and_the_others():
    """Two rounds that replace each other are set in every step; cold, warm, and where every step is charged."""
    where = fabric("terarack", nodes=8)
    rounds = (round_of([(0, 1, 0, 0, 1, 1)]), round_of([(1, 2, 0, 0, 1, 1)]))
    setting_s = where.reconfiguration_s
    for name, due in (("cold", [2, 2]), ("warm", [1, 2])):
        charges = Reconfiguration(where, assumptions("common", initial=name)).of_runs(rounds, 3)
        assert [sum(one[0] for one in charged) for count, charged in charges for _ in range(count)] == pytest.approx(
            [setting_s * n for n in (*due, due[-1])]
        )


def test_facts_may_be_released_at_any_time():
    """While a step is evaluated: an evaluation that was given up is collected whenever the interpreter does so."""
    plan = compile("terarack:nodes=16", "all_reduce", 10**6, algorithm="lumorph").circuits
    due = profile(plan, assumptions("common")).costs

    class Releasing(PlanFacts):
        """Released within everything that it evaluates."""

        def __getattribute__(self, name):
            if name in ("_step", "_last"):
                object.__setattr__(self, "_step", None)
                object.__setattr__(self, "_last", None)
            return super().__getattribute__(name)

    assert profile(plan, assumptions("common"), Releasing(plan)).costs == due
