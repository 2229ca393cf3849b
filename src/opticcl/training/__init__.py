"""Training: models, their partition over devices, and the time of an iteration."""
