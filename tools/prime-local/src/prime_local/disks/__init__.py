"""Disks: storage that outlives pods. They are records here, without a byte in them."""
