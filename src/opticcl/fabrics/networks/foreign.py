"""Files that look like networks and are none that can be read: refused by name, as foreign.toml says, with what to take."""

from __future__ import annotations

import re

from opticcl.fabrics.networks._elements import root_is
from opticcl.files import read_toml

__all__ = ["kind_of"]


def kind_of(text: str) -> str | None:
    """What a text that no reader claims is, and what to take instead; None where that is not known."""
    for entry in read_toml("opticcl.fabrics.networks", "foreign.toml").values():
        if "roots" in entry and not root_is(text, *entry["roots"]):
            continue
        if all(re.search(pattern, text, re.MULTILINE) for pattern in entry.get("patterns", ())):
            return f"is {entry['kind']}; {entry['instead']}"
    return None
