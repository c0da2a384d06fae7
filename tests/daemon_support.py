"""A real daemon on a folder of conversations that a test writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Self

from imprintd.errors import ImprintdError
from imprintd.ops.client import Client

WAIT_S = 60.0


class Conversation:
    """A Claude Code transcript that grows turn by turn, as the client writes it."""

    def __init__(self, projects: Path, number: int, cwd: str = "/home/ada/shop") -> None:
        self.session = str(uuid.UUID(int=0x1000 + number, version=4))
        self.key = f"claude:{self.session}"
        self.path = projects / cwd.replace("/", "-") / f"{self.session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._cwd = cwd
        self._records = 0

    def record(self, kind: str, content: Any) -> bytes:
        """One record's line, without writing it."""
        self._records += 1
        record = {
            "uuid": str(uuid.uuid5(uuid.UUID(self.session), str(self._records))),
            "sessionId": self.session,
            "cwd": self._cwd,
            "type": kind,
            "timestamp": f"2026-11-01T10:{self._records // 60 % 60:02}:{self._records % 60:02}.000Z",
            "message": {"role": kind, "content": content},
        }
        return json.dumps(record).encode() + b"\n"

    def turn(self, question: str, answer: str) -> bytes:
        """A question and its answer, as the bytes an append adds."""
        return self.record("user", question) + self.record(
            "assistant", [{"type": "text", "text": answer}]
        )

    def append(self, data: bytes) -> None:
        """Write bytes at the end, as the client does."""
        with self.path.open("ab") as file:
            file.write(data)


class Daemon:
    """`imprintd run` as a process of its own."""

    def __init__(self, folder: Path, config: str) -> None:
        self.data_dir = folder / "data"
        self.config = folder / "config.toml"
        self.config.write_text(config, encoding="utf-8")
        self.environ = {
            **os.environ,
            "IMPRINTD_DATA_DIR": str(self.data_dir),
            "IMPRINTD_CONFIG": str(self.config),
        }
        self.client = Client(self.data_dir / "imprintd.sock", timeout_s=WAIT_S)
        self.log = folder / "daemon.log"
        self.wait_s = WAIT_S
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "imprintd", "run"], env=self.environ, stderr=log
            )
        self.wait_for(lambda: bool(self.client.get("/v1/ready")["ready"]))

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.process = None
        return code

    def kill(self) -> None:
        """kill -9, the worker process included (it ends with its pipe)."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)
        self.process = None

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the same data directory."""
        return subprocess.run(
            [sys.executable, "-m", "imprintd", *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def json(self, *arguments: str) -> Any:
        """The one JSON document that a command prints."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def wait_until_learned(self, sources: int) -> Any:
        """Wait until that many sources are known and nothing is left to learn."""

        def learned() -> bool:
            status = self.client.get("/v1/status")
            return (
                status["sources"] >= sources
                and not status["backlog"]["sources"]
                and status["watch"]["scans"] > 0
            )

        self.wait_for(learned)
        return self.client.get("/v1/status")

    def wait_for(self, condition: Any) -> None:
        """Wait until something holds; a daemon that does not answer yet counts as no."""
        deadline = time.monotonic() + self.wait_s
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except ImprintdError:
                pass
            if self.process is not None and self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(self.log.read_text(errors="replace")[-3000:])


def watching(projects: Path) -> str:
    """A configuration that watches one folder and settles fast."""
    return f"""
[watch]
roots = [{{ path = "{projects}", client = "claude" }}]
settle_ms = 50
settle_ms_max = 500
"""
