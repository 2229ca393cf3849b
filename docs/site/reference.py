"""The reference, made from the code: every verb with its options, public name, fabric, algorithm and assumption."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import opticcl
from opticcl import cli
from opticcl.assumptions import KEYS, LATENCY_KEYS, SETS, meaning_of, set_of, value_text, values
from opticcl.report.catalogue import catalogue


def pages() -> dict[str, str]:
    """Name of each page -> its Markdown."""
    known = catalogue().record()
    return {
        "verbs": "\n".join(verbs()),
        "python": "\n".join(names()),
        "fabrics": "\n".join(entries("Fabrics", known["fabrics"])),
        "algorithms": "\n".join(entries("Algorithms", known["algorithms"])),
        "assumptions": "\n".join(assumptions()),
    }


def verbs() -> Iterator[str]:
    """Every verb of the command line with its help."""
    yield "# Verbs of the command line\n"
    yield "Exit code 0: good; 1: the answer is no; 2: the input is wrong.\n"
    for name, command in sorted(cli.command_group().walk()):
        context = command.context_class(command, info_name=f"opticcl {name}", terminal_width=100)
        yield f"## opticcl {name}\n\n```text\n{command.get_help(context).strip()}\n```\n"


def table_row(*cells: str) -> str:
    """A row of a table; bars and markup of the cells are text."""
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"


def escaped(text: str) -> str:
    """Text within a line of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def names() -> Iterator[str]:
    """Every public name of the package: signature, text, arguments; of classes also the public methods."""
    yield "# Python\n"
    yield f"{inspect.cleandoc(opticcl.__doc__ or '').partition(chr(10))[0]}\n"
    for name in opticcl.__all__:
        thing = getattr(opticcl, name)
        if inspect.isclass(thing):
            yield from section(f"opticcl.{name}", thing, 2)
            for method, function in inspect.getmembers(thing):
                code = inspect.isfunction(function) or inspect.ismethod(function) or isinstance(function, property)
                if not method.startswith("_") and method in vars(thing) and code:
                    yield from section(f"{name}.{method}", function, 3)
        elif callable(thing):
            yield from section(f"opticcl.{name}", thing, 2)


def section(title: str, thing: Any, level: int) -> Iterator[str]:
    """A name with its signature and its text."""
    yield f"{'#' * level} {title}\n"
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
        yield f"```python\n{title}{signature(thing)}\n```\n"
    yield from docstring(inspect.getdoc(thing) or "")


def signature(thing: Any) -> str:
    """Parameters and what is returned."""
    try:
        text = str(inspect.signature(thing))
    except ValueError:
        return "(...)"
    text = re.sub(r"<function (\w+) at 0x\w+>", r"\1", text)
    return re.sub(r"""(: |-> )(['"])(.*?)\2(?=[,)= ]|$)""", r"\1\3", text)  # annotations without their quotes


def docstring(text: str) -> Iterator[str]:
    """A docstring: paragraphs, a list for its arguments, a paragraph for each other section, examples as code."""
    paragraphs, *sections = re.split(r"\n(?=(?:Args|Attributes|Raises|Returns|Source|Reading):)", text.strip())
    yield f"{code_of_examples(paragraphs.strip())}\n"
    for section in sections:
        section, _, examples = section.partition("\n\n")
        heading, _, body = section.partition(":")
        if heading in ("Args", "Attributes"):
            for entry in re.split(r"\n(?=\S)", textwrap.dedent(body.lstrip("\n")).strip()):
                name, colon, meaning = entry.partition(":")
                yield f"- `{name.strip()}`: {escaped(meaning)}" if colon else f"- {escaped(entry)}"
            yield ""
        else:
            yield f"{escaped(section)}\n"
        if examples:
            yield f"{code_of_examples(examples.strip())}\n"


EXAMPLE = re.compile(r"(?:^>>>.*\n?(?:^(?!>>>|$).*\n?)*)+", re.MULTILINE)


def code_of_examples(text: str) -> str:
    """Examples, `>>>` with what is printed, as blocks of code."""
    return EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text)


def entries(title: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Fabrics or algorithms: what each is, its parameters with defaults and sources."""
    yield f"# {title}\n"
    for row in rows:
        yield f"## {row['name']}\n\n{escaped(row['summary'])}\n"
        if row["parameters"]:
            yield from ["| parameter | default | meaning | source |", "|---|---|---|---|"]
            for given in row["parameters"]:
                default = value(given["default"], given["unit"])
                yield table_row(f"`{given['name']}`", default, given["about"], given["source"])
        yield ""


def assumptions() -> Iterator[str]:
    """Values, distances and named sets of assumptions about time, each with its source."""
    yield "# Assumptions about time\n"
    yield "Values of the set `common`; [Time](../time.md#assumptions) says how they are added up.\n"
    yield from ["| key | value | of | source |", "|---|---|---|---|"]
    for one in values():
        named = ", ".join(f"`{name}` {value_text(one.key, value)}" for name, value in one.named.items())
        source = f"{one.source}. Named: {named} ({one.named_source})" if named else one.source
        yield table_row(f"`{one.key}`", value_text(one.key, one.value), one.about, source)
    yield from ["", "## Floor plan\n", "| distance | value | source |", "|---|---|---|"]
    yield from (table_row(one.about, f"{one.value:g} {one.unit}", one.source) for one in values("floor"))
    rules = [key for key in KEYS if key not in (*LATENCY_KEYS, "memory_bytes_per_s")]
    sets = {name: set_of(name) for name in SETS}
    yield from ["", "## Sets\n", table_row("rule", *(f"`{name}`" for name in SETS)), "|---" * (1 + len(SETS)) + "|"]
    yield from (table_row(f"`{key}`", *(sets[name][key] for name in SETS)) for key in rules)
    yield ""
    yield from (f"- `{name}`: {sets[name]['about']}. Source: {sets[name]['source']}." for name in SETS)
    yield ""
    for key in rules:
        for value in dict.fromkeys(sets[name][key] for name in SETS):
            yield f"- `{key}={value}`: {meaning_of(key, value)}"


def value(default: Any, unit: str) -> str:
    """A default with its unit; nothing for None."""
    if default is None:
        return ""
    number = isinstance(default, int | float) and not isinstance(default, bool)
    return f"{default:g} {unit}".strip() if number else str(default)
