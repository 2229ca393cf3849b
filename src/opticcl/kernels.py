"""Kernels: functions that numba compiles when they are first called, and where they are kept between processes.

Numba takes 0.3 s to import, a kernel 0.1 to 1 s to compile and 3 ms to load from the disk. So numba is imported when the first
kernel is called, and what NumPy does in a few lines is no kernel.

Numba keeps what it compiled beside the package, where that is writable. Where it is not, `keep_kernels` names a directory of
the user, so that nothing is compiled twice.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from opticcl.interrupts import temporary

__all__ = ["Kernel", "compiled_kernels", "keep_kernels", "njit"]

FEW = 1000
"""Turns of its loops for which a kernel is not worth the import of numba [count]."""


class _Called(threading.local):
    """The file of the kernel that a thread has called last, which is what it compiles, if anything."""

    file = ""


class Kernel:
    """A function that numba compiles when it is first called.

    A kernel calls kernels of its own module alone: numba compiles one that is on the disk again when its own file changes,
    whatever becomes of others.

    Args:
        function: to be compiled.
        options: of `numba.njit`.
        writes: names of the arrays that it changes, as `njit` takes them.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any], writes: tuple[str, ...] | None = None):
        """Compile nothing yet."""
        self.py_func, self._options = function, options
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        code = function.__code__
        self._file = code.co_filename
        arguments = code.co_varnames[: code.co_argcount] if writes is not None else ()
        self._reads = [at for at, name in enumerate(arguments) if name not in (writes or ())]

    def __call__(self, *arguments: Any) -> Any:
        """The result of the compiled function."""
        _called.file = self._file
        if not self._reads:
            return self.compiled(*arguments)
        given = list(arguments)
        for at in self._reads:
            given[at] = _read_only(given[at])
        return self.compiled(*given)

    @cached_property
    def compiled(self) -> Any:
        """The function that numba made of it, which finds those of other kernels under the names of its module."""
        if self.__module__ not in _compiled:
            names = dict(self.py_func.__globals__)
            mine = {
                name: value
                for name, value in names.items()
                if isinstance(value, Kernel) and value.__module__ == self.__module__
            }
            names.update({name: kernel._decorated(names) for name, kernel in mine.items()})
            _compiled.setdefault(self.__module__, {name: names[name] for name in mine})
        return _compiled[self.__module__][self.__name__]

    def for_turns(self, turns: int) -> Any:
        """The kernel, or where its loops take few turns and numba is not there yet, what Python makes of it.

        Args: turns: of its loops [count].
        """
        return self if turns > FEW or "numba" in sys.modules else self._interpreted

    @cached_property
    def _interpreted(self) -> Any:
        """The function itself, which finds those of other kernels under the names of its module."""
        names = {
            name: value.py_func if isinstance(value, Kernel) else value
            for name, value in self.py_func.__globals__.items()
        }
        return FunctionType(self.py_func.__code__, names, self.__name__, self.py_func.__defaults__)

    def _decorated(self, names: dict[str, Any]) -> Any:
        """The function that numba makes of it with these names in place of those of its module."""
        old = self.py_func
        function = FunctionType(old.__code__, names, old.__name__, old.__defaults__, old.__closure__)
        function.__qualname__, function.__doc__ = old.__qualname__, old.__doc__
        return _numba().njit(nogil=True, **self._options)(function)


_called = _Called()

_compiled: dict[str, dict[str, Any]] = {}
"""What numba made of the kernels of each module that has called one, by name."""


def compiled_kernels() -> dict[str, Any]:
    """What numba made of the kernels of all modules that have called one, by module and name."""
    return {
        f"{module}.{name}": kernel for module, kernels in sorted(_compiled.items()) for name, kernel in kernels.items()
    }


def _read_only(given: Any) -> Any:
    """The same array, or arrays of a tuple, that cannot be written and whose elements stand side by side."""
    if isinstance(given, tuple):
        return tuple(map(_read_only, given))
    if not isinstance(given, np.ndarray) or (given.flags.c_contiguous and not given.flags.writeable):
        return given
    view = np.ascontiguousarray(given).view()
    view.flags.writeable = False
    return view


def njit(function: Any = None, /, *, cache: bool = True, writes: tuple[str, ...] | None = None, **options: Any) -> Any:
    """Decorator of a kernel: `numba.njit` at its first call, kept on the disk.

    Args:
        function: to be compiled; None: the decorator takes options.
        cache: whether it is kept for itself; false for a part of another kernel.
        writes: names of the arrays that it changes. All others are given as read-only ones in the order of C, copied where
            they are slices of others, so that what is compiled serves all arrays of a type. None: arrays are given as they
            are, and numba compiles it for each such combination of types.
        options: of `numba.njit`.
    """
    options["cache"] = cache
    return (
        Kernel(function, options, writes)
        if function is not None
        else lambda function: Kernel(function, options, writes)
    )


@cache
def _numba() -> ModuleType:
    """Numba, which keeps kernels where they can be written, and compiles those of a file in one process at a time."""
    keep_kernels()
    import numba
    from numba.core import event

    from opticcl.compiler_lock import CompilerLock

    event.register("numba:compiler_lock", CompilerLock(lambda: Path(_called.file)))  # type: ignore[no-untyped-call]
    return numba


def keep_kernels(package: Path = Path(__file__).parent) -> Path | None:
    """Choose where compiled kernels are kept; called before a kernel is compiled.

    Args:
        package: directory of the package.
    Returns: the directory that was chosen; None if it is that of the package or of `NUMBA_CACHE_DIR`.
    """
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if _writable(Path(wanted)) if wanted else os.access(package, os.W_OK):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = Path(home) / "opticcl" / "kernels"
    if not _writable(directory):
        import atexit
        import shutil
        import tempfile

        directory = Path(tempfile.mkdtemp(prefix="opticcl-kernels-"))  # a name that no other user could have prepared
        at_exit = ExitStack()
        at_exit.enter_context(temporary(directory))
        at_exit.callback(shutil.rmtree, directory, ignore_errors=True)
        atexit.register(at_exit.close)
        tried = f"neither NUMBA_CACHE_DIR={wanted}" if wanted else f"neither {package}"
        print(
            f"opticcl: {tried} nor {home} can be written, so every process compiles its kernels again; "
            "set NUMBA_CACHE_DIR to a directory of yours",
            file=sys.stderr,
        )
    os.environ["NUMBA_CACHE_DIR"] = str(directory)
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = str(directory)
    return directory


def _writable(folder: Path) -> bool:
    """Whether files can be written in a directory, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
