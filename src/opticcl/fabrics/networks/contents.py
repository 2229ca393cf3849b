"""Contents of files that networks were read from, by their digests, so that a plan file needs no other file."""

from __future__ import annotations

from hashlib import sha256

__all__ = ["MOST_KEPT", "digest_of", "keep", "kept"]

MOST_KEPT = 16
"""Contents that are remembered, those that were read last [count]."""

_contents: dict[str, bytes] = {}


def digest_of(content: bytes) -> str:
    """Digest of a content, as the parameter `content` of a network has it."""
    return sha256(content).hexdigest()[:16]


def keep(content: bytes) -> str:
    """Remember a content; returns its digest."""
    digest = digest_of(content)
    _contents.pop(digest, None)
    _contents[digest] = content
    for old in [*_contents][:-MOST_KEPT]:
        del _contents[old]
    return digest


def kept(digest: str | None) -> bytes | None:
    """The content of a digest; None: it is not remembered."""
    return None if digest is None else _contents.get(digest)
