"""all-MiniLM-L6-v2 as an ONNX graph, written from its safetensors file.

BERT (Devlin et al. 2019) of six layers, a mean over the tokens and a division by the
length (Reimers & Gurevych 2019). The graph reads one text: ids of shape (1, tokens) to a
vector of shape (1, 384). So there is no padding and no mask, and a text's vector does not
depend on its neighbours in a batch, as it would with 8-bit activations, whose scale is
taken over all that is multiplied at once. On a CPU it is also the fastest way.

Two graphs come from one page: float32, the reference, and int8, the one in use. In int8
the matrices have one scale a column and 7 bits: with 8, processors without VNNI overflow
the 16 bits in which they add two products, and would give other vectors.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Tensor: TypeAlias = NDArray[Any]
    Tensors: TypeAlias = Mapping[str, Tensor]

LAYERS = 6
HEADS = 12
DIMENSION = 384
MAX_TOKENS = 256
"""What the model was made for; longer texts are cut (its `sentence_bert_config.json`)."""
_EPSILON = 1e-12
_OPSET, _FUSED_OPSET, _IR = 17, 1, 10
_FUSED = "com.microsoft"
_TYPES = {"F32": "<f4", "I64": "<i8"}


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file: 8 bytes of length, a JSON header, then the numbers."""
    import numpy as np

    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    numbers = memoryview(content)[8 + length :]
    return {
        name: np.frombuffer(numbers[slice(*entry["data_offsets"])], _TYPES[entry["dtype"]]).reshape(
            entry["shape"]
        )
        for name, entry in header.items()
    }


def float32_graph(tensors: Tensors) -> bytes:
    """The reference, as a serialised ONNX model."""
    return _write(_Float32(), tensors)


def int8_graph(tensors: Tensors) -> bytes:
    """The one in use, a quarter of the size; equal tensors give equal bytes."""
    return _write(_Int8(), tensors)


class _Float32:
    """Collects the nodes and constants of a graph; the three heavy steps in float32."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Tensor) -> str:
        import numpy as np
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self.ops(kind, *inputs, outputs=1, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, *inputs: str, outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        from onnx import helper

        names = [f"n{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names

    def rows(self, table: Tensor, ids: str) -> str:
        return self.op("Gather", self.constant(table), ids)

    def product(self, x: str, weight: Tensor) -> str:
        return self.op("MatMul", x, self.constant(weight))

    def attention(self, x: str, weight: Tensor, bias: Tensor) -> str:
        """Softmax(QKᵀ/√d)V for all heads; `weight` is that of Q, K and V side by side."""
        return self.op(
            "Attention",
            *(x, self.constant(weight), self.constant(bias)),
            domain=_FUSED,
            num_heads=HEADS,
        )


class _Int8(_Float32):
    """The heavy steps with 8-bit integers; activations are scaled as they come."""

    def rows(self, table: Tensor, ids: str) -> str:
        from onnx import TensorProto

        values, scales = _quantised(table.T, levels=127)
        row = self.op("Cast", self.op("Gather", self.constant(values.T), ids), to=TensorProto.FLOAT)
        scale = self.op("Gather", self.constant(scales[:, None]), ids)
        return self.op("Mul", row, scale)

    def product(self, x: str, weight: Tensor) -> str:
        """Each token is first divided by its largest value, so that it has a scale of its own.

        A few tokens are far larger than the rest, and one scale for all would drown these:
        cosine to float32 .984 at worst instead of .994 (192 abstracts' sections).
        """
        import numpy as np

        values, scales = _quantised(weight, levels=63)
        largest = self.op("ReduceMax", self.op("Abs", x), axes=[-1], keepdims=1)
        unit = self.op("Max", largest, self.constant(np.array(1e-6, np.float32)))
        product = self.op(
            "DynamicQuantizeMatMul",
            *(self.op("Div", x, unit), self.constant(values), self.constant(scales)),
            domain=_FUSED,
        )
        return self.op("Mul", product, unit)

    def attention(self, x: str, weight: Tensor, bias: Tensor) -> str:
        import numpy as np

        values, scales = _quantised(weight, levels=63)
        x8, scale, zero = self.ops("DynamicQuantizeLinear", x, outputs=3)
        weights = (self.constant(values), self.constant(bias), scale, self.constant(scales))
        zeros = (zero, self.constant(np.zeros(len(scales), np.int8)))
        no_mask = ""
        return self.op("QAttention", x8, *weights, no_mask, *zeros, domain=_FUSED, num_heads=HEADS)


def _quantised(weight: Tensor, *, levels: int) -> tuple[Tensor, Tensor]:
    """Integers from -levels to levels, and a scale for each column."""
    import numpy as np

    scales = (np.abs(weight).max(axis=0) / levels).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def _write(graph: _Float32, tensors: Tensors) -> bytes:
    from onnx import TensorProto, helper

    x = _embed(graph, tensors, "ids")
    for number in range(LAYERS):
        x = _layer(graph, tensors, f"encoder.layer.{number}.", x)
    mean = graph.op("ReduceMean", x, axes=[1], keepdims=0)
    graph.op("LpNormalization", mean, axis=-1, p=2)
    (vector,) = graph.nodes[-1].output
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info(vector, TensorProto.FLOAT, [1, DIMENSION])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, _FUSED_OPSET)],
        ir_version=_IR,
        producer_name="osler",
    )
    return bytes(model.SerializeToString())


def _embed(graph: _Float32, tensors: Tensors, ids: str) -> str:
    """Word + position + segment (always the first), normalised."""
    import numpy as np

    words = graph.rows(tensors["embeddings.word_embeddings.weight"], ids)
    segment = tensors["embeddings.token_type_embeddings.weight"][0]
    positions = tensors["embeddings.position_embeddings.weight"][:MAX_TOKENS] + segment
    start = graph.constant(np.array([0], np.int64))
    length = graph.op("Shape", ids, start=1, end=2)
    placed = graph.op("Slice", graph.constant(positions), start, length, start)
    norm = _norm(graph, tensors, "embeddings.LayerNorm")
    return graph.op(
        "LayerNormalization", graph.op("Add", words, placed), *norm, axis=-1, epsilon=_EPSILON
    )


def _layer(graph: _Float32, tensors: Tensors, at: str, x: str) -> str:
    import numpy as np

    def weight(name: str) -> Tensor:
        return tensors[f"{at}{name}.weight"].T

    def bias(name: str) -> Tensor:
        return tensors[f"{at}{name}.bias"]

    def add_and_norm(x: str, change: str, name: str) -> str:
        norm = _norm(graph, tensors, f"{at}{name}.LayerNorm")
        inputs = (x, change, *norm, graph.constant(bias(f"{name}.dense")))
        return graph.op("SkipLayerNormalization", *inputs, domain=_FUSED, epsilon=_EPSILON)

    qkv = [f"attention.self.{name}" for name in ("query", "key", "value")]
    heads = graph.attention(
        x, np.hstack([weight(name) for name in qkv]), np.hstack([bias(name) for name in qkv])
    )
    mixed = graph.product(heads, weight("attention.output.dense"))
    x = add_and_norm(x, mixed, "attention.output")
    inner = graph.product(x, weight("intermediate.dense"))
    inner_bias = graph.constant(bias("intermediate.dense"))
    active = graph.op("BiasGelu", inner, inner_bias, domain=_FUSED)
    return add_and_norm(x, graph.product(active, weight("output.dense")), "output")


def _norm(graph: _Float32, tensors: Tensors, name: str) -> tuple[str, str]:
    return graph.constant(tensors[f"{name}.weight"]), graph.constant(tensors[f"{name}.bias"])
