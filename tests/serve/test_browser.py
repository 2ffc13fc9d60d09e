"""The page in a real Chromium: it recommends what Python does, and sends nothing."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tests.serve.models import latent_model, save_latent, touched_model

playwright: Any = pytest.importorskip("playwright.sync_api")
pytest.importorskip("fastapi")

# Waits for what is shown, in the place of `wait_for_function`: that evaluates a string in the page
# while it waits. The page's policy forbids it, so it works only where there is nothing to wait for.
expect = playwright.expect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.extras,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"
    ),
]

HOSTILE = [
    "<img src=x onerror=\"document.title='run'\">",
    "<script>document.title='run'</script>",
    "\"><svg onload=document.title='run'>",
    "javascript:document.title='run'",
]


class Served:
    """`tacit serve` in a process of its own, on a port that the system chose."""

    def __init__(self, model: Path) -> None:
        command = [sys.executable, "-m", "tacit", "serve", str(model), "--port", "0"]
        self._log = model.with_suffix(".log")
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.address = announced(self.process, self._log)

    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def announced(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address that a server writes once it listens."""
    for _ in range(600):
        found = re.search(r"http://127\.0\.0\.1:[1-9]\d*/", log.read_text())
        if found:
            return found.group()
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError("it does not listen")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(save_latent(tmp_path_factory.mktemp("page"), HOSTILE))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    context = browser.new_context()
    opened = context.new_page()
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.failures = []
    opened.on("pageerror", lambda error: opened.failures.append(str(error)))
    opened.goto(served.address)
    opened.wait_for_selector("#list li")
    opened.wait_for_load_state()
    yield opened
    assert opened.failures == []
    context.close()


def rate(page: Any, title: str, rating: float) -> None:
    """Search an item and rate it, as a person does."""
    page.fill("#search", title)
    page.get_by_label(f"Rate {title}", exact=True).first.fill(str(rating))


def items(page: Any) -> list[str]:
    return list(page.eval_on_selector_all("#list > li", "rows => rows.map(r => r.dataset.item)"))


def test_the_list_is_pythons_and_follows_each_rating(page: Any) -> None:
    model = latent_model()
    assert items(page) == [row.item for row in model.recommend({}, 10)]
    own, shown_first = {}, items(page)
    for place, rating in ((7, 5.0), (12, 0.5), (9, 4.5)):
        rate(page, f"Film No. {place}", rating)
        own[model.catalogue.ids[place]] = rating
        assert items(page) == [row.item for row in model.recommend(own, 10)]
    assert items(page) != shown_first
    shown = page.eval_on_selector_all(".number > .hidden", "all => all.map(e => e.textContent)")
    stds = model.predict(own, return_std=True)[1]
    for words, row in zip(shown, model.recommend(own, 10), strict=True):
        score, std = map(float, re.findall(r"-?[\d.]+", words))
        assert score == pytest.approx(row.score, abs=0.051)
        place = int(model.catalogue.positions([row.item])[0])
        assert std == pytest.approx(stds[place], abs=0.051)
    page.select_option("#order", "rating")
    assert items(page) == [row.item for row in model.recommend(own, 10, by="rating")]


def test_it_says_why_in_pythons_numbers(page: Any) -> None:
    model, own = latent_model(), {}
    for place, rating in ((7, 5.0), (12, 0.5)):
        rate(page, f"Film No. {place}", rating)
        own[model.catalogue.ids[place]] = rating
    page.click("#list .ask >> nth=0")
    added = page.eval_on_selector_all(".reasons .amount", "all => all.map(e => e.textContent)")
    first = model.recommend(own, 1, because=True)[0]
    assert first.because is not None
    wanted = [f"{each.contribution:+.2f}".replace("-", "−") for each in first.because]
    assert added == wanted
    assert "Film No." in page.inner_text(".reasons")


def test_nothing_is_asked_for_after_the_page_has_loaded(page: Any) -> None:
    loaded = len(page.asked)
    rate(page, "Film No. 8", 4.0)
    page.click("#list .ask >> nth=0")
    page.click("#more")
    page.click("text=What it rests on")
    page.wait_for_timeout(300)
    assert page.asked[loaded:] == []
    assert page.inner_text("#sent") == page.inner_text("#pill-count") == "0"


def test_the_browser_stops_whatever_the_page_tries(page: Any, served: Served) -> None:
    before = page.request.get(served.address + "metrics").text()
    page.click("#try")
    expect(page.locator("#tried")).not_to_be_empty()
    assert "stopped all of them" in page.inner_text("#tried")
    expect(page.locator("#blocked")).to_have_text("4")
    assert page.inner_text("#sent") == "0"
    for leak in (
        "navigator.sendBeacon('/x', 'y')",
        "import('/x.js').then(() => true, () => false)",
    ):
        page.evaluate(leak)
    after = page.request.get(served.address + "metrics").text()
    assert 'route="other"' not in after
    counted = re.compile(r'route="(?!/metrics)')
    assert [row for row in after.splitlines() if counted.search(row)] == [
        row for row in before.splitlines() if counted.search(row)
    ]


def test_the_counter_would_notice_a_request(browser: Any, served: Served) -> None:
    """The twin: with the policy switched off the same attempts go through, and are counted."""
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(served.address)
    page.wait_for_load_state()
    page.click("#try")
    expect(page.locator("#sent")).to_have_text(re.compile("[1-9]"))
    assert "went through" in page.inner_text("#tried")
    assert page.inner_text("#pill-count") != "0"
    context.close()


