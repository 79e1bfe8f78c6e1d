"""Pages of the reference, written when the site is built: configuration, commands and modules.

A Sphinx extension. The configuration comes from the YAML files of conf/ (values, comments) and the dataclasses that
check them (types, field comments), commands from their `--help`, modules from the packages and their docstrings.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import yaml
from sphinx.application import Sphinx

from eval.methods.method import methods
from pairscale import COMMANDS, ROOT
from pairscale.command.compose import schema_of
from pairscale.command.help import help_text, laid_out
from pairscale.command.schemas import in_words, types_of

CONF = ROOT / "conf"
WITHOUT_KEYS = ("experiment", "template")  # files with the keys of other groups, and with texts
PACKAGES = ("pairscale", "corpora", "train", "eval", "analysis")


@dataclass(frozen=True)
class Key:
    """A configuration key: its dotted name, type, value in the YAML file and meaning."""

    name: str
    type: str
    value: str
    meaning: str


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx reads its sources."""
    app.connect("builder-inited", lambda app: write_reference(Path(app.srcdir) / "reference"))
    return {"parallel_read_safe": True}


def write_reference(folder: Path) -> None:
    """Write configuration.md, commands.md and python/*.rst into `folder`."""
    pages = {name: page() for name, page in PAGES.items()}
    pages |= {f"python/{package}.rst": modules_page(package) for package in PACKAGES}
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
            path.write_text(text, encoding="utf-8")


def configuration_page() -> str:
    """Return the page with the keys outside groups, then those of each group and its files."""
    parts = [
        "# Configuration\n\nEvery value can be set on the command line as `key=value`, and every group chosen as "
        "`group=name`. `python -m eval --cfg job` prints all values of a command line. "
        "A folder of your own beside `conf/` is given by `--config-dir DIR`.",
        "## Values outside groups\n\nFrom `conf/base.yaml`, and of single commands. Each command takes those that "
        "`--cfg job` prints.\n\n" + _table(root_keys(), values=True),
    ]
    groups = {group: "\n\n".join(_group(group)) for group in group_folders()} | {"method": _methods()}
    parts += [f"## {group}\n\n{groups[group]}" for group in sorted(groups)]
    return "\n\n".join(parts) + "\n"


def group_folders() -> list[str]:
    """Return the configuration groups: the folders below conf/ with YAML files."""
    folders = {path.parent.relative_to(CONF).as_posix() for path in CONF.rglob("*.yaml")}
    return sorted(folders - {"."})


def root_keys() -> list[Key]:
    """Return the keys of conf/base.yaml, then those of the commands' own files."""
    files = [CONF / "base.yaml", *(CONF / f"{name}.yaml" for name in COMMANDS)]
    keys: dict[str, Key] = {}
    for path in filter(Path.exists, files):
        for name, value, comment in _entries(path.read_text(encoding="utf-8")):
            if not name.startswith("help."):
                type_, meaning = _field_of_any(name)
                keys.setdefault(name, Key(name, type_, value, comment or meaning))
    return list(keys.values())


def _field_of_any(name: str) -> tuple[str, str]:
    """Return annotation and comment of a dotted key, of the first command that has it."""
    found = (_field(schema, name) for schema in _schemas() if name.partition(".")[0] in _fields(schema))
    return next(found, ("", ""))


@cache
def _schemas() -> list[type]:
    return [schema_of(name) for name, command in COMMANDS.items() if command.schema]


def group_keys(group: str) -> dict[str, list[Key]]:
    """Return the keys of a group by what its files describe: the dataclass that checks them, or a file without one."""
    prefix = group.replace("/", ".") + "."
    keys: dict[str, dict[str, Key]] = {}
    for path in sorted((CONF / group).glob("*.yaml")):
        schema = _schema_of(path)
        of_schema = keys.setdefault(_about_class(schema) if schema else "", {})
        for key in _keys(path, schema):
            known = of_schema.get(key.name)
            if known is None or not known.meaning:
                of_schema[key.name] = replace(key, name=prefix + key.name)
    return {name: list(of_schema.values()) for name, of_schema in keys.items() if of_schema}


