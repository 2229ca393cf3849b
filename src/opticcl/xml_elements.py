"""XML as a tree of elements with their lines, without entities and external files.

Declarations in a document type are refused before any is read: entities are declared nowhere else, so none is ever
expanded. Of a format that is known, an element that it does not have is refused when it starts, so nesting is as deep as the
format at most.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from opticcl.errors import PlanFileError, printable

__all__ = ["LARGEST", "FaultError", "XmlElement", "elements_of", "read_elements"]

MOST_BYTES = 1 << 28
MOST_DEPTH = 200
LARGEST = 1 << 31
"""Numbers in attributes are below it."""


class FaultError(Exception):
    """A fault of an element: its line, the element, the rule that it breaks, and how."""


@dataclass(slots=True)
class XmlElement:
    """An element.

    Args:
        tag: its name.
        attributes: values by name.
        line: on which it starts, from 1.
        children: elements inside it.
        content: text inside it, before, between and behind these.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlElement] = field(default_factory=list)
    content: str = ""

    def fault(self, rule: str, text: str) -> FaultError:
        """The error that this element breaks a rule.

        Args:
            rule: its name.
            text: how it is broken.
        """
        return FaultError(printable(f"line {self.line}, {self.tag}: {rule}: {text}"))

    def text(self, name: str) -> str:
        """An attribute.

        Raises: FaultError: it is missing.
        """
        if name not in self.attributes:
            raise self.fault("attribute_missing", f"{name} is missing")
        return self.attributes[name]

    def number(self, name: str, least: int = 0, default: int | None = None) -> int:
        """An attribute that is a whole number below 2**31.

        Args:
            name: of the attribute.
            least: smallest value that it may have.
            default: value where it is missing; None: it must be there.
        Raises: FaultError: it is missing, no whole number or too small.
        """
        if default is not None and name not in self.attributes:
            return default
        text = self.text(name)
        digits = text.removeprefix("-")
        value = int(text) if re.fullmatch("[0-9]{1,11}", digits) else LARGEST
        if not least <= value < LARGEST:
            raise self.fault("attribute_wrong", f"{name}={text[:40]!r} is not a whole number of {least} or more")
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """An attribute that is 0 or 1.

        Args:
            name: of the attribute.
            default: value where it is missing; None: it must be there.
        Raises: FaultError: it is missing or neither.
        """
        value = self.number(name, 0, None if default is None else int(default))
        if value > 1:
            raise self.fault("attribute_wrong", f"{name}={value} is neither 0 nor 1")
        return bool(value)

    def of(self, tag: str) -> list[XmlElement]:
        """The children of that name."""
        return [child for child in self.children if child.tag == tag]


def read_elements(path: Path, children: Mapping[str, tuple[str, ...]]) -> XmlElement:
    """The root element of a file.

    Args:
        path: of the file.
        children: elements that each element may contain; those of "" are the roots.
    Raises: PlanFileError: no XML, too large, a document type declaration, or an unknown element; the text names the line.
    """
    try:
        return elements_of(_content(path), children)
    except FaultError as fault:
        raise PlanFileError(f"{path}: {fault}") from None


def elements_of(
    content: bytes, children: Mapping[str, tuple[str, ...]] | None = None, *, doctype: bool = False, most: int = LARGEST
) -> XmlElement:
    """The root element of a text.

    Args:
        content: of a file.
        children: as of `read_elements`; None: any elements, of which those in the namespace of the root are kept, without
            their prefix.
        doctype: whether a document type may be named; it is never read, and what it declares is refused.
        most: elements that are read [count].
    Raises: FaultError: no XML, a document type declaration, an unknown element, or too many; the text names the line.
    """
    top = XmlElement("", {}, 0)
    stack, count = [top], 0
    parser = expat.ParserCreate(namespace_separator=None if children is not None else " ")

    def refuse_doctype(name: str, system: object, public: object, declares: bool) -> None:
        if not doctype or declares:
            what = "declarations in the document type" if doctype else "a document type declaration"
            raise FaultError(
                f"line {parser.CurrentLineNumber}, {what} ({name[:40]}) {'are' if doctype else 'is'} refused unread"
            )

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        line = parser.CurrentLineNumber
        if children is not None and tag not in children.get(stack[-1].tag, ()):
            where = f"inside {stack[-1].tag}" if stack[-1].tag else "at the top"
            raise FaultError(f"line {line}, an element {tag[:40]!r} {where} is unknown to the format")
        if count > most or len(stack) > MOST_DEPTH:
            what = f"more than {most:,} elements" if count > most else f"elements nested deeper than {MOST_DEPTH}"
            raise FaultError(f"line {line}, {what}")
        space, _, name = tag.rpartition(" ")
        element = XmlElement(name, attributes, line)
        if len(stack) == 1:
            spaces.append(space)
        if space == spaces[0]:
            stack[-1].children.append(element)
        stack.append(element)

    def characters(text: str) -> None:
        stack[-1].content += text

    spaces: list[str] = []
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise FaultError(f"line {error.lineno}: no XML: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError) as error:  # an encoding that Python does not have
        raise FaultError(f"no XML: {error}") from None
    return top.children[0]


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise PlanFileError(f"{path}: is a directory; give one of the files in it")
    if not path.is_file():
        raise PlanFileError(f"{path}: there is no such file")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PlanFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise PlanFileError(f"{path}: is larger than {MOST_BYTES >> 20} MiB")
    return content
