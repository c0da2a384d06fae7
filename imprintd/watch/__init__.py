"""
Notices which transcripts changed: hints from the system, scans as the truth.
"""
