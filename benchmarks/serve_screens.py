"""What does the map page look like, and how long until t-SNE has placed the nodes?

    python -m benchmarks.serve_screens [--run demo-out/model] [--node pythag] [--out results/serve/screens]

Serves a new live graph of the run's data, notes when the map has its first and its final positions, and photographs the
page in Debian's chromium: desktop and phone, light and dark, the first screen and a chosen node.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
from PIL import Image

from benchmarks.serve_process import Server, one, serving, surroundings, write_result

DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
BROWSER = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
COLORS = 256  # of a picture, to keep its file small


def layout_seconds(server: Server, began: float) -> dict[str, float]:
    """Seconds since `began` until the map has positions, and until it has those of t-SNE."""
    seconds: dict[str, float] = {}
    while "tsne" not in seconds:
        status, body = uvloop.run(one(server, "GET", "/v1/map/changes"))
        if status == 200:
            said = json.loads(body)
            seconds.setdefault(said["method"], round(time.monotonic() - began, 1))
            if said["method"] != "tsne" and not said["coming"]:
                raise RuntimeError("t-SNE failed; see the log of the service")
        time.sleep(0.2)
    return seconds


def photograph(browser: Any, address: str, node: str, folder: Path) -> None:
    for device, options in (("desktop", DESKTOP), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, **options)
            page = context.new_page()
            for name, link in (("first", address), ("chosen", f"{address}/#node={node}")):
                page.goto("about:blank")
                page.goto(link)
                page.wait_for_function("window.graphsageMap && window.graphsageMap.seen", timeout=120_000)
                if name == "chosen":
                    page.wait_for_selector("#details .chips")
                page.wait_for_timeout(1000)
                path = folder / f"{device}-{scheme}-{name}.png"
                page.screenshot(path=path)
                with Image.open(path) as picture:
                    small = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
                small.save(path, optimize=True)
                print(f"{path}: {path.stat().st_size // 1000} kB")
            context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("demo-out/model"))
    parser.add_argument("--node", default="pythag")
    parser.add_argument("--out", type=Path, default=Path("results/serve/screens"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with serving(given.run, Path(folder) / "graph", "--map", "tsne", ready=False) as server:
            seconds = layout_seconds(server, began)
            nodes = json.loads(uvloop.run(one(server, "GET", "/v1/stats"))[1])["nodes"]
            with sync_playwright() as playwright:  # it has an event loop of its own
                path = shutil.which("chromium") or shutil.which("chromium-browser")
                browser = playwright.chromium.launch(executable_path=path, args=BROWSER)
                photograph(browser, f"http://{server.host}:{server.port}", given.node, given.out)
                result = {"nodes": nodes, "seconds_until": seconds, "chromium": browser.version}
                browser.close()
    write_result(
        given.out / "screens.json",
        "Seconds from the start of the service until the map has positions, and pictures of the page",
        "python -m benchmarks.serve_screens",
        result | {"measured": surroundings()},
    )


if __name__ == "__main__":
    main()
