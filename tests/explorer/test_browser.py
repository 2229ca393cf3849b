"""The explorer in Chromium, by keyboard and mouse. Screenshots are written to out/explorer."""

import csv
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.process import COMMAND, opticcl_process
from tests.cli.test_caveats import caveats_of

import opticcl as library

pytestmark = pytest.mark.deep
playwright = pytest.importorskip(
    "playwright.sync_api", reason="the extra browser is not installed: pip install 'opticcl[browser]'"
)
pytest.importorskip("uvicorn", reason="the extra explore is not installed: pip install 'opticcl[explore]'")
pytest.importorskip("plotly", reason="the extra explore is not installed: pip install 'opticcl[explore]'")

HERE = Path(__file__).parent
PICTURES = HERE.parents[1] / "out" / "explorer"
AUDIT = (HERE / "audit.js").read_text("utf-8").partition("\n")[2]
SWITCHES = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync"
MARKUP = "<img src=x onerror=alert(1)>"
STUDY = """
[axes]
fabric = ["ideal", "torus", "ramp"]
nodes = [8, 16]
size = ["1KB", "1MB"]
[vary]
keys = ["endpoint"]
nodes = 16
size = "1MB"
[answers.pareto.where]
nodes = 16
size = "1MB"
"""
VIEWS = {
    "compare": "compare?nodes=16&size=1MB&collective=all_reduce",
    "light": "light?fabric=terarack:nodes=16&algorithm=wrht&size=1MB&node=3",
    "wrong": "light?plan=f0",
    "time": "time?fabric=terarack:nodes=64&collective=all_reduce&size=1MB",
    "budget": "budget?fabric=ramp&nodes=64",
    "train": "train?model=vgg19&nodes=16&fabric=ramp&fabric=torus",
    "study": "study?study=f1",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server with a wrong plan, whose name is markup, and a study that has run."""
    folder = tmp_path_factory.mktemp("explorer")
    plan = folder / f"{MARKUP}.json"
    library.compile("terarack:nodes=8", "all_to_all", "1MB", algorithm="mesh").save(plan)
    content = json.loads(plan.read_text("utf-8"))
    wavelengths = content["columns"]["wavelength_lo"]
    wavelengths[10] = wavelengths[9]
    plan.write_text(json.dumps(content))
    (folder / "three.toml").write_text(STUDY)
    (folder / "live.toml").write_text(STUDY.partition("[vary]")[0])
    opticcl_process("study", "run", "three.toml", "--jobs", "1", cwd=folder).check_returncode()
    words = [*COMMAND, "explore", plan, "three.toml", "live.toml", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=folder)
    printed = ""
    while not printed.rstrip().endswith("}"):
        printed += process.stdout.readline()
    yield SimpleNamespace(url=json.loads(printed)["address"], folder=folder)
    process.send_signal(signal.SIGINT)
    process.wait(20)
    process.stdout.close()


@pytest.fixture(scope="module")
def chromium():
    """The browser of the system, or that of playwright."""
    with playwright.sync_playwright() as player:
        names = ("chromium", "chromium-browser", "google-chrome")
        found = next(filter(None, map(shutil.which, names)), player.chromium.executable_path)
        if not Path(found).exists():
            pytest.skip("no Chromium: apt-get install chromium, or playwright install chromium")
        browser = player.chromium.launch(executable_path=found, args=SWITCHES.split())
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, address):
    """Function that opens a view in a page of its own; nothing may be wrong on the console or come from elsewhere."""
    contexts, faults = [], []
    server = address.url[: address.url.index("/", len("http://"))]

    def own(url):
        return url.startswith((address.url, f"blob:{server}/"))  # a blob is a file that the page makes

    def noted(message):
        if message.type in ("error", "warning") and "400 (Bad Request)" not in message.text:  # a question was refused
            faults.append(message.text)

    def open_view(view, width=1280, height=900, scheme="light"):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", noted)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append("dialog"), dialog.dismiss()))
        page.on("request", lambda request: own(request.url) or faults.append(request.url))
        page.goto(f"{address.url}#{view}")
        finished(page)
        return page

    yield open_view
    for context in contexts:
        context.close()
    assert faults == []


def finished(page):
    """Wait until nothing is computed any more."""
    page.locator(".state").wait_for(state="attached")
    playwright.expect(page.locator(".state progress")).to_have_count(0, timeout=120_000)
    assert page.locator(".state .bad").count() == 0, page.locator(".state").inner_text()
    playwright.expect(page.locator(".chart:not(:has(.main-svg))")).to_have_count(0, timeout=120_000)


def chart_of(page, label):
    """The chart whose label begins with that, once it is drawn."""
    found = page.get_by_role("group", name=re.compile(f"^{label}"))
    found.locator(".main-svg").first.wait_for(timeout=120_000)
    return found


def point_at(page, place):
    """Move the pointer to the middle of a place."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)


def heads_of(page):
    """Headings of the first table."""
    return page.locator("main table >> nth=0 >> thead th").all_inner_texts()


def column(page, number):
    """Texts of a column of the first table."""
    return page.locator(f"main table >> nth=0 >> tbody tr td:nth-child({number})").all_inner_texts()


def test_compare_by_mouse_and_keyboard(visit, address):
    """Sort, filter, columns, lines, values of the chart; and the address that brings all of it back."""
    page = visit(VIEWS["compare"])
    assert heads_of(page) == ["fabric", "algorithm", "time", "vs best", "as built", "light", "no rank"]
    assert len(column(page, 1)) > 10
    assert column(page, 4)[0] in ("best", "tie")
    page.get_by_role("button", name="fabric", exact=True).click()
    names = column(page, 1)
    assert names == sorted(names)
    page.get_by_role("button", name="fabric ▲").press("Enter")
    assert column(page, 1) == names[::-1]
    page.get_by_label("Filter rows").first.fill("tera")
    assert set(column(page, 1)) == {"terarack", "terarack_torus"}
    page.locator("summary", has_text="Columns").first.press("Enter")
    page.get_by_label("algorithm", exact=True).first.uncheck()
    assert "algorithm" not in heads_of(page)
    page.get_by_role("button", name="torus", exact=True).press("Space")
    chart = chart_of(page, "Time of each fabric")
    shown = page.locator(".legend button[aria-pressed=true]").count()
    playwright.expect(chart.locator(".js-line")).to_have_count(shown)
    point_at(page, chart.locator(".nsewdrag").first)
    playwright.expect(chart.locator(".hoverlayer")).to_contain_text(re.compile(r"ramp: [\d.]+ [mun]?s"))
    assert "opticcl compare --nodes 16" in page.locator("#command").inner_text()
    playwright.expect(page).to_have_url(re.compile("filter=tera.*lines=torus"))
    again = visit(page.url.partition("#")[2])
    assert set(column(again, 1)) == {"terarack", "terarack_torus"}
    assert "algorithm" not in heads_of(again)
    playwright.expect(chart_of(again, "Time of each fabric").locator(".js-line")).to_have_count(shown)


def test_a_chart_is_zoomed_and_its_values_are_files(visit):
    """By keyboard: the buttons of a chart, the picture, the values as a file and as a table; a window changes its width."""
    page = visit(VIEWS["compare"])
    chart = chart_of(page, "Parts of the time")
    drawing = chart.locator(".main-svg").first
    wide, height = drawing.get_attribute("width"), drawing.get_attribute("height")
    page.set_viewport_size({"width": 1000, "height": 900})
    playwright.expect(drawing).not_to_have_attribute("width", wide)
    assert drawing.get_attribute("height") == height
    ticks = chart.locator(".xtick text")
    playwright.expect(ticks.first).to_have_text("0 s")
    before = ticks.all_text_contents()
    assert all(re.fullmatch(r"[\d.]+ [mun]?s", tick) for tick in before)
    point_at(page, chart.locator(".bars path").last)
    playwright.expect(chart.locator(".hoverlayer")).to_contain_text(re.compile(r"\w+, [\w ]+: [\d.]+ [mun]?s"))
    chart.get_by_role("button", name="Zoom in").press("Enter")
    playwright.expect(ticks.first).not_to_have_text("0 s")
    chart.get_by_role("button", name="Autoscale").press("Enter")
    playwright.expect(ticks.first).to_have_text("0 s")
    assert ticks.all_text_contents() == before
    with page.expect_download() as picture:
        chart.get_by_role("button", name="Download plot as a PNG").press("Enter")
    assert picture.value.suggested_filename == "compare.png"
    assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as values:
        chart.get_by_role("button", name="Download values as CSV").press("Enter")
    assert values.value.suggested_filename == "compare.csv"
    with Path(values.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = column(page, 1)
    assert [row["name"] for row in rows] == names
    assert all(float(row["total"]) > 0 for row in rows)
    folded = chart.locator("xpath=..").locator("summary", has_text="As a table")
    folded.press("Enter")
    assert page.get_by_role("region", name="Parts of the time").locator("tbody tr").count() == len(rows)


def test_the_first_view_and_a_question_that_is_refused(visit, address):
    """The form is there at once; a wrong value is one line; the form asks again."""
    page = visit(VIEWS["compare"])
    begun = time.monotonic()
    page.goto("about:blank")
    page.goto(address.url)
    page.get_by_label("Nodes", exact=True).wait_for()
    assert time.monotonic() - begun < 4  # the mark is 2 s; benchmarks measure it
    finished(page)
    page.get_by_label("Nodes", exact=True).fill("many")
    page.get_by_label("Nodes", exact=True).press("Enter")
    playwright.expect(page.locator(".state .bad")).to_contain_text("nodes: 'many' is not a whole number")
    page.get_by_label("Nodes", exact=True).fill("8")
    page.get_by_role("button", name="Show").click()
    finished(page)
    assert "nodes=8" in page.url
    page.go_back()
    playwright.expect(page.locator(".state .bad")).to_contain_text("many")


def test_light_by_keyboard_and_mouse(visit):
    """Slider, play, keys of the picture, the settings of a node that is clicked."""
    page = visit("light?fabric=terarack:nodes=16&algorithm=ring&size=1MB")
    where, canvas = page.locator("main p[role=status] >> nth=1"), page.locator("canvas")
    playwright.expect(where).to_contain_text("Step 0 of 30: 16 circuits")
    page.get_by_label("Round of the plan").press("ArrowRight")
    playwright.expect(where).to_contain_text("Step 1 of 30")
    playwright.expect(page).to_have_url(re.compile("at=1"))
    canvas.press("ArrowRight")
    playwright.expect(where).to_contain_text("Step 2 of 30")
    page.get_by_label("Rounds a second").select_option("10")
    page.get_by_role("button", name="Play").click()
    playwright.expect(where).to_contain_text(re.compile("Step (1[0-9]|2[0-9]) of 30"), timeout=20_000)
    canvas.press("Space")
    assert page.get_by_role("button", name="Play").is_visible()
    canvas.press("ArrowUp")
    playwright.expect(page.get_by_role("heading", name="node 0")).to_be_visible()
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * (0.5 + 0.36), "y": box["height"] / 2})  # node 4 of 16 is on the right
    playwright.expect(page.get_by_role("heading", name="node 4")).to_be_visible()
    settings = page.get_by_role("table", name="Settings of devices").inner_text()
    assert "modulator" in settings
    assert "4 → 5" in page.get_by_role("table", name="Circuits").inner_text()
    playwright.expect(page).to_have_url(re.compile("node=4"))
    again = visit(page.url.partition("#")[2])
    playwright.expect(again.get_by_role("heading", name="node 4")).to_be_visible()


