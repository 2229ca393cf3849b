"""Which circuits stand: against sets of circuits, and against a comparison of all settings."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.simulate.plans import by_hand

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import Circuits
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.device_settings import DeviceSettings
from opticcl.plans.plan import compile
from opticcl.simulate.closed_form.engine import costs, profile
from opticcl.simulate.closed_form.facts import PlanFacts
from opticcl.simulate.standing import Standing

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
    where = SimpleNamespace(devices=(), links_set=lambda circuits: None)
    standing, by_numbers = Standing(where), Standing(where)
    stand = None
    for rows in rounds:
        new = None if stand is None else [row not in stand for row in rows]
        due = None if new is None else any(new)
        assert standing.copy().changes(round_of(rows)) == due
        assert standing.changes(round_of(rows)) == due
        assert by_numbers.changes(round_of(rows)) == due
        by_numbers.let_go(lambda: pytest.fail("the circuits are asked for where numbers say it"))
        stand = set(rows) if due in (None, True) else stand


def test_links_of_the_start_stand_until_an_end_is_used():
    """On an optical switch: 0 -> 1 and 2 -> 3 stand; 4 -> 5 uses no end of them, 0 -> 3 one of each."""
    where = fabric("ocs:nodes=6,planes=1")

    def links(*pairs):
        return by_hand(where, [(0, *pair, 0, 1, 0) for pair in pairs]).rounds(0)[0]

    standing = Standing(where, DeviceSettings.of_circuits(where, links((0, 1), (2, 3))))
    found = [standing.changes(links(pair)) for pair in ((4, 5), (0, 1), (0, 3), (2, 3), (4, 5))]
    assert found == [True, False, True, True, False]


class Linked:
    """A fabric on which circuits share links: input src, output dst, and input 10 + port, output 10 + first wavelength."""

    devices = ()

    def links_set(self, circuits):
        """Two links a circuit."""
        inputs, outputs = (
            [one, other + 10] for one, other in ((circuits.src, circuits.port), (circuits.dst, circuits.wavelength_lo))
        )
        return np.concatenate(inputs), np.concatenate(outputs)


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
    standing, by_numbers = Standing(where), Standing(where)
    standing.changes(round_of(before))
    by_numbers.changes(round_of(before))
    by_numbers.let_go(lambda: round_of(before))
    changes = standing.changes(round_of(rows))
    assert by_numbers.changes(round_of(rows)) == changes

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


@pytest.mark.parametrize("where", ["terarack:nodes=16", "lightpath:shape=4x4", "ramp:groups=2,racks=2,wavelengths=4"])
@pytest.mark.parametrize("algorithm", ["lumorph:radix=2", "double_tree:pipeline=8"])
def test_an_evaluation_goes_on_where_it_was_given_up(where, algorithm):
    """A search releases the circuits of a plan that it may come back to, also of one whose steps repeat."""
    plan = compile(where, "all_reduce", 10**6, algorithm=algorithm).circuits
    facts, found = PlanFacts(plan), []
    for cost in costs(facts, plan.fabric, assumptions("common")):
        found.append(cost)
        facts.release()
    assert tuple(found) == profile(plan, assumptions("common")).costs
