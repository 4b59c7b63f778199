"""What the routes of training take and answer."""
