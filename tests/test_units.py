"""Quantities with units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import UnitError
from opticcl.units import format_bytes, format_seconds, in_columns, message_size, quantity, shape


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("100 MB", "bytes", 100e6),
        ("1MiB", "bytes", 2**20),
        ("1 GiB", "bytes", 2**30),
        ("400Gb/s", "bit/s", 400e9),
        ("400 Gbps", "bit/s", 400e9),
        ("300 GB/s", "bit/s", 2.4e12),
        ("1555 GB/s", "byte/s", 1.555e12),
        ("2.4Tb/s", "byte/s", 0.3e12),
        ("20ns", "s", 20e-9),
        ("3.7 us", "s", 3.7e-6),
        ("0.25dB", "dB", 0.25),
        (12, "s", 12.0),
        (np.int64(12), "s", 12.0),
        (np.float32(0.5), "bit/s", 0.5),
        ("1e-6", "s", 1e-6),
    ],
)
def test_quantities_are_read(text, unit, value):
    """Prefixes, binary prefixes, bits and bytes."""
    assert quantity(text, unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("400 GB", "bit/s"),
        ("1 Gb/s", "bytes"),
        ("fast", "s"),
        ("5k", "bytes"),
        ("nan", "s"),
        ("inf", "s"),
        ("", "s"),
        ("3 m", "s"),
        (True, "s"),
        (np.True_, "s"),
        (np.array([1.0]), "s"),
        (None, "s"),
    ],
)
def test_wrong_dimensions_are_refused(text, unit):
    """One line that names the field, the value and an example."""
    with pytest.raises(UnitError, match=r"^size: .*try ") as caught:
        quantity(text, unit, "size")
    assert "\n" not in str(caught.value)


def test_a_meaning_that_would_be_refused_is_not_suggested():
    """A number with an exponent takes no prefix."""
    with pytest.raises(UnitError, match="try 400Gb/s"):
        quantity("1e30Gb/s", "bit/s", "rate")


@pytest.mark.parametrize(
    ("text", "unit", "meant"),
    [
        ("1,5GB", "bytes", "1.5GB"),
        ("100,5MB", "bytes", "100.5MB"),
        ("1.000,5 MB", "bytes", "1000.5 MB"),
        ("15,00,000B", "bytes", "1500000B"),
        ("-1,5us", "s", "-1.5us"),
        ("800mb/s", "bit/s", "800Mb/s"),
        ("800 mB/s", "byte/s", "800MB/s"),
        ("5mB", "bytes", "5MB"),
        ("100gb", "bytes", "100GB"),
        ("3US", "s", "3us"),
        ("800", "bit/s", "800Gb/s"),
        ("1.5", "byte/s", "1.5GB/s"),
    ],
)
def test_a_text_that_probably_means_something_else_is_refused(text, unit, meant):
    """With the likely meaning, which is accepted."""
    with pytest.raises(UnitError, match=r"^size: ") as caught:
        quantity(text, unit, "size")
    assert str(caught.value).endswith(f"did you mean {meant}?")
    assert np.isfinite(quantity(meant, unit))


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [("1,500MB", "bytes", 1.5e9), ("1,234,567.5 kB", "bytes", 1234567500), ("4e11", "bit/s", 4e11), ("0", "bit/s", 0)],
)
def test_what_can_mean_one_thing_only_is_read(text, unit, value):
    """Commas between thousands, and rates of a size that networks have."""
    assert quantity(text, unit) == value


def test_numbers_from_python_are_in_si_units():
    """Whatever their size."""
    assert quantity(800, "bit/s") == 800
    assert quantity(np.float32(0.5), "bytes") == 0.5


@pytest.mark.parametrize(("text", "meant", "value"), [("800", "800Gb/s", 800e9), ("1e12", "1e12b/s", 1e12)])
def test_a_unit_can_be_required(text, meant, value):
    """As `--node-rate` does."""
    with pytest.raises(UnitError) as caught:
        quantity(text, "bit/s", "--node-rate", bare=False)
    assert str(caught.value) == f"--node-rate: {text!r} has no unit; did you mean {meant}?"
    assert quantity(meant, "bit/s", bare=False) == value


@pytest.mark.parametrize("text", ["-1B", "0.5 B", "2 EiB", "1.5", "-0.5MB", np.int64(-1), np.uint64(2**61), 2**2000])
def test_impossible_sizes_are_refused(text):
    """Negative, fractional and absurd sizes."""
    with pytest.raises(UnitError, match="size"):
        message_size(text)


def test_zero_bytes_are_a_message():
    """A message of nothing costs latency alone; it is allowed."""
    assert message_size("0") == 0
    assert message_size("0 B") == 0


@pytest.mark.parametrize("text", ["", "x", "4x", "0x4", "-1x2", "4x4.5", (), (2, 0), (2.0,), True, None, 4.0])
def test_impossible_shapes_are_refused(text):
    """Sides are whole and positive."""
    with pytest.raises(UnitError, match="shape"):
        shape(text)


@pytest.mark.parametrize("given", [(4, 2), [np.int8(4), 2], np.array([4, 2]), "4x2"])
def test_sides_come_out_as_numbers_of_python(given):
    """Whatever they were given as."""
    sides = shape(given)
    assert sides == (4, 2)
    assert all(type(side) is int for side in sides)


@pytest.mark.parametrize(
    ("rows", "text"),
    [([], ""), ([("a", "bb")], "a  bb"), ([("a", "b"), ("ccc", ""), ("", "d")], "a    b\nccc\n     d")],
)
def test_columns_stand_below_each_other(rows, text):
    """Without blanks at the ends of lines."""
    assert in_columns(rows) == text


@given(st.integers(0, 2**60))
def test_whole_bytes_come_back(size):
    """A size survives being written in bytes."""
    assert message_size(size) == message_size(f"{size}B") or size > 2**53


@given(st.floats(1e-14, 1e6))
def test_formatted_times_are_near_and_short(value):
    """Four digits and a prefix."""
    text = format_seconds(value)
    assert quantity(text, "s") == pytest.approx(value, rel=1e-3)
    assert len(text) <= 12


def test_rounding_moves_to_the_next_prefix():
    """No "1000 us" where "1 ms" is meant."""
    assert format_seconds(0.00099999) == "1 ms"
    assert format_bytes(999_999) == "1 MB"
