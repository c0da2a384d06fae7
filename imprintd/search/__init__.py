"""
Finding things again: words and vectors together, neighbours considered.

The database is the truth; everything here is a cache of it that is caught up by
change number before it answers, and can be thrown away.
"""
