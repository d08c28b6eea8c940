"""all-MiniLM-L6-v2 as an ONNX graph, written from its safetensors file; E5's is written alike.

BERT (Devlin et al. 2019) of six layers (E5: twelve), a mean over the tokens and a division by the
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Tensor: TypeAlias = NDArray[Any]
    Tensors: TypeAlias = Mapping[str, Any]
    """Arrays by their names in BERT; the table of words may be `PackedRows`."""

LAYERS = 6
HEADS = 12
DIMENSION = 384
MAX_TOKENS = 256
"""The length it was trained for (`sentence_bert_config.json`); longer texts are cut."""
_EPSILON = 1e-12
# Opset 17 is the last in which reductions take their axes as attributes. The IR version is
# fixed, since the onnx package would write its newest, which onnxruntime may not read yet.
_OPSET, _FUSED_OPSET, _IR = 17, 1, 10
_FUSED = "com.microsoft"
_TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "u1"}


@dataclass(frozen=True, slots=True)
class BertShape:
    """What tells one encoder of this kind from another."""

    name: str
    layers: int = LAYERS
    longest: int = MAX_TOKENS
    """Tokens of a text that are read."""
    state_layers: tuple[int, ...] = ()
    """Layers, counted from 1, whose states of the tokens are given beside the vector."""


MINILM_SHAPE = BertShape("all-MiniLM-L6-v2")


@dataclass(frozen=True, slots=True)
class PackedRows:
    """A table of 4-bit numbers: blocks of 32 that share a scale, and of which each byte has the
    number at its place in the lower half and the one 16 places on in the upper; 8 means zero."""

    halves: Tensor
    """Bytes of shape (rows, blocks, 16)."""
    scales: Tensor
    """Float16 of shape (rows, blocks, 1)."""

    @property
    def width(self) -> int:
        return 32 * int(self.halves.shape[1])

    def unpack(self) -> Tensor:
        """All rows in float32."""
        import numpy as np

        numbers = np.concatenate([self.halves & 15, self.halves >> 4], axis=2).astype(np.float32)
        rows: Tensor = (numbers - 8) * self.scales.astype(np.float32)
        return rows.reshape(-1, self.width)


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Reads all tensors of a file: 8 bytes of length, a JSON header, then the numbers."""
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


def float32_graph(tensors: Tensors, shape: BertShape = MINILM_SHAPE) -> bytes:
    """Serialises the reference ONNX model."""
    return _write_graph(Float32Graph(), tensors, shape)


def int8_graph(tensors: Tensors, shape: BertShape = MINILM_SHAPE) -> bytes:
    """Serialises the ONNX model in use, a quarter of the size; equal tensors give equal bytes."""
    return _write_graph(Int8Graph(), tensors, shape)


