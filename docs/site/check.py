#!/usr/bin/env python3
"""Checks every Markdown file of the repository: local links lead to a file and to a heading of it, images have a text
for readers who do not see them, and the prose has few signs of turned sentences. The picture of the crates has the
arrows of the Cargo.toml files. In seconds and without a network; `make docs` checks the site besides.

    docs/site/check.py [--list]    --list: each sign with its line
"""

import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).parents[2]
# Words and beginnings of sentences that show a sentence that is turned around, or lacks its noun.
SIGNS = re.compile(
    r"\b(lest|whom|whoever|whatever|of whatever|is had|be had|is to be|are to be|told|said of|whose own|of those that"
    r"|one that|ones that|in silence|what is asked|is asked for|as it is|as they are)\b"
    r"|(?:^|[.;:] )(Who|What|Of|Whoever|Whatever) (?!is it|are the)[a-z]+"
)
PICTURES_BYTES_MAX = 1_000_000
SIGNS_MAX_PER_1000 = {"all": 0.5, "a file": 2.0}


def without_code(text):
    """Blocks and spans of code replaced, lines kept."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(path):
    """Of each heading the name that GitHub gives it."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    seen = {}
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def dead_links(path):
    for number, line in enumerate(without_code(path.read_text()).splitlines(), 1):
        if re.search(r"!\[\s*\]\(|<img (?![^>]*alt=\"[^\"])", line):
            yield number, "an image without a text"
        for link in re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)|<img [^>]*src=\"([^\"]+)", line):
            target, _, anchor = "".join(link).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            to = (path.parent / target) if target else path
            if not to.exists():
                yield number, f"no such file: {target}"
            elif anchor and to.suffix == ".md" and anchor not in set(anchors(to)):
                yield number, f"no such heading: {target}#{anchor}"


def faults_of_pictures():
    """Arrows of the picture of crates that are no dependency, or are absent; the size of all pictures."""
    folder = REPOSITORY / "docs/pictures"
    drawn = set(re.findall(r'data-from="([^"]*)" data-to="([^"]*)"', (folder / "crates.svg").read_text()))
    crates = {str(path.parent.relative_to(REPOSITORY)) for path in REPOSITORY.glob("crates/*/Cargo.toml")}
    names = sorted({name for arrow in drawn for name in arrow} | crates)
    yield from (f"crates.svg: no such folder: {name}" for name in names if not (REPOSITORY / name).is_dir())
    manifests = {name: REPOSITORY / name / "Cargo.toml" for name in names}
    crates = {name: path.read_text() for name, path in manifests.items() if path.exists()}
    folders = {re.search(r'^name = "(.*)"', crate, flags=re.M)[1]: name for name, crate in crates.items()}
    imports = {
        (name, folders[dependency])
        for name, crate in crates.items()
        for section in re.findall(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", crate, flags=re.S | re.M)
        for dependency in re.findall(r"^[\w-]+", section, flags=re.M)
        if dependency in folders
    }
    # The drivers are one box, and the plug-ins are no crates.
    drawn = {arrow for arrow in drawn if arrow[0] in crates}
    yield from (f"crates.svg: {a} does not import {b}" for a, b in sorted(drawn - imports))
    yield from (f"crates.svg: no arrow from {a} to {b}" for a, b in sorted(imports - drawn))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > PICTURES_BYTES_MAX:
        yield f"docs/pictures has {size} bytes, more than {PICTURES_BYTES_MAX}"


def prose(path):
    """The lines that are sentences."""
    lines = without_code(path.read_text()).splitlines()
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)|[*_]", r"\1", "" if re.match(r"\s*(\||#|<|>|!\[)", line) else line) for line in lines]


def main():
    files = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    paths = [REPOSITORY / name for name in files.stdout.split()]
    faults, signs, words = list(faults_of_pictures()), 0, 0
    for path in paths:
        name = path.relative_to(REPOSITORY)
        faults += [f"{name}:{number}: {fault}" for number, fault in dead_links(path)]
        lines = prose(path)
        text = "\n".join(lines)
        of_file, count = list(SIGNS.finditer(text)), len(re.findall(r"[A-Za-z][A-Za-z'-]*", text))
        signs, words = signs + len(of_file), words + count
        if "--list" in sys.argv[1:]:
            for match in of_file:
                number = text.count("\n", 0, match.start()) + 1
                print(f"{name}:{number}: {match[0].strip()}: {lines[number - 1].strip()}")
        # One sign in a short file says nothing.
        if len(of_file) > max(1, SIGNS_MAX_PER_1000["a file"] * count / 1000):
            faults.append(f"{name}: {len(of_file)} signs of turned sentences in {count} words (docs/site/check.py --list)")
    if 1000 * signs / words > SIGNS_MAX_PER_1000["all"]:
        faults.append(f"all files: {signs} signs of turned sentences in {words} words (docs/site/check.py --list)")
    print(f"{len(paths)} files, {words} words, {1000 * signs / words:.2f} signs of turned sentences in 1,000")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
