"""Images: their builds, their records and their routes."""
