"""The inference service: a catalogue of models, chat completions and evaluation models."""
