"""
`make demo`: from nothing to a turn that is found, read back and verified.

Starts a real daemon on a temporary data directory; it reads the sample
conversations shipped beside this module or, with `--from`, one's own folder,
which is only ever read. Everything it wrote is removed at the end.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Final, Self

from imprintd.demo.screen import Screen
from imprintd.errors import ImprintdError, NoDaemon
from imprintd.ops.client import Client

SAMPLES: Final = Path(__file__).parent / "samples"
CONVERSATION: Final = "b55d785c-150e-4b56-be25-b3b50937b69d"
QUESTION: Final = "why did the job die with exit code 137"
FAKE_KEY: Final = "sk-proj-Zx8Qw3Lm9Tn4Vb7Kc2Hd6Jf1Pg5Rs0YuEoIaNlMqWzXvCbTkSh"
WAIT_S: Final = 90.0


def main() -> int:
    """Run the demonstration; 0 when everything was seen to work."""
    parser = argparse.ArgumentParser(prog="imprintd.demo", description=__doc__)
    parser.add_argument(
        "--from", dest="own", help="a client's folder of your own, such as ~/.claude"
    )
    parser.add_argument("--no-model", action="store_true", help="full text only, no download")
    arguments = parser.parse_args()
    screen = Screen()
    with tempfile.TemporaryDirectory(prefix="imprintd-demo-") as folder:
        try:
            with Demo(Path(folder), screen, own=arguments.own) as demo:
                return demo.show(with_model=not arguments.no_model)
        except ImprintdError as error:
            screen.bad(f"{error.message} {error.remedy}")
            return 1


class Demo:
    """One demonstration in one temporary folder."""

    def __init__(self, folder: Path, screen: Screen, own: str | None) -> None:
        self._screen = screen
        self._data = folder / "data"
        self._data.mkdir(mode=0o700)
        self._home = folder / "home"
        shutil.copytree(SAMPLES, self._home)
        self._config = folder / "config.toml"
        roots = [(self._home / "claude", "claude"), (self._home / "codex", "codex")]
        if own:
            path = Path(own).expanduser().absolute()
            if not path.is_dir():
                raise NoDaemon(f"{path} is not a folder")
            client = "codex" if (path / "sessions").is_dir() else "claude"
            roots = [(path, client), (self._home / "claude", "claude")]
        tables = ", ".join(f"{{path = {json.dumps(str(p))}, client = '{c}'}}" for p, c in roots)
        self._config.write_text(f"[watch]\nroots = [{tables}]\nsettle_ms = 500\n")
        self._roots = roots
        self._environ = {
            **os.environ,
            "IMPRINTD_DATA_DIR": str(self._data),
            "IMPRINTD_CONFIG": str(self._config),
        }
        self._client = Client(self._data / "imprintd.sock")
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._daemon and self._daemon.poll() is None:
            self._daemon.send_signal(signal.SIGTERM)
            try:
                self._daemon.wait(15)
            except subprocess.TimeoutExpired:
                self._daemon.kill()

    def show(self, *, with_model: bool) -> int:
        """Everything, in order."""
        screen = self._screen
        screen.title("imprintd: an exact, redacted, searchable memory of AI conversations")
        if with_model:
            self._model()
        screen.step("Starting the daemon on a temporary data directory")
        for path, client in self._roots:
            screen.say(f"reads {client} conversations in {path} (read-only)")
        log = (self._data.parent / "daemon.log").open("wb")
        self._daemon = subprocess.Popen(
            [sys.executable, "-m", "imprintd", "run"], env=self._environ, stderr=log
        )
        self._wait_until_ready()
        screen.step("Learning what is there")
        status = self._wait_until_learned()
        screen.good(
            f"{status['sources']} conversations, {status['chunks']} chunks, "
            f"{status['points']} vectors, {status['process']['cpu_seconds']:.1f} s CPU"
        )
        screen.step(f"Searching: {QUESTION!r}")
        self._search(QUESTION)
        if not self._redaction():
            return 1
        screen.step("A new turn is written to a conversation that is already known")
        if not self._append():
            return 1
        screen.step("To keep it running on your own conversations")
        program = Path(sys.executable).parent / "imprintd"
        screen.say(f"{program} roots      # what would be read; nothing is read yet")
        screen.say(f"{program} run        # watches, learns, answers; Ctrl-C stops it")
        screen.say(f"{program} search '…' # from any other terminal")
        return 0

    def _model(self) -> None:
        """Install the embedding model beside the virtual environment, once."""
        models = Path(sys.prefix) / "imprintd-models"
        self._screen.step("Embedding model (kept in the virtual environment for the next time)")
        done = subprocess.run(
            [sys.executable, "-m", "imprintd", "--data-dir", str(models), "model", "install"],
            env=self._environ,
            check=False,
        )
        if done.returncode == 0:
            (self._data / "models").symlink_to(models / "models")
        else:
            self._screen.say("no model: search is full text only")

    def _get(self, path: str, **params: str) -> Any:
        return self._client.get(path, params)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                if self._get("/v1/ready")["ready"]:
                    return
            except ImprintdError:
                time.sleep(0.1)
            if self._daemon and self._daemon.poll() is not None:
                break
        log = (self._data.parent / "daemon.log").read_text(errors="replace")
        raise NoDaemon(f"the daemon did not start:\n{log[-2000:]}")

    def _wait_until_learned(self) -> Any:
        deadline = time.monotonic() + WAIT_S
        while True:
            status = self._get("/v1/status")
            backlog, owed = status["backlog"], status["owed"]
            self._screen.progress(
                f"{status['sources']} known, {backlog['sources']} files left, "
                f"{status['points']} vectors, {owed} chunks wait for theirs"
            )
            scanned = status["watch"]["scans"] > 0
            if scanned and not backlog["sources"] and (not owed or status["embedding"]["error"]):
                self._screen.progress("")
                return status
            if time.monotonic() > deadline:
                self._screen.progress("")
                self._screen.say("still learning; going on with what is known")
                return status
            time.sleep(0.2)

    def _search(self, question: str) -> Any:
        answer = self._get("/v1/search", q=question, limit="3")
        for hit in answer["hits"][:2]:
            self._screen.quote(f"{hit['source'][:15]} {hit['kind']}", hit["excerpt"])
        self._screen.say(f"{answer['mode']} search, {answer['took_ms']:.0f} ms")
        return answer

    def _redaction(self) -> bool:
        """The made-up key in the samples must be on disk nowhere."""
        found = [
            path
            for path in self._data.rglob("*")
            if path.is_file() and FAKE_KEY.encode() in path.read_bytes()
        ]
        hits = self._get("/v1/search", q="supplier key for the staging test", limit="1")["hits"]
        shown = hits[0]["excerpt"] if hits else ""
        if found or FAKE_KEY in shown:
            self._screen.bad("a secret reached the disk")
            return False
        self._screen.step("A key that someone had typed into a conversation")
        self._screen.quote("stored as", shown)
        return True

    def _append(self) -> bool:
        path = next(self._home.rglob(f"{CONVERSATION}.jsonl"))
        key = f"claude:{CONVERSATION}"
        before = self._get("/v1/read", source=key)["version"]
        word = "quokka" + uuid.uuid4().hex[:8]
        said = f"Remember this for later: the export runs on the host called {word}."
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        last = next(r for r in reversed(records) if r.get("uuid"))
        turn = {
            **last,
            "parentUuid": last["uuid"],
            "uuid": str(uuid.uuid4()),
            "type": "user",
            "message": {"role": "user", "content": said},
            "timestamp": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(turn, ensure_ascii=False, separators=(",", ":")) + "\n")
        written = time.monotonic()
        hits: list[Any] = []
        while not hits and time.monotonic() < written + 30:
            time.sleep(0.05)
            found = self._get("/v1/search", q=word, limit="1")["hits"]
            # meaning always finds something; this word stands in the new turn alone
            hits = [hit for hit in found if word in hit["excerpt"]]
        if not hits:
            self._screen.bad("the new turn was not found within 30 s")
            return False
        self._screen.good(
            f"found {1000 * (time.monotonic() - written):.0f} ms after it was written, "
            "500 ms of them waiting for the file to be quiet"
        )
        self._screen.quote("hit", hits[0]["excerpt"])
        page = self._get("/v1/read", source=key, start=str(hits[0]["start"]), verify="true")
        exact = said in page["text"] and page["version"] != before
        clean = not any(page["integrity"][name] for name in ("missing", "changed", "extra"))
        if not (exact and clean):
            self._screen.bad(f"the source did not read back exactly: {page['integrity']}")
            return False
        self._screen.good(f"read back exactly, version {page['version'][:12]}, verified")
        return True


if __name__ == "__main__":
    sys.exit(main())
