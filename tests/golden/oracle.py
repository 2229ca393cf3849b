"""SimGrid as an oracle: flows over links given to its own interpreter, their ends read back.

Optional. `OPTICCL_SIMGRID_PYTHON` names an interpreter that can import SimGrid's Python module; without it, `python3` is
asked. SimGrid 3.32 (the version of our golden numbers) and later ones are understood.

The model is the exact one: CM02 without correction factors, cross traffic or window. SimGrid weighs a flow's share by one
over its latency, which is no part of max-min fairness; so links have no latency there, and a flow's latency is a pause
before it starts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

SCRIPT = r"""
import json, sys, time
from simgrid import Actor, Comm, Engine, Host, Link, LinkInRoute, NetZone, simgrid_version, this_actor

given = json.load(open(sys.argv[1]))
settings = ["network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/weight-S:0",
            "network/bandwidth-factor:1", "network/latency-factor:1"]
new = tuple(map(int, simgrid_version.split(".")[:2])) > (3, 32)
names = ("precision/work-amount", "precision/timing") if new else ("maxmin/precision", "surf/precision")
settings += [names[0] + ":1e-9", names[1] + ":1e-12"]
engine = Engine(["oracle", "--log=root.thres:critical", *("--cfg=" + s for s in settings)])
zone = NetZone.create_full_zone("zone")
links = []
for i, capacity in enumerate(given["capacity"]):
    link = zone.create_link(f"l{i}", float(capacity))
    link.set_latency(0.0)
    links.append(LinkInRoute(link.seal()))
flows = given["flows"]
for i, (route, delay, amount) in enumerate(flows):
    a, b = zone.create_host(f"a{i}", 1e9).seal(), zone.create_host(f"b{i}", 1e9).seal()
    zone.add_route(a.netpoint, b.netpoint, None, None, [links[k] for k in route], False)
zone.seal()
ends = [None] * len(flows)

def send(i, delay, amount):
    this_actor.sleep_for(delay)
    Comm.sendto(Host.by_name(f"a{i}"), Host.by_name(f"b{i}"), amount)
    ends[i] = Engine.clock

for i, (route, delay, amount) in enumerate(flows):
    Actor.create(f"f{i}", Host.by_name(f"a{i}"), send, i, delay, int(amount))
begun = time.process_time()
engine.run()
json.dump({"ends": ends, "cpu_s": time.process_time() - begun}, open(sys.argv[2], "w"))
"""


@cache
def interpreter() -> tuple[str, str]:
    """(interpreter that has SimGrid, "") or ("", why there is none)."""
    named = os.environ.get("OPTICCL_SIMGRID_PYTHON", "")
    python = named or shutil.which("python3") or ""
    if not python:
        return "", "SimGrid's Python module is not installed: there is no python3; set OPTICCL_SIMGRID_PYTHON"
    try:
        done = subprocess.run([python, "-c", "import simgrid"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"SimGrid's Python module is not installed: {python} does not run ({error})"
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return "", f"SimGrid's Python module is not installed: {python} says {why}; set OPTICCL_SIMGRID_PYTHON"
    return python, ""


def ends(
    capacity: np.ndarray, routes: list[list[int]], delay_s: np.ndarray, amount_bytes: np.ndarray, timeout_s: float = 300
) -> np.ndarray:
    """When each flow ends according to SimGrid, float64 (n,) [s]; as `simulated`."""
    return simulated(capacity, routes, delay_s, amount_bytes, timeout_s)[0]


def simulated(
    capacity: np.ndarray, routes: list[list[int]], delay_s: np.ndarray, amount_bytes: np.ndarray, timeout_s: float = 300
) -> tuple[np.ndarray, float]:
    """When each flow ends according to SimGrid, float64 (n,) [s], and the CPU time of its simulation [s].

    Args:
        capacity: of each link [byte/s].
        routes: links of each flow.
        delay_s: when each starts [s].
        amount_bytes: what it carries, whole bytes.
    Raises: RuntimeError: there is no SimGrid, or it failed; with its last words.
    """
    python, reason = interpreter()
    if not python:
        raise RuntimeError(reason)
    flows = [[list(map(int, r)), float(d), int(a)] for r, d, a in zip(routes, delay_s, amount_bytes, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        script, given, found = (Path(folder) / name for name in ("script.py", "given.json", "ends.json"))
        script.write_text(SCRIPT, "utf-8")
        given.write_text(json.dumps({"capacity": list(map(float, capacity)), "flows": flows}), "utf-8")
        done = subprocess.run(
            [python, str(script), str(given), str(found)],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode or not found.exists():
            raise RuntimeError(f"SimGrid failed: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
        result = json.loads(found.read_text("utf-8"))
        return np.array(result["ends"]), result["cpu_s"]
