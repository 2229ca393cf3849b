"""What plugins may add to: every registry of the library, by kind."""

from __future__ import annotations

from typing import Any

from opticcl.circuits import RULES
from opticcl.fabrics import FABRICS
from opticcl.formats import FORMATS
from opticcl.registry import Registry
from opticcl.schedule import ALGORITHMS
from opticcl.simulate import ENGINES
from opticcl.studies import STUDIES
from opticcl.traces import TRACES
from opticcl.training.models import MODELS

__all__ = ["REGISTRIES"]

REGISTRIES: dict[str, Registry[Any]] = {
    one.kind: one for one in (FABRICS, ALGORITHMS, RULES, ENGINES, MODELS, FORMATS, TRACES, STUDIES)
}
