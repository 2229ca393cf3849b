"""The application with answers computed in this process, as its processes compute them."""

import asyncio
import json

import httpx

from opticcl.cli._explorer import answer
from opticcl.explorer.app import create_app
from opticcl.explorer.pool import Limits, Pool

PORT, TOKEN = 8123, "token-of-the-tests"
BASE = f"http://127.0.0.1:{PORT}"


class InlinePool(Pool):
    """A pool without processes."""

    def __init__(self):
        super().__init__(answer, Limits(workers=0))

    def ask(self, task):
        """Do the task at once."""
        job = super().ask(task)
        if not job.ended.is_set():
            with self._lock:
                self._waiting.remove(job)
                found = answer(task, lambda line: None)
                self._end(job, "done" if found.code in (0, 1) else "refused", found)
        return job


class Client:
    """A client of the application; each call is one request.

    Args:
        pool: that answers.
        opened: files.
    """

    def __init__(self, pool=None, opened=None):
        self.app = create_app(pool or InlinePool(), TOKEN, PORT, opened)

    def request(self, method, path, **given):
        """The response; `path` begins with the token."""

        async def send():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=BASE) as session:
                return await session.request(method, path, **given)

        return asyncio.run(send())

    def get(self, path, **given):
        """The response to GET."""
        return self.request("GET", path, **given)

    def post(self, path, **given):
        """The response to POST."""
        return self.request("POST", path, **given)


def asked(browser, view, **parameters):
    """Command and state of a question."""
    sent = browser.post(f"/{TOKEN}/api/questions", content=json.dumps({"view": view, **parameters}))
    assert sent.status_code == 202, sent.text
    found = browser.get(f"/{TOKEN}/api/questions/{sent.json()['id']}").json()
    return sent.json()["command"], found
