"""The runs of LangGraph graphs: spans, node durations, tokens, cost, budgets."""
