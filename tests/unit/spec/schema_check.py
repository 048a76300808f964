"""schema_check.py SCHEMA EXAMPLE...: every example is valid by the schema that editors use, and a
copy of it with an unknown key, a missing key or a wrong value is not."""
import copy
import json
import sys

import jsonschema
import yaml


def first_gate(spec):
    return next(iter(spec["gates"].values()))


# By the schema's title: what breaks any example of it.
BREAKAGES = {
    "qualify bundle spec": (
        lambda s: s.update(unknown=1),
        lambda s: s.pop("arms"),
        lambda s: s.update(recipe="prod"),
        lambda s: s["launch"].update(argvs=[]),
        lambda s: s.update(container={"kind": "reference", "reference": "a/b:latest"}),
    ),
    "qualify gates": (
        lambda s: s.update(unknown=1),
        lambda s: s.pop("gates"),
        lambda s: s.update(schema_version=2),
        lambda s: s["gates"].clear(),
        lambda s: s["gates"].update({"a gate": first_gate(s)}),
        lambda s: first_gate(s).update(kind="repeat"),
        lambda s: first_gate(s).update(lenient=True),
        lambda s: first_gate(s).update(run_limit="soon"),
        lambda s: first_gate(s).pop("kind"),
        lambda s: s.update(people={"ana": {"keys": []}}),
        lambda s: s.update(people={"ana": {"keys": [{"file": "../ana.pub"}]}}),
        lambda s: s.update(people={"a b": {"keys": [{"file": "ana.pub"}]}}),
        lambda s: s.update(roles={"sing": {"people": ["ana"]}}),
        lambda s: s.update(roles={"sign": {"people": ["ana"], "needed": 0}}),
        lambda s: s.update(releases={"one": {"gates": []}}),
        lambda s: s["gates"].update(x={"kind": "scale", "arm": "a", "metrics": ["m"]}),
        lambda s: s["gates"].update(x={"kind": "localization", "ranks": 8, "metrics": ["m"]}),
        lambda s: s["gates"].update(x={"kind": "coverage", "models": {"m": {"correctness": "g"}}}),
        lambda s: s["gates"].update(x={"kind": "enablement", "blockers": {}, "production": "g"}),
    ),
}

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        spec = yaml.safe_load(file)
    faults = [f"{path}: {fault.message}" for fault in validator.iter_errors(spec)]
    if faults:
        sys.exit("\n".join(faults))
    for change in BREAKAGES[schema["title"]]:
        broken = copy.deepcopy(spec)
        change(broken)
        if validator.is_valid(broken):
            sys.exit(f"{path}: a broken copy is accepted: {broken}")
