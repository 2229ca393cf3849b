"""Names, "name:key=value" and conversion by annotation."""

from typing import Literal

import pytest

from opticcl.errors import ParameterError, UnitError, UnknownNameError
from opticcl.registry import Registry, convert_arguments, parse_call, write_call
from opticcl.units import Rate, Shape


def maker(
    *,
    size: int = 3,
    rate: Rate = 1e9,
    grid: Shape = (2, 2),
    way: Literal["up", "down"] = "up",
    extra: int | None = None,
    on: bool = False,
):
    """A function with every kind of parameter."""


def test_texts_become_arguments():
    """Each annotation converts its text."""
    given = {"size": "7", "rate": "2 Gb/s", "grid": "4x8", "way": "Down", "extra": "none", "on": "yes"}
    assert convert_arguments(maker, given, "m") == {
        "size": 7,
        "rate": 2e9,
        "grid": (4, 8),
        "way": "down",
        "extra": None,
        "on": True,
    }


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"sise": 1}, ["m", "sise", "size"]),
        ({"size": "x"}, ["m: size", "'x'"]),
        ({"size": 2.5}, ["m: size", "2.5"]),
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
