"""The explorer without a browser: answers are those of the command line, and what it refuses."""

import asyncio
import json
import re
import shlex
import time
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra explore is not installed: pip install 'opticcl[explore]'")
pytest.importorskip("plotly", reason="the extra explore is not installed: pip install 'opticcl[explore]'")
pytest.importorskip("httpx", reason="httpx is not installed: pip install 'opticcl[dev]'")

import httpx
from tests.explorer.inline import BASE, PORT, TOKEN, Client, InlinePool, asked

import opticcl as library
from opticcl.explorer import app as app_module
from opticcl.explorer.app import Opened, create_app
from opticcl.explorer.guard import MOST_BYTES, POLICY
from opticcl.explorer.pool import Limits, Pool

STATIC = Path(app_module.__file__).parent / "static"


@pytest.fixture(scope="module")
def browser():
    """A client of one application."""
    return Client()


QUESTIONS = {
    "compare": {"nodes": 8, "size": ["1MB", "2 KB"], "fabric": ["sipac", "torus"], "assume": ["endpoint=2us"]},
    "sweep": {"nodes": "8", "fabric": ["ideal", "sipac"], "sizes": "1KB:1MB:8"},
    "simulate": {"fabric": "terarack:nodes=8", "size": "1MB", "algorithm": "wrht"},
    "budget": {"fabric": "oddl:shape=4x4"},
    "cost": {"fabric": ["ramp"], "nodes": 64},
}


@pytest.mark.parametrize("view", QUESTIONS)
def test_an_answer_is_what_the_command_prints(view, browser, opticcl, monkeypatch):
    """The command that is shown, typed with --json, prints the same value."""
    monkeypatch.setattr("sys.argv", ["opticcl"])  # restored after the test
    command, found = asked(browser, view, **QUESTIONS[view])
    assert found["state"] == "done", found
    first, *words = shlex.split(command)
    assert first == "opticcl"
    assert json.loads(opticcl(*words, "--json").stdout) == found["answer"]


def test_a_training_answer_is_the_record_and_the_timeline_of_the_command(browser, opticcl, monkeypatch, tmp_path):
    """The command that is shown writes both."""
    monkeypatch.setattr("sys.argv", ["opticcl"])
    command, found = asked(browser, "train", model="vgg19", fabric="ideal", nodes=4)
    *words, name = shlex.split(command)[1:]
    assert words[-1] == "--trace"
    done = opticcl(*words, tmp_path / name, "--json")
    assert json.loads(done.stdout) == found["answer"]["record"]
    assert json.loads((tmp_path / name).read_text("utf-8")) == found["answer"]["trace"]


