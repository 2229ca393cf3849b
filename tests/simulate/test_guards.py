"""Checks of the engines at their limits."""

from types import SimpleNamespace

import pytest

from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.plans.plan import compile
from opticcl.simulate import guards


def test_events_are_counted_down():
    """All of them may be spent, and not one more; the message counts those that were spent before."""
    limit = guards.EventLimit("flow", 10, 2, "take fewer")
    assert (limit.max_events, limit.left, limit.per_transfer) == (10, 10, 2)
    assert guards.EventLimit("flow", 10).per_transfer == 1
    limit.spend(4)
    limit.require(6)
    assert limit.left == 6
    with pytest.raises(ParameterError, match=r"flow: about 11 events or more, and 10 are allowed; .* or take fewer"):
        limit.spend(7)
    limit.spend(6)
    assert limit.left == 0
    with pytest.raises(ParameterError, match=r"or use the closed form"):
        guards.EventLimit("flow", 1).require(2)


@pytest.mark.parametrize(("part", "tolerance", "passes"), [
    (1.0, 0.0, True), (1 - 5e-10, 0.0, True), (1 - 2e-9, 0.0, False), (0.91, 0.1, True), (0.89, 0.1, False), (2.0, 0.0, True),
])  # fmt: skip
def test_a_time_below_the_bound_is_refused(part, tolerance, passes):
    """Apart from rounding, and from what the engine may leave out."""
    plan = compile("ideal:nodes=4", "all_reduce", "1 MB", algorithm="ring").circuits
    timeline = SimpleNamespace(total_s=part * 1e-3, lower_bound_s=1e-3)
    guards.refuse_below_bound(plan, SimpleNamespace(total_s=0.0, lower_bound_s=0.0), "flow", tolerance)
    if passes:
        guards.refuse_below_bound(plan, timeline, "flow", tolerance)
        return
    with pytest.raises(
        BoundError, match=f"on ideal: {part * 1e-3:.6g} s by the flow engine is below the lower bound of 0.001"
    ):
        guards.refuse_below_bound(plan, timeline, "flow", tolerance)


def test_what_has_no_programme():
    """Links of packets, and more circuits than 2^24."""
    guards.refuse_links(compile("sip_ring:nodes=4", "all_reduce", "1 MB", algorithm="ring").circuits)
    with pytest.raises(UnsupportedError, match="packets share the links of torus"):
        guards.refuse_links(compile("torus:shape=2x2", "all_reduce", "1 MB", algorithm="ring").circuits)
    guards.refuse_large_programme(2**24, "ideal")
    with pytest.raises(UnsupportedError, match="16,777,217 circuits on ideal, and a programme holds 16,777,216"):
        guards.refuse_large_programme(2**24 + 1, "ideal")
    plan = compile("ideal:nodes=4", "all_reduce", "1 MB", algorithm="ring").circuits
    with pytest.raises(BoundError):  # no tolerance unless it is given
        guards.refuse_below_bound(plan, SimpleNamespace(total_s=0.99e-3, lower_bound_s=1e-3), "flow")
