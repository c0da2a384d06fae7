"""
Results that a client moved out of a transcript into files beside it.

Only plain names inside the session's own folder are read; where the file has
vanished, the body that was stored for that call before is given instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final

from imprintd.readers.roots import side_folder

SIDE_BYTES_MAX: Final = 64 * 1024**2
"""No snapshot may hold more text than this, so no result beside it can, either."""


class SessionFolder:
    """
    The `tool-results` folder of one transcript.

    Args:
        transcript: Path of the transcript.
        earlier: Gives the bodies of tool outputs in the stored text by call
            id; asked only when a file is missing.
    """

    def __init__(self, transcript: str, earlier: Callable[[], Mapping[str, str]]) -> None:
        self._folder = side_folder(transcript)
        self._earlier = earlier
        self._bodies: Mapping[str, str] | None = None
        self.bytes_read = 0

    def read(self, name: str, call_id: str | None) -> bytes | None:
        """Content of one side file, or of the call as it was stored before."""
        content = self._content(name)
        if content is None and call_id:
            if self._bodies is None:
                self._bodies = self._earlier()
            body = self._bodies.get(call_id)
            if body is not None:
                content = body.encode("utf-8", "surrogatepass")
        return content

    def _content(self, name: str) -> bytes | None:
        plain = PurePosixPath(name.replace("\\", "/")).name
        if not plain or plain in {".", ".."} or "\0" in plain:
            return None
        try:
            descriptor = os.open(
                os.path.join(self._folder, plain),  # noqa: PTH118 - paths may not be UTF-8
                os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
            )
        except (OSError, ValueError):
            return None
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size > SIDE_BYTES_MAX:
                return None
            content = file.read(SIDE_BYTES_MAX + 1)
        self.bytes_read += len(content)
        return content if len(content) <= SIDE_BYTES_MAX else None
