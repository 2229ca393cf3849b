"""The cases, a module a topic; importing a module registers its cases."""

import importlib
import pkgutil

__all__ = ["load"]


def load(topic: str | None = None) -> None:
    """Register the cases of one topic, or of all."""
    for module in pkgutil.iter_modules(__path__):
        if topic in (None, module.name):
            importlib.import_module(f"{__name__}.{module.name}")
