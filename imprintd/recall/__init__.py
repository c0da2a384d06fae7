"""
Answers: everything that a person, an agent or a script can ask of the memory.

One implementation serves the daemon's socket and the command line without a
daemon. It composes stored text, search and the reading back of events, and
returns plain documents ready for JSON. It never opens a path.
"""
