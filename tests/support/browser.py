"""Open pages in headless Chromium and use them like a reader, with clicks, keys, downloads and printing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WAIT = 120_000  # milliseconds to wait for a page, because a busy machine draws twenty charts slowly


@contextmanager
def browser_of(chromium: str) -> Iterator[Browser]:
    """Start the Chromium at path `chromium`, and yield it. Playwright's own build would be another download."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class OpenPage:
    """A page with its charts drawn. `console` contains its console's messages and its scripts' errors."""

    def __init__(
        self, browser: Browser, path: Path, width: int = 1280, scheme: str = "light", touch: bool = False
    ) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 2000},
            color_scheme="dark" if scheme == "dark" else "light",
            accept_downloads=True,
            has_touch=touch,
            is_mobile=touch,
        )
        context.set_default_timeout(WAIT)
        self.page: Page = context.new_page()
        self.console: list[str] = []
        self.page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn=true]", state="attached")

    @property
    def html(self) -> str:
        return self.page.content()

    @property
    def charts(self) -> int:
        """The number of charts on the page."""
        return self.page.locator("svg.marks").count()

    @property
    def overflow(self) -> int:
        """The number of pixels by which the page is wider than the window."""
        pixels: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return pixels


def violations(page: Page) -> dict[str, str]:
    """Expand all parts of a page, and return the rules that axe reports as violated, each with its first element."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    for button in page.locator(".more, .further, .legend button:first-child").all():
        button.click()
    return {rule["id"]: rule["nodes"][0]["html"] for rule in Axe().run(page).response["violations"]}
