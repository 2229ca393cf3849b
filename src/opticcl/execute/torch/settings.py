"""Settings of the backend, from environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opticcl.errors import ParameterError

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the backend.

    Args:
        check: whether all ranks compare their calls before data move.
        log: whether to log plans, and collectives that are sent without a schedule.
    """

    check: bool = True
    log: bool = False

    @classmethod
    def of_environment(cls, variables: Mapping[str, str]) -> Settings:
        """OPTICCL_CHECK and OPTICCL_LOG, 0 or 1.

        Raises: ParameterError: another value.
        """
        switches = {}
        for name, default in (("OPTICCL_CHECK", "1"), ("OPTICCL_LOG", "0")):
            value = variables.get(name, default)
            if value not in ("0", "1"):
                raise ParameterError(f"{name}={value!r} is neither 0 nor 1")
            switches[name] = value == "1"
        return cls(switches["OPTICCL_CHECK"], switches["OPTICCL_LOG"])
