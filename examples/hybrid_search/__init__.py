"""Hybrid search over one Qdrant collection: by meaning and by words, fused by rank."""

from __future__ import annotations

from .encoders import Bm25, DenseEncoder, FastEmbed, FastEmbedSparse, SparseEncoder, WordLlama
from .index import AsyncHybridIndex, Document, Hit, HybridIndex

__all__ = [
    "AsyncHybridIndex",
    "Bm25",
    "DenseEncoder",
    "Document",
    "FastEmbed",
    "FastEmbedSparse",
    "Hit",
    "HybridIndex",
    "SparseEncoder",
    "WordLlama",
]
