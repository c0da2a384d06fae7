"""
Write MiniLM's ONNX graph from its weights.

The weights come as safetensors, without code. This module lays BERT's plain
operators around them (opset 17, no vendor operators), with mean pooling over
the attention mask and L2 normalisation inside the graph, so that a run answers
with finished vectors. The runtime fuses what it can when it loads the graph;
hand-written fusions were measured and gain nothing.

The only module that imports onnx and safetensors; both are needed while a
model is installed and never after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from imprintd.errors import ModelError
from imprintd.learn.catalogue import Shape

OPSET: Final = 17
IR_VERSION: Final = 8
"""Contemporary of opset 17: old runtimes read it too."""

_INLINE_BYTES_MAX: Final = 1024
_PAGE: Final = 4096
"""Constants start at pages, so that a runtime can map them as they lie."""

INPUT_IDS: Final = "input_ids"
INPUT_MASK: Final = "attention_mask"
OUTPUT: Final = "sentence_embedding"

Array = npt.NDArray[np.float32]


def read_weights(path: Path) -> dict[str, Array]:
    """
    Every tensor of a safetensors file, as float32.

    Raises:
        ModelError: The file cannot be read as safetensors.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"the weights cannot be read: {error}") from None
    return {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}


def write_graph(weights: dict[str, Array], path: Path, data: Path, shape: Shape) -> None:
    """
    Write the graph to `path` and its large constants to `data` beside it.

    Inputs `input_ids` and `attention_mask`, int64 (batch, tokens); output
    `sentence_embedding`, float32 (batch, hidden), of length 1. Token types are
    all zero. Every row of the mask has at least one 1.

    The runtime maps `data` into memory instead of copying it: loading is three
    times cheaper, and 60 MB less are private to a process.

    Raises:
        ModelError: A weight is missing or has another shape.
    """
    import onnx

    model, constants = _build(weights, shape)
    with data.open("wb") as stream:
        for name, value in constants.items():
            model.graph.initializer.append(_initializer(name, value, data.name, stream))
    path.write_bytes(model.SerializeToString())
    try:
        onnx.checker.check_model(str(path))
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"the graph came out wrong: {error}") from None


def _initializer(name: str, value: npt.NDArray[Any], location: str, data: IO[bytes]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    if value.nbytes < _INLINE_BYTES_MAX:
        return numpy_helper.from_array(value, name)
    data.write(bytes(-data.tell() % _PAGE))
    tensor = TensorProto(
        name=name,
        dims=value.shape,
        data_type=helper.np_dtype_to_tensor_dtype(value.dtype),
        data_location=TensorProto.EXTERNAL,
    )
    for key, entry in (("location", location), ("offset", data.tell()), ("length", value.nbytes)):
        tensor.external_data.add(key=key, value=str(entry))
    # the format is little endian, whatever this machine is
    data.write(value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes())
    return tensor


@dataclass(slots=True)
class _Graph:
    """Nodes and constants in the making; every method returns the new value's name."""

    weights: dict[str, Array]
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        from onnx import helper

        name = out or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        self.constants.setdefault(name, value)
        return name

    def ints(self, *values: int) -> str:
        name = "i_" + "_".join(str(value).replace("-", "m") for value in values)
        return self.constant(name, np.array(values, np.int64))

    def scalar(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def weight(self, name: str, *shape: int) -> Array:
        tensor = self.weights.get(name)
        if tensor is None:
            raise ModelError(f"the weights lack {name}")
        if tensor.shape != shape:
            raise ModelError(f"{name} has shape {tensor.shape}, not {shape}")
        return tensor

    def linear(self, value: str, name: str, inputs: int, outputs: int) -> str:
        matrix = np.ascontiguousarray(self.weight(f"{name}.weight", outputs, inputs).T)
        bias = self.weight(f"{name}.bias", outputs)
        product = self.op("MatMul", value, self.constant(f"{name}.weight", matrix))
        return self.op("Add", product, self.constant(f"{name}.bias", bias))

    def normalise(self, value: str, name: str, shape: Shape) -> str:
        scale = self.constant(f"{name}.weight", self.weight(f"{name}.weight", shape.hidden))
        bias = self.constant(f"{name}.bias", self.weight(f"{name}.bias", shape.hidden))
        return self.op("LayerNormalization", value, scale, bias, axis=-1, epsilon=shape.epsilon)


def _build(weights: dict[str, Array], shape: Shape) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """The model without its constants, and the constants."""
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    mask = graph.op("Cast", INPUT_MASK, out="mask", to=TensorProto.FLOAT)
    state = _embeddings(graph, shape)
    shut = _shut(graph, mask)
    for layer in range(shape.layers):
        state = _layer(graph, state, shut, f"encoder.layer.{layer}", shape)
    _pool(graph, state, mask)
    symbols = ["batch", "tokens"]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "minilm",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, symbols)
                for name in (INPUT_IDS, INPUT_MASK)
            ],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", shape.hidden])],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="imprintd",
    )
    return model, graph.constants


