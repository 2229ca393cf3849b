"""Chains: power adds up, loss never helps, amplifiers saturate and stand where they must."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.optics.chain import Chain, amplifier_places, optical_snr_db

LOSSES = st.lists(st.floats(0, 30), min_size=1, max_size=8)


def passive(losses, launch=10.0, sensitivity=-15.0, **others):
    """A chain that only loses, one piece of each element."""
    loss = np.array(losses, float)
    nothing = np.zeros(len(loss))
    return Chain(launch, loss, nothing, nothing, nothing + np.inf, sensitivity, **others)


@given(LOSSES, LOSSES)
def test_losses_add(first, second):
    """A path of two parts loses what both lose."""
    whole = passive(first + second)
    parts = sum(10.0 - passive(part).received_dbm(np.ones(len(part)))[0] for part in (first, second))
    assert whole.received_dbm(np.ones(len(first + second)))[0] == pytest.approx(10.0 - parts)
    powers = whole.powers_dbm(np.ones(len(first + second)))[0]
    assert powers[-1] == pytest.approx(10.0 - parts)
    assert (np.diff(powers) <= 1e-12).all()


@given(LOSSES, st.integers(0, 7), st.floats(0, 30), st.floats(0, 40), st.floats(-30, 30))
def test_more_loss_never_raises_the_margin(losses, where, more, gain, most):
    """Not even with an amplifier that saturates behind it."""
    where %= len(losses)
    n = len(losses) + 1

    def margin(extra):
        loss = np.append(losses, 0.0)
        loss[where] += extra
        amplifier = np.where(np.arange(n) == n - 1, gain, 0.0)
        return Chain(10.0, loss, np.zeros(n), amplifier, np.full(n, most), -15.0, floor_dbm=-25.0).margin_db(
            np.ones(n)
        )[0]

    assert margin(more) <= margin(0.0) + 1e-9


def test_pieces_and_ways():
    """Each piece loses, splitting costs once, and what is not there costs nothing."""
    chain = Chain(0.0, np.array([1.0, 2.0]), np.array([0.0, 3.0]), np.zeros(2), np.full(2, np.inf), -20.0)
    powers = chain.powers_dbm(np.array([[4.0, 2.0], [4.0, 0.0]]))
    assert powers.tolist() == [[-4.0, -11.0], [-4.0, -4.0]]
    assert chain.margin_db(np.array([[4.0, 2.0], [4.0, 0.0]])).tolist() == [9.0, 16.0]


def test_an_amplifier_saturates_and_never_weakens():
    """It gives its gain up to its limit, and lets more through than it could give."""

    def behind(launch, most):
        chain = Chain(launch, np.zeros(1), np.zeros(1), np.array([20.0]), np.array([most]), -15.0)
        return float(chain.received_dbm(np.ones(1))[0])

    assert (behind(-10.0, 15.0), behind(0.0, 15.0), behind(18.0, 15.0)) == (10.0, 15.0, 18.0)


def test_the_floor_can_be_what_decides():
    """An amplifier at the end does not help what was too weak before it."""
    values = (np.array([30.0, 0.0]), np.zeros(2), np.array([0.0, 40.0]), np.full(2, np.inf))
    assert Chain(0.0, *values, -15.0).margin_db(np.ones(2)) == pytest.approx(25.0)
    assert Chain(0.0, *values, -15.0, floor_dbm=-20.0).margin_db(np.ones(2)) == pytest.approx(-10.0)
    assert Chain(0.0, *values, -15.0, penalty_db=3.0).margin_db(np.ones(2)) == pytest.approx(22.0)


@pytest.mark.parametrize("name", ["loss", "gain", "penalty"])
def test_negative_values_are_refused(name):
    """A negative loss would be a gain; the text says so."""
    loss, gain, penalty = (np.array([-1.0 if name == n else 1.0]) for n in ("loss", "gain", "penalty"))
    with pytest.raises(ParameterError, match="negative"):
        Chain(0.0, loss, np.zeros(1), gain, np.full(1, np.inf), -15.0, penalty_db=float(penalty[0]))


def test_amplifiers_stand_where_the_light_would_fall_too_low():
    """Before the element that would break the floor, and before the detector if that is short."""
    assert amplifier_places(0.0, [12.0, 12.0, 12.0], 20.0, -10.0, floor_dbm=-20.0) == [1, 3]
    assert amplifier_places(4.5, [0.1, 25.0], 20.0, -10.5) == [2]
    assert amplifier_places(4.5, [0.1, 6.8], 20.0, -10.5) == []
    assert amplifier_places(0.0, [25.0] * 4, 10.0, -10.0) == [4] * 9


@given(LOSSES, st.floats(5, 30), st.floats(-25, -5))
def test_placed_amplifiers_are_enough_and_none_is_spare(losses, gain, floor):
    """With them every place has its power; the first that is needed stands where the light breaks without any."""
    try:
        places = amplifier_places(0.0, losses, gain, floor, floor_dbm=floor, most_dbm=10.0)
    except ParameterError:
        assert max(losses) > 10.0 - floor
        return
    power = 0.0
    for place, loss in enumerate([*losses, 0.0]):
        for _ in range(places.count(place)):
            assert power - loss < floor  # needed here
            power = max(power, min(power + gain, 10.0))
        power -= loss
        assert power >= floor - 1e-9


def test_amplifiers_that_cannot_do_it_are_refused():
    """An element that loses more than any light they can give."""
    with pytest.raises(ParameterError, match="element 0 loses 50 dB"):
        amplifier_places(0.0, [50.0], 20.0, -10.0, floor_dbm=-20.0, most_dbm=15.0)


def test_noise_of_amplifiers():
    """The rule of thumb 58 + P - F for 0.1 nm at 1550 nm, and two alike cost 3 dB."""
    photon, width = 6.62607015e-34 * 193.1e12, 12.5e9
    one = optical_snr_db([-20.0], [5.0], photon, width)
    assert one == pytest.approx(58 - 20 - 5, abs=0.1)
    assert one - optical_snr_db([-20.0, -20.0], [5.0, 5.0], photon, width) == pytest.approx(3.0103, abs=1e-3)
    assert optical_snr_db([], [], photon, width) == float("inf")
