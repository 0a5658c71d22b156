"""Golden recall: recalls on record, made again by a candidate and compared."""

from __future__ import annotations

from .ranking import RankChange, rank_change, recall_at, reciprocal_rank

__all__ = ["RankChange", "rank_change", "recall_at", "reciprocal_rank"]