class Float32Graph:
    """The nodes and constants of a graph, with the three heavy steps in float32."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add_constant(self, values: Tensor) -> str:
        import numpy as np
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add_op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self.add_ops(kind, *inputs, outputs=1, domain=domain, **attributes)[0]

    def add_ops(
        self, kind: str, *inputs: str, outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        from onnx import helper

        names = [f"n{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names

    def gather_rows(self, table: Tensor, ids: str) -> str:
        return self.add_op("Gather", self.add_constant(table), ids)

    def gather_packed(self, table: PackedRows, ids: str) -> str:
        """Rows of a 4-bit table, which stays as it is: only the rows of a text are unpacked."""
        import numpy as np
        from onnx import TensorProto

        four = self.add_constant(np.array(4, np.uint8))
        both = self.add_op("Gather", self.add_constant(table.halves), ids)
        upper = self.add_op("BitShift", both, four, direction="RIGHT")
        raised = self.add_op("BitShift", both, four, direction="LEFT")
        lower = self.add_op("BitShift", raised, four, direction="RIGHT")
        numbers = self.add_op(
            "Cast", self.add_op("Concat", lower, upper, axis=-1), to=TensorProto.FLOAT
        )
        signed = self.add_op("Sub", numbers, self.add_constant(np.array(8, np.float32)))
        scales = self.add_op("Gather", self.add_constant(table.scales), ids)
        scaled = self.add_op("Mul", signed, self.add_op("Cast", scales, to=TensorProto.FLOAT))
        shape = self.add_constant(np.array([0, 0, table.width], np.int64))
        return self.add_op("Reshape", scaled, shape)

    def multiply_matrix(self, x: str, weight: Tensor) -> str:
        return self.add_op("MatMul", x, self.add_constant(weight))

    def fused_attention(self, x: str, weight: Tensor, bias: Tensor) -> str:
        """Softmax(QKᵀ/√d)V for all heads; `weight` is that of Q, K and V side by side."""
        return self.add_op(
            "Attention",
            *(x, self.add_constant(weight), self.add_constant(bias)),
            domain=_FUSED,
            num_heads=HEADS,
        )


class Int8Graph(Float32Graph):
    """The heavy steps with 8-bit integers; activations are scaled as they come."""

    def gather_rows(self, table: Tensor, ids: str) -> str:
        from onnx import TensorProto

        values, scales = _quantise_columns(table.T, levels=127)
        row = self.add_op(
            "Cast", self.add_op("Gather", self.add_constant(values.T), ids), to=TensorProto.FLOAT
        )
        scale = self.add_op("Gather", self.add_constant(scales[:, None]), ids)
        return self.add_op("Mul", row, scale)

    def multiply_matrix(self, x: str, weight: Tensor) -> str:
        """Divides each token by its largest value first, so that it has a scale of its own.

        A few tokens are far larger than the rest, and one scale for all would drown these:
        cosine to float32 .984 at worst instead of .994 (192 abstracts' sections).
        """
        import numpy as np

        values, scales = _quantise_columns(weight, levels=63)
        largest = self.add_op("ReduceMax", self.add_op("Abs", x), axes=[-1], keepdims=1)
        unit = self.add_op("Max", largest, self.add_constant(np.array(1e-6, np.float32)))
        product = self.add_op(
            "DynamicQuantizeMatMul",
            *(self.add_op("Div", x, unit), self.add_constant(values), self.add_constant(scales)),
            domain=_FUSED,
        )
        return self.add_op("Mul", product, unit)

    def fused_attention(self, x: str, weight: Tensor, bias: Tensor) -> str:
        import numpy as np

        values, scales = _quantise_columns(weight, levels=63)
        x8, scale, zero = self.add_ops("DynamicQuantizeLinear", x, outputs=3)
        weights = (
            self.add_constant(values),
            self.add_constant(bias),
            scale,
            self.add_constant(scales),
        )
        zeros = (zero, self.add_constant(np.zeros(len(scales), np.int8)))
        no_mask = ""
        return self.add_op(
            "QAttention", x8, *weights, no_mask, *zeros, domain=_FUSED, num_heads=HEADS
        )


def _quantise_columns(weight: Tensor, *, levels: int) -> tuple[Tensor, Tensor]:
    """Rounds each column to integers from -levels to levels, with a scale for each."""
    import numpy as np

    scales = (np.abs(weight).max(axis=0) / levels).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def _write_graph(graph: Float32Graph, tensors: Tensors, shape: BertShape) -> bytes:
    x = embed_tokens(graph, tensors, "ids", longest=shape.longest)
    states = []
    for number in range(shape.layers):
        x = add_encoder_layer(graph, tensors, number, x)
        states += [x] if number + 1 in shape.state_layers else []
    # One text without padding: the mean needs no mask.
    mean = graph.add_op("ReduceMean", x, axes=[1], keepdims=0)
    vector = graph.add_op("LpNormalization", mean, axis=-1, p=2)
    width = len(tensors["embeddings.LayerNorm.weight"])
    return serialise_graph(graph, shape.name, ("ids",), vector, width, states)


def serialise_graph(
    graph: Float32Graph,
    name: str,
    inputs: Sequence[str],
    output: str,
    width: int,
    states: Sequence[str] = (),
) -> bytes:
    """Serialises a graph whose inputs have the shape (1, tokens), its output (1, width), and
    further outputs (1, tokens, width)."""
    from onnx import TensorProto, helper

    def describe_output(name: str, *shape: int | str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            name,
            [helper.make_tensor_value_info(i, TensorProto.INT64, [1, "tokens"]) for i in inputs],
            [
                describe_output(output, 1, width),
                *(describe_output(state, 1, "tokens", width) for state in states),
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, _FUSED_OPSET)],
        ir_version=_IR,
        producer_name="osler",
    )
    return bytes(model.SerializeToString())


def embed_tokens(
    graph: Float32Graph,
    tensors: Tensors,
    ids: str,
    segments: str | None = None,
    longest: int = MAX_TOKENS,
) -> str:
    """Adds word, position and segment embeddings, normalised; by default there is one segment."""
    import numpy as np

    table = tensors["embeddings.word_embeddings.weight"]
    is_packed = isinstance(table, PackedRows)
    words = graph.gather_packed(table, ids) if is_packed else graph.gather_rows(table, ids)
    kinds = tensors["embeddings.token_type_embeddings.weight"]
    positions = tensors["embeddings.position_embeddings.weight"][:longest]
    if segments is None:
        # A text has one segment, so its embedding is added to all positions beforehand.
        positions = positions + kinds[0]
    else:
        kind = graph.add_op("Gather", graph.add_constant(kinds), segments)
        words = graph.add_op("Add", words, kind)
    start = graph.add_constant(np.array([0], np.int64))
    length = graph.add_op("Shape", ids, start=1, end=2)
    placed = graph.add_op("Slice", graph.add_constant(positions), start, length, start)
    norm = _norm_parameters(graph, tensors, "embeddings.LayerNorm")
    return graph.add_op(
        "LayerNormalization", graph.add_op("Add", words, placed), *norm, axis=-1, epsilon=_EPSILON
    )


def add_encoder_layer(graph: Float32Graph, tensors: Tensors, number: int, x: str) -> str:
    """Adds layer `number`, from 0, over the states `x`."""
    import numpy as np

    at = f"encoder.layer.{number}."

    def weight_of(name: str) -> Tensor:
        weight: Tensor = tensors[f"{at}{name}.weight"]
        return weight.T

    def bias_of(name: str) -> Tensor:
        bias: Tensor = tensors[f"{at}{name}.bias"]
        return bias

    def add_and_norm(x: str, change: str, name: str) -> str:
        norm = _norm_parameters(graph, tensors, f"{at}{name}.LayerNorm")
        inputs = (x, change, *norm, graph.add_constant(bias_of(f"{name}.dense")))
        return graph.add_op("SkipLayerNormalization", *inputs, domain=_FUSED, epsilon=_EPSILON)

    qkv = [f"attention.self.{name}" for name in ("query", "key", "value")]
    heads = graph.fused_attention(
        x, np.hstack([weight_of(name) for name in qkv]), np.hstack([bias_of(name) for name in qkv])
    )
    mixed = graph.multiply_matrix(heads, weight_of("attention.output.dense"))
    x = add_and_norm(x, mixed, "attention.output")
    inner = graph.multiply_matrix(x, weight_of("intermediate.dense"))
    inner_bias = graph.add_constant(bias_of("intermediate.dense"))
    active = graph.add_op("BiasGelu", inner, inner_bias, domain=_FUSED)
    return add_and_norm(x, graph.multiply_matrix(active, weight_of("output.dense")), "output")


def _norm_parameters(graph: Float32Graph, tensors: Tensors, name: str) -> tuple[str, str]:
    return graph.add_constant(tensors[f"{name}.weight"]), graph.add_constant(
        tensors[f"{name}.bias"]
    )