def test_it_works_without_a_network(page: Any) -> None:
    page.context.set_offline(True)
    rate(page, "Film No. 7", 5.0)
    model = latent_model()
    wanted = model.recommend({model.catalogue.ids[7]: 5.0}, 10)
    assert items(page) == [row.item for row in wanted]


def test_hostile_titles_are_text(page: Any) -> None:
    page.fill("#search", "run")
    assert page.locator("#results li").count() == len(HOSTILE)
    for title in HOSTILE:
        rate(page, title, 5.0)
    for _ in range(3):
        page.click("#more") if page.is_visible("#more") else None
    for ask in page.query_selector_all("#list .ask"):
        ask.click()
    page.wait_for_timeout(200)
    assert page.title() == "tacit: recommendations on your own device"
    shown = page.inner_text("#own")
    assert all(title in shown for title in HOSTILE)
    assert page.locator("main img, main svg, main script").count() == 0


def test_ratings_stay_in_the_browser_until_they_are_erased(page: Any, tmp_path: Path) -> None:
    rate(page, "Film No. 7", 5.0)
    rate(page, "Film No. 9", 1.5)
    page.reload()
    page.wait_for_selector("#list li")
    assert page.locator("#own li").count() == 2
    with page.expect_download() as saved:
        page.click("#export")
    saved.value.save_as(tmp_path / "mine.json")
    ids = latent_model().catalogue.ids
    assert json.loads((tmp_path / "mine.json").read_text())["ratings"] == {ids[7]: 5, ids[9]: 1.5}
    page.click("#erase")
    page.click("#confirm-yes")
    assert page.locator("#own li").count() == 0
    assert page.evaluate("localStorage.length") == 0
    page.set_input_files("#file", tmp_path / "mine.json")
    page.wait_for_selector("#own li")
    assert page.locator("#own li").count() == 2
    page.click("#own .remove >> nth=0")
    assert page.locator("#own li").count() == 1


def test_it_can_be_used_by_keyboard_and_says_what_happens(page: Any) -> None:
    page.focus("#search")
    page.keyboard.type("Film No. 7")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    said = page.inner_text("#said")
    assert said.startswith("Film No. 7: ")
    assert "First in your list: " in said
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')").endswith("stars")
    page.focus("#list .ask >> nth=0")
    page.keyboard.press("Enter")
    assert page.get_attribute("#list .ask >> nth=0", "aria-expanded") == "true"
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input:not([hidden]), select')].filter(e =>
            !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"""
    )
    assert unnamed == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_it_fits_a_phone_and_a_desk(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    rate(page, "Film No. 7", 5.0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_model_of_interactions(browser: Any, tmp_path: Path) -> None:
    touched_model().save(tmp_path / "model.tacit")
    server = Served(tmp_path / "model.tacit")
    try:
        page = browser.new_page()
        page.goto(server.address)
        page.wait_for_selector("#list li")
        page.fill("#search", "3")
        page.get_by_label("I like or have 3", exact=True).first.click()
        wanted = touched_model().recommend([3], 10)
        assert items(page) == [str(row.item) for row in wanted]
        page.click("#list .ask >> nth=0")
        assert page.locator(".reasons li").count() == 1
        page.close()
    finally:
        server.stop()


def test_an_exported_folder_works_on_a_static_host_and_damage_is_told(
    browser: Any, tmp_path: Path
) -> None:
    from tacit.serve.site import export_site, model_module

    model = save_latent(tmp_path)
    site = tmp_path / "site"
    export_site(model, site)
    command = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "-d", str(site)]
    with (tmp_path / "host.log").open("wb") as log:
        host = subprocess.Popen([sys.executable, *command], stdout=log, stderr=log)
    try:
        page = browser.new_page()
        page.goto(announced(host, tmp_path / "host.log"))
        page.wait_for_selector("#list li")
        assert items(page) == [row.item for row in latent_model().recommend({}, 10)]
        page.click("#try")
        expect(page.locator("#tried")).not_to_be_empty()
        assert "stopped all of them" in page.inner_text("#tried")
        content = bytearray(model.read_bytes())
        content[-30] ^= 1
        (site / "model.js").write_bytes(model_module(bytes(content)))
        page.close()
        page = browser.new_page()  # with nothing in its cache
        page.goto(announced(host, tmp_path / "host.log"))
        page.wait_for_selector("#problem:not([hidden])")
        assert "does not match its digest" in page.inner_text("#problem")
        page.close()
    finally:
        host.terminate()
        host.wait(30)


def test_the_server_wrote_nothing_about_anyone(served: Served) -> None:
    """Runs last in this file: whatever the tests above asked, the log has one line."""
    lines = served.log().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("open http://127.0.0.1:")


def test_a_model_that_is_not_private_says_so(browser: Any, tmp_path: Path) -> None:
    from tests.conftest import ratings_for

    tacit.fit(ratings_for(0), tacit.Moments(), budget=None).save(tmp_path / "model.tacit")
    server = Served(tmp_path / "model.tacit")
    try:
        page = browser.new_page()
        page.goto(server.address)
        page.wait_for_selector("#list li")
        assert page.inner_text("#grade").lower() == "not private"
        assert "NOT PRIVATE" in page.inner_text("#promise")
        page.close()
    finally:
        server.stop()
