"""
What every reader promises; one test class holds all of them to it.

A reader is a pure function of bytes: it opens nothing, asks no clock and
keeps nothing between calls except the state it hands back. Any split of a
file into appends gives exactly the events of reading it in one piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from imprintd.model.reading import Reading


@dataclass(frozen=True, slots=True)
class Identity:
    """
    Which source a file is.

    Attributes:
        key: Source key, `client:session-id[:agent-id]`.
        parent: Source key of the conversation it belongs to, for sub-agents.
        project: Working directory if it shows already, else None.
        named: The key comes from the file's name. False: from its content
            only; another file of that content then adds its own stem to the
            key (`with_stem`).
    """

    key: str
    parent: str | None = None
    project: str | None = None
    named: bool = True


def with_stem(identity: Identity, path: str) -> Identity:
    """
    The identity of a second file whose content names a source already known.

    Only for identities that are not `named`: two copies under unusual names
    are two sources, told apart by the stem of the file name.
    """
    stem = path.rpartition("/")[2].partition(".")[0]
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in stem)
    return replace(identity, key=f"{identity.key}:{safe[:64] or 'copy'}")


class Ledger(Protocol):
    """
    Which records a source already took into its text.

    Keys of earlier readings count from the moment their reading was returned,
    published or not.
    """

    def counts(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """How often each 8-byte record key was taken; absent means never."""
        ...


class SideFiles(Protocol):
    """
    Files that a client keeps beside a transcript, by plain name.

    The driver decides where they lie; a name that comes out of a transcript
    is never used as a path (only its last component, inside the session's own
    folder).
    """

    def read(self, name: str, call_id: str | None) -> bytes | None:
        """
        Content of `tool-results/<name>`, bounded, or None if it is gone.

        When the file has vanished but an earlier reading took it in, the
        stored body of that call is given instead, so that re-learning loses
        nothing.
        """
        ...


class Reader(Protocol):
    """One client's transcript format."""

    client: ClassVar[str]

    def identify(self, path: str, head: bytes) -> Identity | None:
        """
        Tell which source a file is, or None if it is not of this client.

        Args:
            path: Where it lies, `/`-separated; only its names are looked at.
            head: Up to 64 KiB of its (decompressed) start.
        """
        ...

    def read(
        self,
        data: bytes,
        *,
        state: bytes,
        fresh: bool,
        final: bool,
        salvage: bool,
        ledger: Ledger,
        side: SideFiles,
    ) -> Reading:
        """
        Read the next bytes of a transcript.

        Args:
            data: Bytes that follow what was consumed before.
            state: From the previous reading; empty at byte 0.
            fresh: This pass began at byte 0 of a file that replaced an
                already known one: records in the ledger are passed over (by
                count, where records carry no id) and only new ones are taken.
            final: The file has been quiet: a whole record without its newline
                is taken, too.
            salvage: Take the whole records of a damaged line and count the
                torn bytes as an omission of kind `damaged`.

        Raises:
            DamagedLine: A complete line is not JSON and `salvage` is off.
                `line` counts from the first line of `data`, 1-based.
            Refused: A limit was reached.
        """
        ...
