"""
The exact text of a source: written, read back, cut, reduced for embedding.

Pure functions of their arguments. The same events give the same text, blocks,
chunks and views on every device.
"""