def test_a_wrong_plan_is_shown_where_it_clashes(visit):
    """In words and in red; the name of its file is text."""
    page = visit("light")
    button = page.get_by_role("button", name=f"{MARKUP}.json")
    assert page.locator("main img").count() == 0
    button.click()
    finished(page)
    assert "The plan is refused: 1 violation." in page.locator("main").inner_text()
    playwright.expect(page.locator("main p[role=status] >> nth=1")).to_contain_text("places carry more than they can")
    red = """(canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (data[i] > 215 && data[i + 1] < 45 && data[i + 2] < 40 && data[i + 3] > 250) found += 1;
      }
      return found;
    }"""
    assert page.locator("canvas").evaluate(red) > 200
    page.goto(
        page.url.partition("#")[0] + "#" + "light?fabric=terarack:nodes=8&collective=all_to_all&algorithm=mesh&size=1MB"
    )
    playwright.expect(page.locator("main")).to_contain_text("The plan is verified")
    finished(page)
    assert page.locator("canvas").evaluate(red) == 0


def test_a_plan_file_is_sent(visit, tmp_path):
    """By the button; a damaged one is refused in a line."""
    page = visit("light")
    good = tmp_path / "own.parquet"
    library.compile("sip_ring:nodes=6", "all_gather", "1MB", algorithm="ring").save(good)
    page.get_by_label("Plan file").set_input_files(good)
    playwright.expect(page.locator("main")).to_contain_text("all_gather of 1 MB on sip_ring with 6 nodes")
    finished(page)
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    page.get_by_label("Plan file").set_input_files(bad)
    playwright.expect(page.locator(".state .bad")).to_be_visible(timeout=30_000)


