"""One self-contained page for a picture: drawing module, style and data in one file, and no network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files

from tomewise.pictures import Picture

# In this order; each uses what those before it define.
MODULES = ("layouts.js", "labels.js", "details.js", "save.js", "canvas.js", "picture.js")
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_START = """
drawPicture(document.getElementById("picture"), JSON.parse(document.getElementById("data").textContent));
"""


def write_page(picture: Picture) -> str:
    """The page as HTML. Its policy lets a browser run only the scripts in it, and fetch nothing."""
    style = read_file("picture.css")
    scripts = (read_file("vendor/d3.min.js"), join_modules() + _START)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(picture.about or picture.title)}</title>
<style>{style}</style>
</head>
<body class="tp-page">
<main id="picture"></main>
<noscript>This picture is drawn by JavaScript, which is off here.</noscript>
<script type="application/json" id="data">{_as_data(picture)}</script>
<script>{scripts[0]}</script>
<script type="module">{scripts[1]}</script>
</body>
</html>
"""


def read_file(name: str) -> str:
    """The text of a file of this room."""
    return files("tomewise.drawing").joinpath(name).read_text("utf-8")


def join_modules() -> str:
    """The modules as one, because a page that is a single file has no addresses to import from."""
    return "".join(_EXPORT.sub("", _IMPORT.sub("", read_file(name))) for name in MODULES)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _as_data(picture: Picture) -> str:
    """JSON in which nothing can end the element that holds it; half of a surrogate pair stays an escape."""
    return json.dumps(picture.to_dict()).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
