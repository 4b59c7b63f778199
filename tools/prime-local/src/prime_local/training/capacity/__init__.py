"""What training runs take place on: models, GPUs and their prices."""
