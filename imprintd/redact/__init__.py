"""
Finds secrets in decoded text and puts coarse labels in their place.
"""

from imprintd.redact.kinds import KINDS
from imprintd.redact.redactor import Redacted, RedactedSpan, Redactor

__all__ = ["KINDS", "Redacted", "RedactedSpan", "Redactor"]
