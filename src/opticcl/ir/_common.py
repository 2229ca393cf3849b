"""What all types share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

__all__ = ["NO_PARAMETERS", "IntArray"]

IntArray = npt.NDArray[Any]
"""Array of integers; columns are int32 where two million rows make it matter."""

NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})
