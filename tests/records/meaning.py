"""Commands of records, in words of today.

A record keeps the command that it was made with. The table of `opticcl.cli` says how verbs and options of earlier versions are
written now; where a default changes, a rule here says how the same question is put, and the record stays: after `faults` plans
anew by default, `Rule(("faults",), ("faults", "--as-built"), unless=("--as-built",))`. Where an algorithm changes its
name, `ALGORITHMS` has the new one.
"""

from dataclasses import dataclass

from opticcl.cli import words_of_today


@dataclass(frozen=True)
class Rule:
    """How words of a command are written now.

    Args:
        old: words that follow each other in a command, such as its verb.
        new: words in their place.
        unless: the rule does not hold for commands with one of these words.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    unless: tuple[str, ...] = ()


RULES: tuple[Rule, ...] = (
    *(Rule((verb,), (verb, "--as-built"), unless=("--as-built", "--equal", "--help")) for verb in ("compare", "train")),
)
"""Applied one after the other, each where its words are found first, to the words that `words_of_today` returns."""

ALGORITHMS: dict[str, str] = {}
"""Name of an algorithm in records -> how it is written now."""


def command_of(words: tuple[str, ...], rules: tuple[Rule, ...] | None = None) -> tuple[str, ...]:
    """A command in words of today.

    Args:
        words: of the record, without the program.
        rules: in place of `RULES`.
    """
    words = words_of_today(words)
    for rule in RULES if rules is None else rules:
        at = next((i for i in range(len(words)) if words[i : i + len(rule.old)] == rule.old), None)
        if at is not None and not set(rule.unless) & set(words):
            words = (*words[:at], *rule.new, *words[at + len(rule.old) :])
    return words


def algorithm_of(name: str) -> str:
    """An algorithm of the matrix as it is written now."""
    return ALGORITHMS.get(name, name)