def test_light_of_1024_nodes_moves(visit):
    """Pictures a second while it plays; the mark is 30, which benchmarks measure."""
    page = visit("light?fabric=ramp&nodes=1024&algorithm=ramp&size=1MB")
    page.get_by_role("button", name="Play").click()
    page.wait_for_timeout(500)
    count = "(canvas) => Number(canvas.dataset.pictures)"
    first, begun = page.locator("canvas").evaluate(count), time.monotonic()
    page.wait_for_timeout(2000)
    assert (page.locator("canvas").evaluate(count) - first) / (time.monotonic() - begun) > 10


def test_time_is_zoomed_to_steps(visit):
    """By buttons and by a box that is drawn; the address has the window."""
    page = visit("time?fabric=terarack:nodes=512&algorithm=ring&size=1MB")
    line = chart_of(page, "Steps and the parts")
    playwright.expect(line).to_contain_text("steps 0 to 510")
    for _ in range(4):
        line.get_by_role("button", name="Zoom in").press("Enter")
    page.get_by_role("button", name="Later").press("Enter")
    playwright.expect(line).to_contain_text("step 5")
    playwright.expect(page).to_have_url(re.compile("from="))
    again = visit(page.url.partition("#")[2])
    playwright.expect(chart_of(again, "Steps and the parts")).to_contain_text("step 5")
    line.get_by_role("button", name="Autoscale").press("Enter")
    playwright.expect(line).to_contain_text("steps 0 to 510")
    playwright.expect(page).not_to_have_url(re.compile("from="))
    line.scroll_into_view_if_needed()
    box = line.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60, steps=4)
    page.mouse.up()
    playwright.expect(page).to_have_url(re.compile("from="))


