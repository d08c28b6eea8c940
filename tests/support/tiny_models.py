"""Models of a few thousand random numbers with tokenizers of their own: they say nothing
that means anything, and they do everything a real one does. Need the extra `train`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from osler.llm.transformers.hub import ModelPair, load_libraries

# What the tokenizers learn from; all else they spell in bytes.
CORPUS = (
    "Oral iron treats iron deficiency anaemia. The patient takes it once a day.",
    "Vitamin C is ascorbic acid. Adrenaline treats anaphylaxis.",
    "维生素C即抗坏血酸。口服铁剂治疗缺铁性贫血。首选肌内注射肾上腺素。",
)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# GPT-2's alphabet of bytes, or SentencePiece's mark for a space and bytes as `<0xE6>`.
Spelling = Literal["bytes", "marks"]


def tiny_pair(
    *,
    seed: int = 0,
    spelling: Spelling = "bytes",
    window: int | None = None,
    context: int = 512,
) -> ModelPair:
    """A Llama of two layers, or with `window` a Mistral that sees only so many tokens."""
    torch, transformers = load_libraries()
    tokenizer = tiny_tokenizer(spelling)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": context,
        "initializer_range": 0.3,  # else every token is as likely as any other
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if window is None:
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))
        else:
            config = transformers.MistralConfig(**shape, sliding_window=window)
            model = transformers.MistralForCausalLM(config)
    return ModelPair(model.eval(), tokenizer)


def tiny_tokenizer(spelling: Spelling = "bytes") -> Any:
    """A byte-pair tokenizer with a chat template."""
    import tokenizers as tk

    _, transformers = load_libraries()
    marks = ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    if spelling == "bytes":
        made = tk.Tokenizer(tk.models.BPE())
        made.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = tk.decoders.ByteLevel()
        alphabet = tk.pre_tokenizers.ByteLevel.alphabet()
    else:
        made = tk.Tokenizer(tk.models.BPE(byte_fallback=True, unk_token="<unk>"))
        made.pre_tokenizer = tk.pre_tokenizers.Metaspace(prepend_scheme="first")
        made.decoder = tk.decoders.Sequence(
            [tk.decoders.Replace("▁", " "), tk.decoders.ByteFallback(), tk.decoders.Fuse()]
        )
        alphabet = []
        marks += ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = tk.trainers.BpeTrainer(
        vocab_size=600, special_tokens=marks, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(CORPUS[:2] if spelling == "marks" else CORPUS, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def save_tiny(folder: Path, pair: ModelPair | None = None) -> Path:
    """A tiny model as a folder in the hub's form."""
    model, tokenizer = pair or tiny_pair()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_bert(
    folder: Path, *, seed: int = 0, labels: int | None = None, dimension: int = 16
) -> Path:
    """A BERT of one layer; with `labels` one that classifies a text or a pair of texts."""
    torch, transformers = load_libraries()
    tokenizer = tiny_word_pieces(CORPUS)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=dimension,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        initializer_range=0.5,
        num_labels=labels or 2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        kind = transformers.BertForSequenceClassification if labels else transformers.BertModel
        kind(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_word_pieces(corpus: Sequence[str]) -> Any:
    """A WordPiece tokenizer that puts texts between [CLS] and [SEP]."""
    import tokenizers as tk

    _, transformers = load_libraries()
    made = tk.Tokenizer(tk.models.WordPiece(unk_token="[UNK]"))
    made.normalizer = tk.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made.train_from_iterator(
        corpus,
        tk.trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False),
    )
    ends = [(mark, made.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    made.post_processor = tk.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def save_tiny_gguf(file: Path, pair: ModelPair) -> Path:
    """A tiny Llama of the spelling "bytes" as a GGUF file, for llama.cpp."""
    import gguf

    model, tokenizer = pair
    config = model.config
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, tokenizer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, tensor in model.state_dict().items():
        values = tensor.float().numpy()
        if (kind := name.split(".")[-2]) in heads:
            values = _interleave_heads(values, heads[kind])
        writer.add_tensor(names.get_name(name, (".weight",)) or name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _add_tokenizer(writer: Any, tokenizer: Any) -> None:
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    marks = {token["content"] for token in settings["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in marks else 1 for word in words])
    writer.add_token_merges([" ".join(merge) for merge in settings["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(tokenizer.chat_template)


# GGUF stores the rotary pairs as neighbours; the hub stores them in halves.
def _interleave_heads(values: Any, heads: int) -> Any:
    """llama.cpp turns neighbours, transformers the two halves of a head."""
    rows = values.shape[0] // heads // 2
    halves = values.reshape(heads, 2, rows, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape).copy()
