"""XML of network files: a document type is named and never fetched, what it declares is refused."""

from __future__ import annotations

import re

from opticcl.fabrics.networks.file_graph import FileFaultError, FileOptions
from opticcl.xml_elements import FaultError, XmlElement, elements_of

__all__ = ["read_xml", "root_is"]

_PROLOGUE = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>)*", re.DOTALL)


def root_is(text: str, *tags: str) -> bool:
    """Whether the first element of a text has one of some tags, with or without a prefix."""
    begin = _PROLOGUE.match(text)
    return bool(begin) and re.match(rf"<(?:\w+:)?(?:{'|'.join(tags)})\b", text[begin.end() :]) is not None  # type: ignore[union-attr]


def read_xml(text: str, options: FileOptions) -> XmlElement:
    """The root element of a text.

    Args:
        text: of the file.
        options: of the caller; the number of elements is bounded by that of edges.
    Raises: FileFaultError: no XML, declarations in the document type, or too many elements.
    """
    try:
        return elements_of(text.encode(), doctype=True, most=8 * options.edges)
    except FaultError as fault:
        raise FileFaultError(0, str(fault)) from None
