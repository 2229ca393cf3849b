"""Which circuits are one signal, beside exact fractions."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Transfers
from opticcl.ir.signals import signals_of
from tests.profiles import examples
from tests.signals import signals

PLAIN = SimpleNamespace(resources=(), wavelengths_carried=lambda circuits: circuits.wavelength_n)


def numbers_agree(numbers, due):
    """Whether rows have equal numbers where they are equal."""
    return [[a == b for a in numbers] for b in numbers] == [[a == b for a in due] for b in due]


LIGHT = st.tuples(*[st.integers(0, 1)] * 2, st.integers(0, 2), st.integers(1, 2), st.integers(-1, 4))
MOVED = st.tuples(st.integers(0, 1), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(0, 3))


@examples(150)
@given(
    st.lists(LIGHT, min_size=1, max_size=8),
    st.lists(MOVED, max_size=4),
    st.integers(1, 2),
    st.booleans(),
    st.lists(st.sampled_from(["1", "0.5", "0.25", "0.75"]), min_size=8, max_size=8),
)
def test_circuits_are_one_signal_if_they_carry_the_same_bytes(light, moved, step, plain, rates):
    """Of the same chunks, from the same port of one sender on the same wavelengths; some parts of the machine are weak."""
    lo, n, apart, parts, op = np.array(moved, np.int64).reshape(-1, 5).T
    t = Transfers.of(np.full(len(lo), 9), np.arange(len(lo)), lo, n, op, parts, None if plain else apart)
    src, port, first, width, transfer = np.array(light, np.int64).T
    circuits = Circuits.of(transfer, src, np.arange(len(src)), port, first, width, wavelength_step=step)
    rates = rates[: len(src)]
    where = SimpleNamespace(resources=(), wavelengths_carried=lambda c: c.wavelength_n * np.array(rates, float))
    found = signals_of(where, circuits, t)
    due = signals(circuits, t, rates)
    # circuits of one transfer on one port and wavelength have no order
    ends = [(*key, w) for key, one in zip(zip(transfer, port, strict=True), due, strict=True) for _, _, w, _ in one]
    if len(set(ends)) == len(ends):
        assert numbers_agree(found.of_circuits().tolist(), due)
    assert len(found) == len(found.circuit) == width.sum()


def test_equal_shares_are_numbered_in_the_order_of_ports_and_wavelengths():
    """Whatever the order of the rows; the lanes of an idle circuit carry none."""
    t = Transfers.of([0], [1], [0], 2, Op.COPY)
    circuits = Circuits.of([0, 0, -1], [0, 0, 0], [1, 1, 2], [1, 0, 2], 0, [1, 2, 1])
    found = signals_of(PLAIN, circuits, t)
    rows = zip(found.share.tolist(), found.behind.tolist(), found.shares.tolist(), strict=True)
    assert list(rows) == [(2, 3, 3), (0, 1, 3), (1, 2, 3), (0, 0, 0)]


def test_weak_parts_divide_a_transfer_in_proportion():
    """A transmitter at half of its rate carries half of what the other does: one and two parts of three."""
    where = fabric("ramp:groups=3,racks=2,wavelengths=3,failed=transmitter:0:weak=0.5")
    t = Transfers.of([0], [7], [0], 1, Op.COPY)
    circuits = Circuits.of([0, 0], [0, 0], [7, 7], [0, 1], 1, 1, np.array([[1, 0], [1, 0]]))
    found = signals_of(where, circuits, t)
    assert [found.share.tolist(), found.behind.tolist(), found.shares.tolist()] == [[0, 1], [1, 3], [3, 3]]


ONE = {"src": 1, "port": 0, "lo": 0, "n": 1, "chunk_lo": 2, "chunk_n": 2, "chunk_step": 1, "parts": 1, "op": 0}


@pytest.mark.parametrize(
    ("second", "same"),
    [
        ({}, True), ({"src": 2}, False), ({"port": 1}, False), ({"lo": 1}, False), ({"n": 2}, False),
        ({"chunk_lo": 3}, False), ({"chunk_n": 3}, False), ({"chunk_step": 2}, False), ({"parts": 2}, False),
        ({"op": 1}, True),
    ],
    ids=lambda second: "".join(second) or "nothing" if isinstance(second, dict) else "",
)  # fmt: skip
def test_one_signal_differs_in_nothing(second, same):
    """Sender, port, wavelengths, chunks, the distance between them, contributions; not in what receivers do with it."""
    both = [ONE, ONE | second]
    c = {key: np.array([one[key] for one in both]) for key in ONE}
    t = Transfers.of([9, 9], [5, 6], c["chunk_lo"], c["chunk_n"], c["op"], c["parts"], c["chunk_step"])
    found = signals_of(PLAIN, Circuits.of([0, 1], c["src"], [5, 6], c["port"], c["lo"], c["n"]), t).of_circuits()
    assert bool(found[0] == found[1]) is same


def test_the_distance_of_a_single_chunk_means_nothing():
    """Two receivers of one chunk."""
    t = Transfers.of([9, 9], [5, 6], [2, 2], 1, Op.COPY, chunk_step=np.array([1, 2]))
    found = signals_of(PLAIN, Circuits.of([0, 1], [1, 1], [5, 6]), t).of_circuits()
    assert found[0] == found[1]
