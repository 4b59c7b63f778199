"""Hosted training runs. Training itself is simulated: states, steps and money pass on the clock."""
