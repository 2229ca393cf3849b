"""One set of assumptions chooses and charges; the other stands beside, with the keys that swap ranks."""

import dataclasses

import pytest

import opticcl
from opticcl.assumptions import KEYS, LATENCY_KEYS, assumptions
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.plans.compare import compare_plans
from opticcl.plans.equal import equal_fabrics, parse_equal
from opticcl.plans.light import LightRule
from opticcl.plans.ranks import beside, keys_between, ranks, sensitivity
from opticcl.plans.sentences import caveats, rates_line

SIX = ("ramp", "sipac", "superpod", "fat_tree", "lightpath", "terarack")


@pytest.fixture(scope="module")
def found():
    """Six systems of 64 nodes, a short all-to-all, everything evaluated."""
    made = [fabric_at_scale(name, 64) for name in SIX]
    return compare_plans(made, "all_to_all", [1000], explain=True, vary=True)


def test_a_named_set_chooses_as_it_charges(answer):
    """WRHT's rules charge every step, so a ring of 254 steps takes 6.35 ms, and WRHT itself 54 us or less."""
    asked = ("-f", "terarack:nodes=128", "-s", "10KB", "--assumptions", "wrht", "--ignore-light")
    simulated, _ = answer("simulate", *asked)
    compared, _ = answer("compare", *asked, "--as-built")
    assert simulated["total_s"] == pytest.approx(compared["rows"][0]["total_s"], rel=1e-12)
    assert simulated["algorithm"] == compared["rows"][0]["algorithm"]
    assert simulated["total_s"] < 60e-6
    ring, _ = answer(
        "simulate", "-f", "terarack:nodes=128", "-s", "10KB", "-a", "ring:pipeline=none", "--assumptions", "wrht"
    )
    assert ring["total_s"] > 6e-3
    compiled = opticcl.compile("terarack:nodes=128", "all_reduce", "10KB", assumptions="wrht", ignore_light=True)
    assert compiled.algorithm == simulated["algorithm"]


@pytest.mark.parametrize("name", ["common", "published", "wrht", "lumorph"])
def test_every_verb_takes_the_set(name):
    """compile, compare, sweep and train agree under each set."""
    where = fabric("oddl:shape=4x4")
    plan = opticcl.compile(where, "all_reduce", 10**6, assumptions=name)
    took = plan.simulate(assumptions=name).total_s
    rows = opticcl.compare([where], "all_reduce", 10**6, assumptions=assumptions(name), as_built=True).frame()
    assert rows["total_s"][0] == pytest.approx(took, rel=1e-12)
    assert rows["algorithm"][0] == plan.algorithm


def test_the_time_beside_is_that_of_the_other_set(found):
    """Its own choice of algorithm, its own ranks."""
    alone = compare_plans([e.fabric for e in found.entries], "all_to_all", [1000], assumptions="published")
    theirs = {e.fabric.name: (e.total_s, e.plan.algorithm) for e in alone.entries}
    for entry in found.entries:
        charge = entry.under["published"]
        assert (charge.total_s, charge.algorithm) == pytest.approx(theirs[entry.fabric.name][0], rel=1e-12) or (
            charge.total_s == pytest.approx(theirs[entry.fabric.name][0], rel=1e-12)
        )
    order = sorted(found.entries, key=lambda e: e.under["published"].total_s)
    assert [e.fabric.name for e in order] == [e.fabric.name for e in alone.entries]
    assert alone.beside.name == "common"
    assert {e.fabric.name: e.under["common"].total_s for e in alone.entries} == pytest.approx(
        {e.fabric.name: e.total_s for e in found.entries}
    )


def test_a_flip_is_what_a_comparison_under_that_key_says(found):
    """latency=published alone puts another machine before RAMP, as a comparison of its own does."""
    flip = next(one for one in found.flips if one.variation.key == "latency")
    names = [entry.fabric.name for entry in found.entries]
    pairs = {(names[i], names[j]) for i, j in flip.pairs}
    alone = compare_plans([e.fabric for e in found.entries], "all_to_all", [1000], assumptions=flip.variation.assumed)
    times = {e.fabric.name: e.total_s for e in alone.entries}
    was = {e.fabric.name: e.total_s for e in found.entries}
    assert pairs == {(a, b) for a in names for b in names if was[b] * 1.05 < was[a] and times[a] * 1.05 < times[b]}
    assert any(slower == "ramp" for _, slower in pairs)


