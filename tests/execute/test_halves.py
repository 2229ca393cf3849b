"""Sums and conversions of float16 against NumPy's, bit by bit."""

import numpy as np
import pytest

from opticcl.execute.halves import add_halves, to_halves, to_singles

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def same(found, due):
    """The same bits, or no number in both."""
    return ((found.view(np.uint16) == due.view(np.uint16)) | (np.isnan(found) & np.isnan(due))).all()


def test_every_half_as_single_and_back():
    """All 65,536, infinities and the smallest included."""
    singles = to_singles(ALL)
    assert np.array_equal(singles, ALL.astype(np.float32), equal_nan=True)
    back = np.empty_like(ALL)
    to_halves(singles, back)
    assert same(back, ALL)


@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_to_the_nearest_and_ties_to_even(seed):
    """Any single; those on and beside the middle of two halves."""
    random = np.random.default_rng(seed)
    singles = random.integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32)
    if seed % 2:
        with np.errstate(all="ignore"):
            middle = (ALL.astype(np.float32) + np.nextafter(ALL, ALL.dtype.type(np.inf)).astype(np.float32)) / 2
            singles = np.nextafter(middle, middle + random.integers(-1, 2, 1 << 16)).astype(np.float32)
    found = np.empty_like(ALL)
    to_halves(singles, found)
    with np.errstate(all="ignore"):
        assert same(found, singles.astype(np.float16))


@pytest.mark.parametrize("seed", range(6))
def test_sums_are_numpys(seed):
    """Every half with every kind of other: any, nearly opposite, of like size."""
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        others = random.permutation(ALL) if seed < 3 else (ALL * np.float16([-1, -0.5, 1.5][seed - 3]))
        places = np.stack([np.zeros_like(ALL), ALL, ALL])
        add_halves(places, np.array([2, 1]), np.stack([others, -others]))
        assert same(places[2], ALL + others)
        assert same(places[1], ALL - others)
        assert not places[0].any()
