"""The OpenAI Agents SDK beside this package, in one environment."""

from importlib.metadata import version

from agents import SQLiteSession

from mnemoscope.memory import Mnemoscope, load_settings


async def test_its_sessions_work_beside_a_scope():
    """Neither holds the other at an old version."""
    session = SQLiteSession("c-1")
    await session.add_items([{"role": "user", "content": "tea"}])
    scope = Mnemoscope(load_settings(pii_model="none"), only_sinks=[])

    assert version("openai-agents") > "0.20"
    assert await session.get_items() == [{"role": "user", "content": "tea"}]
    assert scope.close() is None
