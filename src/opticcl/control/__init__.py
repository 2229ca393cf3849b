"""Who commands the light: ODDL's distributed control units and its arbiter.

    script       a plan -> what each node's control unit has to do, exchange by exchange
    protocol     the unit itself: a state machine without input or output of its own
    wire         its messages as bits and datagrams
    explore      every state that a few units and a hostile network can reach
    player       many units in simulated time
    processes    units as real processes that talk over UDP
    placement    where on a machine a job fits
    arbiter      which job has which nodes and switch ports, kept on disk

What the control planes of the other systems cost stands in data/control.toml; `models` reads it.
"""

from __future__ import annotations

from opticcl.control.protocol import Message, State, react, start
from opticcl.control.script import Exchange, Script, scripts
from opticcl.errors import ControlError

__all__ = ["ControlError", "Exchange", "Message", "Script", "State", "react", "scripts", "start"]
