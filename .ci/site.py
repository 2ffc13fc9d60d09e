"""Hooks of the documentation site: pages of the root, links out of docs/, maths, the reference.

Pages in docs/ are plain Markdown that reads well on a code host. Where a site needs something
else, it is done here when it is built: README, CONTRIBUTING and CHANGELOG become pages; a link to
a file that is no page becomes its text; TeX becomes MathML, which browsers show by themselves, so
that nothing is loaded from anywhere; and the reference is written from docstrings.
"""

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
MATHS = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
TRANSCRIPTS = {"```python\n>>>": "```pycon\n>>>", "```\n$ ": "```console\n$ "}
STYLE = """math[display="block"] { margin: 1em 0; overflow-x: auto; }
math { font-size: 1.06em; font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math",
  "Libertinus Math", "DejaVu Math TeX Gyre", "Noto Sans Math", math; }
.md-typeset table:not([class]) { display: block; overflow-x: auto; }
[data-md-copying] .gp, [data-md-copying] .go { display: none; }
@media screen and (min-width: 45em) { .md-typeset img[src*="/front-"] { width: 49%; } }
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root, the list of decisions, the reference and the style."""
    made = {name: (ROOT / path).read_text() for name, path in FROM_ROOT.items()}
    made["decisions/index.md"] = _decisions()
    made["reference.md"] = _reference()
    made["site.css"] = STYLE
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def _decisions() -> str:
    lines = ["# Decisions", "", "Why things are as they are.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        title = path.read_text().splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines)


def _reference() -> str:
    """Every public name, by the module that it lives in."""
    tree = ast.parse((ROOT / "src" / "tacit" / "__init__.py").read_text())
    found = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("__all__", "_HOMES")
    }
    home = {name: where for where, names in found["_HOMES"].items() for name in names}
    lines = ["# Reference", "", "Every public name of `tacit`, from its docstring.", ""]
    for name in sorted(found["__all__"], key=lambda name: (name[0].isupper(), name.lower())):
        if name.startswith("__"):
            continue
        lines.append(f"::: {home.get(name, 'tacit.errors')}.{name}")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links of a page, and name its transcripts, so that their copies have no prompts."""
    uri = page.file.src_uri
    here = posixpath.dirname(FROM_ROOT.get(uri, f"docs/{uri}"))
    outside, parts = True, []
    for part in re.split(r"(^```.*?^```\s*?$)", markdown, flags=re.MULTILINE | re.DOTALL):
        outside = not part.startswith("```")
        mended = LINK.sub(lambda m: _mended(m, here, uri, files), part) if outside else part
        for told, shown in TRANSCRIPTS.items():
            mended = mended.replace(told, shown) if mended.startswith(told) else mended
        parts.append(mended)
    return "".join(parts)


def _mended(link: re.Match[str], here: str, uri: str, files: Any) -> str:
    image, text, target = link.groups()
    text = LINK.sub(lambda inner: _mended(inner, here, uri, files), text)  # a picture in a link
    if re.match(r"[a-z]+:|#", target):
        return f"{image}[{text}]({target})"
    path, _, anchor = target.partition("#")
    whole = posixpath.normpath(posixpath.join(here, path))
    wanted = _page(whole)
    if wanted is None or files.get_file_from_path(wanted) is None:
        if not (ROOT / whole).exists():
            raise PluginError(f"{uri}: {target} leads nowhere")
        return text
    way = posixpath.relpath(wanted, posixpath.dirname(uri) or ".")
    return f"{image}[{text}]({way}{'#' + anchor if anchor else ''})"


def _page(path: str) -> str | None:
    """The page or picture of the site that a file of the repository is."""
    for name, source in FROM_ROOT.items():
        if path == source:
            return name
    if not path.startswith("docs/"):
        return None
    inside = path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        index = f"{inside}/README.md"
        return index if (ROOT / "docs" / index).exists() else f"{inside}/index.md"
    return inside


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Turn TeX into MathML."""
    return MATHS.sub(lambda m: _mathml(m.group(2), page.file.src_uri), html)


def _mathml(text: str, uri: str) -> str:
    from html import unescape

    block = text.startswith("\\[")
    tex = unescape(text[2:-2]).strip()
    try:
        return convert(tex, display="block" if block else "inline")
    except Exception as error:
        raise PluginError(f"{uri}: TeX that cannot be converted: {tex!r} ({error})") from error


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that would load something from elsewhere."""
    foreign = re.findall(r'src="https?://[^"]*"|<link[^>]*stylesheet[^>]*https?://[^>]*>', output)
    if foreign:
        raise PluginError(f"{page.file.src_uri} loads {foreign[0]}")
    return output
