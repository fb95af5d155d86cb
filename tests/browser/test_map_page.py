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
    page.keyboard.press("Escape")
    page.wait_for_selector("#chosen", state="detached")
    assert page.text_content("#welcome").endswith("nodes in 3 classes")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


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
    shown = page.locator("pre").all_text_contents()
    assert shown
    assert not any("{}" in text for text in shown), "a field without a type"


def test_a_search_finds_words_of_the_text_and_says_when_nothing_matches(page: Any) -> None:
    page.fill("#search", "TOPOLOGY item 2")
    page.wait_for_selector("#matches li small")
    assert page.text_content("#matches li") == "node-2about topology item 2"
    page.fill("#search", "about")
    page.wait_for_selector("#matches li.note")
    assert page.locator("#matches li").count() == 13
    assert page.text_content("#matches li.note").endswith(" nodes have this text; 12 are shown")
    page.route("**/v1/map/find*", lambda route: route.fulfill(json={"results": [], "matches": 0, "complete": False}))
    page.fill("#search", "rare")
    page.wait_for_function("document.getElementById('matches').textContent.includes('ran out of time; 0 nodes')")
    page.unroute("**/v1/map/find*")
    page.route("**/v1/map/find*", lambda route: route.abort())
    page.fill("#search", "again")
    page.wait_for_function(
        "document.getElementById('matches').textContent.includes('were not searched: The service does')"
    )
    page.unroute("**/v1/map/find*")
    page.fill("#search", "<i>nothing</i>")
    page.wait_for_selector("#no-match:not(:empty)")
    assert page.text_content("#no-match") == "No match: no node has “<i>nothing</i>” in its name or its text."
    assert page.is_hidden("#matches")


def test_names_of_classes_are_on_the_map_and_none_covers_another(page: Any) -> None:
    visible = "[...document.querySelectorAll('#names span')].filter((label) => label.style.visibility === 'visible')"
    page.wait_for_function(f"{visible}.length")
    boxes = page.evaluate(f"{visible}.map((label) => [label.textContent, label.getBoundingClientRect().toJSON()])")
    assert {name for name, _ in boxes} <= {"algebra", "logic", "topology"}
    for place, (_, a) in enumerate(boxes):
        for _, b in boxes[:place]:
            apart = (
                a["right"] <= b["left"] or b["right"] <= a["left"] or a["bottom"] <= b["top"] or b["bottom"] <= a["top"]
            )
            assert apart


SCHEMES = [{"viewport": {"width": 900, "height": 700}, "color_scheme": scheme} for scheme in ("light", "dark")]


@pytest.mark.parametrize("page", SCHEMES, indirect=True, ids=["light", "dark"])
def test_the_chosen_node_its_nearest_and_its_neighbors_look_different(page: Any) -> None:
    """Each mark has at least three times the background's contrast, and no two marks share color and shape."""
    page.evaluate("window.graphsageMap.view.showAll()")
    seen = page.evaluate("""async () => {
        const { points, view } = window.graphsageMap;
        const far = { chosen: points.put('a', -0.8, 0.9, 0), near: points.put('b', 0, 0.9, 0),
            joined: points.put('c', 0.8, 0.9, 0) };
        view.refresh(); view.mark({ chosen: [far.chosen], near: [far.near], joined: [far.joined] }); view.paint();
        const ratio = devicePixelRatio, [w, h] = [view.canvas.width, view.canvas.height];
        const pixels = view.regl.read();
        const around = (i) => { const [px, py] = view.pixel(points.xy[2 * i], points.xy[2 * i + 1]); const found = [];
            for (let b = -16; b <= 16; b++) for (let a = -16; a <= 16; a++) {
                const at = ((h - 1 - Math.round(py * ratio) + b) * w + Math.round(px * ratio) + a) * 4;
                found.push([...pixels.slice(at, at + 3)]); }
            return found; };
        for (const id of ['a', 'b', 'c']) points.remove(id);
        const marks = Object.fromEntries(Object.entries(far).map(([name, i]) => [name, around(i)]));
        return { ...marks, back: [...pixels.slice(0, 3)] };
    }""")

    def luminance(rgb: list[int]) -> float:
        linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(rgb: list[int]) -> float:
        a, b = sorted((luminance(rgb), luminance(seen["back"])))
        return (b + 0.05) / (a + 0.05)

    shapes = {name: [contrast(rgb) >= 3 for rgb in seen[name]] for name in ("chosen", "near", "joined")}
    assert all(sum(shape) > 40 for shape in shapes.values()), "a mark is hard to see"
    for one, other in (("chosen", "near"), ("near", "joined"), ("chosen", "joined")):
        assert sum(a != b for a, b in zip(shapes[one], shapes[other], strict=True)) > 40, f"{one} looks like {other}"


