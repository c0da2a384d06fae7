"""Opening, guarding and copying the database file."""

from __future__ import annotations

import stat
import threading
from concurrent.futures import Future
from pathlib import Path

import apsw
import pytest
from store_support import SOURCE, SmallCodec, append_of, update_of

from imprintd.clock import ManualClock
from imprintd.errors import (
    ConfigError,
    Corrupt,
    NotKnown,
    ResourceError,
    SchemaTooNew,
    UsageError,
)
from imprintd.store import Store, set_aside
from imprintd.store.connection import FILE_NAME, file_system_of, prepare_folder
from imprintd.store.schema import SCHEMA, SCHEMA_1
from imprintd.store.writer import QUEUE_MAX

TEXT = "".join(f"turn {n}\n" for n in range(60))
CODEC = SmallCodec()
CLOCK = ManualClock()


def opened(folder: Path, **given: object) -> Store:
    return Store.open(folder, CLOCK, codec=CODEC, **given)  # type: ignore[arg-type]


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "data"
    with opened(folder) as store:
        store.publish([update_of(TEXT)], None)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in folder.iterdir()}
    assert modes == {FILE_NAME + suffix: 0o600 for suffix in ("", "-wal", "-shm")}


def test_open_rights_are_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    opened(folder).close()
    (folder / FILE_NAME).chmod(0o644)
    folder.chmod(0o755)
    opened(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / FILE_NAME).stat().st_mode) == 0o600


def test_a_link_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "elsewhere").touch()
    (folder / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResourceError):
        opened(folder)


def test_the_writer_is_careful(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        pragmas = store._writer.run(
            lambda c: {
                name: c.pragma(name)
                for name in (
                    "journal_mode", "synchronous", "secure_delete", "foreign_keys", "user_version"
                )
            },
            transaction=False,
        )  # fmt: skip
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
        "foreign_keys": 1,
        "user_version": SCHEMA,
    }


def test_identity_outlives_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        device, index_id = store.device, store.index_id
        assert device != index_id
    with opened(tmp_path) as store:
        assert (store.device, store.index_id) == (device, index_id)
        renewed = store.renew_index_id()
        assert renewed != index_id
    with opened(tmp_path) as store:
        assert (store.device, store.index_id) == (device, renewed)


def test_an_unclean_end_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as store:
        assert not store.was_unclean
        store.publish([update_of(TEXT)], None)
        assert store.checkpoint(truncate=True)
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / FILE_NAME).write_bytes((tmp_path / "a" / FILE_NAME).read_bytes())
    with opened(tmp_path / "a") as store:
        assert not store.was_unclean
    with opened(tmp_path / "b") as store:
        assert store.was_unclean
        assert store.quick_check() == []
        assert store.text_of(SOURCE) == TEXT
    with opened(tmp_path / "b") as store:
        assert not store.was_unclean


def test_a_newer_schema_is_refused_untouched(tmp_path: Path) -> None:
    opened(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / FILE_NAME))
    connection.pragma("user_version", SCHEMA + 1)
    connection.close()
    before = (tmp_path / FILE_NAME).read_bytes()
    for read_only in (False, True):
        with pytest.raises(SchemaTooNew):
            opened(tmp_path, read_only=read_only)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_an_older_schema_is_not_for_readers(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / FILE_NAME))
    connection.execute("CREATE TABLE early (one)")
    connection.close()
    with pytest.raises(UsageError):
        opened(tmp_path, read_only=True)


def test_schema_one_as_it_was_released_still_opens(tmp_path: Path) -> None:
    """The golden text is the schema as a database holds it; a change needs a migration."""
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA_1)
    made = [
        row[0]
        for row in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'"
            " ORDER BY name"
        )
    ]
    golden = Path(__file__).parent / "schema-1.sql"
    assert ";\n".join(made) + ";\n" == golden.read_text(encoding="utf-8")
    old = apsw.Connection(str(tmp_path / FILE_NAME))
    old.execute(golden.read_text(encoding="utf-8"))
    old.execute("INSERT INTO device VALUES (1, 'dold', 'iold', 5, 0, 1)")
    old.pragma("user_version", 1)
    old.close()
    with opened(tmp_path) as store:
        assert (store.device, store.index_id, store.change()) == ("dold", "iold", 0)
        (head,) = store.publish([update_of(TEXT)], None)
        assert store.text(head) == TEXT
        assert store.statistics().schema == SCHEMA


