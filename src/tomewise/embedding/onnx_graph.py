"""A BERT encoder as an ONNX graph for ONNX Runtime on CPUs, made from safetensors weights: in float32, or in int8.

All sequences of a batch have the same length, so the graph needs no mask and no padding. The nodes are the fused ones
of ONNX Runtime (domain com.microsoft). The segment embedding is the same for every token of a single text; it is added
to the position embeddings here. In int8 the dense layers multiply bytes: weights with a scale for each column, states
with one for the whole run, so that a run should hold one text. What a few dimensions have in excess would coarsen all
others. So states are divided by their peaks as far as the weights can take over (Xiao et al., "SmoothQuant", 2023,
section 4), and the few neurons with the largest weights stay in float32 (Dettmers et al., "LLM.int8()", 2022, section
3). Source: Devlin et al., "BERT", 2019, section 3; Vaswani et al., "Attention Is All You Need", 2017, section 3.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FUSED = "com.microsoft"
_VERSIONS = {"": 17, FUSED: 1}  # of the operators, by domain
_EPSILON = 1e-12  # of the layer normalisation
FLOAT, INT8, INT32 = 1, 3, 6  # TensorProto.DataType
_FLOAT_NEURONS = 16  # of a feed-forward layer in int8
_SHARE = 0.7  # of the peaks of states that move into the weights, as an exponent
Weights = Mapping[str, "NDArray[np.float32]"]
Peaks = Mapping[str, "NDArray[np.float32]"]
"""The largest absolute value of each dimension of states, by their names."""


def build_model(
    weights: Weights, *, layers: int, heads: int, peaks: Peaks | None = None, shows_all: bool = False
) -> bytes:
    """The model: `ids` (texts, tokens) int32 -> `states` (texts, tokens, dimensions) float32, the last hidden states.

    `weights` have the names of a BertModel of Hugging Face Transformers. With `peaks` it computes in int8. With
    `shows_all` all states that have peaks are outputs before the last.
    """
    graph = _Graph(weights, heads, peaks)
    shown = [graph.add_embeddings()]
    for layer in range(layers):
        shown.append(graph.add_attention(layer, shown[-1]))
        shown.append(graph.add_feed_forward(layer, shown[-1]))
    return graph.make_model(shown if shows_all else shown[-1:])


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

    def __init__(self, weights: Weights, heads: int, peaks: Peaks | None) -> None:
        self._weights = weights
        self._heads = heads
        self._peaks = peaks
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
        joined = self._add_dense(f"{prefix}.joined", states, weight)
        self._add_node("Split", [joined], *parts, domain="", axis=2)
        inputs = [*parts, self._add_tensor(f"{prefix}.bias", bias)]
        attended = self._add_node("MultiHeadAttention", inputs, f"{prefix}.attended", num_heads=self._heads)
        weight = self._weights[f"{prefix}.output.dense.weight"].T
        return self._add_residual(prefix, self._add_dense(f"{prefix}.projected", attended, weight), states)

    def add_feed_forward(self, layer: int, states: str) -> str:
        prefix = f"encoder.layer.{layer}"
        wide, narrow = (self._weights[f"{prefix}.{part}.dense.weight"].T for part in ("intermediate", "output"))
        bias = self._weights[f"{prefix}.intermediate.dense.bias"]
        if self._peaks is None:
            projected = self._add_neurons(prefix, states, wide, bias, narrow, self._add_product)
        else:
            order = np.argsort(-np.abs(narrow).max(axis=1), kind="stable")
            large, rest = order[:_FLOAT_NEURONS], np.sort(order[_FLOAT_NEURONS:])
            sums = [
                self._add_neurons(prefix, states, wide[:, rest], bias[rest], narrow[rest], self._add_dense),
                self._add_neurons(
                    f"{prefix}.large", states, wide[:, large], bias[large], narrow[large], self._add_product
                ),
            ]
            projected = self._add_node("Add", sums, f"{prefix}.sum", domain="")
        return self._add_residual(prefix, projected, states)

    def make_model(self, shown: Sequence[str]) -> bytes:
        dimensions = self._weights["embeddings.LayerNorm.weight"].shape[0]
        given = _describe_value("ids", INT32, ["texts", "tokens"])
        outputs = [_describe_value(states, FLOAT, ["texts", "tokens", dimensions]) for states in shown]
        # GraphProto: 1 node, 2 name, 5 initializer, 11 input, 12 output; OperatorSetIdProto: 1 domain, 2 version.
        graph = _encode({1: self._nodes, 2: "bert", 5: self._tensors, 11: given, 12: outputs})
        versions = [_encode({1: domain, 2: version}) for domain, version in _VERSIONS.items()]
        return _encode({1: 9, 7: graph, 8: versions})  # ModelProto: 1 ir_version, 7 graph, 8 opset_import

    def _add_neurons(
        self,
        name: str,
        states: str,
        wide: NDArray[np.float32],
        bias: NDArray[np.float32],
        narrow: NDArray[np.float32],
        multiply: Callable[[str, str, NDArray[np.float32]], str],
    ) -> str:
        """What some or all neurons of a feed-forward layer give."""
        inputs = [multiply(f"{name}.wide", states, wide), self._add_tensor(f"{name}.bias", bias)]
        active = self._add_node("BiasGelu", inputs, f"{name}.active")  # with erf, as in training
        return multiply(f"{name}.projected", active, narrow)

    def _add_product(self, name: str, states: str, weight: NDArray[np.float32]) -> str:
        """States times a weight (inputs, outputs), in float32."""
        return self._add_node("MatMul", [states, self._add_tensor(f"{name}.weight", weight)], name, domain="")

    def _add_dense(self, name: str, states: str, weight: NDArray[np.float32]) -> str:
        """The same, in int8 if this graph is."""
        if self._peaks is None:
            return self._add_product(name, states, weight)
        if states in self._peaks:
            factors = _share_peaks(self._peaks[states], weight)
            inputs = [states, self._add_tensor(f"{name}.factors", 1 / factors)]
            states, weight = self._add_node("Mul", inputs, f"{name}.even", domain=""), weight * factors[:, None]
        numbers, scales = quantise(weight)
        inputs = [states, self._add_tensor(f"{name}.weight", numbers), self._add_tensor(f"{name}.scales", scales)]
        return self._add_node("DynamicQuantizeMatMul", inputs, name)

    def _add_residual(self, prefix: str, projected: str, states: str) -> str:
        prefix = f"{prefix}.output"
        bias = self._add_tensor(f"{prefix}.dense.bias", self._weights[f"{prefix}.dense.bias"])
        inputs = [projected, states, *self._add_pair(f"{prefix}.LayerNorm"), bias]
        return self._add_node("SkipLayerNormalization", inputs, f"{prefix}.states", epsilon=_EPSILON)

    def _add_pair(self, prefix: str) -> tuple[str, ...]:
        """The weight and the bias of a normalisation."""
        names = (f"{prefix}.weight", f"{prefix}.bias")
        return tuple(self._add_tensor(name, self._weights[name]) for name in names)

    def _add_tensor(self, name: str, values: NDArray[Any]) -> str:
        kind, element = (INT8, "i1") if values.dtype == np.int8 else (FLOAT, "<f4")
        raw = np.ascontiguousarray(values, element).tobytes()
        # TensorProto: 1 dims, 2 data_type, 8 name, 9 raw_data.
        self._tensors.append(_encode({1: list(values.shape), 2: kind, 8: name, 9: raw}))
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


def _share_peaks(peaks: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """By what to divide each dimension of states, and multiply its row of the weight."""
    largest = np.abs(weight).max(axis=1)
    factors = np.log(peaks) * _SHARE - np.log(largest) * (1 - _SHARE)
    shared: NDArray[np.float32] = np.exp(factors - factors.mean())
    return shared


def quantise(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A weight (inputs, outputs) as whole numbers, and what one of them is worth in each column.

    Two neighbours of one sign in a column never add to more than 128, because processors without VNNI add two products
    with bytes in 16 bits. So the numbers of a product are the same on every processor.
    """
    signed = np.maximum(np.stack([weight, -weight]), 0)
    pairs = (signed[:, 0::2] + signed[:, 1::2]).max(axis=(0, 1))
    scales = np.maximum(np.abs(weight).max(axis=0), pairs) / 127
    return np.rint(weight / scales).astype(np.int8), scales


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
