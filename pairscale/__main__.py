"""Run `pairscale COMMAND ...`, which is `python -m MODULE ...` but works in any folder, whatever files it contains."""

import os
import runpy
import sys
from difflib import get_close_matches
from pathlib import Path

from pairscale import BY_SCRIPT, COMMANDS, MODULES, ROOT

USAGE = "\n".join(
    [
        "pairscale COMMAND [group=name] [key=value]",
        "",
        *(f"  {name:<18} {command.about}" for name, command in COMMANDS.items()),
        "",
        "pairscale COMMAND --help explains a command, with examples. pairscale --version prints the version.",
        "In the checkout, you can also use python -m MODULE. The modules are:",
        ", ".join(module if command == module else f"{module} ({command})" for module, command in MODULES.items()),
    ]
)


def main() -> None:
    """Run the command that the first word names, or list all commands. Exit with the command's exit code."""
    words = sys.argv[1:]
    if words[:1] in ([], ["--help"], ["-h"]):
        from pairscale.command.help import print_help

        print_help(USAGE)
        sys.exit(0 if words else 2)
    if words[0] == "--version":
        from pairscale.version import version_text

        print(version_text())
        sys.exit(0)
    if words[0] not in COMMANDS:
        near = get_close_matches(words[0].lower(), COMMANDS, 1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Available: {', '.join(COMMANDS)}."
        print(f"There is no command '{words[0]}'. {hint}", file=sys.stderr)
        sys.exit(2)
    if Path(sys.argv[0]).name != "__main__.py":  # the name if it was started by python -m pairscale
        os.environ[BY_SCRIPT] = "1"
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, or the console script's
    sys.path.insert(0, str(ROOT))
    module = COMMANDS[words[0]].module
    sys.argv = [module, *words[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
