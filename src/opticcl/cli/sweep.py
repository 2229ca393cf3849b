"""opticcl sweep"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from opticcl.cli._options import (
    DEFAULT_SET,
    LARGE,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    EngineOption,
    EqualOption,
    FabricsOption,
    IgnoreLightOption,
    JobsOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    OpticsOption,
    RootOption,
    equal_machines,
    make_assumptions,
    make_fabrics,
)
from opticcl.cli._output import RECORD, TABLE, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError


def run(
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    equal: EqualOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    smallest: Annotated[str, option("--from", help="Smallest message.")] = "1KB",
    largest: Annotated[str, option("--to", help="Largest message.")] = "1GB",
    factor: Annotated[float, option("--factor", help="Ratio of each size to the previous one.")] = 4.0,
    engine: EngineOption = "closed_form",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    root: RootOption = 0,
    out: Annotated[list[Path], out_option(TABLE, RECORD)] = [],  # noqa: B006
    jobs: JobsOption = None,
    json: JsonOption = False,
) -> None:
    """Time and bandwidth for each message size. Exit code 1 if a plan is wrong."""
    from opticcl.collective import Request, collective_name
    from opticcl.plans.fastest import Fastest
    from opticcl.plans.light import light_rule
    from opticcl.plans.sweep import sizes_by, sweep_fabrics
    from opticcl.processes import number_of_jobs
    from opticcl.report.beside import not_tried_line
    from opticcl.report.sweep import sweep_table
    from opticcl.units import message_size

    outputs = Outputs(out, TABLE, RECORD)
    if nodes is None and not fabric:
        raise ParameterError("sweep: how many nodes? give --nodes N, or fabrics with their shapes")
    sizes = sizes_by(message_size(smallest, "--from"), message_size(largest, "--to"), factor)
    wanted = Request(collective_name(collective), root)
    built, excluded, remarks = equal_machines(*make_fabrics(fabric, nodes, None), equal, node_rate)
    processes = number_of_jobs(jobs, large=max(one.num_nodes for _, one in built) >= LARGE)
    with ProgressLine() as progress:
        assumed, rule = (
            make_assumptions(assumptions, assume),
            light_rule([one for _, one in built], optics, ignore_light),
        )
        fastest = Fastest(algorithm, assumed, engine=engine, rule=rule, progress=progress)
        found = sweep_fabrics(built, wanted, sizes, fastest, excluded, processes)
    outputs.write_record(found.record, found.rows)
    if json:
        print_json(found.record())
    else:
        not_tried = not_tried_line(found.not_tried)
        print_table(sweep_table(found), *remarks, *filter(None, [not_tried]), *map(str, found.left_out))
        outputs.print_lines()
    raise click.exceptions.Exit(0 if found.ok else 1)
