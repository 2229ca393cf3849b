"""Readers of traces, in bytes of text a CPU second. Recorded traces lie in `../shared/data`, beside the checkout."""

from __future__ import annotations

import gzip
import tempfile
import time
from pathlib import Path

from measure import NotRunError, Run, case

SHARED = Path(__file__).parents[3] / "shared" / "data"


def recorded(name: str) -> bytes:
    """The content of a recorded trace.

    Raises: NotRunError: it is not there.
    """
    path = SHARED / name
    if not path.exists():
        raise NotRunError(f"../shared/data/{name} is not there")
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def reads(name: str, text: bytes) -> Run:
    """Read the text as a job, after a first time that imports the reader.

    Args:
        name: of the file, whose suffix selects the reader.
        text: its content.
    """
    from opticcl.traces import load_workload

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / name
    path.write_bytes(text)

    def run() -> dict[str, float]:
        begun = time.process_time()
        calls = len(load_workload(path).calls)
        spent = time.process_time() - begun
        folder.cleanup()
        return {"bytes_per_s": len(text) / spent, "calls": calls}

    return run


@case("readers.lumorph", "LUMORPH log of 29 MB")
def lumorph() -> Run:
    """Groups of 8 of 256 GPUs, each with a thousand sizes."""
    from opticcl.traces import load_workload

    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.log"
        small.write_text("AR;1000000;0,1,2\n")
        load_workload(small)
    groups = [",".join(str(first + 32 * k) for k in range(8)) for first in range(32)]
    lines = [f"AR;{1_000_000 + 64 * k};{groups[k % 32]}\n" for k in range(1000)]
    lines += [f"L2L;{4096 + k};{k % 12};{k % 2};{k % 256};{(k + 32) % 256}\n" for k in range(1000)]
    text = "".join(lines).encode()
    return reads("job.log", text * (29_000_000 // len(text)))


@case("readers.kineto", "Kineto trace of 10 MB, recorded")
def kineto() -> Run:
    """Three steps of a distributed job."""
    text = recorded("kineto/nccl-data.json.gz")
    reads("small.json", recorded("kineto/timeline-rank0.json.gz"))()
    return reads("job.json", text)


@case("readers.chakra", "Chakra trace of 3 MB as a job of 64 ranks, recorded", whole=True)
def chakra() -> Run:
    """The whole process."""
    recorded("chakra/resnet50-ddp.rank0.et")

    def run() -> dict[str, float]:
        from opticcl.traces import load_job

        path = SHARED / "chakra" / "resnet50-ddp.rank0.et"
        return {"network_mb": load_job(path, num_ranks=64).network_bytes / 1e6}

    return run