def test_the_legend_is_open_and_shows_one_class_alone(page: Any) -> None:
    assert page.is_visible("#legend button")
    page.click("#legend button >> nth=1")
    shown = page.evaluate("""() => { const { points } = window.graphsageMap;
        return [...points.shown.slice(0, points.count)].map((v, i) => [v, points.color[i]]); }""")
    assert {color for value, color in shown if value == 1} == {1}
    assert page.get_attribute("#legend button >> nth=1", "aria-pressed") == "true"
    page.click("#legend button >> nth=1")


def test_points_are_colored_by_an_attribute(page: Any) -> None:
    by_class = page.evaluate("[...window.graphsageMap.points.color.slice(0, 30)]")
    page.select_option("#color-by", "size")
    page.wait_for_selector("#ramp:not([hidden])")
    assert page.text_content("#legend-title") == "size"
    assert page.locator("#ramp span").all_text_contents()[::2] == ["0", "4"]
    color = "(id) => { const { points } = window.graphsageMap; return points.color[points.place.get(id)]; }"
    least, large, unknown = (page.evaluate(color, id) for id in ("node-5", "node-4", "node-11"))
    assert least < large < 255
    assert unknown == 65535
    assert "unknown" in page.text_content("#legend")
    page.select_option("#color-by", "")
    page.wait_for_selector("#ramp", state="hidden")
    assert page.evaluate("[...window.graphsageMap.points.color.slice(0, 30)]") == by_class


def test_a_link_shows_the_same_view_again(page: Any, address: str) -> None:
    page.select_option("#color-by", "size")
    page.wait_for_selector("#ramp:not([hidden])")
    page.evaluate("window.graphsageMap.view.go([0.25, -0.5, 3])")
    page.fill("#search", "node-7")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chosen")
    page.evaluate("window.graphsageMap.view.go([0.25, -0.5, 3])")
    page.wait_for_function("location.hash.includes('node=node-7') && location.hash.includes('at=0.2500')")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function("window.graphsageMap && window.graphsageMap.chosen === 'node-7'")
    page.wait_for_selector("#chosen")
    view = page.evaluate("[...window.graphsageMap.view.center, window.graphsageMap.view.zoom]")
    assert view == [0.25, -0.5, 3]
    assert page.input_value("#color-by") == "size"
    page.goto(f"{address}/#at=no,number,here&node=nobody&color=nothing&only=-3")
    page.wait_for_function("document.getElementById('details').textContent.includes('nobodyThere is no such node.')")
    assert page.evaluate("window.graphsageMap.only") is None


def test_the_page_says_when_the_service_is_gone_and_when_it_is_back(page: Any) -> None:
    page.wait_for_function("document.getElementById('count-nodes').textContent !== '–'")
    page.route("**/v1/**", lambda route: route.abort())
    page.wait_for_selector("#trouble:not([hidden])")
    assert "The service does not answer. The map is that of " in page.text_content("#trouble")
    page.unroute("**/v1/**")
    page.wait_for_selector("#trouble", state="hidden")


def test_without_webgl_search_and_details_work(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(address)
    page.wait_for_function("document.getElementById('message').textContent.includes('needs WebGL')")
    page.wait_for_function("window.graphsageMap")
    page.fill("#search", "node-2")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chosen")
    assert "Nearest by embedding" in page.text_content("#details")
    context.close()


def test_every_control_has_a_name(page: Any) -> None:
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, input, select, textarea, canvas')]
        .filter((each) => !each.getAttribute('aria-label') && !each.textContent.trim() && !each.labels?.length)
        .map((each) => each.outerHTML)""")
    assert nameless == []
    assert page.get_attribute("#map", "aria-label").startswith("Map of ")


def test_numbers_of_a_regression_are_shown(page: Any) -> None:
    answer = {"id": "node-1", "attributes": {}, "label": None, "degree": 0, "neighbors": []}
    values = {"price": 3.5, "weight": 12}
    page.route("**/v1/nodes/*", lambda route: route.fulfill(json={**answer, "prediction": {"values": values}}))
    page.fill("#search", "node-1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chosen")
    assert "Predictionprice3.5weight12" in page.text_content("#details")
