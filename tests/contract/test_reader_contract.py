"""
What every reader promises, for every reader.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "readers"))

from reader_support import (
    MAKERS,
    SAMPLES,
    Driver,
    MemoryLedger,
    bodies,
    brief,
    jsonl,
    read,
    without_pending,
)

from imprintd.errors import DamagedLine, SourceError
from imprintd.model.source import Coverage
from imprintd.readers import READERS, identify
from imprintd.readers.base import Reader

SAMPLE_FILES = sorted(SAMPLES.glob("*/**/*.jsonl"))
TRANSCRIPTS = [path for path in SAMPLE_FILES if path.name != "journal.jsonl"]
SMALL = [path for path in TRANSCRIPTS if path.stat().st_size < 4000]
LARGE = [path for path in TRANSCRIPTS if path not in SMALL]


def reader_of(path: Path) -> Reader:
    found = identify(str(path), path.read_bytes())
    assert found is not None
    return found[0]


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem[-12:])
class TestSmallSample:
    def test_any_two_pieces_give_the_same_as_one(self, path: Path) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        whole = read(reader, data)
        assert whole.events
        for cut in range(len(data) + 1):
            assert read(reader, data, [cut]) == whole

    def test_byte_by_byte(self, path: Path) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        assert read(reader, data, range(len(data))) == read(reader, data)


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem[-12:])
class TestLargeSample:
    def test_pieces_at_and_around_every_line_end(self, path: Path) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        whole = read(reader, data)
        ends = [at for at, byte in enumerate(data) if byte == 0x0A]
        for end in ends:
            for cut in (end, end + 1):
                assert read(reader, data, [cut]) == whole
        assert read(reader, data, ends) == whole

    def test_many_drawn_pieces(self, path: Path) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        whole = read(reader, data)
        draw = random.Random(7)
        for _ in range(40):
            cuts = [draw.randrange(len(data) + 1) for _ in range(draw.randrange(1, 9))]
            assert read(reader, data, cuts) == whole


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem[-12:])
class TestEverySample:
    def test_reading_is_pure(self, path: Path) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        assert read(reader, data) == read(reader, data)

    def test_the_state_holds_no_text(self, path: Path) -> None:
        driver = Driver(reader_of(path))
        driver.feed(path.read_bytes(), final=True)
        words = {word for body in bodies(driver) for word in body.split() if len(word) > 9}
        assert not [word for word in words if word.encode() in driver.state]

    @pytest.mark.parametrize("seed", range(12))
    def test_a_slimmed_file_gives_nothing_new(self, path: Path, seed: int) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        first = Driver(reader)
        first.feed(data, final=True)
        draw = random.Random(seed)
        lines = data.splitlines(keepends=True)
        kept = [line for line in lines if draw.random() < seed / 11]
        again = Driver(reader, ledger=first.ledger, fresh=True)
        rest = b"".join(kept)
        again.feed(rest, len(rest) // 2)
        again.feed(rest, final=True)
        assert brief(again.total) == []

    def test_a_reverted_file_gives_only_what_follows(self, path: Path) -> None:
        data = path.read_bytes()
        reader = reader_of(path)
        first = Driver(reader)
        first.feed(data, final=True)
        lines = data.splitlines(keepends=True)
        new = jsonl(MAKERS[reader.client](900, "said after the revert"))
        for keep in (0, len(lines) // 2, len(lines)):
            ledger = MemoryLedger(first.ledger.taken.copy())
            again = Driver(reader, ledger=ledger, fresh=True)
            rewritten = b"".join(lines[:keep])
            again.feed(rewritten)
            again.feed(rewritten + new, final=True)
            assert brief(again.total) == [("assistant", "message", "said after the revert")]


@pytest.mark.parametrize("client", READERS)
class TestReader:
    def test_its_name_is_its_key(self, client: str) -> None:
        assert READERS[client].client == client

    def test_nothing_gives_nothing(self, client: str) -> None:
        got = Driver(READERS[client]).feed(b"", final=True)
        assert (got.events, got.consumed, got.lines, got.coverage) == ((), 0, 0, Coverage())

    def test_an_unfinished_line_waits(self, client: str) -> None:
        data = jsonl(MAKERS[client](1, "whole"), MAKERS[client](2, "half"))
        for cut in range(len(jsonl(MAKERS[client](1, "whole"))), len(data)):
            driver = Driver(READERS[client])
            got = driver.feed(data, cut)
            assert bodies(got) == ["whole"]
            assert got.coverage.pending_tail_bytes == cut - driver.offset
            assert bodies(driver.feed(data)) == ["half"]

    def test_a_quiet_file_gives_its_last_record_without_newline(self, client: str) -> None:
        data = jsonl(MAKERS[client](1, "first"), MAKERS[client](2, "last"))
        bare = data[:-1]
        driver = Driver(READERS[client])
        assert bodies(driver.feed(bare)) == ["first"]
        assert bodies(driver.feed(bare, final=True)) == ["last"]
        assert driver.offset == len(bare)
        # the newline that comes later ends the same line
        driver.feed(data + jsonl(MAKERS[client](3, "more")))
        assert bodies(driver) == ["first", "last", "more"]
        assert driver.total.lines == 3

    def test_a_torn_last_line_is_no_error_even_when_quiet(self, client: str) -> None:
        data = jsonl(MAKERS[client](1, "first"), MAKERS[client](2, "last"))[:-9]
        for salvage in (False, True):
            driver = Driver(READERS[client], salvage=salvage)
            got = driver.feed(data, final=True)
            assert bodies(got) == ["first"]
            assert got.coverage.pending_tail_bytes == len(data) - driver.offset > 0

    def test_damage_names_the_line_and_a_way_on(self, client: str) -> None:
        good = jsonl(MAKERS[client](1, "first"))
        with pytest.raises(DamagedLine) as caught:
            Driver(READERS[client]).feed(good + good + b'{"type":"user","secret words\n' + good)
        assert caught.value.line == 3
        assert caught.value.reason == "damaged-line"
        assert "--salvage" in caught.value.remedy
        assert "secret" not in str(caught.value)

    def test_salvage_takes_every_whole_record(self, client: str) -> None:
        one, two, three = (MAKERS[client](n, f"record {n}") for n in (1, 2, 3))
        torn = jsonl(two)[:-20]
        data = jsonl(one) + torn + jsonl(three)
        got = read(READERS[client], data, salvage=True)
        assert bodies(got) == ["record 1", "record 3"]
        assert got.coverage.omissions["damaged"] == len(torn)

    def test_joined_records_are_records(self, client: str) -> None:
        one, two, three = (jsonl(MAKERS[client](n, f"record {n}")) for n in (1, 2, 3))
        got = read(READERS[client], one[:-1] + two[:-1] + b" " + three)
        assert bodies(got) == ["record 1", "record 2", "record 3"]
        assert got.coverage.joined_lines == 1

    def test_zero_filled_lines_are_counted(self, client: str) -> None:
        one, two = (jsonl(MAKERS[client](n, f"record {n}")) for n in (1, 2))
        data = b"\0" * 700 + b"\n" + one + b"\0" * 9000 + two + b"\n \n" + b"\0" * 143_000
        got = read(READERS[client], data)
        assert bodies(got) == ["record 1", "record 2"]
        assert got.coverage.zero_filled_lines == 2
        assert got.coverage.pending_tail_bytes == 143_000

    def test_unknown_records_are_counted_by_name(self, client: str) -> None:
        strange = {"timestamp": "2026-03-04T09:00:00Z", "type": "comet", "uuid": "x", "payload": {}}
        data = jsonl(MAKERS[client](1, "known"), strange, strange, 7, ["list"], None)
        got = read(READERS[client], data)
        assert bodies(got) == ["known"]
        assert got.coverage.unknown == {"comet": 2, "not-an-object": 3}

    def test_the_state_does_not_grow_with_the_conversation(self, client: str) -> None:
        make = MAKERS[client]
        driver = Driver(READERS[client])
        data = b""
        sizes = []
        for start in range(0, 1500, 300):
            data += jsonl(*(make(n, f"answer number {n}") for n in range(start, start + 300)))
            driver.feed(data)
            sizes.append(len(driver.state))
        assert max(sizes) < 16_000
        assert sizes[-1] <= sizes[1] + 16

    def test_a_foreign_state_is_refused_by_name(self, client: str) -> None:
        for state in (b"garbage", b"{}", b'{"v":99}', b"[1]"):
            with pytest.raises(SourceError) as caught:
                Driver(READERS[client], state=state).feed(b"")
            assert caught.value.reason == "reader-state"

    def test_counts_are_those_of_one_reading(self, client: str) -> None:
        data = jsonl(*(MAKERS[client](n, f"record {n}") for n in range(4)))
        driver = Driver(READERS[client])
        first = driver.feed(data, len(data) // 2)
        second = driver.feed(data)
        assert first.lines + second.lines == 4
        assert without_pending(first.coverage) == without_pending(second.coverage) == Coverage()

    def test_text_is_kept_to_the_letter(self, client: str) -> None:
        words = 'tab\t cr\r\n nul\0 sep\u2028 rtl\u202e 漢字 "quote" \\ \x1b[31mred \ud800 end '
        got = read(
            READERS[client],
            jsonl(MAKERS[client](1, "a")).replace(b'"a"', json.dumps(words).encode()),
        )
        assert bodies(got) == [words]

    def test_invalid_utf8_is_replaced_and_counted(self, client: str) -> None:
        data = jsonl(MAKERS[client](1, "caf??")).replace(b"caf??", b"caf\xe9\xff")
        got = read(READERS[client], data)
        assert bodies(got) == ["caf\ufffd\ufffd"]
        assert got.coverage.omissions["invalid-utf8"] == 1
