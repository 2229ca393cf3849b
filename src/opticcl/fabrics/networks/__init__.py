"""Files that describe a network: a reader for each format, found by discovery and chosen by content.

A reader makes a `FileGraph` of a text: vertices with names and kinds, edges with rates, latencies and directions, as the file
states them. What it leaves out is NaN or empty; `opticcl.fabrics.network` takes it from parameters or refuses the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from opticcl.errors import FabricError, printable
from opticcl.fabrics.networks.contents import keep, kept
from opticcl.fabrics.networks.file_graph import FileFaultError, FileGraph, FileOptions, content_of
from opticcl.fabrics.networks.foreign import kind_of
from opticcl.registry import Registry

__all__ = ["FORMATS", "NetworkFormat", "read_network", "register_network"]

Reader = Callable[[str, FileOptions], FileGraph]
Made = TypeVar("Made", bound=Reader)


class NetworkFormat(NamedTuple):
    """A registered format.

    Args:
        title: name for messages.
        sniff: whether a text is of this format, by its content.
        read: (text, options) -> graph; raises FileFaultError.
        servers: whether a file is one server, of which copies can be made.
    """

    title: str
    sniff: Callable[[str], bool]
    read: Reader
    servers: bool = False


FORMATS: Registry[NetworkFormat] = Registry("network format", __name__)


def register_network(
    name: str, title: str, sniff: Callable[[str], bool], *, servers: bool = False
) -> Callable[[Made], Made]:
    """Decorator that registers the reader of a format.

    Args:
        name: by which users call it.
        title: name for messages.
        sniff: whether a text is of this format.
        servers: whether a file is one server, of which copies can be made.
    """

    def add(read: Made) -> Made:
        FORMATS.register(name)(NetworkFormat(title, sniff, read, servers))
        return read

    return add


def read_network(options: FileOptions, digest: str | None = None) -> tuple[FileGraph, str]:
    """The graph of a file, and the digest of its content.

    Args:
        options: the file, and what it leaves out.
        digest: of the content that it should have; one that was read before, as from a plan file, takes the place of the file.
    Raises: FabricError: the file cannot be read, or is of no format, or of several; one line with the file and the place.
    """
    content = kept(digest)
    if content is None:
        content = content_of(options.file)
    text = content.decode("utf-8-sig", "replace")
    try:
        if "\ufffd" in text or "\0" in text:
            raise FileFaultError(0, "is not text in UTF-8")
        form = _format_of(text, options.format)
        if options.copies > 1 and not form.servers:
            raise FileFaultError(0, f"copies={options.copies}; {form.title} have no network cards to join")
        return form.read(text, options), keep(content)
    except FileFaultError as fault:
        raise FabricError(printable(f"network: {options.file}: {fault}")) from None


def _format_of(text: str, wanted: str | None) -> NetworkFormat:
    if not text.strip():
        raise FileFaultError(0, "is empty")
    if wanted is not None:
        return FORMATS.get(wanted)
    fitting = [name for name in FORMATS.names() if FORMATS.get(name).sniff(text)]
    if len(fitting) == 1:
        return FORMATS.get(fitting[0])
    if fitting:
        raise FileFaultError(0, f"is of several formats, {' and '.join(fitting)}; say which: format={fitting[0]}")
    known = ", ".join(FORMATS.get(name).title for name in FORMATS.names())
    raise FileFaultError(0, f"{kind_of(text) or 'is of no format that is known by its content'}; known are {known}")
