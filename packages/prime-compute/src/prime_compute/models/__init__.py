"""What compute and account routes take and answer."""
