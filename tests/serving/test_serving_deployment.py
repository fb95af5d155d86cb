"""The files of docs/serving.md that put the service into production do what they say: nginx and systemd read them."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from small_service import NEW, Small, api_key, served, write_keys

ROOT = Path(__file__).parents[2]
READ, WRITE = "r" * 24, "w" * 24


def block(start: str) -> str:
    """The code block of docs/serving.md that has a line that begins so."""
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    found = [
        each
        for each in re.split(r"^```\w*\n", text, flags=re.MULTILINE)[1::2]
        if any(line.startswith(start) for line in each.splitlines())
    ]
    assert len(found) == 1, f"{len(found)} blocks with {start!r}"
    return found[0]


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def behind_nginx(folder: Path, address: str) -> Iterator[tuple[str, ssl.SSLContext]]:
    """nginx with the configuration of the docs, only with other ports and a certificate of its own."""
    certificate, key, port = folder / "graph.pem", folder / "graph.key", free_port()
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    site = block("server {")
    here = address.removeprefix("http://")
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/graph.pem", str(certificate)),
        ("/etc/ssl/graph.key", str(key)),
        ("127.0.0.1:8000", here),
    ):
        assert site.count(old) == 1, old
        site = site.replace(old, new)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    who = "user root;\n" if os.getuid() == 0 else ""  # whom the temporary folder belongs to
    config.write_text(
        f"{who}pid {folder}/nginx.pid;\ndaemon off;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{site}}}\n"
    )
    subprocess.run(["nginx", "-t", "-q", "-p", str(folder), "-c", str(config)], check=True)
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)])
    try:
        end = time.monotonic() + 20
        while not listens(port):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        yield f"https://localhost:{port}", ssl.create_default_context(cafile=str(certificate))
    finally:
        process.terminate()
        process.wait(20)


def test_behind_nginx_it_answers_limits_and_refuses_as_alone(small: Small, tmp_path: Path) -> None:
    needs("nginx", "openssl")
    copied = small.copy(tmp_path)
    keys = write_keys(tmp_path / "keys", api_key(READ, "read"), api_key(WRITE, "read", "write"))
    options = ("--api-keys", str(keys), "--max-waiting", "1", "--deadline", "30")
    with served(copied, *options) as (_, address), behind_nginx(tmp_path, address) as (outside, trust):

        def ask(path: str, body: bytes | None = None, key: str = WRITE, method: str = "POST") -> tuple[int, str, bytes]:
            headers = {"Content-Type": "application/json", **({"X-API-Key": key} if key else {})}
            request = urllib.request.Request(outside + path, body, headers, method=method if body else "GET")
            try:
                with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
                    return answer.status, answer.headers["Content-Type"], answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.headers["Content-Type"], error.read()

        assert ask("/healthz", key="")[0] == 200
        assert ask("/v1/model", key="")[:2] == (401, "application/problem+json")
        assert ask("/v1/nodes", json.dumps({"nodes": [{"id": "a b/c", **NEW}]}).encode(), READ, "PUT")[0] == 403
        assert ask("/v1/nodes", json.dumps({"nodes": [{"id": "a b/c", **NEW}]}).encode(), WRITE, "PUT")[0] == 200
        assert json.loads(ask("/v1/nodes/a%20b%2Fc")[2])["neighbors"] == ["node-1", "node-4"]
        large = json.dumps({"nodes": [{**NEW, "attributes": {"words": "x" * 225_000, "size": 1}}] * 4}).encode()
        assert ask("/v1/embed", large)[0] == 200
        too_large = json.dumps({"ids": ["x" * 1_100_000]}).encode()
        assert ask("/v1/embed", too_large)[:2] == (413, "application/problem+json")
        assert len(ask("/static/vendor/regl.min.js")[2]) > 50_000
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:  # a bulk load takes the only place
            slow.sendall(
                b"POST /v1/ingest HTTP/1.1\r\nhost: x\r\nx-api-key: %b\r\ncontent-type: application/x-ndjson\r\n"
                b"content-length: 9\r\n\r\n{" % WRITE.encode()
            )
            end = time.monotonic() + 20
            while (answer := ask("/v1/embed", b'{"ids": ["node-1"]}'))[0] == 200:
                assert time.monotonic() < end
            assert answer[:2] == (429, "application/problem+json")
            assert ask("/healthz", key="")[0] == 200


def test_behind_nginx_the_host_name_is_still_checked(small: Small, tmp_path: Path) -> None:
    needs("nginx", "openssl")
    with (
        served(small.copy(tmp_path), "--allowed-host", "graph.example.org") as (_, address),
        behind_nginx(tmp_path, address) as (outside, trust),
    ):
        statuses = {}
        for host in ("localhost", "graph.example.org", "evil.example"):
            request = urllib.request.Request(f"{outside}/v1/model", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
                    statuses[host] = answer.status
            except urllib.error.HTTPError as error:
                with error:
                    statuses[host] = error.code
        assert statuses == {"localhost": 200, "graph.example.org": 200, "evil.example": 403}


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    needs("systemd-analyze")
    unit = block("[Service]")
    assert "/opt/graphsage/bin/graphsage serve" in unit
    path = tmp_path / "graphsage.service"
    path.write_text(unit.replace("/opt/graphsage/bin/graphsage", "/bin/true"))  # the program need not be there
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "graphsage" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
    path.write_text(unit.replace("Restart=on-failure", "Restart=sometimes").replace("/opt/graphsage/bin/", "/bin/"))
    broken = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    assert "graphsage" in broken.stderr, "it finds nothing wrong with anything"