def _embeddings(graph: _Graph, shape: Shape) -> str:
    words = graph.constant(
        "words",
        graph.weight("embeddings.word_embeddings.weight", shape.vocabulary, shape.hidden),
    )
    # Token type 0 everywhere: its row is added to the positions once, here.
    types = graph.weight("embeddings.token_type_embeddings.weight", 2, shape.hidden)
    places = graph.weight("embeddings.position_embeddings.weight", shape.positions, shape.hidden)
    positions = graph.constant("positions", places + types[0])
    length = graph.op("Shape", INPUT_IDS, start=1, end=2)
    used = graph.op("Slice", positions, graph.ints(0), length, graph.ints(0))
    word = graph.op("Gather", words, INPUT_IDS, axis=0)
    return graph.normalise(graph.op("Add", word, used), "embeddings.LayerNorm", shape)


def _shut(graph: _Graph, mask: str) -> str:
    """0 where a token counts, a very negative number where it is padding: (b, 1, 1, s)."""
    wide = graph.op("Unsqueeze", mask, graph.ints(1, 2))
    return graph.op(
        "Mul", graph.op("Sub", graph.scalar("one", 1.0), wide), graph.scalar("never", -1e9)
    )


def _layer(graph: _Graph, state: str, shut: str, name: str, shape: Shape) -> str:
    width = shape.hidden // shape.heads
    hidden = shape.hidden

    def split(part: str, order: list[int]) -> str:
        value = graph.linear(state, f"{name}.attention.self.{part}", hidden, hidden)
        heads = graph.op("Reshape", value, graph.ints(0, 0, shape.heads, width))
        return graph.op("Transpose", heads, perm=order)

    scores = graph.op(
        "Mul",
        graph.op("MatMul", split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1])),
        graph.scalar("root", 1.0 / math.sqrt(width)),
    )
    shares = graph.op("Softmax", graph.op("Add", scores, shut), axis=-1)
    mixed = graph.op("MatMul", shares, split("value", [0, 2, 1, 3]))
    joined = graph.op(
        "Reshape", graph.op("Transpose", mixed, perm=[0, 2, 1, 3]), graph.ints(0, 0, hidden)
    )
    spoken = graph.linear(joined, f"{name}.attention.output.dense", hidden, hidden)
    state = graph.normalise(
        graph.op("Add", spoken, state), f"{name}.attention.output.LayerNorm", shape
    )
    inner = _gelu(graph, graph.linear(state, f"{name}.intermediate.dense", hidden, shape.inner))
    outer = graph.linear(inner, f"{name}.output.dense", shape.inner, hidden)
    return graph.normalise(graph.op("Add", outer, state), f"{name}.output.LayerNorm", shape)


def _gelu(graph: _Graph, value: str) -> str:
    """The exact form, x * (1 + erf(x / sqrt 2)) / 2, in the order that runtimes recognise."""
    bent = graph.op("Erf", graph.op("Div", value, graph.scalar("root2", math.sqrt(2.0))))
    scaled = graph.op("Mul", value, graph.op("Add", bent, graph.scalar("one", 1.0)))
    return graph.op("Mul", scaled, graph.scalar("half", 0.5))


def _pool(graph: _Graph, state: str, mask: str) -> None:
    wide = graph.op("Unsqueeze", mask, graph.ints(2))
    total = graph.op("ReduceSum", graph.op("Mul", state, wide), graph.ints(1), keepdims=0)
    count = graph.op("ReduceSum", mask, graph.ints(1), keepdims=1)
    mean = graph.op("Div", total, count)
    length = graph.op("ReduceL2", mean, axes=[1], keepdims=1)
    floor = graph.op("Max", length, graph.scalar("tiny", 1e-12))
    graph.op("Div", mean, floor, out=OUTPUT)
