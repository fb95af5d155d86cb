"""Every command's help: complete, quick, shown as written; and shell completion."""

import inspect
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from command_line import Command
from graphsage.cli.main import app, main
from graphsage.cli.options import RENAMED

HEAVY = {"torch", "sklearn", "scipy", "pyarrow", "matplotlib", "numpy", "pydantic", "fastapi"}
ROOT = typer.main.get_command(app)


def commands(command: Any = ROOT, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command and group, with the words that lead to it."""
    yield " ".join(path), command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *path, name)


def written(callback: Any) -> list[str]:
    """The lines of a command's docstring and of its options' help, before anything formats them."""
    if callback is None:  # a group with a help text and no options
        return []
    texts = [inspect.cleandoc(callback.__doc__ or "")]
    for param in inspect.signature(callback).parameters.values():
        texts += [info.help for info in getattr(param.annotation, "__metadata__", ()) if getattr(info, "help", None)]
    return [line.strip("\b ") for text in texts for line in text.splitlines()]


EVERY = dict(commands())


@pytest.mark.parametrize("path", EVERY)
def test_help_is_shown_as_written_and_names_no_type_for_flags(
    graphsage: Command, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    answer = graphsage(*path.split(), "--help")
    assert answer.code == 0
    assert "<bool>" not in answer.out
    assert "[[" not in answer.out
    assert [line for line in written(EVERY[path].callback) if line not in answer.out] == []


def names() -> Iterator[tuple[str, str, Any]]:
    """Every long option of every command: its name, the command and the option."""
    for path, command in EVERY.items():
        yield from ((name, path, option) for option in command.params for name in option.opts if name[:2] == "--")


def test_an_option_means_one_thing_in_all_commands() -> None:
    takes_file: dict[str, set[bool]] = {}
    for name, _, option in names():
        takes_file.setdefault(name, set()).add(option.metavar in ("FILE", "FOLDER", "RUN", "PATH"))
    assert [name for name, found in takes_file.items() if len(found) > 1] == []
    assert {option.help for name, _, option in names() if name == "--dim"} == {
        r"Width of the embeddings. [dim]\[default: 256][/dim]".replace("\\\\", "\\")
    }


@pytest.mark.parametrize(("command", "old", "new"), [(c, old, new) for c in RENAMED for old, new in RENAMED[c].items()])
def test_the_old_name_of_an_option_is_an_error_that_says_the_new_one(
    graphsage: Command, command: str, old: str, new: str
) -> None:
    (path,) = (path for path in EVERY if path.split(" ")[-1] == command)
    known = [name for name, where, _ in names() if where == path]
    assert old not in known
    if new.startswith("--"):
        assert graphsage(*path.split(), old, "x").error == f"error: {old} was renamed {new}"
        assert new.split()[0] in known
    else:
        assert graphsage(*path.split(), f"{old}=x").error == f"error: {old} was replaced by {new}"


def test_a_part_given_as_the_split_is_an_error_that_says_the_new_name(graphsage: Command) -> None:
    assert "write --part val" in graphsage("evaluate", "run", "--split", "val").error


def test_brackets_survive_in_completions() -> None:
    assert "table [space] of settings" in completed("sweep --sp", shell="zsh")


def test_no_help_loads_what_it_does_not_need() -> None:
    code = (
        "import json, sys; from graphsage.cli.main import main; "
        f"codes = [main([*path.split(), '--help']) for path in {list(EVERY)!r}] + [main(['--version'])]; "
        "print(json.dumps([codes, *sys.modules]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    codes, *modules = json.loads(done.stderr)
    assert not any(codes)
    assert HEAVY.isdisjoint(modules)


@pytest.mark.parametrize("path", ["", "train"])
def test_help_takes_less_than_half_a_second(path: str) -> None:
    def seconds() -> float:
        """Of processor time, which other work on the machine does not lengthen much."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "graphsage", *path.split(), "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.5


def completed(words: str, shell: str = "bash") -> str:
    """The completions of `graphsage WORDS`, as the script of --show-completion asks for them."""
    line = f"graphsage {words}"
    asked = {
        "_GRAPHSAGE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line,
        "COLUMNS": "500",
    }
    done = subprocess.run(
        [sys.executable, "-m", "graphsage"], capture_output=True, text=True, env=os.environ | asked, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("ev").split() == ["evaluate"]
    assert completed("data build cit").split() == ["citation"]
    assert completed("train --sam").split() == ["--sample-sizes"]
    assert completed("train --task u").split() == ["unsupervised"]


def test_the_completion_script_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    with pytest.raises(SystemExit, match="0"):
        main(["--show-completion"])
    script = capsys.readouterr().out
    assert re.search(r"_GRAPHSAGE_COMPLETE=complete_bash.*complete .* graphsage", script, re.DOTALL)
