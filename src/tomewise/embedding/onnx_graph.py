"""A BERT encoder as an ONNX graph for ONNX Runtime on CPUs, made from safetensors weights.

All sequences of a batch have the same length, so the graph needs no mask and no padding, and the vectors of a text do
not depend on the other texts of its batch. The nodes are the fused ones of ONNX Runtime (domain com.microsoft). The
segment embedding is the same for every token of a single text; it is added to the position embeddings here. Source:
Devlin et al., "BERT", 2019, section 3; Vaswani et al., "Attention Is All You Need", 2017, section 3.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FUSED = "com.microsoft"
_VERSIONS = {"": 17, FUSED: 1}  # of the operators, by domain
_EPSILON = 1e-12  # of the layer normalisation
FLOAT, INT32 = 1, 6  # TensorProto.DataType
Weights = Mapping[str, "NDArray[np.float32]"]


def build_model(weights: Weights, *, layers: int, heads: int) -> bytes:
    """The model: `ids` (texts, tokens) int32 -> `states` (texts, tokens, dimensions) float32, the last hidden states.

    `weights` have the names of a BertModel of Hugging Face Transformers.
    """
    graph = _Graph(weights, heads)
    states = graph.add_embeddings()
    for layer in range(layers):
        states = graph.add_feed_forward(layer, graph.add_attention(layer, states))
    return graph.make_model(states)


def write_model(model: bytes, path: Path) -> None:
    """Write the model under a temporary name, then rename it, so that readers of `path` find all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, suffix=".partial", delete=False) as file:
        try:
            file.write(model)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


class _Graph:
    """The nodes and tensors built so far."""

    def __init__(self, weights: Weights, heads: int) -> None:
        self._weights = weights
        self._heads = heads
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []

    def add_embeddings(self) -> str:
        prefix = "embeddings"
        word, position, segment = (
            self._weights[f"{prefix}.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
        )
        words, positions = self._add_tensor("words", word), self._add_tensor("positions", position + segment[0])
        inputs = ["ids", "", words, positions, "", *self._add_pair(f"{prefix}.LayerNorm")]
        return self._add_node("EmbedLayerNormalization", inputs, "embedded", "mask", epsilon=_EPSILON)

    def add_attention(self, layer: int, states: str) -> str:
        prefix = f"encoder.layer.{layer}.attention"
        parts = [f"{prefix}.self.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self._weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        inputs = [states, self._add_tensor(f"{prefix}.weight", weight), self._add_tensor(f"{prefix}.bias", bias)]
        attended = self._add_node("Attention", inputs, f"{prefix}.attended", num_heads=self._heads)
        return self._add_residual(prefix, attended, states)

    def add_feed_forward(self, layer: int, states: str) -> str:
        prefix = f"encoder.layer.{layer}"
        weight, bias = self._add_pair(f"{prefix}.intermediate.dense")
        wide = self._add_node("MatMul", [states, weight], f"{prefix}.wide", domain="")
        active = self._add_node("BiasGelu", [wide, bias], f"{prefix}.active")  # with erf, as in training
        return self._add_residual(prefix, active, states)

    def make_model(self, states: str) -> bytes:
        dimensions = self._weights["embeddings.LayerNorm.weight"].shape[0]
        given = _describe_value("ids", INT32, ["texts", "tokens"])
        output = _describe_value(states, FLOAT, ["texts", "tokens", dimensions])
        # GraphProto: 1 node, 2 name, 5 initializer, 11 input, 12 output; OperatorSetIdProto: 1 domain, 2 version.
        graph = _encode({1: self._nodes, 2: "bert", 5: self._tensors, 11: given, 12: output})
        versions = [_encode({1: domain, 2: version}) for domain, version in _VERSIONS.items()]
        return _encode({1: 9, 7: graph, 8: versions})  # ModelProto: 1 ir_version, 7 graph, 8 opset_import

    def _add_residual(self, prefix: str, inner: str, states: str) -> str:
        prefix = f"{prefix}.output"
        weight, bias = self._add_pair(f"{prefix}.dense")
        projected = self._add_node("MatMul", [inner, weight], f"{prefix}.projected", domain="")
        inputs = [projected, states, *self._add_pair(f"{prefix}.LayerNorm"), bias]
        return self._add_node("SkipLayerNormalization", inputs, f"{prefix}.states", epsilon=_EPSILON)

    def _add_pair(self, prefix: str) -> tuple[str, ...]:
        """The weight and the bias of a dense layer, which multiplies from the right, or of a normalisation."""
        names = (f"{prefix}.weight", f"{prefix}.bias")
        return tuple(self._add_tensor(name, self._weights[name].T) for name in names)

    def _add_tensor(self, name: str, values: NDArray[np.float32]) -> str:
        raw = np.ascontiguousarray(values, "<f4").tobytes()
        # TensorProto: 1 dims, 2 data_type, 8 name, 9 raw_data.
        self._tensors.append(_encode({1: list(values.shape), 2: FLOAT, 8: name, 9: raw}))
        return name

    def _add_node(
        self, kind: str, inputs: list[str], output: str, *more: str, domain: str = FUSED, **attributes: int | float
    ) -> str:
        """Add a node, and return its first output."""
        # AttributeProto: 1 name, 2 f, 3 i, 20 type (1 for a float, 2 for an int).
        named = [
            _encode({1: name, 3: value, 20: 2} if isinstance(value, int) else {1: name, 2: value, 20: 1})
            for name, value in attributes.items()
        ]
        # NodeProto: 1 input, 2 output, 4 op_type, 5 attribute, 7 domain.
        self._nodes.append(_encode({1: inputs, 2: [output, *more], 4: kind, 5: named, 7: domain}))
        return output


def _describe_value(name: str, element: int, shape: list[str | int]) -> bytes:
    """The name, type and shape of an input or an output; a dimension without a size has a name."""
    # Dimension: 1 dim_value, 2 dim_param; shape: 1 dim; tensor: 1 elem_type, 2 shape; type: 1 tensor_type.
    dimensions = [_encode({2 if isinstance(size, str) else 1: size}) for size in shape]
    tensor = _encode({1: element, 2: _encode({1: dimensions})})
    return _encode({1: name, 2: _encode({1: tensor})})  # ValueInfoProto: 1 name, 2 type


def _encode(fields: Mapping[int, Any]) -> bytes:
    """A message of Protocol Buffers with these fields by their numbers in `onnx.proto`; a list is a repeated field."""
    raw = bytearray()
    for number, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, float):
                raw += _encode_number(number << 3 | 5) + struct.pack("<f", each)
            elif isinstance(each, int):
                raw += _encode_number(number << 3) + _encode_number(each)
            else:
                content = each.encode() if isinstance(each, str) else each
                raw += _encode_number(number << 3 | 2) + _encode_number(len(content)) + content
    return bytes(raw)


def _encode_number(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit of a byte says that more follow."""
    groups = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])
