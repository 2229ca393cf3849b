"""Verbs of the program and their options, as the framework knows them."""

import click

from opticcl.cli import command_group

GROUP = command_group()
VERBS = sorted(GROUP.commands)


def options_of(verb):
    """Options of a verb, without --help."""
    return [one for one in GROUP.commands[verb].params if isinstance(one, click.Option)]


def parse(verb, *words):
    """Parse the words after a verb without running it; returns the context with the values."""
    return GROUP.commands[verb].make_context(verb, list(words))
