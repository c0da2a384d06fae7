"""The reduced view of long tool events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprintd.model.event import Event
from imprintd.model.snapshot import Limits
from imprintd.text.canonical import render
from imprintd.text.view import embedding_text

LIMITS = Limits()


def output(body: str) -> str:
    return render(Event("tool", "tool_output", body, 3, "2026-01-02T03:04:05Z", "call_7"))


def distinct(count: int, seed: str = "w") -> list[str]:
    """Lines of different shapes: no two differ only in digits."""
    letters = "ghijklmnopqrstuv"
    return [
        f"{seed} " + "".join(letters[int(c, 16)] for c in f"{i:05x}") + " unremarkable text"
        for i in range(count)
    ]


def test_what_fits_is_embedded_whole() -> None:
    content = output("x" * 7900)
    assert len(content) <= LIMITS.hard_max
    assert embedding_text(content, LIMITS) == content


def test_a_view_keeps_header_opening_problems_and_closing() -> None:
    lines = distinct(900)
    lines[450] = "src/parse.c:17: error: expected ';' before '}' token"
    lines[600] = "warning: the cache is old"
    lines[700] = "process ended with exit status 3"
    content = output("\n".join(lines))
    view = embedding_text(content, LIMITS)
    header = content.split("\n", 1)[0]
    # an opening line has 33 characters with its newline, two fifths of 6000 hold 72
    first = 2400 // len(lines[0] + "\n")
    last = 1200 // len(lines[0] + "\n")
    shown = view.split("\n")
    assert shown[0] == header
    assert shown[1 : 1 + first] == lines[:first]
    assert shown[-last:] == lines[-last:]
    between = [line for line in shown[1 + first : -last] if not line.startswith("[…")]
    assert [line for line in between if "unremarkable" not in line] == [
        lines[450],
        lines[600],
        lines[700],
    ]
    assert len(view) <= LIMITS.size_prose


def test_gaps_count_every_line_that_is_left_out() -> None:
    lines = distinct(900)
    lines[450] = "fatal: not a repository"
    view = embedding_text(output("\n".join(lines)), LIMITS).split("\n")
    omitted = sum(int(v.split()[1]) for v in view if v.endswith("lines omitted …]"))
    kept = [v for v in view[1:] if v in set(lines)]
    clipped = [v for v in view[1:] if " characters …]" in v]
    assert omitted + len(kept) + len(clipped) == len(lines)
    assert len([v for v in view if v.endswith("lines omitted …]")]) == 2


def test_one_problem_line_stands_for_its_shape() -> None:
    lines = distinct(900)
    for i in range(200, 700, 5):
        lines[i] = f"test {i} failed at 0x{i * 7919:08x}"
    view = embedding_text(output("\n".join(lines)), LIMITS)
    assert [line for line in view.split("\n") if "failed" in line] == [lines[200]]


def test_errors_go_before_warnings_when_room_is_short() -> None:
    lines = [f"warning: {line} {'y' * 200}" for line in distinct(900)]
    lines[800] = "Traceback (most recent call last):"
    assert lines[800] in embedding_text(output("\n".join(lines)), LIMITS).split("\n")


@pytest.mark.parametrize("line", ["0 errors, no warnings", "finished with 0 failed"])
def test_good_news_is_no_problem_line(line: str) -> None:
    lines = distinct(900)
    lines[450] = line
    assert line not in embedding_text(output("\n".join(lines)), LIMITS)
    lines[450] = line + "; 3 failures"
    assert lines[450] in embedding_text(output("\n".join(lines)), LIMITS)


@pytest.mark.parametrize(
    "line",
    [
        "copied {i} files",
        "[{i:>6}] step",
        "commit {h} by someone",
        "id 5f0c{i:04x}-1a2b-4c3d-8e9f-{i:012x} stored",
        "0x{i:04X} -> 0X{i:08x}",
    ],
)
def test_runs_that_differ_in_numbers_collapse(line: str) -> None:
    run = [line.format(i=i, h=f"{i * 2654435761 % 2**40:010x}") for i in range(1, 2001)]
    lines = [*distinct(20), *run, *distinct(20, "end")]
    view = embedding_text(output("\n".join(lines)), LIMITS).split("\n")
    assert view[1:] == [
        *lines[:20],
        run[0],
        "[… 1999 more lines like this …]",
        *lines[-20:],
    ]


def test_two_like_lines_do_not_collapse() -> None:
    lines = ["pass 1", "pass 2", *distinct(900)]
    view = embedding_text(output("\n".join(lines)), LIMITS).split("\n")
    assert view[1:3] == lines[:2]


def test_one_huge_line_keeps_its_start_and_its_end() -> None:
    body = "start" + "ab" * 100_000 + "the end"
    content = output(body)
    view = embedding_text(content, LIMITS)
    header, line = view.split("\n")
    assert header == content.split("\n", 1)[0]
    start, mark, end = line.split(" […")[0], " characters …] ", line.split("…] ")[1]
    assert mark in line
    assert body.startswith(start)
    assert body.endswith(end)
    assert (len(start) > 2000, len(end)) == (True, 1200)
    assert len(view) <= LIMITS.size_prose


def test_a_problem_in_the_middle_of_a_huge_line_is_shown() -> None:
    body = '{"log": "' + "xy " * 30_000 + "fatal: disk is full" + " zz" * 30_000 + '"}'
    view = embedding_text(output(body), LIMITS)
    assert "fatal: disk is full" in view
    line = view.split("\n")[1]
    assert (line[:9], line[-2:]) == (body[:9], body[-2:])
    assert len(view) <= LIMITS.size_prose
    quiet = embedding_text(output(body.replace("fatal", "final")), LIMITS)
    assert len(view) - len(quiet) == len("… ") + 300 - 4 + len(" …") + len(" [… more …] ")


def test_an_ordinary_line_at_the_edge_of_the_opening_is_no_scrap() -> None:
    lines = distinct(900)
    first = 2400 // len(lines[0] + "\n")
    lines[first] = "a line that is too long by a little: error at the end of it"
    view = embedding_text(output("\n".join(lines)), LIMITS).split("\n")
    assert view[1 : first + 2] == lines[: first + 1]
    assert not any(" characters …]" in line for line in view)


def test_a_later_piece_is_reduced_without_a_header() -> None:
    lines = distinct(900)
    lines[400] = "panic: index out of range"
    view = embedding_text("\n".join(lines) + "\n", LIMITS)
    assert view.split("\n")[0] == lines[0]
    assert lines[400] in view.split("\n")
    assert len(view) <= LIMITS.size_prose


def test_a_message_is_never_reduced_to_lines() -> None:
    content = render(Event("assistant", "message", "same line\n" * 5000, 1))
    view = embedding_text(content, LIMITS)
    assert content.startswith(view)
    assert LIMITS.hard_max // 2 < len(view) <= LIMITS.hard_max


def test_a_hostile_header_is_bounded() -> None:
    content = render(Event("tool", "tool_call", "body\n" * 3000, 1, None, "k" * 100_000))
    view = embedding_text(content, LIMITS)
    assert view.startswith("«tool tool_call · turn 1 · call kkk")
    assert view.endswith("[… 2999 more lines like this …]")
    assert len(view) < 500


texts = st.lists(
    st.sampled_from(
        [
            "ok\n",
            "error: bad\n",
            "line 1\n",
            "line 22\n",
            "a" * 500,
            "\n",
            "é\u0301",
            "\ud83d\ude00",
            "\r\n",
        ]
    )
    | st.text(st.characters(exclude_categories=()), max_size=40),
    max_size=60,
).map("".join)


@settings(deadline=None)
@given(texts, st.integers(1, 40), st.integers(2, 400), st.integers(0, 50), st.booleans())
def test_a_view_always_fits(body: str, times: int, size: int, more: int, headed: bool) -> None:
    limits = Limits(size_prose=size, size_code=size, hard_max=size + more, overlap=0, piece=2000)
    content = output(body * times) if headed else body * times
    view = embedding_text(content, limits)
    assert embedding_text(content, limits) == view
    if len(content) <= limits.hard_max:
        assert view == content
    else:
        assert len(view) <= limits.hard_max
