"""
One frozen configuration, parsed once, wrong keys refused with a suggestion.

One TOML file; environment variables override paths. Every default stands here
with its reason.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imprintd.errors import ConfigError
from imprintd.model.snapshot import Limits


@dataclass(frozen=True, slots=True)
class Root:
    """A folder to watch and the client whose transcripts lie in it."""

    path: str
    client: str


@dataclass(frozen=True, slots=True)
class Watch:
    """
    Watching.

    Attributes:
        roots: None: the known clients' folders, environment overrides honoured.
        mode: `auto` watches natively and scans; `scan` only scans (network
            file systems do so by themselves).
        settle_ms: A file is read once it has been quiet for this long.
        settle_ms_max: ... and at the latest after this, quiet or not.
        scan_interval_s: Full scan; the truth behind the hints. Drawn between
            3/4 and 5/4 of it so that many roots do not line up.
        uncovered_interval_s: Folders the kernel gave no watch for.
        exclude_projects: Projects (working directories, with sub-folders)
            that are never read.
    """

    roots: tuple[Root, ...] | None = None
    mode: str = "auto"
    settle_ms: int = 1000
    settle_ms_max: int = 10_000
    scan_interval_s: int = 3600
    uncovered_interval_s: int = 20
    exclude_projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingConfig:
    """
    Admission limits and what to do with damage.

    Attributes:
        damaged_lines: `fail` keeps the previous snapshot and names the line;
            `salvage` takes every whole record and counts the torn bytes.
        file_bytes_max: Files above are refused by name.
        line_bytes_max: Likewise single lines (79 MB ones are real).
    """

    damaged_lines: str = "fail"
    file_bytes_max: int = 16 * 1024**3
    line_bytes_max: int = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class Embed:
    """
    Embedding.

    Attributes:
        model: Name of an installed model; empty: as `imprintd model use` chose,
            else MiniLM; `none`: full text only.
        duty: Share of the time that learning vectors may take, 1 to 100: half
            of one slow core warms no laptop.
        threads: For learning; one keeps the laptop cool.
        idle_unload_s: The model leaves memory after this much quiet.
    """

    model: str = ""
    duty: int = 50
    threads: int = 1
    idle_unload_s: int = 300


@dataclass(frozen=True, slots=True)
class Broker:
    """Where paired devices meet; empty: an embedded broker on this machine."""

    url: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    username: str = ""
    password_file: str = ""


@dataclass(frozen=True, slots=True)
class Ops:
    """Status socket; empty: `imprintd.sock` in the runtime or data directory."""

    socket: str = ""


@dataclass(frozen=True, slots=True)
class Web:
    """Loopback web page; off unless an address is given."""

    listen: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration."""

    watch: Watch = field(default_factory=Watch)
    reading: ReadingConfig = field(default_factory=ReadingConfig)
    chunker: Limits = field(default_factory=Limits)
    embed: Embed = field(default_factory=Embed)
    broker: Broker = field(default_factory=Broker)
    ops: Ops = field(default_factory=Ops)
    web: Web = field(default_factory=Web)


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """XDG data directory of imprintd; IMPRINTD_DATA_DIR and STATE_DIRECTORY win."""
    for name in ("IMPRINTD_DATA_DIR", "STATE_DIRECTORY"):
        if environ.get(name):
            return Path(environ[name]).expanduser()
    base = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "imprintd"


def default_config_file(environ: Mapping[str, str]) -> Path:
    """XDG configuration file of imprintd; IMPRINTD_CONFIG wins."""
    if environ.get("IMPRINTD_CONFIG"):
        return Path(environ["IMPRINTD_CONFIG"]).expanduser()
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "imprintd" / "config.toml"


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """
    XDG cache directory of imprintd: what is compiled once for all data directories.

    Nothing in it comes from transcripts, and all of it can be deleted.
    """
    base = environ.get("CACHE_DIRECTORY") or environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "imprintd"


