"""The Environments Hub, as far as it is simulated: which environments there are."""
