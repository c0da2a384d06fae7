"""
The command line: arguments in, words or one JSON document out.

No logic lives here. Commands ask the running daemon; where none runs they
open the data directory themselves, read-only, or under its lock when they
have to write.
"""
