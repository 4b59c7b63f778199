"""Messages of the sandbox gateway. `tools/proto.py` compiles `command_session.proto`."""
