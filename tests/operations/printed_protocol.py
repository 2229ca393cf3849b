"""ODDL's control protocol as section 4.B prints it: four flags, whichever partner sends."""

from opticcl.operations.oddl_control.protocol import (
    ControlPhase,
    Event,
    MessageArrived,
    MessageKind,
    PayloadReceived,
    PayloadSent,
    ProtocolMessage,
    Reaction,
    Send,
    State,
    Transmit,
    Tune,
    Tuned,
)
from opticcl.operations.oddl_control.script import Script


def as_printed(script: Script, state: State, event: Event) -> Reaction:
    """Four flags and nothing else: `progress` holds dest_conf and dest_completion, whichever partner sent them."""
    e, phase, (conf, completion), sent, awaited, _ = state
    sends: tuple[Send, ...] = ()
    actions: tuple[object, ...] = ()
    if isinstance(event, MessageArrived) and event.message.kind == MessageKind.READY:
        conf = 1
    elif isinstance(event, MessageArrived):
        completion = 1
    elif isinstance(event, Tuned):
        phase = ControlPhase.READY
        sends = (Send(script.peers[script.meets[e][0]], ProtocolMessage(script.address, MessageKind.READY, e)),)
    elif isinstance(event, PayloadSent):
        sent = True
    elif isinstance(event, PayloadReceived):
        awaited = 0
    if phase == ControlPhase.READY and conf > 0:
        phase, actions = ControlPhase.SENDING, (Transmit(e),)
    elif phase == ControlPhase.SENDING and sent and not awaited:
        phase = ControlPhase.FINISHED
        if e + 1 < len(script.exchanges):
            phase = ControlPhase.COMPLETE
            sends = (
                Send(
                    script.peers[script.meets[e + 1][0]], ProtocolMessage(script.address, MessageKind.COMPLETION, e + 1)
                ),
            )
    if phase == ControlPhase.COMPLETE and completion > 0:
        state = State(e + 1, ControlPhase.TUNING, (0, 0), False, script.incoming[e + 1])
        return state, sends, (*actions, Tune(e + 1))  # type: ignore[return-value]
    return State(e, phase, (conf, completion), sent, awaited), sends, actions  # type: ignore[return-value]
