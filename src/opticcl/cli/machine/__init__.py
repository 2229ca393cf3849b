"""What a machine is built of, and what it costs, needs and carries: light budget, prices, elements, control, traffic."""
