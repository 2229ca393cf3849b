"""Models by name: one file a family, each a function with keyword-only parameters -> Model.

To add one, write a file here and register its function; nothing else is edited. A model that no file has can be written as
TOML (`opticcl.training.model_file`) or taken from a PyTorch module (`opticcl.training.torch_model`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opticcl.registry import Registry, convert_arguments, parse_call, write_call
from opticcl.training.model import Model

__all__ = ["MODELS", "load_model", "model"]

MODELS: Registry[Callable[..., Model]] = Registry("model", __name__)


def model(name: str, **parameters: Any) -> Model:
    """The model of that name.

    Args:
        name: registered name, or the whole "name:key=value,...".
        parameters: as its function takes them; texts are converted.
    Raises: UnknownNameError, ParameterError, WorkloadError.

    >>> model("resnet50").parameters
    25557032
    >>> model("transformer:layers=2,hidden=64,heads=4").name
    'transformer:layers=2,hidden=64,heads=4'
    """
    key, written = parse_call(name, MODELS.get)
    make = MODELS.get(key)
    given = {**written, **parameters}
    made = make(**convert_arguments(make, given, key))
    return Model(write_call(key, given), made.source, made.sample, made.layers, made.bytes_per_parameter)


def load_model(text: str | os.PathLike[str]) -> Model:
    """The model in a file, or the one of that name.

    Args: text: a path that ends with .toml or .json (a config.json of Hugging Face), or what `model` takes.
    Raises: WorkloadError: the file cannot be read. UnknownNameError, ParameterError.
    """
    if Path(text).suffix == ".toml":
        from opticcl.training.model_file import read_model

        return read_model(Path(text))
    if Path(text).suffix == ".json":
        from opticcl.training.config_file import read_config

        return read_config(Path(text))
    return model(str(text))
