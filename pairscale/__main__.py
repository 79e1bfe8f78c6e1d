"""`pairscale COMMAND ...`, which is `python -m MODULE ...` from any folder, whatever files lie there."""

import os
import runpy
import sys
from pathlib import Path

from pairscale import BY_SCRIPT, COMMANDS, MODULES, ROOT

USAGE = "\n".join(
    [
        "pairscale COMMAND [group=name] [key=value]",
        "",
        *(f"  {name:<18} {command.about}" for name, command in COMMANDS.items()),
        "",
        "pairscale COMMAND --help shows what a command does, with examples. In the checkout, python -m MODULE:",
        ", ".join(module if command == module else f"{module} ({command})" for module, command in MODULES.items()),
    ]
)


def main() -> None:
    """Run the command that the first word names; without one, list them. The exit code is the command's."""
    words = sys.argv[1:]
    if words[:1] in ([], ["--help"], ["-h"]):
        from pairscale.command.help import print_help

        print_help(USAGE)
        sys.exit(0 if words else 2)
    if words[0] not in COMMANDS:
        print(f"pairscale {words[0]}: no such command; available: {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)
    if Path(sys.argv[0]).name != "__main__.py":  # that of python -m pairscale
        os.environ[BY_SCRIPT] = "1"
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, or that of the console script
    sys.path.insert(0, str(ROOT))
    module = COMMANDS[words[0]].module
    sys.argv = [module, *words[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
