"""Registers the backend "opticcl" of torch.distributed; torch calls `register` while it is imported (entry point).

It imports nothing else until a process group is created, and it never raises, since an error would break `import torch`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["create", "register"]


def register() -> None:
    """Register the backend for CPU tensors."""
    try:
        from torch.distributed import Backend

        if hasattr(Backend, "register_backend") and "OPTICCL" not in Backend._plugins:
            Backend.register_backend("opticcl", create, extended_api=True, devices=["cpu"])
    except Exception as error:  # torch without distributed, or of another interface: init_process_group says so
        import logging

        logging.getLogger("opticcl").debug("the backend is not registered: %s", error)


def create(options: Any, _: Any = None) -> Any:
    """The process group of this rank, by the settings in the environment.

    OPTICCL_FABRIC is a fabric whose node r is global rank r, an ideal switch by default; OPTICCL_ALGORITHM an algorithm.

    Args: options: of torch: store, rank, size, timeout, and the global ranks of the group.
    Raises: OpticclError: a setting is invalid.
    """
    import os
    import sys

    from opticcl.errors import OpticclError
    from opticcl.execute.failures import report_failures
    from opticcl.execute.torch import OpticclProcessGroup, Settings
    from opticcl.plans.rank_plans import EarlyPlanner, RankPlanner

    size, rank = options.group_size, options.group_rank
    ranks = list(options.global_ranks_in_group) or list(range(size))
    report_failures(ranks[rank])
    try:
        settings = Settings.of_environment(os.environ)
        fabric = os.environ.get("OPTICCL_FABRIC") or None
        algorithm = os.environ.get("OPTICCL_ALGORITHM") or "auto"
        planner = RankPlanner(size, fabric, algorithm, None if fabric is None else ranks)
        if fabric or algorithm != "auto":  # else an ideal switch of as many nodes
            planner.check()
    except OpticclError as error:  # the first rank that finds it prints it: a launcher ends the others
        error.printed_by = int(options.store.compare_set("opticcl/refused_by", "", str(ranks[rank])))
        raise
    plans = EarlyPlanner(planner) if rank == 0 and size > 1 and "opticcl.plans.plan" not in sys.modules else planner
    return OpticclProcessGroup(options.store, rank, size, options.timeout, plans, settings, ranks)
