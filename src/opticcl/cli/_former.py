"""Commands of earlier versions in words of today: one table, which refusals and recorded answers use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["words_of_today"]

VERBS: Mapping[str, tuple[str, ...]] = {
    "budget": ("machine", "budget"),
    "control": ("machine", "control"),
    "convert": ("compile",),
    "cost": ("machine", "cost"),
    "netlist": ("machine", "netlist"),
    "papers": ("study", "papers"),
    "run": ("execute", "--transport", "mpi"),
    "sweep": ("compare",),
    "traffic": ("machine", "traffic"),
}
"""Verb of an earlier version -> the words in its place."""

NAMES: Mapping[str, Mapping[str, str]] = {
    "": {"--output": "--out", "--picture": "--out", "--preset": "--assumptions"},
    "budget": {"--preset": "--optics"},
}
"""Verb -> its options that have another name now; "": of all other verbs."""

ENGINE_OPTIONS: Mapping[str, str] = {
    "--buffer": "buffer_bytes",
    "--cell": "cell_bytes",
    "--forwarding": "forwarding",
    "--max-events": "max_events",
    "--mode": "mode",
    "--order": "order",
    "--queue": "queue",
    "--retransmit": "retransmit_s",
    "--seed": "seed",
    "--tolerance": "tolerance",
    "--transport": "transport",
    "--window": "window",
}
"""Option that `simulate` had -> the option of an engine that it was."""

SWEPT: Mapping[str, str] = {"--from": "1KB", "--to": "1GB", "--factor": "4"}
"""Option that `sweep` had -> its default, in the order of `--sizes`."""


def words_of_today(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command as they are written now; those of today stay as they are.

    >>> words_of_today(["sweep", "-f", "ramp", "--to", "1MB"])
    ('compare', '-f', 'ramp', '--sizes', '1KB:1MB:4')
    >>> words_of_today(["simulate", "--engine", "packet", "--cell=9kB", "--node-rate", "1Tb/s"])
    ('simulate', '--equal', 'rate=1Tb/s', '--engine', 'packet:cell_bytes=9kB')

    Args: words: without the name of the program.
    """
    if not words:
        return ()
    verb, *rest = parts = [part for word in words for part in _parts(word)]
    names = {**NAMES[""], **NAMES.get(rest[0] if verb == "machine" and rest else verb, {})}
    rest = [names.get(word, word) for word in rest]
    if (rate := _taken(rest, "--node-rate")) is not None:
        rest += ["--equal", f"rate={rate}"]
    if verb == "simulate":
        _join_engine(rest)
    elif verb == "sweep" and "--help" not in rest:
        rest += ["--sizes", ":".join(_taken(rest, option) or default for option, default in SWEPT.items())]
    elif verb == "study" and rest and rest[0].endswith(".toml"):
        rest.insert(0, "run")
    now = [*VERBS.get(verb, (verb,)), *rest]
    return tuple(words if now == parts else now)


def _parts(word: str) -> list[str]:
    """An option and its value, which may be one word: "--cell=9kB"."""
    name, equals, value = word.partition("=")
    return [name, value] if equals and name.startswith("--") else [word]


def _taken(words: list[str], option: str) -> str | None:
    """The value of an option, which is removed with it; None: it is not there, or has no value."""
    if option not in words[:-1]:
        return None
    at = words.index(option)
    _, value = words[at : at + 2]
    del words[at : at + 2]
    return value


def _join_engine(words: list[str]) -> None:
    """Write options of engines into the value of `--engine`."""
    given = {name: value for flag, name in ENGINE_OPTIONS.items() if (value := _taken(words, flag)) is not None}
    if not given:
        return
    written = ",".join(f"{name}={value}" for name, value in given.items())
    engine = _taken(words, "--engine") or "packet"
    words += ["--engine", f"{engine}{',' if ':' in engine else ':'}{written}"]
