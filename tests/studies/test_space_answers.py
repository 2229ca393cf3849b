"""Answers from made-up results: each is what the numbers say, and a place that is not chosen is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import ParameterError
from opticcl.report.design_answers import answer_parts
from opticcl.studies.space.answers import breakeven, fastest_map, pareto, tornado
from opticcl.studies.space.design import MEASURES, DesignSpace

SIZES, NODES = (1_000, 10_000, 100_000, 1_000_000), (16, 64)


def space_of(fabrics=("a", "b", "c"), **given):
    """A study of some fabrics that need not exist."""
    axes = {"fabric": tuple(fabrics), "nodes": NODES, "size": SIZES}
    return DesignSpace("made", "made", axes, tuple(MEASURES), **given)


def rows_of(space, time, price=lambda name: (1.0, 1.0), vary=("",)):
    """A row for each point: time(fabric, nodes, size, variation)."""
    return [
        {
            "fabric": name,
            "num_nodes": nodes,
            "size_bytes": size,
            "vary": variation,
            "algorithm": f"of {name}",
            "total_s": time(name, nodes, size, variation),
            "usd_per_node": price(name)[0],
            "w_per_node": price(name)[1],
        }
        for name in space.axes["fabric"]
        for nodes in NODES
        for size in SIZES
        for variation in vary
    ]


def test_the_map_names_the_fastest_of_each_place():
    """With its lead over the second, also where a fabric is missing."""
    space = space_of()
    times = {"a": lambda size: 1e-6 + size * 1e-9, "b": lambda size: 1.2e-5 + size * 1e-10, "c": lambda size: 1.0}
    rows = rows_of(space, lambda name, nodes, size, _: times[name](size) * (nodes / 16 if name == "a" else 1))
    rows = [row for row in rows if (row["fabric"], row["num_nodes"]) != ("c", 64)]
    found = fastest_map(space, rows, {})
    at = {(cell.x, cell.y): cell for cell in found.cells}
    assert (found.xs, found.ys) == (SIZES, NODES)
    assert [at[size, 16].fabric for size in SIZES] == ["a", "a", "b", "b"]
    assert at[1_000_000, 16].lead == pytest.approx((1e-6 + 1e-3) / (1.2e-5 + 1e-4))
    assert {cell.contestants for cell in found.cells if cell.y == 64} == {2}
    assert sum(found.wins.values()) + found.ties == len(found.cells) == 8
    assert found.record()["cells"][0]["algorithm"] == "of a"


def test_the_front_has_what_no_other_is_better_than():
    """In time, dollars and watts together; a fabric without a price is named."""
    space = space_of("abcde")
    time = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 0.5}
    price = {"a": (10.0, 5.0), "b": (5.0, 9.0), "c": (10.0, 4.0), "d": (11.0, 6.0), "e": (None, 1.0)}
    rows = rows_of(space, lambda name, *_: time[name], price.get)
    found = pareto(space, rows, {"nodes": 16, "size": 1000})
    assert [one.fabric for one in found.front] == ["a", "b", "c"]
    assert {one.fabric: one.better for one in found.offers if one.better} == {"d": "a"}
    assert found.unpriced == ("e",)
    assert found.where == {"num_nodes": 16, "size_bytes": 1000}


@examples(40)
@given(st.lists(st.tuples(*[st.integers(1, 4)] * 3), min_size=1, max_size=12))
def test_no_offer_of_the_front_is_beaten(values):
    """And every other one is beaten by the one that it names."""
    names = tuple(f"f{i}" for i in range(len(values)))
    known = dict(zip(names, values, strict=True))
    space = space_of(names)
    rows = rows_of(space, lambda name, *_: float(known[name][0]), lambda name: tuple(map(float, known[name][1:])))
    found = pareto(space, rows, {"nodes": 16, "size": 1000})

    def beats(a, b):
        return all(x <= y for x, y in zip(known[a], known[b], strict=True)) and known[a] != known[b]

    for offer in found.offers:
        assert bool(offer.better) == any(beats(name, offer.fabric) for name in names)
        assert not offer.better or beats(offer.better, offer.fabric)


def test_the_tornado_orders_keys_by_how_they_move_the_lead():
    """A key that turns the answer round says so."""
    factors = {
        "": (1, 2),
        "endpoint x 0.5": (1, 1.9),
        "endpoint x 2": (1, 2.2),
        "hop x 0.5": (1, 0.9),
        "hop x 2": (1, 4),
    }
    space = space_of("ab", vary=("endpoint", "hop"), vary_at={"nodes": (64,), "size": (1000,)})
    rows = rows_of(space, lambda name, _n, _s, variation: float(factors[variation]["ab".index(name)]), vary=factors)
    found = tornado(space, rows, {})
    assert found.fabric == "a"
    assert [bar.variation for bar in found.bars] == ["hop x 0.5", "hop x 2", "endpoint x 0.5", "endpoint x 2"]
    assert [bar.flips for bar in found.bars] == [True, False, False, False]
    assert found.base.lead == 2
    assert "hop x 0.5: b is the fastest" in answer_parts(found)


@examples(30)
@given(st.floats(1e-7, 1e-4), st.floats(1e-11, 1e-9), st.floats(1.1, 5), st.floats(1.1, 5))
def test_a_breakeven_lies_between_its_points(latency, per_byte, slower_start, faster_rate):
    """At the exact place of two straight lines, or within the interval around it."""
    lines = {"a": (latency, per_byte), "b": (latency * slower_start, per_byte / faster_rate)}
    exact = (lines["b"][0] - lines["a"][0]) / (lines["a"][1] - lines["b"][1])
    space = space_of("ab")
    rows = rows_of(space, lambda name, _n, size, _v: lines[name][0] + size * lines[name][1])
    found = breakeven(space, rows, {"nodes": 16})
    if not SIZES[0] < exact < SIZES[-1]:
        assert len(found.crossovers) <= 1
        return
    (one,) = found.crossovers
    assert (one.before, one.after) == ("a", "b")
    assert one.below * (1 - 1e-6) <= exact <= one.above * (1 + 1e-6)
    assert one.below <= one.at <= one.above
    assert abs(math.log(one.at / exact)) < math.log(10)


def test_a_breakeven_between_two():
    """Power laws cross exactly where it says; the others are left out; one that always leads has no crossing."""
    space = space_of()
    rows = rows_of(space, lambda name, _n, size, _v: {"a": 1e-9 * size, "b": 1e-9 * 31_622.7766, "c": 1e-12}[name])
    found = breakeven(space, rows, {"nodes": 16}, between=["a", "b"])
    assert found.crossovers[0].at == pytest.approx(31_622.7766)
    assert [(one.fabric, one.first, one.last) for one in found.stretches] == [
        ("a", 1000, 10_000),
        ("b", 100_000, 10**6),
    ]
    (always,) = breakeven(space, rows, {"nodes": 16}).stretches
    assert (always.fabric, always.first, always.last) == ("c", 1000, 1_000_000)


SPACE = space_of(vary=("hop",), vary_at={})
WRONG = {
    "map: both": (lambda rows: fastest_map(SPACE, rows, {}, "size", "size"), "map: both axes are size"),
    "map: axis": (lambda rows: fastest_map(SPACE, rows, {}, "sizes"), "'sizes' is not an axis of the study"),
    "pareto: place": (
        lambda rows: pareto(SPACE, rows, {"nodes": 16}),
        "pareto: size has 4 values; choose one: --where size=100000",
    ),
    "tornado: place": (lambda rows: tornado(SPACE, rows, {}), "tornado: nodes has 2 values; choose one"),
    "tornado: none": (lambda rows: tornado(space_of(), rows, {}), "the study varies no assumption"),
    "tornado: not there": (
        lambda rows: tornado(SPACE, rows, {"nodes": 16, "size": 1000}),
        "tornado: no assumption is varied there",
    ),
    "breakeven: fabric": (
        lambda rows: breakeven(SPACE, rows, {"nodes": 16}, between=["d"]),
        "'d' is not a fabric of the study; it has a, b, c",
    ),
    "breakeven: one": (
        lambda rows: breakeven(SPACE, rows, {"nodes": 16}, between=["a"]),
        "fewer than two fabrics have times there",
    ),
    "nothing": (lambda _: breakeven(SPACE, [], {"nodes": 16}), "breakeven: no point with a time there"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_answered_is_one_line(case):
    """With what to write."""
    ask, words = WRONG[case]
    with pytest.raises(ParameterError, match=words) as caught:
        ask(rows_of(SPACE, lambda *_: 1.0))
    assert "\n" not in str(caught.value)
