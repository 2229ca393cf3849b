"""The explorer: a comparison, refusals, the page in a browser."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time

from measure import NotRunError, Run, case

from opticcl.cli._explorer import answer, prepare
from opticcl.explorer.questions import Question


@case("explorer.compare_64", "comparison of 64 nodes in a process of the explorer that has started")
def comparison() -> Run:
    """Which has answered a smaller one."""
    prepare()
    question = Question(("compare", "--nodes=64", "--size=1MB", "--jobs=1", "--json"), ())

    def run() -> None:
        assert answer(question, lambda line: None).code == 0

    return run


@case("explorer.refusal", "a thousand requests with a wrong token")
def refusals() -> Run:
    """One after the other."""
    from opticcl.explorer.guard import guarded

    async def application(scope: object, receive: object, send: object) -> None:
        raise AssertionError("a refused request has passed")

    guard = guarded(application, "token", 80)
    scope = {"type": "http", "method": "GET", "path": "/wrong/", "headers": [(b"host", b"127.0.0.1:80")]}

    async def ignore(message: object) -> None:
        pass

    async def all_of_them() -> None:
        for _ in range(1000):
            await guard(dict(scope), ignore, ignore)  # type: ignore[arg-type]

    return lambda: asyncio.run(all_of_them())


@case("explorer.page", "first view, and the light of 1,024 nodes while it plays, in a browser")
def page() -> Run:
    """Chromium without a window."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NotRunError("the extra browser is not installed") from None
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise NotRunError("there is no Chromium")
    words = [sys.executable, "-m", "opticcl", "explore", "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    printed = ""
    while not printed.rstrip().endswith("}"):
        printed += server.stdout.readline()
    address = json.loads(printed)["address"]

    def run() -> dict[str, float]:
        with sync_playwright() as player:
            chromium = player.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            tab = chromium.new_page(viewport={"width": 1600, "height": 1000})
            begun = time.monotonic()
            tab.goto(address)
            tab.get_by_label("Nodes", exact=True).wait_for()
            first_s = time.monotonic() - begun
            tab.goto(f"{address}#light?fabric=ramp&nodes=1024&algorithm=ramp&size=1MB")
            tab.get_by_role("button", name="Play").click(timeout=120_000)
            tab.wait_for_timeout(1000)
            count = "(canvas) => Number(canvas.dataset.pictures)"
            before, begun = tab.locator("canvas").evaluate(count), time.monotonic()
            tab.wait_for_timeout(3000)
            pictures = tab.locator("canvas").evaluate(count) - before
            rate = pictures / (time.monotonic() - begun)
            chromium.close()
        server.send_signal(signal.SIGINT)
        server.wait(20)
        return {"first_view_s": first_s, "pictures_per_s": rate}

    return run
