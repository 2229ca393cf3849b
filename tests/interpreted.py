"""Kernels as the functions that they are made of: on few rows that takes less time than to compile or load them."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
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


@contextmanager
def on_records(module: ModuleType) -> Iterator[None]:
    """As `interpreted`, where the kernel `run` of a module works on rows with named columns, which have no attributes else.

    Args: module: of the kernel.
    """

    def run(*arrays: Any) -> Any:
        return plain(*(one.view(np.recarray) if getattr(one, "dtype", np.dtype(int)).names else one for one in arrays))

    with interpreted(module), pytest.MonkeyPatch.context() as patch:
        plain = module.run
        patch.setattr(module, "run", run)
        yield
