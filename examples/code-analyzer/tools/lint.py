#!/usr/bin/env python3
"""Lints one source file and prints the issues as a JSON object.

The rules are line by line, so that they hold for any language; docs/rules.md
explains them. With LINTER_RULES_URL in the environment, more rules of the
same form are read from there: {"name": {"pattern": "…", "message": "…"}}.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import urllib.request

SCRIPT = {".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx"}
PYTHON = {".py"}

# name: (endings of files it is for, or None for all; pattern; message)
RULES = {
    "line-length": (None, r".{121}", "longer than 120 characters"),
    "trailing-space": (None, r"[ \t]+$", "blanks at the end of the line"),
    "mixed-indent": (None, r"^(\t+ +\t| +\t)", "tabs and blanks mixed in the indentation"),
    "conflict-marker": (None, r"^(<{7}|>{7})( |$)", "a merge conflict that nobody resolved"),
    "todo": (None, r"\b(TODO|FIXME|XXX)\b", "an open end that the author marked"),
    "loose-equality": (SCRIPT, r"(?<![=!<>])[=!]=(?![=>])", "== or != converts its operands; use === or !=="),
    "no-var": (SCRIPT, r"^\s*var\s", "var is not scoped to its block; use let or const"),
    "debugger": (SCRIPT, r"^\s*debugger\b", "a breakpoint that was left behind"),
    "bare-except": (PYTHON, r"^\s*except\s*:", "catches everything, keyboard interrupts too"),
    "mutable-default": (PYTHON, r"^\s*def .*=\s*(\[\]|\{\})", "a default that all calls share"),
}


def more_rules():
    url = os.environ.get("LINTER_RULES_URL")
    if not url:
        return {}
    with urllib.request.urlopen(url, timeout=10) as response:
        found = json.load(response)
    return {name: (None, rule["pattern"], rule["message"]) for name, rule in found.items()}


def lint(path, rules):
    ending = pathlib.Path(path).suffix.lower()
    text = pathlib.Path(path).read_text(encoding="utf-8")
    mine = [(name, re.compile(pattern), message) for name, (endings, pattern, message) in rules.items()
            if endings is None or ending in endings]
    for number, line in enumerate(text.splitlines(), start=1):
        for name, pattern, message in mine:
            match = pattern.search(line)
            if match:
                yield {"line": number, "column": match.start() + 1, "rule": name, "message": message}
    if text and not text.endswith("\n"):
        yield {"line": len(text.splitlines()), "column": 1, "rule": "final-newline", "message": "no line break at the end of the file"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", required=True, help="The path to the file to lint.")
    args = parser.parse_args()
    try:
        issues = list(lint(args.file, RULES | more_rules()))
    except UnicodeDecodeError:
        sys.exit(f"{args.file} is not UTF-8 text")
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"cannot lint {args.file}: {error}")
    print(json.dumps({"file": args.file, "issues": issues}, ensure_ascii=False))


if __name__ == "__main__":
    main()
