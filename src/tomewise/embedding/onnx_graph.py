"""A BERT encoder as an ONNX graph for ONNX Runtime on CPUs, made from safetensors weights.

All sequences of a batch have the same length, so the graph needs no mask and no padding, and the vectors of a text do
not depend on the other texts of its batch. The nodes are the fused ones of ONNX Runtime (domain com.microsoft). The
segment embedding is the same for every token of a single text; it is added to the position embeddings here. Source:
Devlin et al., "BERT", 2019, section 3; Vaswani et al., "Attention Is All You Need", 2017, section 3.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FUSED = "com.microsoft"
_VERSIONS = {"": 17, FUSED: 1}  # of the operators, by domain
_EPSILON = 1e-12  # of the layer normalisation
FLOAT, INT32 = 1, 6  # TensorProto.DataType
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 2  # AttributeProto.AttributeType
_PACKAGE = "onnx"
_TYPES = {"float": 2, "int64": 3, "int32": 5, "string": 9, "message": 11, "bytes": 12}  # FieldDescriptorProto.Type
_MESSAGES: Mapping[str, str] = {
    "OperatorSetId": "string domain 1, int64 version 2",
    "Dimension": "int64 dim_value 1, string dim_param 2",
    "TensorShape": "*Dimension dim 1",
    "TensorType": "int32 elem_type 1, TensorShape shape 2",
    "Type": "TensorType tensor_type 1",
    "ValueInfo": "string name 1, Type type 2",
    "Tensor": "*int64 dims 1, int32 data_type 2, string name 8, bytes raw_data 9",
    "Attribute": "string name 1, float f 2, int64 i 3, int32 type 20",
    "Node": "*string input 1, *string output 2, string op_type 4, *Attribute attribute 5, string domain 7",
    "Graph": "*Node node 1, string name 2, *Tensor initializer 5, *ValueInfo input 11, *ValueInfo output 12",
    "Model": "int64 ir_version 1, Graph graph 7, *OperatorSetId opset_import 8",
}
Weights = Mapping[str, "NDArray[np.float32]"]


def build_model(weights: Weights, *, layers: int, heads: int) -> Any:
    """The model: `ids` (texts, tokens) int32 -> `states` (texts, tokens, dimensions) float32, the last hidden states.

    `weights` have the names of a BertModel of Hugging Face Transformers.
    """
    graph = _Graph(weights, heads)
    states = graph.add_embeddings()
    for layer in range(layers):
        states = graph.add_feed_forward(layer, graph.add_attention(layer, states))
    return graph.make_model(states)


def write_model(model: Any, path: Path) -> None:
    """Write the model under a temporary name, then rename it, so that readers of `path` find all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, suffix=".partial", delete=False) as file:
        try:
            file.write(model.SerializeToString())
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
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []

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

    def make_model(self, states: str) -> Any:
        dimensions = self._weights["embeddings.LayerNorm.weight"].shape[0]
        graph = _make_message(
            "Graph",
            name="bert",
            node=self._nodes,
            initializer=self._tensors,
            input=[_make_value("ids", INT32, ["texts", "tokens"])],
            output=[_make_value(states, FLOAT, ["texts", "tokens", dimensions])],
        )
        versions = [_make_message("OperatorSetId", domain=name, version=number) for name, number in _VERSIONS.items()]
        return _make_message("Model", ir_version=9, opset_import=versions, graph=graph)

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
        self._tensors.append(_make_message("Tensor", dims=values.shape, data_type=FLOAT, name=name, raw_data=raw))
        return name

    def _add_node(
        self, kind: str, inputs: list[str], output: str, *more: str, domain: str = FUSED, **attributes: int | float
    ) -> str:
        """Add a node, and return its first output."""
        named = [
            _make_message("Attribute", name=name, i=value, type=_INT_ATTRIBUTE)
            if isinstance(value, int)
            else _make_message("Attribute", name=name, f=value, type=_FLOAT_ATTRIBUTE)
            for name, value in attributes.items()
        ]
        outputs = [output, *more]
        node = _make_message("Node", op_type=kind, input=inputs, output=outputs, domain=domain, attribute=named)
        self._nodes.append(node)
        return output


def _make_message(message: str, /, **fields: Any) -> Any:
    """A message of one of the kinds in `_MESSAGES`."""
    return _load_messages()[f"{_PACKAGE}.{message}"](**fields)


def _make_value(name: str, element: int, shape: list[str | int]) -> Any:
    """The name, type and shape of an input or an output; a dimension without a size has a name."""
    dimensions = [{"dim_param": size} if isinstance(size, str) else {"dim_value": size} for size in shape]
    return _make_message(
        "ValueInfo", name=name, type={"tensor_type": {"elem_type": element, "shape": {"dim": dimensions}}}
    )


@cache
def _load_messages() -> Mapping[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="tomewise/onnx.proto", package=_PACKAGE)
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for field in fields.split(", "):
            kind, name, number = field.lstrip("*").split(" ")
            typed: dict[str, Any] = {"type": _TYPES.get(kind, _TYPES["message"])}
            if kind not in _TYPES:
                typed["type_name"] = f".{_PACKAGE}.{kind}"
            label = 3 if field.startswith("*") else 1  # repeated or optional
            described.field.add(name=name, number=int(number), label=label, **typed)
    # A pool of its own: the package `onnx`, where it is installed, registers messages in the common one.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return dict(message_factory.GetMessageClassesForFiles([file.name], pool))
