"""
What imprintd talks about: plain frozen data, no I/O, no clock, no libraries.

Every other room imports these words and none redefines them.
"""
