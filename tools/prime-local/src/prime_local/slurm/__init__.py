"""Slurm deployments of dedicated clusters."""
