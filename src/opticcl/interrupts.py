"""The command line ends after a signal, whatever it does: one process works, and the one that was started waits for it.

Python calls the handler of a signal between two of its instructions. So a signal waits while a library works, and it is lost
where the exception that the handler raises is ignored, as in `__del__`. A thread could not end the program either, since most
libraries hold the interpreter meanwhile. So the process that a user starts forks another one, which works, and only waits:

    SIGINT, SIGTERM --> waits --> passed on --> raises KeyboardInterrupt in the process that works
                        after GRACE_S: ends it and all its processes, removes its temporary files, exit code 130

If the waiting process is killed, the kernel ends the other one. Elsewhere than on Linux there is one process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType

__all__ = [
    "INTERRUPTED",
    "RANK_VARIABLES",
    "end_with_parent",
    "guarded",
    "is_interrupted",
    "report_interrupted",
    "temporary",
]

INTERRUPTED = 130
"""Exit code of a program that a signal has ended."""

GRACE_S = 4.0
"""From a signal on, in which the process that works may end by itself [s]."""

AGAIN_S = 0.01
"""Until an interrupt that was ignored comes again [s]."""

ENDING = (signal.SIGINT, signal.SIGTERM)
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Where launchers of MPI put the rank of a process."""

FROM_KERNEL = 0x80
"""Sender of a signal that a terminal sent, to every process of the program."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

_interrupted = False
_noted_in = -1
"""File in memory that both processes share: names of temporary files, as they come and go; -1: there is none."""


def guarded(work: Callable[[], int | None]) -> int:
    """Do the work of a program in a process that ends after a signal; called once, before anything else.

    Args: work: returns the exit code, or exits.
    Returns: the exit code. Only the process that works returns.
    """
    global _interrupted
    _open_standard_streams()
    if sys.platform == "linux" and not _is_rank():
        _fork()
    signals = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in signals:
        signal.signal(number, _interrupt)
    sys.unraisablehook, sys.excepthook = _ignored, _printed
    try:
        if sys.platform == "linux":
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return work() or 0
    except (KeyboardInterrupt, Exception):
        if not _interrupted:
            raise
        report_interrupted()  # while modules are imported, which may raise another exception in its place
        return INTERRUPTED
    finally:
        _interrupted = True  # the answer is given
        sys.unraisablehook, sys.excepthook = sys.__unraisablehook__, sys.__excepthook__


def is_interrupted() -> bool:
    """Whether a signal has come to this process: what it raises afterwards comes from that."""
    return _interrupted


def report_interrupted() -> None:
    """Print that the program was interrupted."""
    with suppress(OSError):
        os.write(2, b"opticcl: interrupted; nothing was written\n")


@contextmanager
def temporary(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within this, a file or directory is removed if the process is ended before it can do so."""
    _note(b"+", path)
    try:
        yield
    finally:
        _note(b"-", path)


def end_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however long its work takes."""
    parent = os.getppid()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handler of the process that works; only the first signal counts."""
    global _interrupted
    if not _interrupted:
        _interrupted = True
        raise KeyboardInterrupt


def _ignored(event: sys.UnraisableHookArgs) -> None:
    """What Python calls where an exception is ignored, as in `__del__`: an interrupt comes again soon, elsewhere."""
    if not issubclass(event.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(event)
    elif hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _raise)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


def _printed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What prints an exception that nothing catches, and one that a module in C replaces by its own, as NumPy's do."""
    if not (_interrupted and issubclass(kind, KeyboardInterrupt)):
        sys.__excepthook__(kind, error, trace)


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_rank() -> bool:
    """Whether this is a rank of MPI: its launcher ends it, and finds it by its process id."""
    return any(name in os.environ for name in RANK_VARIABLES)


def _note(sign: bytes, path: str | os.PathLike[str]) -> None:
    if _noted_in >= 0:
        with suppress(OSError):
            os.write(_noted_in, sign + os.fsencode(os.path.abspath(path)) + b"\0")


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _fork() -> None:
    """Return in the process that works; in the one that waits, exit as that one does."""
    global _noted_in
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    parent = os.getpid()
    try:
        _noted_in = os.memfd_create("opticcl")
        process = os.fork()
    except OSError:  # no process more: this one works
        return
    if process == 0:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        return
    code = _wait(process)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # that process has written one
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (-code,))
        os.kill(os.getpid(), -code)
    os._exit(code)


def _open_standard_streams() -> None:
    """Open those that are closed: else a file that is opened takes the place of one of them, and printing fails."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    with suppress(AttributeError):  # what a terminal cannot show, such as a name that is no UTF-8, is shown as escapes
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _wait(process: int) -> int:
    """Wait until a process ends, and pass on the signals that come meanwhile.

    Returns: its exit code; less than 0: the signal that ended it.
    """
    waited_for = {*(n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN), signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    end: float | None = None
    ended = 0
    while not ended:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
        elif end is None:
            end = _pass_on(signal.sigwaitinfo(waited_for), process, end)
        elif (left := end - time.monotonic()) > 0:
            end = _pass_on(signal.sigtimedwait(waited_for, left), process, end)
        else:
            os.kill(process, signal.SIGKILL)
            report_interrupted()
            code = ended = INTERRUPTED
    if end is not None:
        _end_children()
    if end is not None or code < 0:
        _remove_noted()
    return code if end is None or code == 0 else INTERRUPTED


def _pass_on(arrived: signal.struct_siginfo | None, process: int, end: float | None) -> float | None:
    """Pass a signal on to a process, unless the sender has.

    Args:
        arrived: what is known of the signal; None: there is none.
        process: see above.
        end: when the process is ended, on the monotonic clock; None: not yet [s].
    Returns: `end` from now on [s].
    """
    if arrived is None or arrived.si_signo not in ENDING:
        return end
    if end is None:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)  # a process whose parent ends becomes a child of this one
    if arrived.si_code != FROM_KERNEL:
        os.kill(process, arrived.si_signo)
    return time.monotonic() + GRACE_S if end is None else end


def _end_children() -> None:
    """End all processes that are left of the work, for half a second at most."""
    end = time.monotonic() + 0.5
    with suppress(ChildProcessError):  # none is left
        while time.monotonic() < end:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                for child in file.read().split():
                    os.kill(int(child), signal.SIGKILL)
            time.sleep(0.002)


def _remove_noted() -> None:
    """Remove the temporary files and directories that are left."""
    import shutil

    left: dict[bytes, None] = {}
    for line in os.pread(_noted_in, os.fstat(_noted_in).st_size, 0).split(b"\0")[:-1]:
        if line[:1] == b"+":
            left[line[1:]] = None
        else:
            left.pop(line[1:], None)
    for path in left:
        with suppress(OSError):
            os.unlink(path)
        shutil.rmtree(path, ignore_errors=True)
