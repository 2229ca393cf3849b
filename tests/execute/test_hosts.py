"""Several hosts: network namespaces with addresses of their own and a limited link between them, where the machine has them."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.execute.launch import MPIEXEC, environment, needs_mpi, needs_torch, processes_of_a_group

HERE = Path(__file__).parent
BYTES = 1_000_000
"""Message of the all_reduce that torch_hosts.py times; two ranks send each other as many bytes."""
RATE = "tbf rate 80mbit burst 16kb latency 1s"
DELAY = "netem delay 20ms"


def refusal(*command):
    """Why a command of the machine fails; None if it works."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason"])[0]


def addresses(ip):
    """Addresses of a host's end of the link, as the kernel prints them."""
    return subprocess.run([*ip, "address", "show", "light0"], capture_output=True, text=True, check=True).stdout


@contextmanager
def hosts(link):
    """Two network namespaces, 10.83.0.1 and 10.83.0.2, joined by interfaces named light0 that a queue of the kernel limits."""
    names = [f"opticcl-{os.getpid()}-{i}" for i in range(2)]
    try:
        for name in names:
            if why := refusal("ip", "netns", "add", name):
                pytest.skip(f"network namespaces cannot be made here: {why}")
        first, second = (["ip", "-n", name] for name in names)
        if why := refusal(*first, "link", "add", "light0", "type", "veth", "peer", "name", "light0", "netns", names[1]):
            pytest.skip(f"virtual links cannot be made here: {why}")
        for i, (name, ip) in enumerate(zip(names, (first, second), strict=True)):
            subprocess.run([*ip, "address", "add", f"10.83.0.{i + 1}/24", "dev", "light0"], check=True)
            for device in ("lo", "light0"):
                subprocess.run([*ip, "link", "set", device, "up"], check=True)
            if why := refusal("tc", "-n", name, "qdisc", "add", "dev", "light0", "root", *link.split()):
                pytest.skip(f"this kernel has no queue {link.split()[0]}: {why}")
        while any("tentative" in addresses(ip) for ip in (first, second)):  # the kernel looks for duplicates
            time.sleep(0.1)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@needs_torch
@pytest.mark.deep
@pytest.mark.parametrize(("link", "least_s"), [(RATE, 0.9 * BYTES * 8 / 80e6), (DELAY, 0.04)], ids=["rate", "delay"])
def test_two_hosts(link, least_s):
    """One rank on each: right results, over the interface that the variable names, no faster than the link."""
    with hosts(link) as names:
        done = processes_of_a_group(
            2,
            HERE / "torch_hosts.py",
            wrap=lambda rank, command: ["ip", "netns", "exec", names[rank], *command],
            address="10.83.0.1",
            GLOO_SOCKET_IFNAME="light0",
            OPTICCL_FABRIC="lightpath:shape=1x2",
        )
    for rank, process in enumerate(done):
        assert process.returncode == 0, process.stderr
        assert f"rank {rank} done" in process.stdout
        assert re.search(r"addresses \[\[.*'10.83.0.1'.*\], \[.*'10.83.0.2'.*\]\]", process.stdout)
        assert float(re.search(r"in ([0-9.]+) s", process.stdout)[1]) >= least_s


@needs_mpi
@pytest.mark.deep
def test_two_hosts_of_mpi(tmp_path):
    """mpiexec with a list of hosts; the program that it starts on each enters that host's namespace."""
    with hosts(RATE) as names:
        enter = tmp_path / "enter"
        enter.write_text(
            '#!/bin/sh\nwhile [ "${1#10.}" = "$1" ]; do shift; done\nhost=$1; shift\n'
            f'[ "$host" = 10.83.0.1 ] && space={names[0]} || space={names[1]}\nexec ip netns exec $space sh -c "$*"\n'
        )
        enter.chmod(0o755)
        done = subprocess.run(
            [
                *("ip", "netns", "exec", names[0], MPIEXEC, "-n", "2", "-ppn", "1", "-hosts", "10.83.0.1,10.83.0.2"),
                *("-launcher", "ssh", "-launcher-exec", enter, "-iface", "light0", sys.executable, "-m", "opticcl"),
                *("execute", "--transport", "mpi", "-f", "lightpath:shape=1x2", "-s", "1MB", "--json"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environment(UCX_TLS="tcp"),  # not the memory that both namespaces share
        )
    assert done.returncode == 0, done.stderr
    assert '"ok": true' in done.stdout
    assert float(re.search(r'"time_s": ([0-9.e+-]+)', done.stdout)[1]) >= 0.9 * BYTES * 8 / 80e6


@needs_torch
@pytest.mark.deep
def test_another_address_of_this_host():
    """Without namespaces: the store at 127.0.0.2, messages over the interface that the variable names."""
    done = processes_of_a_group(2, HERE / "torch_hosts.py", address="127.0.0.2", GLOO_SOCKET_IFNAME="lo")
    for rank, process in enumerate(done):
        assert process.returncode == 0, process.stderr
        assert re.search(rf"rank {rank} done .* master 127.0.0.2", process.stdout)
