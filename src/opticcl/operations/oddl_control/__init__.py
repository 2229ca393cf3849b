"""ODDL's distributed control plane: the protocol, a search through its state space, its simulation and real processes."""
