"""Verbs of the program and their options, as the framework knows them."""

import click

from opticcl.cli import command_group

COMMANDS = dict(command_group().walk())
"""Words after `opticcl` -> the verb, those of groups too: "machine cost"."""

VERBS = sorted(COMMANDS)


def options_of(verb):
    """Options of a verb, without --help."""
    return [one for one in COMMANDS[verb].params if isinstance(one, click.Option)]


def parse(verb, *words):
    """Parse the words after a verb without running it; returns the context with the values."""
    return COMMANDS[verb].make_context(verb, list(words))