def test_other_views(visit):
    """Each shows the numbers of its record."""
    page = visit(VIEWS["budget"])
    assert "It closes with" in page.locator("main").inner_text()
    assert "tunable_transceiver" in page.locator("main table").last.inner_text()
    page = visit(VIEWS["train"])
    page.locator("#timeline-of").select_option("1")
    page.get_by_label("Filter rows").first.fill("tor")
    playwright.expect(page).to_have_url(re.compile("show=1.*filter=tor"))
    again = visit(page.url.partition("#")[2])
    for one in (page, again):
        chart_of(one, "Computation and communication on torus").locator(".bars path").first.wait_for()
        chart_of(one, "Parts of an iteration").locator(".bars path").first.wait_for()
    assert again.locator("main").inner_text() == page.locator("main").inner_text()
    assert "communication that nothing hides" in page.locator("main").inner_text()
    assert chart_of(page, "Computation and communication on").locator(".bars path").count() > 3
    page = visit(VIEWS["study"])
    text = page.locator("main").inner_text()
    assert "18 of 18 points are finished." in text
    assert "Fastest fabric over size and nodes" in text
    assert chart_of(page, "Lead of").locator(".bars path").count() >= 2
    page.locator("summary", has_text="As a table").first.press("Enter")
    assert page.get_by_role("region", name="Fastest fabric").locator("tbody tr").count() == 4
    assert chart_of(page, "Time against price").locator(".points path").count() == 2  # ideal has no price


def test_a_study_is_followed_while_it_runs(visit, address):
    """Points that another process finishes, and the answers once there are some."""
    page = visit("study?study=f2")
    playwright.expect(page.locator("main")).to_contain_text("0 of 12 points are finished.")
    assert "opticcl study run live.toml" in page.locator("main").inner_text()
    opticcl_process("study", "run", "live.toml", "--jobs", "1", cwd=address.folder).check_returncode()
    playwright.expect(page.locator("main")).to_contain_text("12 of 12 points are finished.", timeout=30_000)
    playwright.expect(chart_of(page, "Fastest fabric over two axes").locator(".bars path").first).to_be_visible()
    finished(page)
    page.get_by_label("Map: columns").fill("nodes")
    page.get_by_label("Map: rows").fill("size")
    page.get_by_label("Map: rows").press("Enter")
    playwright.expect(page.locator("main")).to_contain_text("Fastest fabric over nodes and size")


