"""The part of the ONNX file format that `onnx_graph` writes, as messages of Protocol Buffers.

Numbers and names of the fields are those of onnx/onnx.proto (github.com/onnx/onnx, Apache-2.0), which never change. The
package `onnx` would bring 30 MB for this one file; protobuf comes with ONNX Runtime anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def make_message(message: str, /, **fields: Any) -> Any:
    """A message of one of the kinds in `_MESSAGES`."""
    return _load_messages()[f"{_PACKAGE}.{message}"](**fields)


def make_tensor(name: str, values: NDArray[np.float32]) -> Any:
    """A tensor with the values of an array."""
    raw = np.ascontiguousarray(values, "<f4").tobytes()
    return make_message("Tensor", dims=values.shape, data_type=FLOAT, name=name, raw_data=raw)


def make_node(kind: str, inputs: list[str], outputs: list[str], domain: str, attributes: Mapping[str, Any]) -> Any:
    """A node; the attributes are whole numbers or floats."""
    named = [
        make_message("Attribute", name=name, i=value, type=_INT_ATTRIBUTE)
        if isinstance(value, int)
        else make_message("Attribute", name=name, f=value, type=_FLOAT_ATTRIBUTE)
        for name, value in sorted(attributes.items())
    ]
    return make_message("Node", op_type=kind, input=inputs, output=outputs, domain=domain, attribute=named)


def make_value(name: str, element: int, shape: list[str | int]) -> Any:
    """The name, type and shape of an input or an output; a dimension without a size has a name."""
    dimensions = [{"dim_param": size} if isinstance(size, str) else {"dim_value": size} for size in shape]
    return make_message(
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
