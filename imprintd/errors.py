"""
One error tree for every room.

Foreign exceptions are translated at a room's edge, once. Each class answers
four questions: what to call it in the status (`code`), whether trying again
can help (`retryable`), what went wrong (the message) and what the user can
do (`remedy`). Messages never hold transcript text or secrets.
"""

from __future__ import annotations

from typing import ClassVar


class ImprintdError(Exception):
    """Base of all errors that imprintd raises on purpose."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(ImprintdError):
    """The request itself is wrong: a bad flag, an ambiguous prefix, a bad range."""

    code = "usage"
    exit_code = 2


class NotKnown(ImprintdError):
    """Nothing is known under that name: a source, a memory id, a device."""

    code = "not-known"
    exit_code = 3


class VersionReplaced(ImprintdError):
    """The version that a continued read named is no longer the head."""

    code = "version-replaced"
    exit_code = 4


class IntegrityError(ImprintdError):
    """What is stored disagrees with its own hashes or manifest."""

    code = "integrity"
    exit_code = 5


class NoDaemon(ImprintdError):
    """The command needs a running daemon and none answers."""

    code = "no-daemon"
    exit_code = 6


class Locked(ImprintdError):
    """Another process owns the data directory."""

    code = "locked"
    retryable = True
    exit_code = 75


class ConfigError(ImprintdError):
    """The configuration is wrong; the message names the key and the file."""

    code = "config"
    exit_code = 78


class SchemaTooNew(ImprintdError):
    """The database was written by a newer imprintd."""

    code = "schema-newer"
    exit_code = 78


class Corrupt(ImprintdError):
    """The database file itself cannot be read."""

    code = "corrupt"


class SourceError(ImprintdError):
    """
    One source could not be read; everything else goes on.

    Attributes:
        line: 1-based line number in the file, or None where it does not apply.
        reason: A short stable word for the status, e.g. `damaged-line`.
    """

    code = "source"

    def __init__(
        self, message: str, *, reason: str, line: int | None = None, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason
        self.line = line


class DamagedLine(SourceError):
    """A complete line is not JSON and reading on would lose something."""

    code = "damaged-line"


class Refused(SourceError):
    """An admission limit refused the source (file, line, text or manifest too large)."""

    code = "refused"


class ModelError(ImprintdError):
    """The embedding model is missing, altered or cannot run."""

    code = "model"
    retryable = True


class ResourceError(ImprintdError):
    """The machine ran out of something: disk, inotify watches, descriptors."""

    code = "resource"
    retryable = True


class ProtocolError(ImprintdError):
    """A conversation with a peer went wrong; see the two subclasses."""

    code = "protocol"


class LocalProtocolError(ProtocolError):
    """Our own side broke the protocol: a bug here."""

    code = "protocol-local"


class RemoteProtocolError(ProtocolError):
    """The peer sent what no correct peer sends; our state is unchanged."""

    code = "protocol-remote"
