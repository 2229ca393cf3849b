"""Kernels as the functions that they are made of: on few rows that takes less time than to compile or load them."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest


@contextmanager
def interpreted(*modules: ModuleType) -> Iterator[None]:
    """Within this the kernels of modules are not compiled.

    Args: modules: those whose names are looked up by the kernels that are called.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, kernel in list(vars(module).items()):
                if hasattr(kernel, "py_func"):
                    patch.setattr(module, name, kernel.py_func)
        yield
