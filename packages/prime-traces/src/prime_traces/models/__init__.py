"""What the traces service takes and answers."""

from prime_traces.models.uploads import LineFormat, UploadReceipt

__all__ = ["LineFormat", "UploadReceipt"]
