"""
The `imprintd` command: global flags, the list of commands, errors to exit codes.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from imprintd import __version__
from imprintd.cli.output import Output
from imprintd.config import Config, data_dir_from, load, socket_path
from imprintd.errors import ImprintdError

COMMANDS: Final = {
    "run": "imprintd.cli.daemon:run",
    "status": "imprintd.cli.daemon:status",
    "pause": "imprintd.cli.daemon:pause",
    "resume": "imprintd.cli.daemon:resume",
    "rescan": "imprintd.cli.daemon:rescan",
    "learn": "imprintd.cli.learn:learn",
    "sources": "imprintd.cli.ask:sources",
    "search": "imprintd.cli.ask:search",
    "get": "imprintd.cli.ask:get",
    "chunks": "imprintd.cli.ask:chunks",
    "read": "imprintd.cli.ask:read",
    "events": "imprintd.cli.ask:events",
    "verify": "imprintd.cli.verify:verify",
    "redact": "imprintd.cli.redact:redact",
    "model": "imprintd.cli.model:model",
    "roots": "imprintd.cli.roots:roots",
}
"""Where each command lives; loaded when it is called, so that help and light
commands start without the heavy libraries."""


@dataclass(frozen=True, slots=True)
class Session:
    """What the global flags say."""

    data_dir: Path
    config_file: Path | None
    workspace: str
    json: bool

    @property
    def out(self) -> Output:
        """Where answers go."""
        return Output(json=self.json)

    def config(self) -> Config:
        """The configuration; read when a command needs it."""
        return load(self.config_file, os.environ)

    def socket(self) -> Path:
        """The daemon's status socket."""
        return socket_path(self.config(), self.data_dir, os.environ)


_GLOBAL_FLAGS: Final = (
    click.Option(["--data-dir"], metavar="DIR", help="Data directory (IMPRINTD_DATA_DIR)."),
    click.Option(["--config"], metavar="FILE", help="Configuration file (IMPRINTD_CONFIG)."),
    click.Option(["--workspace"], metavar="NAME", help="Workspace; `default` unless given."),
    click.Option(["--json"], is_flag=True, default=None, help="One JSON document on stdout."),
)


def _session(earlier: Session | None, flags: dict[str, Any]) -> Session:
    """Global flags count before and after the command; the later one wins."""
    if earlier is None:
        earlier = Session(data_dir_from(None), None, "default", json=False)
    changes: dict[str, Any] = {}
    if flags.get("data_dir"):
        changes["data_dir"] = data_dir_from(flags["data_dir"])
    if flags.get("config"):
        changes["config_file"] = Path(flags["config"])
    if flags.get("workspace"):
        changes["workspace"] = flags["workspace"]
    if flags.get("json"):
        changes["json"] = True
    return replace(earlier, **changes)


class Command(click.Command):
    """A command that takes the global flags, too, and gets a Session first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_GLOBAL_FLAGS)

    def invoke(self, ctx: click.Context) -> Any:
        flags = {name: ctx.params.pop(name, None) for name in _FLAG_NAMES}
        ctx.obj = _session(ctx.obj, flags)
        return super().invoke(ctx)


_FLAG_NAMES: Final = ("data_dir", "config", "workspace", "json")


class Group(click.Group):
    """Commands that are imported when they are called."""

    command_class = Command

    def __init__(self, *args: Any, lazy: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Group,
    lazy=COMMANDS,
    params=list(_GLOBAL_FLAGS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="imprintd")
@click.pass_context
def cli(ctx: click.Context, /, **flags: Any) -> None:
    """
    Keeps AI conversations: exact, redacted, searchable.

    \b
    imprintd model install      fetch the embedding model once (optional)
    imprintd run                watch, learn, answer
    imprintd search "jitter"    find what was said
    imprintd read SOURCE        read it back, exactly
    """
    ctx.obj = _session(None, flags)


def main(arguments: list[str] | None = None) -> None:
    """Entry point; turns errors into one sentence and an exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    out = Output(json="--json" in arguments)
    try:
        code = cli.main(arguments, prog_name="imprintd", standalone_mode=False)
    except click.exceptions.Abort:
        out.note("stopped")
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except ImprintdError as error:
        out.error(error)
        code = error.exit_code
    except BrokenPipeError:
        # the reader of our pipe has enough: not an error, and nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
