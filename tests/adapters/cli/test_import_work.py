"""A command that imports an application says before it does what would happen a second time."""

from __future__ import annotations

import sys

import pytest

from mnemoscope.adapters.cli.scope import scope_at
from mnemoscope.memory import ConfigurationError

WORKS = {
    "import uvicorn\nuvicorn.run('app:web')\n": "uvicorn.run(…) of its line 2",
    "graph = {}\ngraph.update(a=1)\n": "graph.update(…) of its line 2",
    "for _ in range(2):\n    print('again')\n": "a for block of its line 1",
    "print('again')\nprint('and again')\n": "print(…) of its line 1",
    "(lambda: print('again'))()\n": "a call of its line 1",
}
DEFINES = [
    "'''An application.'''\nimport os\nNAME = os.getcwd()\n",
    "def main():\n    print('later')\n\nif __name__ == '__main__':\n    main()\n",
    "class Agent:\n    def run(self):\n        return print('later')\n",
    "",
]


@pytest.fixture
def application(tmp_path, monkeypatch):
    """Return a function that writes the module ``shop_app``, which no test has imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(source):
        sys.modules.pop("shop_app", None)
        (tmp_path / "shop_app.py").write_text(source)

    yield written
    sys.modules.pop("shop_app", None)


def said_of(capsys):
    """Return what was said on stderr. Neither application has a scope."""
    with pytest.raises(ConfigurationError):
        scope_at("shop_app:scope")
    return capsys.readouterr().err


@pytest.mark.parametrize("source", WORKS)
def test_what_would_run_again_is_said_first(application, capsys, monkeypatch, source):
    """With its line, and what to do."""
    monkeypatch.setitem(sys.modules, "uvicorn", type("Fake", (), {"run": lambda _app: None}))
    application(source)

    (line, *_) = said_of(capsys).splitlines()
    assert line.startswith(f"importing shop_app runs {WORKS[source]} again: put it behind if ")


@pytest.mark.parametrize("source", DEFINES)
def test_a_module_that_only_defines_is_imported_without_a_word(application, capsys, source):
    """What is done behind ``if __name__`` is not done again."""
    application(source)

    assert said_of(capsys) == ""