def test_answers_of_a_study_are_those_of_the_command(opticcl, monkeypatch, tmp_path):
    """Its progress before and after it has run, its map, and what the front lacks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["opticcl"])
    path = tmp_path / "two.toml"
    path.write_text('[axes]\nfabric = ["ideal:latency=1us", "torus"]\nnodes = [4, 8]\nsize = ["1KB", "1MB"]\n')
    browser = Client(opened=Opened.of([path]))
    about = browser.get(f"/{TOKEN}/api/start").json()
    assert about["files"][0]["kind"] == "study"
    assert {"ideal:latency=1us", "torus"} <= set(about["fabric_colours"])
    _, before = asked(browser, "study", study="f0")
    assert (before["answer"]["points"], before["answer"]["finished"]) == (8, 0)
    assert opticcl("study", "run", path, "--jobs", 1).returncode == 0
    monkeypatch.setattr("opticcl.explorer.questions.STUDY_S", 1e-6)  # asked again at once
    _, after = asked(browser, "study", study="f0")
    assert after["answer"]["finished"] == 8
    command, found = asked(browser, "map", study="f0")
    assert json.loads(opticcl(*shlex.split(command)[1:], "--json").stdout) == found["answer"]
    command, found = asked(browser, "pareto", study="f0", where=["nodes=8"])
    assert found["error"] + "\n" == opticcl(*shlex.split(command)[1:]).stderr


def test_a_refusal_is_the_line_of_the_command(browser, opticcl, monkeypatch):
    """With its exit code."""
    monkeypatch.setattr("sys.argv", ["opticcl"])
    command, found = asked(browser, "simulate", fabric="ramp", nodes=7, algorithm="ring")
    done = opticcl(*shlex.split(command)[1:])
    assert (found["state"], found["error"]) == ("refused", done.stderr.partition(". Try: ")[0])
    assert found["code"] == done.returncode == 2


# --- the guard --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "status", "reason"),
    [
        ("/", {}, 403, "token"),
        ("/wrong/", {}, 403, "token"),
        (f"/{TOKEN[:-1]}x/", {}, 403, "token"),
        (f"/{TOKEN}", {}, 403, "token"),
        (f"/{TOKEN}x/", {}, 403, "token"),
        (f"/{TOKEN}/", {"host": "evil.example:8123"}, 403, "host"),
        (f"/{TOKEN}/", {"host": "127.0.0.1"}, 403, "host"),
        (f"/{TOKEN}/", {"host": "127.0.0.1:8124"}, 403, "host"),
        (f"/{TOKEN}/", {"origin": "http://evil.example"}, 403, "origin"),
        (f"/{TOKEN}/", {"origin": "null"}, 403, "origin"),
        (f"/{TOKEN}/", {"origin": f"https://127.0.0.1:{PORT}"}, 403, "origin"),
        (f"/{TOKEN}/", {"sec-fetch-site": "cross-site"}, 403, "sec-fetch-site"),
        (f"/{TOKEN}/static/" + "a" * 2000, {}, 414, "path"),
        (f"/{TOKEN}/static/..%2f..%2fapp.py", {}, 404, "Not Found"),
        (f"/{TOKEN}/static/%2e%2e%2fapp.py", {}, 404, "Not Found"),
        (f"/{TOKEN}/static/%2fetc%2fpasswd", {}, 404, "Not Found"),
        (f"/{TOKEN}/static/app.py", {}, 404, "no such file"),
    ],
)
def test_a_foreign_request_is_refused(browser, path, headers, status, reason):
    """By token, host, origin or path; with the headers of every answer."""
    answer = browser.get(path, headers=headers)
    assert (answer.status_code, reason in answer.text) == (status, True), answer.text
    assert answer.headers["content-security-policy"] == POLICY


def test_our_own_origin_is_answered(browser):
    """By each name of the loopback address."""
    for name in ("127.0.0.1", "localhost", "[::1]"):
        host = f"{name}:{PORT}"
        answer = browser.get(f"/{TOKEN}/", headers={"host": host, "origin": f"http://{host}"})
        assert answer.status_code == 200


def test_large_requests_are_refused(browser):
    """By the length that they claim, and by the bytes that come."""

    async def in_pieces():
        yield b" " * MOST_BYTES
        yield b" "

    path = f"/{TOKEN}/api/questions"
    assert browser.post(path, content=b" " * (MOST_BYTES + 1)).status_code == 413
    assert browser.post(path, content=in_pieces()).status_code == 413
    assert browser.post(path, content=b"{}", headers={"content-length": "-1"}).status_code == 413
    assert browser.request("PUT", path, content=b"{}").status_code == 405


def test_a_body_that_does_not_come_is_refused(browser, monkeypatch):
    """After a limit of time, so that slow senders do not take all connections."""
    monkeypatch.setattr("opticcl.explorer.guard.LONGEST_BODY_S", 0.05)

    async def slow():
        yield b"{"
        await asyncio.sleep(5)

    assert browser.post(f"/{TOKEN}/api/questions", content=slow()).status_code == 408


def test_refusals_take_a_millisecond():
    """Of the processor, the median of many: nothing is computed for them."""
    guard = create_app(InlinePool(), TOKEN, PORT)
    scope = {"type": "http", "method": "GET", "path": "/wrong/", "headers": [(b"host", f"127.0.0.1:{PORT}".encode())]}

    async def send(message):
        sent.append(message)

    sent, spent = [], []
    for _ in range(101):
        begun = time.process_time()
        asyncio.run(guard(dict(scope), None, send))
        spent.append(time.process_time() - begun)
    assert sent[0]["status"] == 403
    assert sorted(spent)[50] < 2e-3  # with the event loop, which is made anew here


def test_a_thousand_requests_leave_it_serving():
    """At the same time from one client: some questions are refused as too many, and the next request is answered."""
    pool = Pool(None, Limits(workers=0, waiting=4))
    transport = httpx.ASGITransport(app=create_app(pool, TOKEN, PORT))

    async def all_of_them():
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as session:
            body = [json.dumps({"view": "cost", "nodes": 2 + i % 50}) for i in range(1000)]
            sent = await asyncio.gather(*(session.post(f"/{TOKEN}/api/questions", content=one) for one in body))
            return [one.status_code for one in sent], (await session.get(f"/{TOKEN}/")).status_code

    codes, after = asyncio.run(all_of_them())
    assert set(codes) == {202, 429}
    assert after == 200


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "question"),
        ({}, "question"),
        ({"view": "execute"}, "view: 'execute' is not known"),
        ({"view": "compare", "out": "/tmp/x.html"}, "'out' is not a parameter"),
        ({"view": "compare", "nodes": 1 << 30}, "nodes"),
        ({"view": "compare", "nodes": True}, "nodes"),
        ({"view": "compare", "nodes": "٣"}, "nodes"),
        ({"view": "compare", "nodes": 8, "fabric": ["ramp"] * 100}, "fabric: 100 values, at most 40"),
        ({"view": "compare", "nodes": 8, "fabric": "--out=x.html"}, "fabric: '--out=x.html' is not accepted"),
        ({"view": "compare", "nodes": 8, "fabric": "nothing:nodes=8"}, "fabric: 'nothing' is not known"),
        ({"view": "compare", "nodes": 8, "fabric": "ramp:a=" + "1" * 300}, "is not accepted"),
        ({"view": "compare", "nodes": 8, "fabric": {"a": 1}}, "is not accepted"),
        ({"view": "compare", "nodes": 8, "size": "<b>1MB</b>"}, "size: '<b>1MB</b>' is not accepted"),
        ({"view": "compare", "nodes": 8, "assume": "endpoint"}, "assume"),
        ({"view": "train", "model": "model.toml", "nodes": 8}, "is not accepted"),
        ({"view": "train", "model": "/etc/passwd", "nodes": 8}, "is not accepted"),
        ({"view": "light", "plan": "/etc/passwd"}, "file: '/etc/passwd' is not open"),
        ({"view": "map", "study": "../study.toml"}, "file: '../study.toml' is not open"),
        ({"view": "light", "nodes": 8}, "light: the fabric is missing"),
    ],
)
def test_a_wrong_parameter_is_refused_before_any_work(browser, given, reason):
    """One line that names it."""
    answer = browser.post(f"/{TOKEN}/api/questions", content=json.dumps(given))
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_a_machine_that_is_too_large_is_refused(browser):
    """Where its shape is in the text of the fabric."""
    _, found = asked(browser, "compare", fabric="ideal:nodes=1000000")
    assert (found["state"], "up to 4,096" in found["error"]) == ("refused", True)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_a_body_that_is_no_json_is_refused(browser, body):
    """With one line."""
    answer = browser.post(f"/{TOKEN}/api/questions", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "question: the body is not JSON")


# --- files ------------------------------------------------------------------------------------------------------------


def test_every_file_of_the_page_is_served_and_nothing_is_inline(browser):
    """Only addresses of this server, no script in the page, no markup from texts."""
    for file in STATIC.iterdir():
        answer = browser.get(f"/{TOKEN}/static/{file.name}")
        assert answer.content == file.read_bytes()
        text = file.read_text("utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org)", text), file.name
        for banned in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
        ):
            assert banned not in text, f"{file.name}: {banned}"
    page = browser.get(f"/{TOKEN}/").text
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page)


def test_the_library_of_the_charts_is_that_of_the_package(browser):
    """And no other host may be asked for anything, no style or script may stand in the page."""
    import plotly

    answer = browser.get(f"/{TOKEN}/static/plotly.min.js")
    assert answer.content == (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()
    assert answer.headers["content-type"].startswith("text/javascript")
    rules = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
    empty = b64encode(sha256(b"").digest()).decode()
    assert rules.pop("style-src").split() == ["'self'", f"'sha256-{empty}'"]
    assert rules.pop("img-src").split() == ["'self'", "data:", "blob:"]
    assert set(rules.values()) == {"'self'", "'none'"}
    assert (rules["default-src"], rules["script-src"]) == ("'none'", "'self'")


def test_modules_import_what_exists():
    """Every module that a file imports is beside it and exports the names."""
    for file in STATIC.glob("*.js"):
        for names, target in re.findall(r'import \{?([^}"]*?)\}? from "\./([\w.]+)"', file.read_text("utf-8")):
            text = (STATIC / target).read_text("utf-8")
            for name in names.split(","):
                if "*" not in name:
                    assert re.search(rf"export (async )?(function|const|let|class) {name.strip()}\b", text), (
                        f"{file.name}: {name}"
                    )


def test_plan_files_are_opened_by_key(tmp_path, monkeypatch):
    """Those of the command line and those that are sent; another suffix is refused, and few are kept."""
    monkeypatch.setattr(app_module, "MOST_PLANS", 2)
    plan = library.compile("terarack:nodes=8", "all_reduce", "1MB", algorithm="wrht")
    path = tmp_path / "plan<b>.json"
    plan.save(path)
    sent = tmp_path / "sent"
    sent.mkdir()
    opened = Opened.of([path], sent)
    browser = Client(opened=opened)
    assert browser.get(f"/{TOKEN}/api/start").json()["files"] == [{"key": "f0", "name": "plan<b>.json", "kind": "plan"}]
    command, found = asked(browser, "light", plan="f0")
    assert shlex.split(command) == ["opticcl", "verify", "plan<b>.json"]
    assert found["answer"]["verdict"]["ok"]
    keys = [browser.post(f"/{TOKEN}/api/plans/a.json", content=path.read_bytes()).json()["key"] for _ in range(3)]
    assert asked(browser, "light", plan=keys[2], run=0, round=0)[1]["answer"]["total"] == len(
        plan.circuits.rounds(0)[0]
    )
    assert len(list(sent.iterdir())) == 2
    assert browser.post(f"/{TOKEN}/api/plans/a.py", content=b"import os").status_code == 400
    damaged = browser.post(f"/{TOKEN}/api/plans/a.json", content=b"{}").json()["key"]
    assert asked(browser, "light", plan=damaged)[1]["state"] == "refused"
