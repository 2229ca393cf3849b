"""The application: the page and its files, questions and their answers, plan files that the page opens."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.errors import OpticclError, ParameterError, printable
from opticcl.explorer.guard import App, guarded
from opticcl.explorer.pool import Asked, BusyError, Pool
from opticcl.explorer.questions import ANSWERS, VIEWS, Names, question

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Opened", "create_app", "known_names"]

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Suffix of a file of the page -> its type."""

LONGEST_WAIT_S = 5.0
"""That a request for an answer stays open [s]."""

PLAN_SUFFIXES = (".parquet", ".csv", ".json")
MOST_PLANS = 16
"""Plan files that were sent and are kept [count]."""


@dataclass(frozen=True)
class Opened:
    """Files that the page may use, by key; those that it sends are kept in a folder of their own.

    Args:
        given: files of the command line, by key.
        folder: of files that the page sends; None: it can send none.
    """

    given: Mapping[str, Path]
    folder: Path | None = None

    @classmethod
    def of(cls, paths: Iterable[Path], folder: Path | None = None) -> Opened:
        """From the files of a command line, whose keys are f0, f1, ..."""
        return cls({f"f{i}": path.resolve() for i, path in enumerate(paths)}, folder)

    def _sent(self) -> list[Path]:
        return [] if self.folder is None else list(self.folder.iterdir())

    def paths(self) -> dict[str, Path]:
        """Path of every file by its key."""
        return {**self.given, **{path.stem: path for path in self._sent()}}

    def records(self) -> list[dict[str, str]]:
        """Files of the command line: key, name, and whether each is a plan or a study."""
        return [
            {"key": key, "name": printable(path.name), "kind": "study" if path.suffix == ".toml" else "plan"}
            for key, path in self.given.items()
        ]

    def fabrics(self) -> list[str]:
        """Fabrics of the studies among them, as these write them; none of a file that is refused when it is shown."""
        from opticcl.studies.space.design import read_design

        names: list[str] = []
        for path in self.given.values():
            if path.suffix == ".toml":
                with suppress(OpticclError):
                    names += read_design(path).axes["fabric"]
        return names

    def add(self, suffix: str, content: bytes) -> str:
        """Keep a plan file that the page sends; the oldest is forgotten.

        Returns: its key.
        Raises: ParameterError: another suffix.
        """
        if self.folder is None or suffix not in PLAN_SUFFIXES:
            raise ParameterError(f"plan file: its name must end in {', '.join(PLAN_SUFFIXES)}")
        kept = sorted(self._sent(), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[: max(0, len(kept) - MOST_PLANS + 1)]:
            path.unlink()
        key = "p" + secrets.token_hex(8)
        (self.folder / (key + suffix)).write_bytes(content)
        return key


def known_names() -> Names:
    """Names that questions may use, by kind."""
    from opticcl.assumptions import SETS
    from opticcl.collective import COLLECTIVES
    from opticcl.report.registries import REGISTRIES

    names = {kind: list(REGISTRIES[kind].names()) for kind in ("fabric", "algorithm", "engine", "model")}
    return {**names, "collective": list(COLLECTIVES), "assumptions": list(SETS)}


def create_app(pool: Pool, token: str, port: int, opened: Opened | None = None) -> App:
    """The application behind its guard.

    Args:
        pool: that answers questions.
        token: with which every path begins.
        port: that the server listens on; part of the only Host that is answered.
        opened: files of the command line.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    from opticcl.report.kit.colours import PART_COLOURS, fabric_colours

    names, content = known_names(), _files_of_the_page()
    opened = opened or Opened.of(())
    about = {
        "names": {kind: list(known) for kind, known in names.items()},
        "fabric_colours": fabric_colours([*names["fabric"], *opened.fabrics()]),
        "part_colours": PART_COLOURS,
        "files": opened.records(),
        "views": [*VIEWS, "light", "study", *ANSWERS],
    }

    async def page(request: Request) -> Response:
        return _file_response(content, request.path_params.get("name", "index.html"))

    async def start(request: Request) -> Response:
        return _json_response(about)

    async def ask(request: Request) -> Response:
        try:
            given = json.loads(await request.body())
        except (ValueError, RecursionError):
            return _error(400, "question: the body is not JSON")
        try:
            asked = question(given, names, opened.paths())
            job = pool.ask(asked)
        except BusyError as error:
            return _error(429, str(error))
        except OpticclError as error:
            return _error(400, str(error))
        return _json_response({"id": job.number, "command": asked.command}, 202)

    async def answer(request: Request) -> Response:
        job = pool.job(request.path_params["number"])
        if job is None:
            return _error(404, "question: it is not known any more; ask it again")
        if request.method == "DELETE":
            pool.cancel(job)
            return _json_response({"state": "cancelled"})
        await _wait(job, request)
        return _answer_response(job)

    async def plans(request: Request) -> Response:
        try:
            return _json_response(
                {"key": opened.add(Path(request.path_params["name"]).suffix, await request.body())}, 201
            )
        except OpticclError as error:
            return _error(400, str(error))

    routes = [
        Route("/", page),
        Route("/static/{name}", page),
        Route("/api/start", start),
        Route("/api/questions", ask, methods=["POST"]),
        Route("/api/questions/{number}", answer, methods=["GET", "DELETE"]),
        Route("/api/plans/{name}", plans, methods=["POST"]),
    ]
    return guarded(Starlette(routes=routes), token, port)


def _files_of_the_page() -> dict[str, tuple[bytes, str]]:
    """Name -> content and type of every file of the page, with the library of its charts; no other file is ever read."""
    library = files("plotly").joinpath("package_data", "plotly.min.js")
    pages = {}
    for file in (*files("opticcl.explorer").joinpath("static").iterdir(), library):
        kind = KINDS.get(Path(file.name).suffix)
        if kind is not None:
            pages[file.name] = file.read_bytes(), kind
    return pages


def _file_response(content: Mapping[str, tuple[bytes, str]], name: str) -> Response:
    from starlette.responses import Response

    if name not in content:
        return _error(404, "no such file")
    body, kind = content[name]
    return Response(body, headers={"content-type": kind})


async def _wait(job: Asked, request: Request) -> None:
    """Until the job ends, `LONGEST_WAIT_S` have passed, or the browser has left."""
    slept = 0.0
    while not job.ended.is_set() and slept < LONGEST_WAIT_S:
        step = 0.01 if slept < 0.2 else 0.1
        await asyncio.sleep(step)
        slept += step


def _answer_response(job: Asked) -> Response:
    """State of a job; with the answer as the command printed it."""
    from starlette.responses import Response

    state: dict[str, Any] = {"state": job.state, "progress": job.progress}
    if job.answer is None:
        return _json_response(state)
    state |= {"code": job.answer.code, "error": job.answer.error}
    head = json.dumps(state)
    body = f'{head[:-1]}, "answer": {job.answer.json or "null"}}}'
    return Response(body, media_type="application/json")


def _json_response(value: Any, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(value, status)


def _error(status: int, text: str) -> Response:
    return _json_response({"error": text}, status)
