"""GPUs and disks for rent."""
