"""Numbers that bound what is evaluated: the only ones, so that a test can move them and see that no answer moves."""

from __future__ import annotations

__all__ = [
    "CHUNKS_CARRIED",
    "EVENTS_TOGETHER",
    "MOST_LISTED",
    "ROUTES_AT_ONCE",
    "ROUTES_IN_PIECES",
    "ROUTES_LISTED",
    "TRANSFERS_LISTED",
]

CHUNKS_CARRIED = 1 << 32
"""Chunks that all transfers carry together, where every one is played: above it, data are not judged [count]."""

EVENTS_TOGETHER = 1 << 26
"""Transfers of single chunks that are sorted at once: 512 MB [count]."""

MOST_LISTED = 1 << 21
"""Transfers of a step that are listed where the circuits of some senders define those of all: about 40 MB [count]."""

ROUTES_LISTED = 1 << 21
"""Routes of a step that are evaluated as a whole: some 200 MB [count]."""

ROUTES_AT_ONCE = 1 << 18
"""Routes of a larger step that are evaluated at once [count]."""

ROUTES_IN_PIECES = 1 << 16
"""The same as `ROUTES_LISTED`, where loads and latencies follow from straight pieces without a list of links [count]."""

TRANSFERS_LISTED = 1 << 26
"""Transfers of a step of phases that are listed: some 2 GB [count]."""