def test_sensitivity_halves_and_doubles_every_value(found):
    """All parts, memory, control and reconfiguration; times move in the direction of the value."""
    assert found.sensitivity is not None
    asked = [(one.variation.key, one.variation.name.rpartition(" x ")[2]) for one in found.sensitivity]
    keys = [*LATENCY_KEYS, "memory_bytes_per_s", "control", "reconfiguration"]
    assert asked == [(key, factor) for key in keys for factor in ("0.5", "2")]
    for entry in found.entries:
        for key in LATENCY_KEYS:
            half, double = (entry.under[f"{key} x {factor}"].total_s for factor in ("0.5", "2"))
            assert half <= entry.total_s * (1 + 1e-12) <= double * (1 + 2e-12)
    ring = next(e for e in found.entries if e.fabric.name == "terarack")
    changes = float(ring.timelines[0].reconfiguration_s.sum()) / 25e-6
    assert changes == pytest.approx(round(changes))
    assert changes >= 1
    assert ring.under["reconfiguration x 2"].total_s == pytest.approx(ring.total_s + changes * 25e-6, rel=1e-3)
    names = [entry.fabric.name for entry in found.entries]
    record = {one["variation"]: one["swaps"] for one in found.record()["sensitivity"]}
    for one in found.sensitivity:
        assert record[one.variation.name] == [[names[i], names[j]] for i, j in one.pairs]


def test_keys_between_two_sets_lead_from_one_to_the_other():
    """Changed one after the other, all of them make the other set; latency goes with its parts."""
    common, published = assumptions("common"), assumptions("published")
    made = common
    for one in keys_between(common, published):
        made = dataclasses.replace(made, **{one.key: getattr(one.assumed, one.key)})
    assert all(getattr(made, key) == getattr(published, key) for key in KEYS)
    assert not keys_between(common, common)
    assert beside(assumptions("common", initial="warm")).assumed.initial == "warm"
    assert beside(assumptions("oddl")).name == "published"
    assert len({one.name for one in sensitivity(common)}) == 20


def test_equal_times_share_a_rank():
    """And the next one is counted on."""
    assert ranks([2.0, 1.0, 2.0, 3.0]) == [2, 1, 2, 4]
    assert ranks([]) == []


def test_the_notes_name_sets_ranks_and_flips(opticcl, monkeypatch):
    """The line on assumptions, the order beside, what changes it; the margin of the light in the table."""
    monkeypatch.setenv("COLUMNS", "250")
    where = ("-n", "64", "-f", "ramp", "-f", "fat_tree", "-c", "all_to_all", "-s", "1KB")
    done = opticcl("compare", *where, "--as-built", "--notes")
    assert done.returncode == 0
    assert "assumptions: common; under published fat_tree is the fastest\n" in done.stdout
    assert "by more than a tie: with latency=published fat_tree overtakes ramp" in done.stdout
    assert "closes +14.0 dB" in done.stdout
    assert "published" in opticcl("compare", *where, "--columns", "all").stdout


def test_plans_whose_light_does_not_close_are_named_and_have_no_rank():
    """They are below the others, with margin and preset; the line is below the table."""
    machines = [fabric_at_scale(name, 256) for name in ("ramp", "lightpath", "fat_tree")]
    found = compare_plans(machines, "all_reduce", [10**8])
    assert [entry.fabric.name for entry in found.entries] == ["ramp", "fat_tree", "lightpath"]
    assert found.ranks() == found.ranks_under(found.beside) == [1, 2, None]
    assert [row["rank"] for row in found.rows()] == [1, 2, None]
    why = "light does not close: -58.5 dB (typical)"
    assert (found.entries[2].no_rank, f"no rank: lightpath: {why}" in caveats(found)) == (why, True)
    ignored = compare_plans(machines, "all_reduce", [10**8], rule=LightRule(ignored=True))
    assert ignored.ranks() == [1, 2, 3]
    assert ignored.entries[1].fabric.name == "lightpath"
    assert not any(one.startswith("no rank") for one in caveats(ignored))


def test_rates_that_differ_are_named_where_bills_do():
    """Not where all nodes have one rate, one price or one power."""
    made = [(name, fabric_at_scale(name, 16)) for name in ("ramp", "sipac")]
    assert rates_line([one for _, one in made]).startswith("node rates differ, so times compare transceivers")
    for wanted in ("rate=2Tb/s", "cost=9000"):
        kept, _ = equal_fabrics(made, parse_equal(wanted))
        assert len(kept) == 2
        assert rates_line([one.fabric for one in kept]) == ""


def test_a_default_that_decides_a_rank_is_named():
    """TeraRack's striping: with it a gather of 10 MB overtakes two machines."""
    made = [fabric_at_scale(name, 64) for name in ("terarack", "sipac", "ramp", "lightpath", "torus")]
    rule = LightRule(ignored=True)
    found = compare_plans(made, "gather", [10**7], explain=True, rule=rule)
    (one,) = found.decided
    alone = compare_plans([fabric("terarack:nodes=64,striping=yes")], "gather", [10**7], rule=rule).entries[0]
    assert (one.fabric, one.parameter, one.default, one.alternative) == ("terarack", "striping", "no", "yes")
    assert one.charge.total_s == pytest.approx(alone.total_s, rel=1e-12)
    names = [entry.fabric.name for entry in found.entries]
    assert one.rank == 1 + names.index("terarack")
    assert one.other_rank < one.rank
    assert str(one) in caveats(found)
