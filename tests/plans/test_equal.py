"""Nodes of equal rate, price and power."""

import pytest

from opticcl.errors import ParameterError, UnitError
from opticcl.estimate.cost import bill_of
from opticcl.fabrics import fabric_at_scale
from opticcl.plans.equal import MOST_EXTRAPOLATED, equal_fabrics, parse_equal
from opticcl.plans.hardware import bill_record, middle
from opticcl.plans.light import light_of_machine

NAMES = ("ramp", "sipac", "oddl", "lightpath", "terarack", "fat_tree", "torus")


@pytest.mark.parametrize(("text", "of"), [("cost=9110USD", "usd"), ("power=60W", "w"), ("cost=9110", "usd")])
def test_every_node_meets_the_budget(text, of):
    """To 1e-6, unless the rate would be more than four times the built one."""
    made = [(name, fabric_at_scale(name, 64)) for name in NAMES]
    kept, excluded, notes = equal_fabrics(made, parse_equal(text))
    assert {name for name, _ in kept} | {one.fabric for one in excluded} == set(NAMES)
    assert len(kept) >= 4
    built = dict(made)
    for name, scaled in kept:
        bill = bill_of(scaled)
        assert middle(getattr(bill, of)) / 64 == pytest.approx(parse_equal(text).value, rel=1e-6)
        factor = scaled.node_rate_bits_per_s / built[name].node_rate_bits_per_s
        assert factor <= MOST_EXTRAPOLATED
        assert any(note.startswith(f"extrapolated: {name}:") for note in notes) == (factor > 1)
    for one in excluded:
        assert "not ranked" in one.reason or "costs" in one.reason


def test_equal_rate_is_the_node_rate(answer):
    """`--node-rate X` is `--equal rate=X`."""
    asked = ("compare", "-n", "16", "-f", "ramp", "-f", "ideal", "-s", "1MB")
    assert answer(*asked, "--node-rate", "800Gb/s") == answer(*asked, "--equal", "rate=800Gb/s")
    rows = answer(*asked, "--equal", "rate=800Gb/s")[0]["rows"]
    assert [row["node_rate_bits_per_s"] for row in rows] == pytest.approx([800e9] * 2)


def test_a_price_that_no_rate_meets_leaves_the_fabric_out():
    """A node has parts that cost the same at any rate."""
    kept, excluded, _ = equal_fabrics([("oddl", fabric_at_scale("oddl", 64))], parse_equal("cost=1"))
    assert not kept
    assert "however slow it is" in excluded[0].reason


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
