"""The server as a user starts it."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from tests.cli.process import COMMAND

from opticcl.explorer import NEEDED


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "plotly"])
def test_a_missing_extra_is_named(opticcl, monkeypatch, missing):
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, missing, None)
    done = opticcl("explore")
    assert done.returncode == 2
    assert re.fullmatch(
        rf"opticcl: explore: not installed: (\w+, )*{missing}(, \w+)*; pip install 'opticcl\[explore\]'\n", done.stderr
    )


@contextmanager
def served():
    """The explorer in a process of its own: the process and its address."""
    for package in NEEDED:
        pytest.importorskip(package, reason="the extra explore is not installed: pip install 'opticcl[explore]'")
    process = subprocess.Popen([*COMMAND, "explore", "--jobs", "1", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        printed = ""
        while not printed.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "it has ended"
            printed += line
        address = json.loads(printed)["address"]
        assert address.startswith(f"http://127.0.0.1:{json.loads(printed)['port']}/")
        yield process, address
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(20)
        process.stdout.close()
    assert code == 0


def test_it_serves_until_it_is_interrupted():
    """On the loopback address, behind its token; and takes its processes with it."""
    with served() as (_, address):
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert b"<title>OptiCCL</title>" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address[:-3] + "/", timeout=10)
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=10)
        spent = []
        for _ in range(41):  # on one connection, where an answer in two segments could wait for an acknowledgement
            begun = time.perf_counter()
            connection.request("GET", "/wrong/")
            assert connection.getresponse().read().startswith(b"opticcl explore: token")
            spent.append(time.perf_counter() - begun)
        connection.close()
        assert sorted(spent)[20] < 0.02  # a millisecond where nothing else runs


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b\r\n", b"GET /" + b"a" * 500])
def test_headers_that_never_end_do_not_occupy_it(begin):
    """Neither as many connections as it takes, nor twice as many; the oldest are closed."""
    with served() as (_, address), ExitStack() as stack:
        silent = []
        for _ in range(700):
            silent.append(
                stack.enter_context(socket.create_connection(("127.0.0.1", urlsplit(address).port), timeout=10))
            )
            silent[-1].sendall(begin)
        for _ in range(3):
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert answer.status == 200
        with suppress(ConnectionError):
            assert silent[0].recv(1) == b""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--port", "99999"], "--port: 99999 is not a port"),
        (["--jobs", "0"], "--jobs: 0 processes"),
        (["--time-limit", "-1s"], "--time-limit: '-1s' is not positive"),
        (["--time-limit", "3m"], "--time-limit"),
        (["nothing.json"], "nothing.json: there is no such file"),
        (["pyproject.toml", "README.md"], "README.md: its name must end in"),
    ],
)
def test_wrong_options_are_refused(opticcl, words, reason):
    """With one line, before anything listens."""
    done = opticcl("explore", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
