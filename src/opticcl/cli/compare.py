"""opticcl compare"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._clock import ClockOption, parse_clock
from opticcl.cli._options import (
    AssumeOption,
    CollectiveOption,
    EngineOption,
    FabricsOption,
    JsonOption,
    LeftOut,
    NodeRateOption,
    NodesOption,
    PresetOption,
    RootOption,
    make_assumptions,
    make_fabrics,
)
from opticcl.cli._output import Progress, check_outputs, print_json, print_table
from opticcl.errors import ParameterError
from opticcl.registry import canonical

if TYPE_CHECKING:
    from opticcl.comparison import Comparison


def run(
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            "-a",
            help="A name for all, auto (each fabric's fastest), main (and its paper's own), or all (every one that fits).",
        ),
    ] = "auto",
    size: Annotated[
        list[str], typer.Option("--size", "-s", help="Message of every rank; repeat for several in a row.")
    ] = [],  # noqa: B006
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload", "-w", help="A trace (.et, .json, .log, .fbuf, .txt), a TOML list of sizes, or resnet50_ddp."
        ),
    ] = None,
    clock: ClockOption = None,
    engine: EngineOption = "closed_form",
    preset: PresetOption = "default",
    assume: AssumeOption = [],  # noqa: B006
    html: Annotated[Path | None, typer.Option("--html", help="Write the whole comparison to this page.")] = None,
    root: RootOption = 0,
    json: JsonOption = False,
) -> None:
    """Fabrics side by side, fastest first, every plan compiled and verified. Exit code 1 if a plan is wrong."""
    from opticcl.collective import Request, collective_name
    from opticcl.comparison import compare_plans

    check_outputs({"--html": (html, ())})
    assumed = make_assumptions(preset, assume)
    sizes, notes, num_ranks = _sizes(size, workload, collective, clock)
    if nodes is None and not fabric and num_ranks:
        nodes = num_ranks
    if nodes is None and not fabric:
        raise ParameterError("compare: how many nodes? give --nodes N, or fabrics with their shapes")
    made, left_out = make_fabrics(fabric, nodes, node_rate)
    with Progress() as progress:
        found = compare_plans(
            [one for _, one in made],
            Request(collective_name(collective), root),
            sizes,
            algorithm=algorithm,
            assumed=assumed,
            engine=engine,
            progress=progress,
        )
        if html:
            from opticcl.report import write_page

            progress("draw the page")
            title = f"{found.collective} on {nodes} nodes" if nodes else found.collective
            write_page(html, found, title=title, workload_notes=(*notes, *map(str, left_out)), progress=progress)
    left_out += _declined(found, algorithm)
    if json:
        print_json({"rows": found.rows(), "left_out": [one._asdict() for one in left_out]})
    else:
        from opticcl.report import comparison_table

        print_table(*notes, comparison_table(found), *map(str, left_out))
        if html:
            print(f"page: {html}")
    raise typer.Exit(0 if all(entry.verdict.ok for entry in found.entries) else 1)


def _declined(found: Comparison, algorithm: str) -> list[LeftOut]:
    """Fabrics without any row. Of `--algorithm all` most pairs are declined; a fabric with other rows is not left out."""
    if canonical(algorithm) != "all":
        return list(dict.fromkeys(LeftOut(one.fabric, one.reason) for one in found.declined))
    rows = {entry.fabric.name for entry in found.entries}
    without = dict.fromkeys(one.fabric for one in found.declined if one.fabric not in rows)
    return [
        LeftOut(name, f"no algorithm does {found.collective} there; --algorithm NAME tells why") for name in without
    ]


def _sizes(
    size: list[str], workload: str | None, collective: str, clock: str | None
) -> tuple[list[int], list[str], int]:
    """Message sizes [bytes], remarks on where they come from, and ranks of the workload, 0 if unknown [count]."""
    from opticcl.units import format_bytes, message_size

    if workload is None:
        if clock is not None:
            raise ParameterError("--clock: there is no --workload whose cycles it could count")
        return [message_size(s, "--size") for s in (size or ["100MB"])], [], 0
    if size:
        raise ParameterError("compare: both --size and --workload are given; one of them decides the messages")
    from opticcl.collective import collective_name
    from opticcl.workload import load_workload

    loaded = load_workload(workload, clock_hz=None if clock is None else parse_clock(clock))
    wanted = collective_name(collective)
    calls = [call for call in loaded.calls if call.collective == wanted and not call.is_transfer]
    if not calls:
        raise ParameterError(f"--workload: {workload} asks for no {wanted}")
    everybody = loaded.num_ranks or max(len(call.ranks) for call in calls)
    sizes = [call.size_bytes for call in calls if len(call.ranks) in (0, everybody)]
    parts = Counter(len(call.ranks) for call in calls if len(call.ranks) not in (0, everybody))
    told = ", ".join(f"{n:,} of {ranks:,} ranks" for ranks, n in sorted(parts.items()))
    if not sizes:
        raise ParameterError(
            f"--workload: every {wanted} of {workload} is in a part of the job ({told}); opticcl train times groups"
        )
    total = f"{loaded.name}: {len(sizes)} {wanted} calls, {format_bytes(sum(sizes))} ({sum(sizes):,} bytes)"
    notes = [total, *loaded.notes]
    if parts:
        notes.insert(1, f"not compared: {wanted} calls in parts of the job: {told}; opticcl train times groups")
    return sizes, notes, loaded.num_ranks
