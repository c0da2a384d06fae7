"""
Codex's response items: messages, reasoning, tool calls and their outputs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from imprintd.readers.recalled import recalls
from imprintd.readers.render import call_body, media_free, parsed, value_text
from imprintd.readers.tally import word

if TYPE_CHECKING:
    from imprintd.readers.codex_pass import CodexPass

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "mcp_call"})
_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "mcp_tool_call_output"}
)
_IMAGE_TAG: Final = re.compile(r"\s*(?:<image(?:\s[^<>]{0,300})?>|</image>)\s*\Z")


def item(run: CodexPass, given: dict[str, Any]) -> None:
    """Take one response item (or one line of the era without envelopes)."""
    kind = word(given.get("type"))
    if kind == "message":
        _message(run, given)
    elif kind == "reasoning":
        _reasoning(run, given)
    elif kind in _CALLS:
        _call(run, given)
    elif kind in _OUTPUTS:
        _output(run, given)
    elif kind == "web_search_call":
        action = given.get("action")
        body = call_body("web_search", action if action is not None else {}, run.tally)
        if not run.is_copy("call", (body,), item=True):
            run.emit("assistant", "tool_call", body, given.get("call_id", given.get("id")))
    elif kind == "tool_search_call":
        call = given.get("call_id")
        body = call_body("tool_search", given.get("arguments"), run.tally)
        run.emit("assistant", "tool_call", body, call)
    elif kind == "tool_search_output":
        body = value_text(given, run.tally, skip={"type", "call_id", "status", "execution"})
        run.emit("tool", "tool_output", body, given.get("call_id"))
    elif kind == "image_generation_call":
        if given.get("result"):
            run.tally.omit("image")
        body = call_body("image_generation", given.get("revised_prompt") or "", run.tally)
        run.emit("assistant", "tool_call", body, given.get("call_id", given.get("id")))
    elif kind == "agent_message":
        for text in texts_of(run, given.get("content"), "agent_message"):
            if not run.is_copy("assistant", (text,), item=True):
                run.emit("assistant", "message", text)
    elif kind in {"compaction", "compaction_summary", "context_compaction"}:
        run.tally.omit("encrypted")
    elif kind in {"ghost_snapshot", "compaction_trigger"}:
        run.tally.omit("metadata")
    else:
        run.tally.strange(f"response_item:{kind}")


def texts_of(run: CodexPass, content: Any, where: str) -> list[str]:
    """The texts of a content list; images and encrypted parts are counted."""
    if type(content) is str:
        return [content]
    if type(content) is not list:
        if content is not None:
            run.tally.strange(f"{where}:malformed")
        return []
    texts: list[str] = []
    for block in content:
        kind = word(block.get("type")) if type(block) is dict else None
        text = block.get("text") if type(block) is dict else None
        if type(text) is str:
            texts.append(text)
        elif kind in {"input_image", "output_image", "image"}:
            url = block.get("image_url", "")
            if type(url) is str and url and not url.startswith("data:"):
                texts.append(url)
            else:
                run.tally.omit("image")
        elif kind in {"input_audio", "audio", "output_audio"}:
            run.tally.omit("audio")
        elif kind in {"input_file", "file"}:
            run.tally.omit("document")
        elif kind == "encrypted_content":
            run.tally.omit("encrypted")
        elif kind == "refusal" and type(block.get("refusal")) is str:
            texts.append(block["refusal"])
        else:
            run.tally.strange(f"{where}:{kind or 'malformed'}")
    return texts


def _message(run: CodexPass, given: dict[str, Any]) -> None:
    role = word(given.get("role"))
    texts = texts_of(run, given.get("content"), "message")
    if role == "assistant":
        for text in texts:
            if text.strip() and not run.is_copy("assistant", (text,), item=True):
                run.emit("assistant", "message", text)
    elif role == "user":
        # marks around an image that is left out
        texts = [text for text in texts if text.strip() and not _IMAGE_TAG.match(text)]
        spellings = tuple({*texts, "".join(texts), "\n".join(texts)})
        if texts and not run.is_copy("user", spellings, item=True):
            for text in texts:
                run.said(text)
    else:
        for text in texts:
            run.told(text)


def _reasoning(run: CodexPass, given: dict[str, Any]) -> None:
    if given.get("encrypted_content"):
        run.tally.omit("encrypted")
    found = False
    for field in ("summary", "content"):
        for text in texts_of(run, given.get(field), "reasoning"):
            if text.strip():
                found = True
                if not run.is_copy("analysis", (text,), item=True):
                    run.emit("assistant", "analysis", text)
    if not found:
        run.tally.omit("empty_thinking")


def _call(run: CodexPass, given: dict[str, Any]) -> None:
    kind = word(given.get("type"))
    name = given.get("name")
    space = given.get("namespace")
    name = name if type(name) is str and name else "?"
    if type(space) is str and space:
        name = f"{space}{'' if space.endswith('__') else '.'}{name}"
    if kind == "local_shell_call":
        name, wanted = "local_shell", given.get("action")
    elif kind == "custom_tool_call":
        wanted = given.get("input")
    else:
        wanted = given.get("arguments")
        if type(wanted) is str:
            decoded = parsed(wanted)
            wanted = wanted if decoded is None else decoded
    call = given.get("call_id", given.get("id"))
    if type(call) is str:
        run.calls.add(call)
        if recalls(name, wanted):
            run.recalls.add(call)
    run.emit("assistant", "tool_call", call_body(name, wanted, run.tally), call)


def _output(run: CodexPass, given: dict[str, Any]) -> None:
    call = given.get("call_id")
    if type(call) is str:
        run.calls.take(call)
    run.emit("tool", "tool_output", output_text(run, given.get("output")), call)


def output_text(run: CodexPass, output: Any) -> str:
    """What a tool gave back, its wrapping decoded."""
    if type(output) is dict and "content" in output:
        output = output.get("content_items") or output["content"]
    if type(output) is list:
        return "\n".join(
            media_free(text, run.tally) for text in texts_of(run, output, "tool_output")
        )
    if type(output) is not str:
        return "" if output is None else value_text(output, run.tally)
    wrapped = parsed(output) if output.startswith('{"') else None
    if type(wrapped) is dict and set(wrapped) == {"output", "metadata"}:
        text = wrapped["output"]
        rest = value_text({"metadata": wrapped["metadata"]}, run.tally)
        text = text if type(text) is str else value_text(text, run.tally)
        return f"{text}\n{rest}" if text and not text.endswith("\n") else f"{text}{rest}"
    if type(wrapped) is dict and type(wrapped.get("content")) is list:
        return "\n".join(texts_of(run, wrapped["content"], "tool_output"))
    return media_free(output, run.tally)
