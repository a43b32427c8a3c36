"""The last step of scripts/counts: reads what callgrind and strace have written and compares it with the table."""

import collections
import pathlib
import re
import sys

LANGUAGES = ("Rust", "C", "C++", "Python")
EACH, WAKES = 200, 20
# The interpreter's lock changes hands now and then; a service call's aligned memory takes the allocator one way
# or another.
TOLERANCE, OF_PYTHON, OF_A_CALL = 1.02, 1.05, 1.07


def instructions(path):
    """Of one run of each operation."""
    found = {}
    for line in path.read_text().splitlines():
        if match := re.match(r"\s*([\d,]+)\s.*\bcounted_(\w+)", line):
            count = int(match[1].replace(",", ""))
            found[match[2]] = max(count, found.get(match[2], 0))
    return {name: round(count / (WAKES if name == "wake" else EACH)) for name, count in found.items()}


def system_calls(path):
    """Of one run of each operation, of the thread that has marked it. A wake-up is marked each time: the fewest."""
    found, current = collections.defaultdict(list), {}
    for line in path.read_text().splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if match := re.match(r'write\(-1, "counted ?(\w*)"', call):
            current[thread] = match[1]
            if match[1]:
                found[match[1]].append(0)
        elif current.get(thread) and not call.startswith(("<...", "---", "+++")):
            found[current[thread]][-1] += 1
    return {
        name: min(counts) / (1 if name == "wake" else EACH) for name, counts in found.items()
    }


def measured(folder):
    rows = {}
    for language in LANGUAGES:
        first, second = (instructions(folder / f"{language}.instructions.{run}") for run in (1, 2))
        calls = system_calls(folder / f"{language}.calls")
        rows |= {(language, name): (min(first[name], second[name]), round(calls[name], 1)) for name in sorted(first)}
    return rows


def tolerance(language, name):
    if language != "Rust" and name == "service_call":
        return OF_A_CALL
    return OF_PYTHON if language == "Python" else TOLERANCE


def read(table):
    host, _, *rows = table.read_text().splitlines()
    rows = [row.split("\t") for row in rows]
    return host.removeprefix("# "), {(row[0], row[1]): (int(row[2]), float(row[3])) for row in rows}


def write(table, host, rows):
    lines = [f"# {host}", "language\toperation\tinstructions\tsystem calls"]
    lines += [f"{language}\t{name}\t{count}\t{calls:g}" for (language, name), (count, calls) in rows.items()]
    table.write_text("\n".join(lines) + "\n")


def main():
    table, host, folder, what = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
    rows = measured(folder)
    if what == "write":
        write(table, host, rows)
        return
    known_host, known = read(table)
    worse = 0
    print(f"{'':8}{'':20}{'instructions':>13}{'table':>8}{'ratio':>8}{'system calls':>14}{'table':>7}")
    for key in sorted(known.keys() | rows.keys()):
        (count, calls), (known_count, known_calls) = rows.get(key, (0, 0)), known.get(key, (0, 0))
        is_worse = not (0 < count <= known_count * tolerance(*key) + 1 and calls < known_calls + 0.5)
        ratio = count / known_count if known_count else float("inf")
        mark = "  MORE" if is_worse else ""
        print(f"{key[0]:8}{key[1]:20}{count:13}{known_count:8}{ratio:8.3f}{calls:14}{known_calls:7}{mark}")
        worse += is_worse
    if known_host != host:
        print(f"left out: counts: the table is of {known_host}; this host has {host}")
    elif worse:
        sys.exit(f"{worse} of {len(rows)} take more than {table} has: mend it, or write the table anew by "
                 "`scripts/counts write` and say why in the same commit")


main()
