"""The pictures of docs/gallery.md: a report of the demo as a reader sees it in the browser, on a phone and on paper.

make demo && python -m tests.support.gallery
"""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support import ROOT
from tests.support.browser import OpenPage, browser_of

REPORT = ROOT / "reports" / "demo" / "report.html"
FOLDER = ROOT / "docs" / "pictures"
DESKTOP, PHONE = (1440, 900), (390, 844)
VIEWS = {  # picture -> size of the window, colours, and the section that is scrolled to
    "report": (DESKTOP, "light", ""),
    "report-phenomena": (DESKTOP, "light", "phenomena"),
    "report-dark": (DESKTOP, "dark", "slopes"),
    "report-phone": (PHONE, "light", ""),
}
PRINT, PAGE, DPI = "report-print", 2, 90
SCREENSHOTS = [f"docs/pictures/{name}.png" for name in (*VIEWS, PRINT)]


def write() -> None:
    """Write the pictures."""
    chromium = shutil.which("chromium")
    assert chromium, "needs chromium: `make system` installs it"
    with browser_of(chromium) as browser:
        for name, ((width, height), scheme, section) in VIEWS.items():
            page = OpenPage(browser, REPORT, width, scheme, touch=width < 800).page
            page.set_viewport_size({"width": width, "height": height})
            if section:
                there = page.locator(f"section[id$='-{section}']").first
                there.evaluate("it => it.scrollIntoView({behavior: 'instant'})")
            page.screenshot(path=FOLDER / f"{name}.png")
        with TemporaryDirectory() as folder:
            printed = Path(folder) / "report.pdf"
            OpenPage(browser, REPORT).page.pdf(path=printed, format="A4", prefer_css_page_size=True)
            pages = ["-f", str(PAGE), "-l", str(PAGE), "-singlefile"]
            subprocess.run(["pdftoppm", "-r", str(DPI), "-png", *pages, printed, FOLDER / PRINT], check=True)


if __name__ == "__main__":
    write()
