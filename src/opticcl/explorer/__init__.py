"""Comparisons, plans and their light in a browser, served on this machine alone.

    browser --> guard --> app --> questions --> pool --> work (a process): a verb with --json, or the light of a plan

`guard` refuses foreign requests before anything else happens, `questions` turns parameters into the words of a command,
`pool` runs it in a process with limits of time and memory. The browser draws what the verb prints, with plotly.js, which the
server sends from the package plotly.
"""

from __future__ import annotations

__all__ = ["INSTALL", "NEEDED"]

INSTALL = "pip install 'opticcl[explore]'"
NEEDED = ("starlette", "uvicorn", "plotly")
"""Packages of the extra."""
