"""What the traces service takes and answers."""

from prime_traces.models.uploads import FailedBatch, LineFormat, PartialUpload, UploadReceipt

__all__ = ["FailedBatch", "LineFormat", "PartialUpload", "UploadReceipt"]
