"""Connections that send nothing, or a header block that never ends: they are closed, and never occupy the server.

The server itself waits for a header block without a limit. Here a connection is silent until a request has arrived, and again
from its answer on; the oldest silent ones are closed where there are many, each of them after a while.
"""

from __future__ import annotations

import asyncio
from typing import Any

from opticcl.explorer.guard import App, Receive, Scope, Send

__all__ = ["MOST_SILENT", "Patience"]

MOST_SILENT = 128
"""Connections without a request, at the same time [count]."""

LONGEST_SILENCE_S = 10.0
"""Until a header block is complete [s]."""


class Patience:
    """The silent connections of a server, each by the address of its other end, the oldest first."""

    def __init__(self) -> None:
        self._silent: dict[Any, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}
        self._open: dict[Any, asyncio.Transport] = {}

    def protocol(self, base: type[Any]) -> type[Any]:
        """A protocol of connections that are known here.

        Args: base: that of the server.
        """
        patience = self

        class Watched(base):  # type: ignore[misc]
            """A connection."""

            def connection_made(self, transport: asyncio.Transport) -> None:
                """It begins."""
                super().connection_made(transport)
                self._address = transport.get_extra_info("peername")
                patience._open[self._address] = transport
                patience._begin(self._address)

            def connection_lost(self, exc: Exception | None) -> None:
                """It has ended."""
                patience._open.pop(self._address, None)
                patience._end(self._address)
                super().connection_lost(exc)

        return Watched

    def watched(self, app: App) -> App:
        """An application whose connections are not silent while it answers.

        Args: app: that answers.
        """

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            address = scope.get("client") and tuple(scope["client"])
            self._end(address)
            try:
                await app(scope, receive, send)
            finally:
                self._begin(address)

        return answer

    def _begin(self, address: Any) -> None:
        transport = self._open.get(address)
        if transport is None:
            return
        self._end(address)
        timer = asyncio.get_running_loop().call_later(LONGEST_SILENCE_S, transport.abort)
        self._silent[address] = transport, timer
        if len(self._silent) > MOST_SILENT:
            oldest, (its, _) = next(iter(self._silent.items()))
            self._end(oldest)
            its.abort()

    def _end(self, address: Any) -> None:
        waiting = self._silent.pop(address, None)
        if waiting is not None:
            waiting[1].cancel()
