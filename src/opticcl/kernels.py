"""Compiled kernels: when they are worth compiling, and where they are kept between processes.

A kernel takes 0.1 to 1 s to compile and 3 ms to load; NumPy does the same work 10 to 100 times slower, but at once. So NumPy
does it until it has taken about as long as the kernel takes to be ready; from there on the kernel does. Both give the same
results, and rows are counted, not time, so that a command does the same on every run.

Numba keeps what it compiled beside the package, where that is writable. Where it is not, `keep_kernels` names a directory of
the user, so that nothing is compiled twice.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from opticcl.interrupts import temporary

__all__ = [
    "ROWS_OF_A_CALL",
    "always_compiled",
    "chosen",
    "keep_kernels",
    "never_compiled",
    "njit",
    "worth_compiling",
]

LOADED_FROM = 1 << 14
"""Rows that NumPy does while a kernel is loaded from the disk."""

COMPILED_FROM = 1 << 21
"""Rows that NumPy does while a kernel is compiled."""

ROWS_OF_A_CALL = 1 << 9
"""Rows that NumPy does while it does nothing but begin."""

ROWS_IN_PYTHON = 16
"""Rows that NumPy does while Python does one."""

_rows_done: dict[Any, int] = {}
_forced: bool | None = None
_locked: set[str] = set()


def njit(function: Any = None, /, *, cache: bool = True, **options: Any) -> Any:
    """Decorator of a kernel: `numba.njit`, kept on the disk, and without what only a caller in C would need.

    The wrapper for C takes up to a tenth of the time that a kernel takes to compile.

    Args:
        function: to be compiled; None: the decorator takes options.
        cache: whether it is kept for itself; false for a part of another kernel.
        options: of `numba.njit`.
    """
    _keep_once()
    import numba

    decorate: Any = numba.njit(cache=cache, nogil=True, no_cfunc_wrapper=True, **options)  # type: ignore[call-overload]

    def decorated(function: Any) -> Any:
        kernel = decorate(function)
        if cache and kernel is not function:
            _compile_in_one_process(kernel)
            _load_without_compiler(kernel)
        return kernel

    return decorated if function is None else decorated(function)


def _compile_in_one_process(kernel: Any) -> None:
    """Let other processes wait while a kernel is compiled, and load it then: none is compiled twice, and no file lost."""
    compile, source = kernel.compile, kernel.py_func.__code__.co_filename

    def compile_alone(signature: Any) -> Any:
        with _alone_with(source):
            return compile(signature)

    kernel.compile = compile_alone


def _load_without_compiler(kernel: Any) -> None:
    """Have a kernel loaded from the disk before numba reads what only its compiler needs, 0.1 s in each command.

    Whatever is compiled prepares the compiler itself. A release of numba without these parts loads kernels as it does.
    """
    kept: Any = getattr(kernel, "_cache", None)
    needed = ("load_overload", "_load_overload", "_guard_against_spurious_io_errors")
    if not all(hasattr(kept, name) for name in needed):
        return
    try:
        from numba.core.runtime.nrt import rtsys
    except ImportError:
        return

    def load_overload(signature: Any, target: Any) -> Any:
        rtsys.initialize(target)
        with kept._guard_against_spurious_io_errors():
            return kept._load_overload(signature, target)

    kept.load_overload = load_overload


@contextmanager
def _alone_with(source: str) -> Iterator[None]:
    """Within this, no other process is within it for the same file; this one may enter it again.

    Kernels of a file call each other, but none of another file: so no process waits for one that waits.

    Args: source: file of the kernels, which is locked. Where it cannot be, no process waits.
    """
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock, ExitStack() as opened:  # other threads wait here
        if source not in _locked:
            with suppress(ImportError, OSError):  # not on Windows, not in an archive, not on every file system
                import fcntl

                fcntl.flock(opened.enter_context(open(source, "rb")), fcntl.LOCK_EX)
            _locked.add(source)
            opened.callback(_locked.discard, source)
        yield


def worth_compiling(rows: int, kernel: Any = None) -> bool:
    """Whether a compiled kernel is to be used on that many rows, where NumPy can do the same.

    Args:
        rows: of this call [count].
        kernel: whose rows of earlier calls count too, and which may not be on the disk yet; None: one that is.
    """
    if _forced is not None:
        return _forced
    if kernel is None:
        return rows >= LOADED_FROM
    if _is_loaded(kernel):
        return True
    done = _rows_done.get(kernel, 0) + rows
    _rows_done[kernel] = done + ROWS_OF_A_CALL
    return done >= COMPILED_FROM or (done >= LOADED_FROM and _is_kept(kernel))


def chosen(kernel: Any, rows: int) -> Any:
    """A kernel, or where it is not worth compiling on that many rows, the function that it is made of."""
    return kernel if worth_compiling(ROWS_IN_PYTHON * rows, kernel) else getattr(kernel, "py_func", kernel)


def _is_loaded(kernel: Any) -> bool:
    """Whether a kernel is compiled in this process; without numba's compiler it is a function, which is as good."""
    return bool(getattr(kernel, "overloads", True))


def _is_kept(kernel: Any) -> bool:
    """Whether a kernel is on the disk as it is in the source, by the contents of the file that numba compares."""
    kept = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    try:
        return kept is not None and bool(kept._load_index())
    except (OSError, EOFError, pickle.UnpicklingError):  # it is written just now, or was cut off
        return False


@contextmanager
def always_compiled(wanted: bool = True) -> Iterator[None]:
    """Within this, kernels are used on any number of rows."""
    global _forced
    before, _forced = _forced, wanted
    try:
        yield
    finally:
        _forced = before


def never_compiled() -> AbstractContextManager[None]:
    """Within this, kernels are used on no number of rows, where NumPy can do the same."""
    return always_compiled(False)


def keep_kernels(package: Path = Path(__file__).parent) -> Path | None:
    """Choose where compiled kernels are kept; called before a kernel is defined.

    Args:
        package: directory of the package.
    Returns: the directory that was chosen; None if it is that of the package or of `NUMBA_CACHE_DIR`.
    """
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if _writable(Path(wanted)) if wanted else os.access(package, os.W_OK):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    chosen = Path(home) / "opticcl" / "kernels"
    if not _writable(chosen):
        import atexit
        import shutil
        import tempfile

        chosen = Path(tempfile.mkdtemp(prefix="opticcl-kernels-"))  # a name that no other user could have prepared
        at_exit = ExitStack()
        at_exit.enter_context(temporary(chosen))
        at_exit.callback(shutil.rmtree, chosen, ignore_errors=True)
        atexit.register(at_exit.close)
        tried = f"neither NUMBA_CACHE_DIR={wanted}" if wanted else f"neither {package}"
        print(
            f"opticcl: {tried} nor {home} can be written, so every process compiles its kernels again; "
            "set NUMBA_CACHE_DIR to a directory of yours",
            file=sys.stderr,
        )
    os.environ["NUMBA_CACHE_DIR"] = str(chosen)
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = str(chosen)
    return chosen


_keep_once = cache(keep_kernels)


def _writable(folder: Path) -> bool:
    """Whether files can be written in a directory, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
