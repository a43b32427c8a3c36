"""validate.py SCHEMA FILE...: status 3, with the mistakes, if a JSON or TOML file does not match."""

import json
import sys
import tomllib
from pathlib import Path

import jsonschema

schema = json.loads(Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
is_right = True
for name in sys.argv[2:]:
    text = Path(name).read_text()
    instance = tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
    for mistake in validator.iter_errors(instance):
        is_right = False
        print(f"{name}: {mistake.json_path}: {mistake.message}")
sys.exit(0 if is_right else 3)
