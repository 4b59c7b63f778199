"""What the inference service takes and answers."""
