"""Pods: rented machines. They are records here; nothing listens at their addresses."""