def socket_path(config: Config, data_dir: Path, environ: Mapping[str, str]) -> Path:
    """
    Where the status socket lies.

    The runtime directory serves the default data directory only: two daemons
    with data directories of their own must not meet at one socket. Other
    data directories hold their own. Never /tmp, which is swept.
    """
    if config.ops.socket:
        return Path(config.ops.socket).expanduser()
    runtime = environ.get("XDG_RUNTIME_DIR")
    is_default = data_dir == default_data_dir(
        {k: v for k, v in environ.items() if k != "IMPRINTD_DATA_DIR"}
    )
    if runtime and is_default and Path(runtime).is_dir():
        return Path(runtime) / "imprintd" / "imprintd.sock"
    return data_dir / "imprintd.sock"


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """
    Read the configuration file; a missing default file means all defaults.

    Args:
        path: As asked for by `--config`; None: the default place.
        environ: The process environment.

    Raises:
        ConfigError: The file cannot be read or a key or value is wrong.
    """
    file = path or default_config_file(environ)
    asked = path is not None or bool(environ.get("IMPRINTD_CONFIG"))
    try:
        with file.open("rb") as stream:
            table = tomllib.load(stream)
    except FileNotFoundError:
        if asked:
            raise ConfigError(
                f"configuration file {file} does not exist", remedy="create it or drop --config"
            ) from None
        return Config()
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: {error}", remedy="mend the file and start again") from None
    config: Config = _build(Config, table, str(file), "")
    _check(config, str(file))
    return config


def _check(config: Config, file: str) -> None:
    for key, value, allowed in (
        ("watch.mode", config.watch.mode, ("auto", "scan")),
        ("reading.damaged_lines", config.reading.damaged_lines, ("fail", "salvage")),
    ):
        if value not in allowed:
            raise ConfigError(f"{file}: {key} is {value!r}; it can be {' or '.join(allowed)}")
    limits = config.chunker
    if not 0 <= limits.overlap < min(limits.size_prose, limits.size_code) // 2:
        raise ConfigError(f"{file}: chunker.overlap must be less than half of the chunk sizes")
    if not limits.size_prose <= limits.hard_max <= limits.piece:
        raise ConfigError(f"{file}: chunker needs size_prose <= hard_max <= piece")
    for name, number in (
        ("watch.settle_ms", config.watch.settle_ms),
        ("watch.settle_ms_max", config.watch.settle_ms_max),
        ("watch.scan_interval_s", config.watch.scan_interval_s),
        ("embed.threads", config.embed.threads),
    ):
        if number <= 0:
            raise ConfigError(f"{file}: {name} must be positive")
    if not 1 <= config.embed.duty <= 100:
        raise ConfigError(f"{file}: embed.duty must be from 1 to 100")


def _build(cls: Any, table: Any, file: str, prefix: str) -> Any:
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: [{prefix.rstrip('.')}] must be a table")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else ""
            raise ConfigError(f"{file}: unknown key {prefix}{key}{hint}")
        values[key] = _value(hints[key], value, file, prefix + key)
    try:
        return cls(**values)
    except TypeError:
        missing = [name for name in fields if name not in values]
        raise ConfigError(f"{file}: [{prefix.rstrip('.')}] needs {', '.join(missing)}") from None


def _value(hint: Any, value: Any, file: str, key: str) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, file, key + ".")
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{file}: {key} must be a list")
        inner = typing.get_args(hint)[0]
        return tuple(_value(inner, item, file, f"{key}[{i}]") for i, item in enumerate(value))
    if type(value) is not hint:
        raise ConfigError(f"{file}: {key} must be {_name(hint)}, not {_name(type(value))}")
    return value


def _name(hint: type) -> str:
    return {str: "a string", int: "a whole number", bool: "true or false"}.get(hint, hint.__name__)


def data_dir_from(option: str | None, environ: Mapping[str, str] | None = None) -> Path:
    """The data directory as asked for on the command line or by the environment."""
    if option:
        return Path(option).expanduser().absolute()
    return default_data_dir(os.environ if environ is None else environ).absolute()