def method_keys() -> list[Key]:
    """Return the parameters of all methods, with their default values."""
    return [
        Key(f"method.{name}.{key}", type_, str(getattr(of.parameters, key)), meaning)
        for name, of in sorted(methods().items())
        for key, (type_, meaning) in _fields(of.parameters.__class__).items()
    ]


def commands_page() -> str:
    """Return the page with the `--help` of each command that has a YAML file."""
    parts = ["# Commands\n\n`python -m MODULE` in the checkout, `pairscale COMMAND` from any folder."]
    for command, of in COMMANDS.items():
        body = f"`python -m {of.module}`: {of.about}."
        if (CONF / f"{command}.yaml").exists():
            body += f"\n\n```text\n{laid_out(help_text(command), 100)}\n```"
        parts.append(f"## pairscale {command}\n\n{body}")
    return "\n\n".join(parts) + "\n"


def modules_page(package: str) -> str:
    """Return the page, in reStructuredText as docstrings are read, with all public modules of a package."""
    parts = [_heading(package, "=")]
    folder = ROOT / package
    first = [folder / "__init__.py", folder / "library.py"]  # what users import, where there is one
    for path in sorted(folder.rglob("*.py"), key=lambda path: (path not in first, path)):
        words = path.relative_to(ROOT).with_suffix("").parts
        if any(word.startswith("_") and word != "__init__" for word in words):
            continue
        name = ".".join(word for word in words if word != "__init__")
        heading = [] if name == package else [_heading(name, "-")]
        parts += [*heading, f".. automodule:: {name}"]
    return "\n\n".join(parts) + "\n"


PAGES = {"configuration.md": configuration_page, "commands.md": commands_page}


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


def _group(group: str) -> Iterator[str]:
    files = sorted((CONF / group).glob("*.yaml"))
    rows = [f"| `{path.stem}` | {_cell(_about(path))} |" for path in files]
    yield "\n".join([f"| `{group}=` | |", "| --- | --- |", *rows])
    schemas = {} if group in WITHOUT_KEYS else group_keys(group)
    for name, keys in schemas.items():
        yield f"### {name}\n\n{_table(keys)}" if len(schemas) > 1 else _table(keys)
    for path in files:
        yield (
            f"```{{raw}} html\n<details><summary><code>conf/{group}/{path.name}</code></summary>\n```\n\n"
            f"```{{literalinclude}} ../../conf/{group}/{path.name}\n:language: yaml\n```\n\n"
            "```{raw} html\n</details>\n```"
        )


def _methods() -> str:
    about = {name: (inspect.getdoc(of.score) or "").partition("\n\n")[0] for name, of in methods().items()}
    rows = [f"| `{name}` | {methods()[name].reads} | {_cell(text)} |" for name, text in sorted(about.items())]
    header = ["| `method=[...]` | reads | |", "| --- | --- | --- |"]
    return "\n".join([*header, *rows, "", _table(method_keys(), values=True)])


