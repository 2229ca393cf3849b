"""Nodes of equal rate, price and power."""

import pytest

from opticcl.errors import ParameterError, UnitError
from opticcl.estimate.cost import bill_of
from opticcl.fabrics import fabric_at_scale
from opticcl.plans.equal import EQUAL_RATE, equal_fabrics, parse_equal
from opticcl.plans.hardware import bill_record, middle
from opticcl.plans.light import light_of_machine

NAMES = ("ramp", "sipac", "oddl", "lightpath", "terarack", "fat_tree", "torus")


@pytest.mark.parametrize(("text", "of"), [("cost=9110USD", "usd"), ("power=60W", "w"), ("cost=9110", "usd")])
def test_every_node_meets_the_budget(text, of):
    """To 1e-6, however far the rate is from the built one."""
    made = [(name, fabric_at_scale(name, 64)) for name in NAMES]
    kept, excluded = equal_fabrics(made, parse_equal(text))
    assert {one.text for one in kept} | {one.fabric for one in excluded} == set(NAMES)
    assert len(kept) >= 4
    for one in kept:
        assert one.built == dict(made)[one.text]
        assert middle(getattr(bill_of(one.fabric), of)) / 64 == pytest.approx(parse_equal(text).value, rel=1e-6)
    assert all("costs" in one.reason for one in excluded)


ASKED = ("compare", "-n", "16", "-f", "sip_ring", "-f", "ramp", "-f", "torus", "-f", "ideal", "-s", "1MB")


def test_fabrics_are_ranked_on_equal_ground(answer):
    """At 800 Gb/s, the default; each row has the time, the plan and the rank that `--as-built` gives the fabric."""
    found, _ = answer(*ASKED)
    assert found == answer(*ASKED, "--equal", "rate=800Gb/s")[0]
    assert found["equal"] == EQUAL_RATE.record() == {"kind": "rate", "value": 800e9}
    built = {row["fabric"]: row for row in answer(*ASKED, "--as-built")[0]["rows"]}
    for row in found["rows"]:
        alone = built[row["fabric"]]
        assert row["node_rate_bits_per_s"] == pytest.approx(800e9)
        assert row["built_node_rate_bits_per_s"] == alone["node_rate_bits_per_s"]
        assert row["rate_factor"] == pytest.approx(800e9 / alone["node_rate_bits_per_s"])
        assert row["as_built_s"] == pytest.approx(alone["total_s"], rel=1e-12)
        assert (row["as_built_algorithm"], row["as_built_rank"]) == (alone["algorithm"], alone["rank"])
        assert alone["rate_factor"] == 1


@pytest.mark.parametrize("ground", [(), ("--as-built",), ("--equal", "cost=9000")])
def test_the_command_of_a_row_makes_its_plan(answer, opticcl, ground):
    """`opticcl compile` of the record, with `simulate` in place of `compile`: the same algorithm and time."""
    for row in answer(*ASKED, *ground)[0]["rows"]:
        program, verb, *words = row["command"].split()
        assert (program, verb) == ("opticcl", "compile")
        assert opticcl("compile", *words).returncode == 0
        again, _ = answer("simulate", *words)
        assert again["total_s"] == pytest.approx(row["total_s"], rel=1e-9)
        assert again["algorithm"] == row["algorithm"]


def test_the_first_sentence_and_the_rows_agree(answer, opticcl):
    """The fastest and its time, ties within 5 %, who leads as built, and how many times its rate a row takes."""
    found, _ = answer(*ASKED)
    shown = opticcl(*ASKED).stdout
    assert " ".join(shown.split()).startswith(found["headline"])
    ranked = [row for row in found["rows"] if row["rank"]]
    tied = [row["fabric"] for row in ranked if row["total_s"] <= 1.05 * ranked[0]["total_s"]]
    assert [row["fabric"] for row in found["rows"] if row["ties_with_fastest"]] == tied
    assert all(name in found["headline"] for name in tied)
    leads = min(ranked, key=lambda row: row["as_built_s"])["fabric"]
    assert f"As built, {leads} (" in found["headline"]
    (reference,) = [row for row in found["rows"] if row["fabric"] == "ideal"]
    assert (reference["rank"], reference["no_rank"]) == (None, "a reference: it cannot be built")
    assert "8x  " in shown
    assert answer("compare", "-f", "ideal:nodes=4", "-s", "1MB")[0]["rows"][0]["rank"] == 1  # nothing else is ranked


def test_a_price_that_no_rate_meets_leaves_the_fabric_out():
    """A node has parts that cost the same at any rate."""
    kept, excluded = equal_fabrics([("oddl", fabric_at_scale("oddl", 64))], parse_equal("cost=1"))
    assert not kept
    assert "takes at least" in excluded[0].reason


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("9000", ParameterError, "not rate=..., cost=... or power=..."),
        ("price=9000", ParameterError, "not rate=..., cost=... or power=..."),
        ("cost=much", ParameterError, "'much' is not a number"),
        ("cost=-1", ParameterError, "is not positive"),
        ("cost=nan", ParameterError, "is not positive"),
        ("rate=800", UnitError, "has no unit"),
    ],
)
def test_wrong_values_are_refused(text, error, says):
    """In one line with what to write."""
    with pytest.raises(error, match="--equal: ") as caught:
        parse_equal(text)
    assert says in str(caught.value)


def test_light_and_price_of_a_machine():
    """RAMP's light closes, the worst path of TeraRack's ring of 64 does not; the ideal switch has neither light nor price."""
    assert light_of_machine(fabric_at_scale("ramp", 64)).closes is True
    assert light_of_machine(fabric_at_scale("terarack", 64)).closes is False
    assert light_of_machine(fabric_at_scale("ideal", 64)).closes is None
    assert bill_record(fabric_at_scale("ideal", 64)) == {"usd_per_node": None, "w_per_node": None}
