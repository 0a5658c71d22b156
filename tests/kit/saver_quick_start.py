"""The quick start of savers, as those of Redis and MongoDB have it, and a graph with an address."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph

CHECKPOINT: dict[str, Any] = {
    "v": 1,
    "ts": "2024-07-31T20:14:19.804150+00:00",
    "id": "1ef4f797-8335-6428-8001-8a1503f9b875",
    "channel_values": {"my_key": "meow", "node": "node"},
    "channel_versions": {"__start__": 2, "my_key": 3, "start:node": 3, "node": 3},
    "versions_seen": {"__input__": {}, "__start__": {"__start__": 1}, "node": {"start:node": 2}},
    "pending_sends": [],
}


async def quick_start(checkpointer: Any, *, is_async: bool) -> None:
    """Put a checkpoint, get it and list it, and hold what comes to what was put."""
    write_config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    read_config = {"configurable": {"thread_id": "1"}}
    if is_async:
        await checkpointer.aput(write_config, CHECKPOINT, {}, {})
        loaded = await checkpointer.aget(read_config)
        checkpoints = [each async for each in checkpointer.alist(read_config)]
    else:
        checkpointer.put(write_config, CHECKPOINT, {}, {})
        loaded = checkpointer.get(read_config)
        checkpoints = list(checkpointer.list(read_config))

    assert loaded["channel_values"] == CHECKPOINT["channel_values"]
    assert [each.checkpoint["id"] for each in checkpoints] == [CHECKPOINT["id"]]


def said(saver: Any) -> Any:
    """Return a graph that says somebody's address, and keeps its state in *saver*."""
    builder: Any = StateGraph(MessagesState)
    builder.add_node("say", lambda _state: {"messages": [("ai", "Ask bob@example.com")]})
    builder.add_edge(START, "say")
    return builder.compile(checkpointer=saver)
