"""`graphsage keys`: make, list and remove the API keys of a service."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli.options import App, Json, argument, option
from graphsage.cli.output import print_columns, print_json, say
from graphsage.errors import ConfigError
from graphsage.serving.keys import READ, add_key, read_keys, remove_key

app = App(help="The API keys of a service: add, list, remove.", no_args_is_help=False)

KeyFile = Annotated[Path, argument("FILE", "File of keys; it holds names and digests, never the keys.")]
Name = Annotated[str, argument("NAME", "Name of the key; logs show it.")]


@app.command("add")
def add_command(
    file: KeyFile,
    name: Name,
    scope: Annotated[
        str, typer.Option("--scope", help="What it may do: read, write, admin, or several.", metavar="SCOPE,...")
    ] = READ,
    expires: Annotated[
        str | None,
        option("--expires", "First day (UTC) on which it is refused, or days from now.", "DATE|90d", "never"),
    ] = None,
    json: Json = False,
) -> None:
    """Make a key, print it once, and add its digest to FILE. A running service knows it within a second.

    \b
    Examples:
      graphsage keys add keys.txt dashboard
      graphsage keys add keys.txt loader --scope read,write --expires 90d
    """
    day = _day(expires)
    key = add_key(file, name, scope.split(","), day)
    if json:
        print_json({"name": name, "key": key, "scopes": scope.split(","), "expires": day and day.isoformat()})
    else:
        say(f"the key {name} of {file}, shown only this once:")
        print(key)


@app.command("list")
def list_command(file: KeyFile, json: Json = False) -> None:
    """List names, scopes and expiry of the keys in FILE."""
    keys = read_keys(file)
    rows = [
        {"name": k.name, "scopes": list(k.scopes), "expires": k.expires and k.expires.isoformat(), "expired": k.expired}
        for k in keys
    ]
    if json:
        print_json({"keys": rows})
        return
    shown = [
        (
            k.name,
            ",".join(k.scopes),
            "never" if k.expires is None else f"{k.expires}{' (expired)' if k.expired else ''}",
        )
        for k in keys
    ]
    print_columns([("name", "scopes", "expires"), *shown])


@app.command("remove")
def remove_command(file: KeyFile, name: Name, json: Json = False) -> None:
    """Remove a key from FILE. A running service refuses it within a second."""
    remove_key(file, name)
    if json:
        print_json({"removed": name})
    else:
        say(f"removed {name} from {file}")


def _day(text: str | None) -> date | None:
    """The day that a day (2027-01-31) or a number of days (90d) names."""
    if text is None:
        return None
    try:
        if text.endswith("d"):
            return datetime.now(UTC).date() + timedelta(days=int(text[:-1]))
        return date.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(f"--expires must be a day such as 2027-01-31, or days such as 90d; got {text!r}") from None