def test_damage_is_named_and_set_aside_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database at all, by no means" * 200)
    with pytest.raises(Corrupt):
        opened(tmp_path)
    (tmp_path / (FILE_NAME + "-wal")).write_bytes(b"log")
    assert (tmp_path / FILE_NAME).exists()
    moved = set_aside(tmp_path, ManualClock(1_700_000_000_000))
    name = FILE_NAME + ".corrupt-20231114-221320"
    assert [file.name for file in moved] == [name, name + "-wal"]
    with opened(tmp_path) as store:
        assert list(store.heads()) == []
    assert (tmp_path / name).read_bytes().startswith(b"this is no database")


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.publish([update_of(TEXT * 30)], None)
    file = tmp_path / FILE_NAME
    content = bytearray(file.read_bytes())
    for page in range(8, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    file.write_bytes(content)
    found: list[str] = []
    try:
        with opened(tmp_path, read_only=True) as store:
            found = store.quick_check()
    except Corrupt as error:
        found = [error.message]
    assert found


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/x/data", "nfs4"), ("/home", "nfs4"), ("/homes", "ext4"), ("/mnt/a b/c", "cifs")],
)
def test_the_file_system_of_a_path_is_found(path: str, kind: str) -> None:
    mounts = (
        "/dev/sda1 / ext4 rw 0 0\nserver:/h /home nfs4 rw 0 0\n//s/x /mnt/a\\040b cifs rw 0 0\n\n"
    )
    assert file_system_of(Path(path), mounts) == kind


def test_a_network_folder_is_refused_unless_allowed(tmp_path: Path) -> None:
    mounts = f"/dev/sda1 / ext4 rw 0 0\nserver:/x {tmp_path.resolve()} nfs rw 0 0\n"
    with pytest.raises(ConfigError, match="nfs"):
        prepare_folder(tmp_path / "data", mounts=mounts)
    assert prepare_folder(tmp_path / "data", mounts=mounts, allow_network=True).exists()


def test_reading_works_beside_a_writer_and_without_one(tmp_path: Path) -> None:
    with pytest.raises(NotKnown):
        opened(tmp_path / "data", read_only=True)
    with opened(tmp_path / "data") as store:
        first = update_of(TEXT)
        store.publish([first], None)
        with opened(tmp_path / "data", read_only=True) as beside:
            assert beside.text_of(SOURCE) == TEXT
            store.publish([append_of(first, TEXT, "more")], None)
            assert beside.text_of(SOURCE) == TEXT + "more"
            with pytest.raises(ResourceError):
                beside.publish([first], None)
    with opened(tmp_path / "data", read_only=True) as alone:
        assert alone.text_of(SOURCE) == TEXT + "more"
        assert alone.device == store.device


def test_a_backup_is_whole_and_private(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        store.publish([update_of(TEXT)], None)
        target = tmp_path / "copy" / FILE_NAME
        target.parent.mkdir()
        store.backup(target)
        with pytest.raises(ResourceError, match="exists"):
            store.backup(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [file.name for file in target.parent.iterdir()] == [FILE_NAME]
    with opened(tmp_path / "copy") as copy:
        assert copy.text_of(SOURCE) == TEXT
        assert copy.audit() == []


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.close()
    store.close()
    for call in (store.change, lambda: store.publish([update_of(TEXT)], None)):
        with pytest.raises(ResourceError, match="closed"):
            call()


def test_every_thread_reads_by_itself_and_leaves_nothing_open(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.publish([update_of(TEXT)], None)
        texts: list[str] = []
        threads = [
            threading.Thread(target=lambda: texts.append(store.text_of(SOURCE))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == [TEXT] * 8
        assert len(store._readers) == 0


def test_a_full_queue_is_an_answer_for_those_who_cannot_wait(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        gate = threading.Event()
        busy = threading.Event()

        def hold(_: object) -> None:
            busy.set()
            gate.wait()

        store._writer.submit(hold)
        assert busy.wait(10)
        waiting: list[Future[None]] = []
        try:
            with pytest.raises(ResourceError, match="wait"):
                waiting.extend(store.submit_points([]) for _ in range(1000))
        finally:
            gate.set()
        assert len(waiting) == QUEUE_MAX
        assert [future.result() for future in waiting] == [None] * len(waiting)


def test_settings_errors_and_cursors(tmp_path: Path) -> None:
    clock = ManualClock(5_000)
    with Store.open(tmp_path, clock, codec=CODEC) as store:
        store.set_setting("color", "blue")
        assert store.setting("color") == "blue"
        store.set_setting("color", None)
        assert store.setting("color") is None
        path = "/t/bad-\udcff.jsonl"
        for line in (3, 3, 4):
            store.record_error(
                path, code="damaged-line", reason="torn", message="m" * 900, remedy="r", line=line
            )
        (error,) = store.errors()
        assert (error.path, error.line, error.attempts, error.at_ms) == (path, 4, 1, 5_000)
        assert error.message == "m" * 500
        assert store.clear_error(path)
        assert not store.clear_error(path)
        assert store.errors() == []
