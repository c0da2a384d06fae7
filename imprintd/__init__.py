"""imprintd: an exact, redacted, searchable memory of AI conversations."""

__version__ = "0.1.0"
