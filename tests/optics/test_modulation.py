"""Bits of a symbol."""

import pytest

from opticcl.optics.modulation import line_rate_bits_per_s


@pytest.mark.parametrize(
    ("symbols", "levels", "bits"), [(56e9, 4, 112e9), (112e9, 4, 224e9), (28e9, 2, 28e9), (0, 8, 0)]
)
def test_rates_of_the_testbed(symbols, levels, bits):
    """PAM4 carries two bits a symbol, on-off one (LUMORPH section 7)."""
    assert line_rate_bits_per_s(symbols, levels) == bits


@pytest.mark.parametrize(("symbols", "levels"), [(1e9, 1), (-1.0, 4)])
def test_nothing_is_carried_by_one_level(symbols, levels):
    """Nor by a negative rate."""
    with pytest.raises(ValueError, match="carry nothing"):
        line_rate_bits_per_s(symbols, levels)
