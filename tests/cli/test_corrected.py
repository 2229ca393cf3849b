"""What is typed wrong is refused in one line, with a command that then runs."""

import random
import re
import shlex

import pytest
from tests.cli.verbs import parse
from tests.docs.pages import commands

from opticcl.cli import parsed

COMMANDS = [
    words
    for one in commands()
    if one.block.page == "README.md" and (words := shlex.split(one.text))[0] == "opticcl"
    if len(words) > 3 and words[1] in ("compare", "simulate", "plan")
]


def with_a_wrong_letter(draw, words):
    """Two neighbouring letters of the verb or of a long option are exchanged."""
    at = draw.choice([i for i, word in enumerate(words) if i == 0 or re.fullmatch("--[a-z-]{4,}", word)])
    letters = list(words[at])
    swap = draw.choice([i for i in range(at and 2, len(letters) - 1) if letters[i] != letters[i + 1]])
    letters[swap], letters[swap + 1] = letters[swap + 1], letters[swap]
    return [*words[:at], "".join(letters), *words[at + 1 :]]


def with_another_order(draw, words):
    """Options stand before the verb."""
    return [*words[1:3], words[0], *words[3:]]


def without_a_unit(draw, words):
    """A size has no byte at its end."""
    return [*words, "--size", draw.choice(["100M", "1G", "10K"])]


def without_a_value(draw, words):
    """The last option has none."""
    return [
        *words,
        draw.choice([one for one in ("--nodes", "--algorithm", "--assumptions", "--engine") if one not in words]),
    ]


EDITS = [with_a_wrong_letter, with_another_order, without_a_unit, without_a_value]


@pytest.mark.parametrize("number", range(52))
def test_an_edit_of_a_command_is_refused_with_one_that_runs(opticcl, number):
    """Drawn: a letter, the order, a unit, a missing value."""
    draw = random.Random(number)
    words = draw.choice(COMMANDS)[1:]
    words = [
        word for at, word in enumerate(words) if word not in ("--size", "-s") and words[at - 1] not in ("--size", "-s")
    ]
    done = opticcl(*EDITS[number % len(EDITS)](draw, words))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    _, found, command = done.stderr.partition(" Try: opticcl ")
    assert found, done.stderr
    parsed(shlex.split(command))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("comapre -n 64", "compare -n 64"),
        ("compare -n 64 -f rampp,oddl", "compare -n 64 -f ramp,oddl"),
        ("compare -n 64 -f ramp:wavelength=8", "compare -n 64 -f ramp:wavelengths=8"),
        ("compare -n 64 --equal rate=800G", "compare -n 64 --equal rate=800Gb/s"),
        ("machine cst -f ramp", "machine cost -f ramp"),
        ("simulate -f ramp -n 16 -c allreduce", "simulate -f ramp -n 16 -c all_reduce"),
        ("simulate -f ramp -n 63", "simulate -f ramp -n 54"),
        ("study mapp x.toml", "study map x.toml"),
        ("execute -f ideal:nodes=4 --transport lite", "execute -f ideal:nodes=4 --transport light"),
        ("train -m vgg91 -n 8", "train -m vgg19 -n 8"),
    ],
)
def test_the_command_that_is_meant(opticcl, typed, meant):
    """A name, a parameter, a unit, a number of nodes."""
    done = opticcl(*typed.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.endswith(f" Try: opticcl {meant}\n")


def test_nothing_is_tried_that_would_not_be_parsed(opticcl):
    """No command where a name is wrong in two places, or the suggestion is no command."""
    assert " Try: " not in opticcl("compare", "-f", "rampp", "-f", "rampp", "-n", "4").stderr
    assert " Try: " not in opticcl("compare", "-n", "64", "--equal", "weight=3").stderr
    assert parse("compare", "-n", "64").params["nodes"] == 64
