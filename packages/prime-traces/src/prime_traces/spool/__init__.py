"""The durable spool: records on disk, on their way to the platform.

A spool's directory holds:

- ``lock``: held by the process that uses the directory
- ``<n>.open``: the segment that is being filled; a torn end is cut off at the next start
- ``<n>.<count>.<sha256>.sealed``: a full segment, which is one upload. Its content and with it
  the upload's key are on disk before the first byte is sent, and never change.
- ``<n>-<m>.…sealed``: the m-th part of a segment that the platform refused or the disk changed.
  While the whole one exists its parts don't count: they are removed at the next start, and
  nothing of them was sent.
- ``rejected/<n>.jsonl`` with ``<n>.json``: records that the platform refused or that the disk
  changed, and why
- ``rejected/<n>.torn``: the torn end that was cut off an open segment
"""
