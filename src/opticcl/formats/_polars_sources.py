"""Files whose names polars cannot take, since they are no UTF-8: their content instead."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

__all__ = ["source_of"]


def source_of(path: Path) -> Path | BytesIO:
    """What polars can read: the path, or for a name that is no UTF-8 the content of the file."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return BytesIO(path.read_bytes())
    return path
