"""The server as a user starts it."""

import http.client
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from tests.cli.process import COMMAND


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_a_missing_extra_is_named(opticcl, monkeypatch, missing):
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, missing, None)
    done = opticcl("explore")
    assert done.returncode == 2
    assert done.stderr == (
        "opticcl: explore: starlette and uvicorn are not installed; pip install 'opticcl[explore]'\n"
    )


def test_it_serves_until_it_is_interrupted():
    """On the loopback address, behind its token; and takes its processes with it."""
    pytest.importorskip("uvicorn", reason="the extra explore is not installed: pip install 'opticcl[explore]'")
    process = subprocess.Popen([*COMMAND, "explore", "--jobs", "1", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        printed = ""
        while not printed.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "it has ended"
            printed += line
        address = json.loads(printed)["address"]
        assert address.startswith(f"http://127.0.0.1:{json.loads(printed)['port']}/")
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert b"<title>OptiCCL</title>" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address[:-3] + "/", timeout=10)
        connection = http.client.HTTPConnection("127.0.0.1", json.loads(printed)["port"], timeout=10)
        spent = []
        for _ in range(41):  # on one connection, where an answer in two segments could wait for an acknowledgement
            begun = time.perf_counter()
            connection.request("GET", "/wrong/")
            assert connection.getresponse().read().startswith(b"opticcl explore: token")
            spent.append(time.perf_counter() - begun)
        connection.close()
        assert sorted(spent)[20] < 0.02  # a millisecond where nothing else runs
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(20)
        process.stdout.close()
    assert code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--port", "99999"], "--port: 99999 is no port"),
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
