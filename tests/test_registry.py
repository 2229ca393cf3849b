"""Names, "name:key=value" and conversion by annotation."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from opticcl.errors import ParameterError, UnitError, UnknownNameError
from opticcl.registry import (
    Registry,
    as_list,
    as_path,
    as_text,
    convert_arguments,
    one_or_more,
    parse_call,
    whole_number,
    write_call,
)
from opticcl.units import Rate, Shape


def maker(
    *,
    size: int = 3,
    rate: Rate = 1e9,
    grid: Shape = (2, 2),
    way: Literal["up", "down"] = "up",
    extra: int | None = None,
    on: bool = False,
    note: str = "",
):
    """A function with every kind of parameter."""


def test_texts_become_arguments():
    """Each annotation converts its text."""
    given = {"size": "7", "rate": "2 Gb/s", "grid": "4x8", "way": "Down", "extra": "none", "on": "yes", "note": "a"}
    assert convert_arguments(maker, given, "m") == {
        "size": 7,
        "rate": 2e9,
        "grid": (4, 8),
        "way": "down",
        "extra": None,
        "on": True,
        "note": "a",
    }


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"sise": 1}, ["m", "sise", "size"]),
        ({"size": "x"}, ["m: size", "'x'"]),
        ({"size": 2.5}, ["m: size", "2.5"]),
        ({"size": np.array([2])}, ["m: size", "array([2])"]),
        ({"size": 2**40}, ["m: size", "2**40"]),
        ({"way": "left"}, ["m: way", "up, down"]),
        ({"on": "maybe"}, ["m: on"]),
        ({"rate": "3 s"}, ["m: rate", "3 s"]),
    ],
)
def test_wrong_arguments_name_field_and_value(given, names):
    """One line with the field, the value and what to try."""
    with pytest.raises((ParameterError, UnitError)) as caught:
        convert_arguments(maker, given, "m")
    assert all(name in str(caught.value) for name in names)


def test_doubles_are_refused_whatever_their_case():
    """Registering "Greedy" beside "greedy" would silently replace it."""
    registry = Registry("thing")
    registry.register("greedy")(1)
    with pytest.raises(ValueError, match="twice"):
        registry.register("Greedy")(2)


def test_unknown_names_get_the_nearest():
    """A typo is answered with the name that was meant."""
    registry = Registry("thing")
    registry.register("halving_doubling")(1)
    assert registry.get("Halving-Doubling") == 1
    with pytest.raises(UnknownNameError, match="did you mean 'halving_doubling'"):
        registry.get("halving_dubling")


def test_calls_are_read_and_written():
    """The two directions agree."""
    assert parse_call(write_call("a", {"b": 1, "c": (2, 3)})) == ("a", {"b": "1", "c": "2x3"})


@pytest.mark.parametrize("text", ["a:b", "a:=1", "a:b=", "a:b=1,b=2", "a:b=1,B=2"])
def test_broken_calls_are_refused(text):
    """Missing halves and keys given twice."""
    with pytest.raises(ParameterError):
        parse_call(text)


@pytest.mark.parametrize("value", [7, np.int8(7), np.uint64(7)])
def test_whole_numbers_come_out_as_numbers_of_python(value):
    """Of whatever library they are."""
    assert type(whole_number(value, "n")) is int
    assert whole_number(value, "n") == 7


@pytest.mark.parametrize("value", [7.0, "7", True, np.True_, None, np.array([7]), 2**63, -(2**63)])
def test_what_is_no_whole_number_is_refused(value):
    """Fractions that are whole, texts and truth values too: none of them is meant as a count."""
    with pytest.raises(ParameterError, match=r"^n: .*give ") as caught:
        whole_number(value, "n")
    assert "\n" not in str(caught.value)


def test_plain_arguments_come_out_as_they_are():
    """Texts, paths and lists."""
    here = Path("a.csv")
    assert (as_text("a", "n", "b"), as_path("a.csv", "n", "b"), as_path(here, "n", "b")) == ("a", "a.csv", here)
    assert as_list(range(2), "n", "b") == one_or_more((0, 1)) == [0, 1]
    assert (one_or_more("ab"), one_or_more(None), one_or_more([])) == (["ab"], [None], [])


@pytest.mark.parametrize("check", [as_text, as_path, as_list])
@pytest.mark.parametrize("value", [None, 3, 2.5, object()])
def test_plain_arguments_of_another_kind_are_refused(check, value):
    """With the name of the argument and what could stand there."""
    with pytest.raises(ParameterError, match=r"^n: .*such as .*b"):
        check(value, "n", "b")


def test_long_values_are_shown_short():
    """One line, whatever was given."""
    with pytest.raises(ParameterError) as caught:
        as_text(np.zeros((50, 50)), "n", "b")
    assert len(str(caught.value)) < 150
    assert "\n" not in str(caught.value)
