"""
The status as Prometheus metrics.

Made from the status document alone, so the two can never disagree. Labels
hold rooms, codes, clients and short device ids: never paths, titles or text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from imprintd.ops.http import Response

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class Family:
    """
    One metric.

    Attributes:
        name: Base units and `_total` as Prometheus wants them.
        kind: A counter only grows.
        help: One line.
        samples: Labels and value of each series.
    """

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: tuple[Sample, ...]


def metrics_response(status: Mapping[str, Any]) -> Response:
    """What `/metrics` answers."""
    body = exposition(families(status)).encode("utf-8", "replace")
    return Response(body=body, content_type="text/plain; version=0.0.4; charset=utf-8")


def exposition(metrics: Iterable[Family]) -> str:
    """Prometheus text format; families without samples are left out."""
    lines: list[str] = []
    for metric in metrics:
        if not metric.samples:
            continue
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        for labels, value in metric.samples:
            inner = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            lines.append(f"{metric.name}{'{' + inner + '}' if inner else ''} {_number(value)}")
    return "\n".join(lines) + "\n"


def families(status: Mapping[str, Any]) -> Iterator[Family]:
    """Metrics of a status document; what it lacks is left out."""
    yield Family(
        "imprintd_build_info",
        "gauge",
        "Version of the daemon.",
        (((("version", str(status.get("version", ""))),), 1.0),),
    )
    yield Family(
        "imprintd_up",
        "gauge",
        "1 while the daemon runs and is not degraded or stopping.",
        (((), float(status.get("state") in ("running", "paused"))),),
    )
    for name, kind, help_, *path in _PLAIN:
        value = _at(status, path)
        if value is not None:
            yield Family(name, "counter" if kind == "counter" else "gauge", help_, (((), value),))
    rooms = _mapping(status.get("rooms"))
    yield _by(
        "imprintd_room_up", "gauge", "1 while the room runs.", "room",
        {name: float(_mapping(room).get("state") == "running") for name, room in rooms.items()},
    )  # fmt: skip
    yield _by(
        "imprintd_room_restarts_total", "counter", "Restarts since the start.", "room",
        {name: _at(room, ["restarts"]) for name, room in rooms.items()},
    )  # fmt: skip
    yield _by(
        "imprintd_learned_total", "counter", "Readings of a source by result.", "result",
        {name: _real(n) for name, n in _mapping(_mapping(status.get("learning")).get("results")).items()},
    )  # fmt: skip
    yield _by(
        "imprintd_warnings", "gauge", "Warnings that are visible now.", "code",
        _counted(_mapping(item).get("code") for item in _sequence(status.get("warnings"))),
    )  # fmt: skip
    yield _by(
        "imprintd_errors", "gauge", "Sources that could not be read.", "reason",
        _counted(_mapping(item).get("reason") for item in _sequence(status.get("errors"))),
    )  # fmt: skip
    peers = [_mapping(peer) for peer in _sequence(status.get("peers"))]
    for name, help_, key in (
        ("imprintd_peer_behind", "Changes that a paired device has not acknowledged.", "behind"),
        ("imprintd_peer_skew_milliseconds", "Clock of a paired device minus ours.", "skew_ms"),
    ):
        yield _by(
            name, "gauge", help_, "device",
            {str(peer.get("device", ""))[:12]: _real(peer.get(key)) for peer in peers},
        )  # fmt: skip


_PLAIN: tuple[tuple[str, ...], ...] = (
    ("imprintd_sources", "gauge", "Sources with a snapshot.", "sources"),
    ("imprintd_chunks", "gauge", "Chunks of all heads.", "chunks"),
    ("imprintd_points", "gauge", "Vectors stored.", "points"),
    ("imprintd_points_owed", "gauge", "Chunks that wait for vectors.", "owed"),
    ("imprintd_backlog_sources", "gauge", "Files that wait to be read.", "backlog", "sources"),
    ("imprintd_backlog_bytes", "gauge", "Bytes that wait to be read.", "backlog", "bytes"),
    ("imprintd_watch_folders", "gauge", "Folders below all roots.", "watch", "folders"),
    ("imprintd_watch_covered", "gauge", "Folders with a watch.", "watch", "covered"),
    ("imprintd_watch_scans_total", "counter", "Complete scans of a root.", "watch", "scans"),
    ("imprintd_watch_lost_total", "counter", "Times that hints were lost.", "watch", "losses"),
    ("imprintd_read_bytes_total", "counter", "Bytes read.", "learning", "bytes_read"),
    ("imprintd_windows_total", "counter", "Windows embedded.", "embedding", "windows"),
    ("imprintd_db_bytes", "gauge", "Size of the database.", "sizes", "db_bytes"),
    ("imprintd_wal_bytes", "gauge", "Size of its write-ahead log.", "sizes", "wal_bytes"),
    ("imprintd_resident_memory_bytes", "gauge", "Resident memory.", "process", "rss_bytes"),
    ("imprintd_cpu_seconds_total", "counter", "Processor time used.", "process", "cpu_seconds"),
)
"""Name, kind, help, and the way to the number in the status document."""


def _by(
    name: str,
    kind: Literal["gauge", "counter"],
    help_: str,
    label: str,
    values: Mapping[str, float | None],
) -> Family:
    samples = tuple(
        (((label, str(key)),), value) for key, value in sorted(values.items()) if value is not None
    )
    return Family(name, kind, help_, samples)


def _counted(keys: Iterable[Any]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for key in keys:
        counts[str(key)] = counts.get(str(key), 0.0) + 1.0
    return counts


def _at(document: Any, path: Iterable[str]) -> float | None:
    for name in path:
        document = _mapping(document).get(name)
    return _real(document)


def _real(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
