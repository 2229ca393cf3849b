"""Names, sizes, lists and ends as PyTorch writes them, by the rules of its c10d written down here once more."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.traces.c10d import (
    MAX_GROUP,
    add_splits,
    collective_of,
    count_of,
    elements_of,
    ends_of,
    members_of,
    rank_list,
    ratio_of,
    tensors_of,
    width_of,
)
from opticcl.traces.recording import GroupEnds, RankCall

rows = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def splits(lists, elements, width=4, ranks=(), size=0):
    """Parts of both sides of an all_to_all, and why a list is not used."""
    call = RankCall("c", "all_to_all", 0, ranks=tuple(ranks), group_size=size)
    why = list(add_splits(call, lists, elements, width))
    return call.sent_splits, call.received_splits, why


@examples(60)
@given(sent=rows, received=rows, row=st.integers(1, 5), width=st.sampled_from([1, 2, 8]), text=st.booleans())
def test_parts_are_rows_times_the_bytes_of_a_row(sent, received, row, width, text):
    """Of lists and of texts; no part of an empty side, and none of an empty list."""
    lists = [json.dumps(one) if text else one for one in (sent, received)]
    found = splits(lists, (sum(sent) * row, sum(received) * row), width)
    assert found == (tuple(n * row * width for n in sent), tuple(n * row * width for n in received), [])
    assert splits(("[]", lists[1]), (8, sum(received) * row), width, received) == ((), found[1], [])


@pytest.mark.parametrize(
    ("value", "count", "said"),
    [
        ([1, 2, 3], 6, "the list has 3 parts for 2 ranks"),
        ("[1, 2]", 4, "the list has 3 rows in all for 4 elements"),
        ("[0, 0]", 4, "the list has 0 rows in all for 4 elements"),
        ("[1, 2, ...]", 3, "the list is cut"),
        ("[1, x]", 3, "the list is none of whole numbers"),
        ([1, 2.5], 3, "the list is none of whole numbers"),
    ],
)
def test_a_list_that_does_not_fit_is_named(value, count, said):
    """With its side; the other side counts."""
    for size, ranks in ((2, ()), (3, (4, 5)), (0, (4, 5))):
        out = splits((value, [1, 1]), (count, 2), 4, ranks, size)
        assert out == ((), (4, 4), [f"in split sizes that do not fit, not used: {said}"])
        assert splits(([1, 1], value), (2, count), 4, ranks, size)[1:] == (
            (),
            [f"out split sizes that do not fit, not used: {said}"],
        )
    assert splits((None, 5), (4, 4)) == ((), (), [])
    assert splits(([0, 0], [0]), (0, 0), 4, (1, 2)) == (
        (0, 0),
        (),
        ["out split sizes that do not fit, not used: the list has 1 parts for 2 ranks"],
    )


shapes = st.lists(st.integers(0, 7), max_size=3)
values = st.one_of(shapes, st.lists(shapes, min_size=1, max_size=3), st.sampled_from([3, "x", [2, "x"], [[2], 3]]))
types = st.sampled_from(["Float", "c10::Half", "unsigned char", "Tensor", 7, "long int"])
WIDTHS = {"Float": 4, "c10::Half": 2, "unsigned char": 1, "long int": 8}


@examples(100)
@given(st.lists(st.tuples(values, types), max_size=4))
def test_bytes_of_tensors(pairs):
    """A tensor, or a list of them as one; other values and unknown types have no bytes."""
    due = []
    for shape, type_ in pairs:
        width = WIDTHS.get(type_, 0)
        if not width or not isinstance(shape, list):
            continue
        if all(isinstance(side, int) for side in shape):
            due.append(math.prod(shape) * width)
        elif all(isinstance(one, list) and all(isinstance(n, int) for n in one) for one in shape):
            due.append(sum(map(math.prod, shape)) * width)
    assert list(tensors_of([one for one, _ in pairs], [one for _, one in pairs])) == due
    assert (
        list(tensors_of("[[2]]", ["Float"])) == list(tensors_of([[2]], "Float")) == list(tensors_of([[2]], None)) == []
    )
    lists = [[[2, 3], [4]], [[5]]]
    assert list(tensors_of([lists, [lists]], ["Float", "Float"])) == [60]


@examples(40)
@given(st.lists(shapes, max_size=4))
def test_elements_of_a_list_of_tensors(listed):
    """None of another value."""
    assert elements_of(listed) == [math.prod(one) for one in listed]
    for other in ("[[2]]", [3], [[True]], {"a": [2]}, [[2], 3], None):
        assert elements_of(other) == []


def test_a_shape_beyond_any_message_is_not_multiplied_out():
    """A hundred thousand sides of 2**40 are a number of less than 200 bits."""
    (found,) = elements_of([[2**40] * 100_000])
    assert 2**70 < found < 2**200
    assert elements_of([[2**35, 2**35, 2, 3]]) == [2**71]


@examples(60)
@given(st.integers(0, 3 * 2**20), st.integers(0, 50))
def test_ratios_of_sizes(many, few):
    """A whole number of ranks, at most 2**20, else 0."""
    for pair in ((many, few), (few, many)):
        low, high = sorted(pair)
        assert ratio_of(pair) == (high // low if low and not high % low and high <= MAX_GROUP * low else 0)
    assert ratio_of((2, 2 * MAX_GROUP)) == MAX_GROUP
    assert (ratio_of((MAX_GROUP, 1)), ratio_of((1, MAX_GROUP + 1)), ratio_of((0, 8))) == (2**20, 0, 0)


@pytest.mark.parametrize(
    ("text", "ends"),
    [("0->1", (0, 1, ())), ("12<-3", (3, 12, ())), ("1->", None), ("->1", None), ("1-2", None), ("٣->1", None)],
)
def test_ends_of_transfers(text, ends):
    """The sender is where the arrow comes from."""
    assert ends_of(text) == (None if ends is None else GroupEnds(*ends))


@pytest.mark.parametrize(
    ("value", "ranks"),
    [
        ("[ 3 , 1]", (3, 1)),
        ([3, 1, 3], (3, 1)),
        ((4,), (4,)),
        ("[0, ...]", ()),
        ("0, 1", ()),
        ([], ()),
        (["0"], ()),
        ([True], ()),
        (None, ()),
        ("[1234567890]", ()),
    ],
)
def test_lists_of_ranks(value, ranks):
    """Without repetition; none if the list is cut or another value."""
    assert rank_list(value) == ranks


@pytest.mark.parametrize(
    ("group", "ranks"),
    [
        ({"ranks": [1, 3], "group_size": 2}, (1, 3)),
        ({"ranks": "[0, 2]", "pg_size": 3}, (0, 2)),
        ({"ranks": ["2", 4]}, (2, 4)),
        ({"ranks": {"3": 0, "5": 1}}, (3, 5)),
        ({"ranks": ["x"]}, ()),
        ({"ranks": [], "group_size": 3}, (0, 1, 2)),
        ({"ranks": {}, "pg_size": 2, "group_size": 3}, (0, 1)),
        ({"ranks": []}, ()),
        ({"pg_size": 2}, ()),
        ({"ranks": [], "pg_size": MAX_GROUP}, tuple(range(MAX_GROUP))),
        ({"ranks": [], "pg_size": MAX_GROUP + 1}, ()),
    ],
)
def test_members_of_a_recorded_group(group, ranks):
    """Those of its list, whose numbers may be texts or keys; an empty list is of all ranks."""
    assert members_of(group) == ranks


def test_names_of_collectives_and_types():
    """By the start of the name; unknown ones have none, and no width."""
    words = {"allreduce_": "all_reduce", "_allgather_base": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}
    words |= {
        "all_to_allv": "all_to_all",
        "REDUCE": "reduce",
        "recv_any_source": "recv",
        "monitored_barrier": "barrier",
    }
    words |= {"wait": "", "": "", "xallreduce": ""}
    assert {word: collective_of(word) for word in words} == words
    widths = {
        "Float": 4,
        "at::BFloat16": 2,
        "c10::complex<double>": 16,
        "Float8_e4m3fn": 1,
        "Float4_e2m1fn_x2": 1,
        "Float5": 0,
        "": 0,
    }
    widths |= {5: 0, None: 0}
    assert {name: width_of(name) for name in widths} == widths
    assert [count_of(value, 9) for value in (0, 2**31 - 1, 2**31, -1, True, "3", 2.0)] == [0, 2**31 - 1, 9, 9, 9, 9, 9]
