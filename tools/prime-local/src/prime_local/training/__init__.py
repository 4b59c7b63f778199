"""Training runs, as far as they are simulated: those that are executed elsewhere."""
