"""The traces service: uploads, queries and deletes of traces, episodes and runs."""
