"""MedCPT's three models (Jin et al. 2023), as Omni-RAG §3.1 and §5.1.2 use them.

Their hub ids and shapes are known; which commit to pin is for who fetches them to say.
"""

from __future__ import annotations

from typing import Any

from osler.kb.encoders.hub import EncoderSide, HubEncoder
from osler.llm.transformers.hub import Weights

QUERY = "ncbi/MedCPT-Query-Encoder"
ARTICLE = "ncbi/MedCPT-Article-Encoder"
CROSS = "ncbi/MedCPT-Cross-Encoder"
DIMENSION = 768
LONGEST_QUERY, LONGEST_ARTICLE, LONGEST_PAIR = 64, 512, 512


def medcpt_encoder(query: Weights, article: Weights, **more: Any) -> HubEncoder:
    """The two encoders as one: the first token's vector; an article is title and abstract.

    `more` is as for `HubEncoder` (dtype, device, batch).
    """
    return HubEncoder(
        EncoderSide(query, LONGEST_QUERY),
        EncoderSide(article, LONGEST_ARTICLE, titled=True),
        pooling="cls",
        languages=frozenset({"en"}),
        **more,
    )
