"""A browser (Debian's chromium, without a screen) and a service with a small graph."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")  # Playwright runs an event loop in this thread: tests of other files must not meet it
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        options = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        opened = running.chromium.launch(executable_path=CHROMIUM, args=options)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running service."""
    from small_service import make_small, served

    small = make_small(tmp_path_factory.mktemp("small"))
    with served(small) as (_, running):
        yield running


@pytest.fixture
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The map page, loaded; at the end no script may have failed and nothing may have been asked of other hosts."""
    options = getattr(request, "param", {"viewport": {"width": 1100, "height": 700}})
    context = browser.new_context(**options)
    opened = context.new_page()
    errors: list[str] = []
    asked: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    refused = "Failed to load resource"  # a problem that the page shows by itself
    opened.on(
        "console",
        lambda said: errors.append(said.text) if said.type == "error" and not said.text.startswith(refused) else None,
    )
    opened.on("response", lambda answer: errors.append(answer.url) if answer.status >= 500 else None)
    opened.on("request", lambda sent: asked.append(sent.url))
    opened.goto(address)
    opened.wait_for_function("window.graphsageMap && window.graphsageMap.view", timeout=60_000)
    yield opened
    folder = os.environ.get("GRAPHSAGE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        opened.screenshot(path=f"{folder}/{request.node.name}.png".replace("[", "-").replace("]", ""))
    context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
