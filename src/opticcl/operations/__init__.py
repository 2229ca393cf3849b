"""Operation of a machine: control planes and the placement of jobs.

oddl_control/   ODDL's distributed control units
    script        a plan as the program of each node's control unit, exchange by exchange
    protocol      the unit: a state machine without input or output of its own
    wire          its messages as bits and datagrams
    state_space   search of every state that a few units and an adversarial network can reach
    simulation    many units in simulated time
    processes     units as real processes that communicate over UDP
dynamic_traffic/    flows that no plan knows, granted slot by slot
fault_replay/       recorded faults of servers, replayed on a job
jobs_over_time/     jobs that arrive, wait, run and leave
faults/             failed parts: what a collective still costs, beside a restart
placement       blocks of a machine for jobs
policies        which of the free nodes a job gets
arbiter         which job holds which nodes and switch ports, stored on disk
models          duration of the control planes of all systems
"""

from __future__ import annotations

from opticcl.errors import ControlError
from opticcl.operations.oddl_control.protocol import ProtocolMessage, State, react, start
from opticcl.operations.oddl_control.script import ControlExchange, Script, scripts

__all__ = ["ControlError", "ControlExchange", "ProtocolMessage", "Script", "State", "react", "scripts", "start"]