def test_a_question_can_be_cancelled(visit):
    """Its process ends; the next question is answered."""
    page = visit(VIEWS["compare"])
    page.goto(page.url.partition("#")[0] + "#compare?nodes=1024&size=77MB&collective=all_to_all&algorithm=all")
    page.get_by_role("button", name="Cancel").click()
    playwright.expect(page.locator(".state .bad")).to_contain_text("cancelled")
    page.goto(page.url.partition("#")[0] + "#" + VIEWS["budget"])
    finished(page)
    assert "It closes with" in page.locator("main").inner_text()


@pytest.mark.parametrize("view", ["compare", "train"])
def test_caveats_are_those_of_the_command(visit, view):
    """Every line of the record, three of them open."""
    page = visit(VIEWS[view])
    typed = page.locator("#command code").inner_text().split(";")[0].split()[1:]
    typed = typed[: typed.index("--trace")] if "--trace" in typed else typed
    record = json.loads(opticcl_process(*typed, "--json").stdout)
    expected = caveats_of(record)
    section = page.locator("section", has=page.get_by_role("heading", name="Read with care")).last
    lines = section.locator("li")
    assert lines.all_text_contents() == expected
    assert sum(lines.nth(i).is_visible() for i in range(lines.count())) == min(3, len(expected))
    assert record["headline"] in page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_width_and_theme(visit, view, scheme):
    """No view is wider than its window, none has a fault of accessibility; a picture of each is kept."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for width, height in ((360, 740), (1600, 1000), (3840, 2160)):
        page = visit(VIEWS[view], width, height, scheme)
        page.wait_for_timeout(200)
        size = SimpleNamespace(
            **page.evaluate("() => ({ all: document.documentElement.scrollWidth, window: innerWidth })")
        )
        assert size.all <= size.window
        assert page.evaluate(AUDIT) == []
        page.screenshot(path=PICTURES / f"{view}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_by_keyboard(visit, view):
    """Tab reaches every control once, from the link that skips the views; what has the focus is seen."""
    page = visit(VIEWS[view], 360, 740)
    reached = """() => {
      const one = document.activeElement, box = one.getBoundingClientRect(), footer = document.querySelector("footer");
      one.dataset.reached = "";
      const hidden = !one.closest("footer") && box.top >= footer.getBoundingClientRect().top;
      return one === document.body ? null : [one.className, parseFloat(getComputedStyle(one).outlineWidth) > 0, hidden];
    }"""
    page.keyboard.press("Tab")
    found = [page.evaluate(reached)]
    while found[-1] is not None and len(found) < 200:
        page.keyboard.press("Tab")
        found.append(page.evaluate(reached))
    assert found.pop() is None
    assert found[0][0] == "skip"
    assert all((outline, hidden) == (True, False) for _, outline, hidden in found)
    left = """() => [...document.querySelectorAll("a, button, input, select, summary, [tabindex='0']")].filter(
      (one) => one.checkVisibility() && !("reached" in one.dataset)).map((one) => one.outerHTML)"""
    assert page.evaluate(left) == []


def test_the_focus_stays(visit):
    """On a field, a button or a link that asks again; after the first link it is on the view, which stays the same."""
    page = visit(VIEWS["budget"])
    focus = "() => document.activeElement.id || document.activeElement.textContent"
    page.locator(".skip").press("Enter")
    assert (page.evaluate(focus), "#budget" in page.url) == ("view", True)
    page.get_by_label("Nodes", exact=True).fill("16")
    for control in (page.get_by_label("Nodes", exact=True), page.get_by_role("button", name="Show")):
        control.press("Enter")
        finished(page)
        assert page.evaluate(focus) == (control.get_attribute("id") or "Show")
    assert "nodes=16" in page.url
    page.get_by_role("link", name="Light").press("Enter")
    finished(page)
    assert (page.evaluate(focus), "#light" in page.url) == ("Light", True)


def test_the_theme_button(visit):
    """Goes from the system's theme to light and dark."""
    page = visit(VIEWS["budget"])
    button, paper = page.locator("#theme"), "() => getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(paper)
    button.press("Enter")
    assert page.evaluate(paper) == first
    button.click()
    assert page.evaluate(paper) != first
    assert button.inner_text() == "Theme: dark"
