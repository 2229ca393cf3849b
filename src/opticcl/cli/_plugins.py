"""Plugins: files that register fabrics, algorithms, engines and formats, imported before a verb runs."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path

from opticcl.errors import OpticclError, ParameterError
from opticcl.registry import place_of

__all__ = ["VARIABLE", "blame", "load_plugins", "loaded"]

VARIABLE = "OPTICCL_PLUGINS"
_loaded: dict[Path, None] = {}


def load_plugins(given: Iterable[Path]) -> None:
    """Import the files of the environment variable, then those given, each once.

    The library registers its own names first, so that a name that is taken is refused in the plugin. A plugin can import the
    modules beside it.

    Raises: ParameterError: no such file, a directory, or the error in it and its line.
    """
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    for path in (*named, *given):
        if not path.is_file():
            origin = "--plugin" if path not in named else VARIABLE
            why = "is a directory; give one of the files in it" if path.is_dir() else "there is no such file"
            raise ParameterError(f"{origin}: {path}: {why}")
        if path.resolve() not in _loaded:
            _discover_all()
            _import(path)
            _loaded[path.resolve()] = None


def loaded() -> list[Path]:
    """Files that were imported, in their order, for another process."""
    return list(_loaded)


def blame(error: Exception) -> str | None:
    """One line on an exception that is no refusal, while plugins are loaded; None without plugins.

    It names the last line of a plugin that was executed or, where the library ended on what a plugin had returned, that place.
    """
    for path in reversed(_loaded):
        if line := _line(path, error):
            return f"plugin {path.name}{line}: {_what(error)}"
    if not _loaded:
        return None
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}, in {last.name}"
    names = ", ".join(path.name for path in _loaded)
    return f"plugin {names}: {_what(error)} ({place}: does the plugin return what docs/extending/plugins.md says?)"


def _discover_all() -> None:
    """Register everything of the library that a plugin can add to."""
    from opticcl.report.registries import REGISTRIES

    for registry in REGISTRIES.values():
        registry.names()


def _import(path: Path) -> None:
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = SourceFileLoader(f"opticcl_plugin_{path.stem}_{len(_loaded)}", str(path.resolve()))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[loader.name] = module  # so that its dataclasses and annotations find their module
    sys.path.append(str(path.resolve().parent))
    try:
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as given:
            loader.exec_module(module)
        for one in given:
            print(f"opticcl: plugin {Path(one.filename).name}, line {one.lineno}: {one.message}", file=sys.stderr)
    except (Exception, SystemExit) as error:
        del sys.modules[loader.name]
        raise ParameterError(f"plugin {path}{_line(path, error)}: {_what(error)}") from None


def _line(path: Path, error: BaseException) -> str:
    """Text such as ", line 12, in Star.usage": the last line of this file that was executed, or the syntax error in it.

    Args:
        path: of the file.
        error: that was raised.
    """
    file = str(path.resolve())
    if isinstance(error, SyntaxError) and error.filename == file:
        return f", line {error.lineno}"
    place = place_of(error, file)
    return f", {place}" if place else ""


def _what(error: BaseException) -> str:
    text = (error.msg if isinstance(error, SyntaxError) else str(error)).partition("\n")[0].strip()
    if isinstance(error, OpticclError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
