"""The map page in a real browser: load, search, hover, choose, add a node and see it land."""

from typing import Any

import pytest

PHONE = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "has_touch": True}


def pixel_of(page: Any, id: str) -> tuple[float, float]:
    """Where a node is in the window."""
    x, y = page.evaluate(
        """(id) => {
        const { points, view } = window.graphsageMap; const i = points.place.get(id);
        const [px, py] = view.pixel(points.xy[2 * i], points.xy[2 * i + 1]);
        const box = view.canvas.getBoundingClientRect(); return [px + box.x, py + box.y]; }""",
        id,
    )
    return x, y


def test_every_node_is_a_point_and_drawn(page: Any) -> None:
    assert page.evaluate("window.graphsageMap.points.count") >= 30
    page.wait_for_function("document.getElementById('count-nodes').textContent !== '–'")
    assert int(page.text_content("#count-nodes")) >= 30
    assert page.is_hidden("#message")
    colors = page.evaluate("""() => new Promise((done) => requestAnimationFrame(() => {
        const { view } = window.graphsageMap; view.paint();
        const pixels = view.regl.read(); const seen = new Set();
        for (let i = 0; i < pixels.length; i += 4) seen.add(pixels.slice(i, i + 3).join());
        done(seen.size); }))""")
    assert colors > 3, "the canvas is empty"


def test_search_by_name_with_the_keyboard_alone(page: Any) -> None:
    page.focus("#search")
    page.keyboard.type("node-2")
    page.wait_for_selector("#matches li")
    assert page.text_content("#matches li") == "node-2"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chosen")
    assert page.text_content("#chosen") == "node-2"
    details = page.text_content("#details")
    for part in ("Prediction", "Nearest by embedding", "Neighbors", "about topology item 2", "%"):
        assert part in details


def test_hover_names_a_node_and_a_click_chooses_it(page: Any) -> None:
    x, y = pixel_of(page, "node-7")
    page.mouse.move(x, y)
    page.wait_for_selector("#tip:not([hidden])")
    name = page.text_content("#tip").split(" · ")[0]
    page.mouse.click(x, y)
    page.wait_for_selector("#chosen")
    assert page.text_content("#chosen") == name
    page.click("#details .chips button >> nth=0")
    page.wait_for_function(f"document.getElementById('chosen').textContent !== '{name}'")


def test_a_new_node_lands_on_the_map(page: Any) -> None:
    page.click("#adding summary")
    page.fill("input[name=id]", "dropped <b>in</b>")
    page.fill("textarea >> nth=0", "about logic item 3")
    page.fill("textarea >> nth=1", "4")
    page.fill("input[name=edges]", "node-1, node-4")
    page.click("button[value=try]")
    page.wait_for_function("document.getElementById('added').textContent.startsWith('Not stored')")
    assert "not stored" in page.text_content("#chosen")
    page.click("button[value=add]")
    page.wait_for_function("document.getElementById('added').textContent.includes('landed')", timeout=30_000)
    page.wait_for_function("document.getElementById('chosen').textContent === 'dropped <b>in</b>'")
    assert page.evaluate("window.graphsageMap.points.place.has('dropped <b>in</b>')")
    assert "node-1" in page.text_content("#details")
    page.fill("input[name=edges]", "nobody")
    page.fill("input[name=id]", "another")
    page.click("button[value=add]")
    page.wait_for_function("document.getElementById('added').textContent.includes('not in the graph')")


def test_the_canvas_can_be_used_with_the_keyboard(page: Any) -> None:
    before = page.evaluate("[...window.graphsageMap.view.center, window.graphsageMap.view.zoom]")
    page.focus("#map")
    for key in ("ArrowRight", "ArrowUp", "+"):
        page.keyboard.press(key)
    after = page.evaluate("[...window.graphsageMap.view.center, window.graphsageMap.view.zoom]")
    assert after[0] > before[0]
    assert after[1] > before[1]
    assert after[2] > before[2]
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chosen")


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=["phone"])
def test_a_phone_in_the_dark_shows_everything(page: Any) -> None:
    wide = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1], "the page is wider than the window"
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(20, 24, 27)"
    for place in ("#search", "#count-p99", "#map", "#adding summary"):
        assert page.is_visible(place)
    page.tap("#adding summary")
    assert page.is_visible("button[value=add]")


def test_a_hundred_thousand_points_are_drawn_and_found_quickly(page: Any) -> None:
    timed = page.evaluate("""() => {
        const { points, view } = window.graphsageMap;
        for (let i = 0; i < 100000; i++)
            points.put(`p${i}`, Math.sin(i * 1.7) * Math.cos(i), Math.sin(i * 2.3), i % 20);
        view.refresh(); view.paint();
        const times = (what, count) => { const began = performance.now(); for (let i = 0; i < count; i++) what(i);
                                         return (performance.now() - began) / count; };
        return { frame: times(() => { view.moveBy(1, 1); view.paint(); }, 20),
                 hover: times((i) => view.at(i * 3, i * 2), 200), search: times((i) => points.matching(`p99${i}`), 5),
                 count: points.count }; }""")
    assert timed["count"] >= 100_030
    assert timed["frame"] < 30, timed  # the page's own work; the rest is the graphics card's
    assert timed["hover"] < 5, timed
    assert timed["search"] < 150, timed


def test_the_description_of_the_api_can_be_read(page: Any, address: str) -> None:
    page.goto(f"{address}/docs")
    page.wait_for_selector("details summary code")
    paths = page.locator("details summary code").all_text_contents()
    assert {"/v1/embed", "/v1/predict", "/v1/search", "/v1/nodes", "/v1/edges", "/healthz"} <= {*paths}
