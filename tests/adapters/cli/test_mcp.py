"""``mnemoscope mcp``: a file of accepted contracts, and a server that changes."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fastmcp import FastMCP

from mnemoscope.memory import Mnemoscope, load_settings
from tests.kit import mcp_servers
from tests.kit.command_line import run
from tests.kit.mcp_servers import INPUTS, exchange, notes_server, over_http, tool

KEY = bytes(range(32))
ROOT = Path(__file__).parents[3]


@pytest.fixture
def server() -> FastMCP:
    """Return a server that the tests change."""
    return notes_server()


@pytest.fixture
def target(server, tmp_path, monkeypatch):
    """Return the address of the server; work in a folder without files, and without sinks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "")
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", KEY.hex())
    with over_http(server) as address:
        yield address


def test_a_new_tool_is_no_breaking_change(target, capfd):
    """Without a file all tools are new."""
    assert run(["mcp", "diff", target]) == 0
    assert capfd.readouterr().out == "allow    search  (tool): tool added\n"


def test_what_was_accepted_is_as_accepted(target, capfd):
    """Accept, then compare."""
    run(["mcp", "accept", target])
    capfd.readouterr()

    assert run(["mcp", "diff", target]) == 0
    assert capfd.readouterr().out == "as accepted\n"


@pytest.mark.parametrize(
    ("change", "fail_on", "code"),
    [
        ("likely renamed", "breaking", 1),
        ("likely renamed", "never", 0),
        ("optional parameter removed", "breaking", 0),
        ("optional parameter removed", "warn", 1),
        ("optional parameter added", "warn", 0),
    ],
)
def test_a_comparison_fails_a_build_by_severity(server, target, capfd, change, fail_on, code):
    """``--fail-on`` is the least that it fails on."""
    run(["mcp", "accept", target])
    exchange(server, tool(parameters=INPUTS[change]))

    assert run(["mcp", "diff", target, "--fail-on", fail_on]) == code


def test_a_comparison_is_there_as_json(server, target, capfd):
    """For other programs."""
    run(["mcp", "accept", target])
    exchange(server, tool(parameters=INPUTS["likely renamed"]))
    capfd.readouterr()

    run(["mcp", "diff", target, "--json"])

    found = json.loads(capfd.readouterr().out)
    line = {"severity": "breaking", "change": "query: likely renamed to search_query"}
    assert found == {"search": [line]}


def test_a_file_of_contracts_is_the_same_where_nothing_changed(target, tmp_path):
    """A diff in git shows what changed, but for the time of the snapshot."""
    run(["mcp", "accept", target])
    before = json.loads((tmp_path / "mcp-contracts.json").read_text())
    run(["mcp", "accept", target])
    after = json.loads((tmp_path / "mcp-contracts.json").read_text())

    for each in (before, after):
        del each["server"]["tools"]["search"]["captured_at"]
    assert after == before


def test_an_acceptance_is_sealed_in_the_audit_trail(server, target, capfd):
    """One event for each tool that changed, for ever."""
    with closing(Mnemoscope(load_settings(sinks="audit"))) as scope:
        scope.audit.append_log_event("test.began", {})
        before = scope.audit.checkpoint_now().splitlines()[1]
        run(["mcp", "accept", target])
        exchange(server, tool(parameters=INPUTS["likely renamed"]))

        assert run(["mcp", "accept", target]) == 0
        assert int(scope.audit.checkpoint_now().splitlines()[1]) == int(before) + 2


def test_an_acceptance_without_an_audit_trail_says_so(target, capfd):
    """The file has it all the same."""
    assert run(["mcp", "accept", target]) == 3
    assert "not in an audit trail" in capfd.readouterr().err
    assert run(["mcp", "diff", target]) == 0


def test_one_tool_is_accepted_and_others_are_not(server, target, capfd):
    """By name; what is named and not there is a mistake."""
    run(["mcp", "accept", target])
    server.local_provider.add_tool(tool("other"))
    exchange(server, tool(parameters=INPUTS["likely renamed"]))
    run(["mcp", "accept", target, "--tool", "other"])

    assert run(["mcp", "diff", target]) == 1
    assert run(["mcp", "accept", target, "--tool", "none"]) == 4