def _table(keys: list[Key], values: bool = False) -> str:
    lines = ["| key, type" + (", value" if values else "") + " | meaning |", "| --- | --- |"]
    for key in keys:
        below = [_code(part) for part in (key.type, key.value if values else "") if part]
        lines.append(f"| {_code(key.name)}<br>{' = '.join(below)} | {_cell(key.meaning)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a text as a cell of a table in Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("{", "\\{")


def _code(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return f"`{line}`" if line else ""


def _about(path: Path) -> str:
    """Return the comment that a YAML file begins with, without its commands."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("#  ", "# @package")):
            lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def _about_class(schema: type) -> str:
    """Return the first sentence of a class's docstring, as a heading, with the `type` that its files have."""
    line = (inspect.getdoc(schema) or schema.__name__).partition("\n")[0]
    about = re.split(r"(?<!al)\. |; | \(|: ", line)[0].rstrip(".")
    names = [name for base in schema.__mro__ for name, kind in types_of(base).items() if kind is schema]
    return f"{about} (`type: {names[0]}`)" if names else about


def _schema_of(path: Path) -> type | None:
    """Return the dataclass that checks a file of a group: that of its `type`, or of the file that it extends."""
    group = path.parent.relative_to(CONF).as_posix()
    base = next((kind for schema in _schemas() if (kind := _kind(get_type_hints(schema).get(group)))), None)
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if base is None or "type" in content:
        return types_of(base)[content["type"]] if base else None
    for name in (entry for entry in content.get("defaults", []) if isinstance(entry, str)):
        if (path.parent / f"{name}.yaml").exists():
            return _schema_of(path.parent / f"{name}.yaml")
    return base


def _kind(annotation: object) -> type | None:
    """Return the dataclass in an annotation, which may be optional; None if there is none."""
    options = (annotation, *get_args(annotation))
    return next((one for one in options if isinstance(one, type) and is_dataclass(one)), None)


def _keys(path: Path, schema: type | None) -> Iterator[Key]:
    """Yield the keys of a YAML file with the types and comments of `schema`, then those that only `schema` has."""
    text = path.read_text(encoding="utf-8")
    seen = set()
    for name, value, comment in _entries(text):
        type_, meaning = _field(schema, name)
        if name == "type" and not type_:
            continue  # which chooses the schema
        seen.add(name)
        yield Key(name, type_, value, comment or meaning)
    for name, (type_, meaning) in _fields(schema).items() if schema else ():
        if name not in seen and not any(other.startswith(f"{name}.") for other in seen):
            yield Key(name, type_, "", meaning)


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (dotted key, value as written, comment) of each leaf of a YAML text but its `defaults`."""
    lines = text.splitlines()

    def leaves(node: yaml.Node, above: str) -> Iterator[tuple[str, str, str]]:
        assert isinstance(node, yaml.MappingNode)
        for key, value in node.value:
            name = f"{above}{key.value}"
            if name == "defaults":
                continue
            if isinstance(value, yaml.MappingNode) and value.value:
                yield from leaves(value, f"{name}.")
                continue
            written = text[value.start_mark.index : value.end_mark.index].strip()
            end = value.end_mark
            last = end.line if end.column else end.line - 1  # of a block
            if isinstance(value, yaml.SequenceNode) and not value.flow_style:
                end, last = key.start_mark, key.start_mark.line  # a comment further down is on an item
            yield name, written, _comment(lines, key.start_mark.line, last, end.column)

    root = yaml.compose(text)
    if isinstance(root, yaml.MappingNode):
        yield from leaves(root, "")


def _comment(lines: list[str], first: int, last: int, column: int) -> str:
    """Return the comment after a value that ends in a line and column, and below it, or else that above its key."""
    after = re.search(r"(?:^|\s)#\s?(.*)", lines[last][column:])
    if after:
        parts = [after[1]]
        for line in lines[last + 1 :]:
            if not (more := re.match(r"\s{8,}#\s?(.*)", line)):
                break
            parts.append(more[1])
        return " ".join(parts)
    above: list[str] = []
    indent = len(lines[first]) - len(lines[first].lstrip())
    for line in reversed(lines[:first]):
        if not (comment := re.match(rf"\s{{{indent}}}#\s?(.*)", line)):
            break
        above.insert(0, comment[1])
    return " ".join(above) if above and first - len(above) > 0 else ""


def _field(schema: type | None, name: str) -> tuple[str, str]:
    """Return annotation and comment of a dotted key of a schema, or of the dict that holds it."""
    known = ("", "")
    for part in name.split("."):
        if schema is None or part not in _fields(schema):
            break
        known = _fields(schema)[part]
        type_ = get_type_hints(schema)[part]
        schema = _kind(type_)
    return known


@cache
def _fields(schema: type) -> dict[str, tuple[str, str]]:
    """Return the annotation and the comment of each field of a dataclass, those of its bases first."""
    known: dict[str, tuple[str, str]] = {}
    hints = get_type_hints(schema, include_extras=True)
    for base in reversed(schema.__mro__):
        if not is_dataclass(base):
            continue
        source = textwrap.dedent(inspect.getsource(base))
        lines = source.splitlines()
        (definition,) = ast.parse(source).body
        assert isinstance(definition, ast.ClassDef)
        for line in definition.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                if ast.unparse(line.annotation).startswith("ClassVar"):
                    continue
                end = (line.end_lineno or line.lineno) - 1, line.end_col_offset or 0
                comment = _comment(lines, line.lineno - 1, *end) or known.get(line.target.id, ("", ""))[1]
                known[line.target.id] = in_words(hints[line.target.id]), comment
    return known
