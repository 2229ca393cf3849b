"""Equivalent flows: the classes of colour refinement beside those of the definition, and equal rates."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.simulate._fair_kernels import fair_rates
from opticcl.simulate._flow_classes import class_of_flow, quotient


def numbers(names):
    """Equal names have equal numbers."""
    known = {}
    return [known.setdefault(name, len(known)) for name in names]


def classes(paths, amount, delay, capacity):
    """(class of each flow, class of each link): divided by what they meet until nothing is divided any more."""
    flows = numbers(zip(amount, delay, strict=True))
    links = numbers(capacity)
    while True:
        crossing = [sorted(flows[f] for f, path in enumerate(paths) if link in path) for link in range(len(links))]
        new_links = numbers((links[i], *crossing[i]) for i in range(len(links)))
        new_flows = numbers((flows[f], *sorted(new_links[link] for link in path)) for f, path in enumerate(paths))
        if len(set(new_links)) == len(set(links)) and len(set(new_flows)) == len(set(flows)):
            return new_flows, new_links
        flows, links = new_flows, new_links


def as_columns(paths, amount, delay, capacity):
    """The same as arrays."""
    hops = np.array([link for path in paths for link in path], np.int32)
    offsets = np.cumsum([0, *map(len, paths)])
    return hops, offsets, *(np.array(column, float) for column in (amount, delay, capacity))


@st.composite
def copies(draw):
    """Some copies of a few flows over a few links, with links that nobody crosses: (paths, amount, delay, capacity)."""
    n, num_links, times = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    link = st.integers(0, num_links - 1)
    paths = draw(st.lists(st.lists(link, min_size=1, max_size=3, unique=True), min_size=n, max_size=n))
    amount, delay = (draw(st.lists(st.sampled_from(few), min_size=n, max_size=n)) for few in ([6, 6, 9], [0, 0, 1e-6]))
    capacity = draw(st.lists(st.sampled_from([2.0, 2.0, 3.0]), min_size=num_links, max_size=num_links))
    shifted = [[link + num_links * k for link in path] for k in range(times) for path in paths]
    order = draw(st.permutations(range(n * times)))
    return [shifted[i] for i in order], [(amount * times)[i] for i in order], [
        (delay * times)[i] for i in order
    ], capacity * times  # fmt: skip


@examples(40)
@given(copies())
def test_one_flow_of_each_class_has_the_rate_of_all(problem):
    """As many classes as by the definition, each with its bytes, its delay, its links and its weight on them."""
    paths, amount, delay, capacity = problem
    hops, offsets, *given_columns = as_columns(*problem)
    flows, links = classes(*problem)
    used = sorted(set(hops.tolist()))
    rows, found = class_of_flow(hops, offsets, *given_columns), quotient(hops, offsets, *given_columns)
    if 2 * len({links[link] for link in used}) > len(used):
        assert rows is None
        assert found is None
        return
    assert len(set(zip(rows.tolist(), flows, strict=True))) == len(set(flows)) == rows.max() + 1
    if 2 * len(set(flows)) > len(flows):
        assert found is None
        return
    of_class, ends, weight, amounts, delays, capacities = found
    for f, row in enumerate(rows.tolist()):
        assert (amounts[row], delays[row]) == (amount[f], delay[f])
        mine = slice(ends[row], ends[row + 1])
        on_link = {
            links[link]: sum(flows[g] == flows[f] and link in paths[g] for g in range(len(paths))) for link in paths[f]
        }
        rate_of = {links[link]: capacity[link] for link in paths[f]}
        due = Counter((rate_of[number], times) for number, times in on_link.items())
        assert Counter(zip(capacities[of_class[mine]].tolist(), weight[mine].tolist(), strict=True)) == due
    assert len(capacities) == len({links[link] for link in used})
    length = np.diff(offsets)
    every = fair_rates(offsets[:-1], length, hops.astype(np.int64), np.ones(len(hops), np.int64), given_columns[2])
    merged = fair_rates(ends[:-1], np.diff(ends), of_class, weight, capacities)
    assert merged[rows].tolist() == pytest.approx(every.tolist(), rel=1e-12)


def test_flows_of_other_bytes_or_delays_are_no_class():
    """Bit patterns that cancel out each other, as those of 4 bytes at once and of one byte after a second."""
    values = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
    amount, delay = (np.repeat(column.ravel(), 4) for column in np.meshgrid(values, values))
    n = len(amount)
    rows = class_of_flow(np.arange(n), np.arange(n + 1), amount, delay, np.ones(n))
    assert len(set(zip(rows.tolist(), amount.tolist(), delay.tolist(), strict=True))) == rows.max() + 1 == n // 4
    assert len(quotient(np.arange(n), np.arange(n + 1), amount, delay, np.ones(n))[3]) == n // 4


@pytest.mark.parametrize(("alone", "merged"), [(0, True), (2, True), (3, False)])
def test_at_most_half_as_many_classes_as_links_and_flows(alone, merged):
    """Four equal flows on four links and some that differ: one class of four and two of one are the half of six."""
    amount = np.array([1.0] * 4 + [2.0, 3.0, 4.0][:alone])
    n = len(amount)
    found = quotient(np.arange(n), np.arange(n + 1), amount, np.zeros(n), np.ones(n))
    assert (found is not None) == merged


@pytest.mark.parametrize(("amount", "merged"), [([1, 1, 2, 2], True), ([1, 1, 2], False), ([1, 2], False)])
def test_at_most_half_as_many_classes_as_flows(amount, merged):
    """All over the same two links, which are one class."""
    n = len(amount)
    given_columns = np.tile([0, 1], n), 2 * np.arange(n + 1), np.array(amount, float), np.zeros(n), np.ones(2)
    assert (quotient(*given_columns) is not None) == merged
    assert numbers(class_of_flow(*given_columns).tolist()) == numbers(amount)
