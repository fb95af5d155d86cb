"""The front door: help, version, usage errors."""

import os
import subprocess
import sys

import pytest

from command_line import Command
from graphsage import __version__

COMMANDS = ["train", "demo", "evaluate", "embed", "predict", "search", "plot", "info", "data"]


def test_help_names_every_command(graphsage: Command) -> None:
    for words in (["--help"], []):
        answer = graphsage(*words)
        assert answer.code == 0
        assert all(command in answer.out for command in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, "data list", "data build setmm", "data build debian", "data convert"])
def test_every_command_has_help_and_json(graphsage: Command, command: str) -> None:
    answer = graphsage(*command.split(), "--help")
    assert answer.code == 0
    assert command == "data" or "--json" in answer.out


def test_version_is_the_packages(graphsage: Command) -> None:
    assert graphsage("--version").out == f"graphsage {__version__}\n"


def test_python_m_graphsage_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graphsage", "train", "--no-such"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: No such option: --no-such")


def test_a_usage_error_says_where_help_is(graphsage: Command) -> None:
    assert "see `graphsage --help`" in graphsage("no-such-command").error
    assert "see `graphsage train --help`" in graphsage("train", "setmm", "--wings").error
    assert "--epochs must be a valid integer" in graphsage("train", "setmm", "--out", "x", "--epochs", "many").error


@pytest.mark.parametrize("chosen", [None, "ACTIVE"])
def test_waiting_threads_sleep_unless_the_user_chose_otherwise(
    graphsage: Command, monkeypatch: pytest.MonkeyPatch, chosen: str | None
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "")
    if chosen is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    else:
        monkeypatch.setenv("OMP_WAIT_POLICY", chosen)
    graphsage("--version")
    assert os.environ["OMP_WAIT_POLICY"] == (chosen or "PASSIVE")