def test_a_tool_with_a_version_is_pinned_and_unpinned(server, target, tmp_path, capfd):
    """One without is not, since no call can ask for it."""
    server.local_provider.add_tool(tool("numbered", version="1.0"))
    run(["mcp", "accept", target])
    capfd.readouterr()

    assert run(["mcp", "pin", "search"]) == 4
    assert run(["mcp", "pin", "numbered"]) == 0
    assert pinned(tmp_path) == ["numbered"]
    assert run(["mcp", "pin", "numbered", "--off"]) == 0
    assert pinned(tmp_path) == []
    assert capfd.readouterr().out == "numbered: pinned to 1.0\nnumbered: not pinned\n"


def pinned(folder):
    """Return what the file says is pinned."""
    return json.loads((folder / "mcp-contracts.json").read_text())["server"].get("pinned", [])


def with_canary(folder, **canary):
    """Add a query to the file."""
    path = folder / "mcp-contracts.json"
    found = json.loads(path.read_text())
    found["server"]["canaries"] = [{"tool": "search", "arguments": {"query": "tea"}, **canary}]
    path.write_text(json.dumps(found))


def test_a_canary_finds_a_change_that_no_schema_shows(server, target, tmp_path, capfd):
    """The same contract, another meaning: three notes of before are one page of them now."""
    exchange(server, tool(answers=[{"found": ["one", "two", "three"]}]))
    run(["mcp", "accept", target])
    with_canary(tmp_path)
    assert run(["mcp", "canary", target]) == 0
    exchange(server, tool(answers=[{"found": ["page 1"]}]))
    assert run(["mcp", "diff", target]) == 0
    capfd.readouterr()

    assert run(["mcp", "canary", target]) == 1
    assert capfd.readouterr().out == "1 search: 3 results were recorded, 1 were found\n"


def test_a_canary_finds_the_same_of_answers_in_a_text(server, target, tmp_path, capfd):
    """Of a server that declares no output schema."""
    exchange(server, tool(output=None, answers=['{"found": ["one", "two", "three"]}']))
    run(["mcp", "accept", target])
    with_canary(tmp_path)
    assert run(["mcp", "canary", target]) == 0
    exchange(server, tool(output=None, answers=["Found nothing."]))
    capfd.readouterr()

    assert run(["mcp", "canary", target]) == 1
    said = "3 results were recorded, 0 were found; fields are missing: found[]: str"
    assert capfd.readouterr().out == f"1 search: {said}\n"


def servers_file(folder, **servers):
    """Write a file of servers, as clients of MCP have it, and return its name."""
    (folder / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    return "servers.json"


def test_a_server_is_found_in_a_file_of_servers(target, tmp_path, capfd):
    """By its name: one at an address, and one that a command with arguments starts."""
    script = {"command": sys.executable, "args": ["-m", mcp_servers.__name__], "cwd": str(ROOT)}
    file = servers_file(tmp_path, notes={"url": target}, local=script)

    assert run(["mcp", "diff", file, "--server", "notes"]) == 0
    assert capfd.readouterr().out == "allow    search  (tool): tool added\n"
    assert run(["mcp", "diff", file, "--server", "local"]) == 0
    assert "allow    search  (tool): tool added" in capfd.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"mcpServers": {"a": {"token": "s3cret"}}}'])
def test_a_file_without_the_server_is_told_in_a_line(target, tmp_path, capfd, text):
    """Which quotes nothing of it: it may hold tokens."""
    (tmp_path / "servers.json").write_text(text)

    codes = [run(["mcp", "diff", each]) for each in ("servers.json", "none.json")]
    codes.append(run(["mcp", "diff", "servers.json", "--server", "a"]))

    said = capfd.readouterr().err
    assert codes == [4, 4, 4]
    assert len(said.splitlines()) == 3
    assert "s3cret" not in said


def test_a_canary_looks_for_texts_and_for_fields(server, target, tmp_path, capfd):
    """What a known-good answer must hold; its values are not repeated."""
    run(["mcp", "accept", target])
    with_canary(tmp_path, contains=["secret"])

    assert run(["mcp", "canary", target]) == 1
    assert capfd.readouterr().out.endswith("1 search: 1 texts are missing\n")


def test_a_server_that_is_away_is_told_in_a_line(target, capfd):
    """As is a file that is none, and a name that is no server."""
    codes = [
        run(["mcp", "diff", each])
        for each in ("http://127.0.0.1:9/mcp", "no-such-script.py", "http://")
    ]

    said = capfd.readouterr().err.splitlines()
    assert codes == [4, 4, 4]
    assert len(said) == 3
