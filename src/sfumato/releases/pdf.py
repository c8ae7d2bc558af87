"""The report as PDF, printed by a browser that is at hand: nothing is installed for it, nothing is sent anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from sfumato.errors import InputError, SfumatoError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
SECONDS = 120


def browser() -> str:
    """A browser that prints without a window: the one that ``SFUMATO_BROWSER`` names, or the first that is found."""
    named = os.environ.get("SFUMATO_BROWSER")
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise InputError(f"SFUMATO_BROWSER names {named!r}, and there is no such program")
        return found
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    found = found or next((place for place in PLACES if Path(place).exists()), None)
    if found is None:
        raise InputError(
            "a PDF is printed by Chromium, Chrome or Edge, and none is here: install one, or name it in SFUMATO_BROWSER, or "
            "print report.html from the browser you have"
        )
    return found


def print_pdf(page: Path, target: Path) -> Path:
    """Print the HTML file `page` to the file `target`, which is there whole or not at all."""
    program = browser()
    with tempfile.TemporaryDirectory(prefix="sfumato-pdf-") as folder:
        made = Path(folder) / "report.pdf"
        command = [
            *(program, "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer", "--disable-extensions"),
            *(f"--user-data-dir={folder}/profile", "--host-resolver-rules=MAP * ~NOTFOUND", f"--print-to-pdf={made}"),
            *(
                ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
            ),  # it refuses to run as root otherwise
            page.resolve().as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SfumatoError(f"{Path(program).name} could not print the report ({type(error).__name__})") from None
        if not made.exists() or not made.read_bytes().startswith(b"%PDF"):
            raise SfumatoError(f"{Path(program).name} printed nothing; open {page} in a browser and print it there")
        try:
            beside = target.with_name(f".{target.name}.partial")
            shutil.copyfile(made, beside)
            os.replace(beside, target)
        except OSError as error:
            raise InputError(f"cannot write {target}: {error.strerror}") from None
    return target
