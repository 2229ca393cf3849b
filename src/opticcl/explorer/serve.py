"""The server, on the loopback address alone."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.explorer import INSTALL, NEEDED
from opticcl.explorer.app import Opened, create_app
from opticcl.explorer.patience import Patience
from opticcl.explorer.pool import Limits, Pool, Work
from opticcl.files import temporary_folder

__all__ = ["serve"]

ADDRESS = "127.0.0.1"
MOST_CONNECTIONS = 512
"""That are answered at the same time; others are refused with status 503 [count]."""


def serve(
    work: Work,
    *,
    prepare: Callable[[], object] | None = None,
    port: int = 0,
    limits: Limits | None = None,
    paths: Sequence[Path] = (),
    ready: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted.

    Args:
        work: that answers a question; importable by its name.
        prepare: called in each process before its first question.
        port: to listen on; 0: any that is free.
        limits: of the work.
        paths: plan files and studies to open.
        ready: called with the address once connections are accepted.
    Raises: UnsupportedError: the extra is not installed; ParameterError: the port is in use.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise UnsupportedError(f"explore: not installed: {', '.join(missing)}; {INSTALL}")
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    listener = _listener(port)
    token = secrets.token_urlsafe(24)
    number = listener.getsockname()[1]
    pool = Pool(work, limits, prepare)
    try:
        with temporary_folder() as folder:
            patience = Patience()
            config = uvicorn.Config(
                patience.watched(create_app(pool, token, number, Opened.of(paths, folder))),
                http=patience.protocol(H11Protocol),
                log_level="critical",
                access_log=False,  # it would print the token
                server_header=False,
                ws="none",
                lifespan="off",
                limit_concurrency=MOST_CONNECTIONS,
                timeout_keep_alive=5,
            )
            ready(f"http://{ADDRESS}:{number}/{token}/")
            with suppress(KeyboardInterrupt):  # how a user ends it; raised once the server has stopped
                uvicorn.Server(config).run(sockets=[listener])
    finally:
        pool.close()
        listener.close()


def _listener(port: int) -> socket.socket:
    """A socket that listens on the loopback address."""
    # With its protocol named, the server sends at once: otherwise the body of an answer waits 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
    except OSError as error:
        listener.close()
        raise ParameterError(f"--port: {port}: {error.strerror}; leave --port out to take a free one") from None
    listener.listen(1024)
    return listener
