"""The component `alerts` holds the rules of deploy/monitoring, word for word: Kustomize cannot put one file into another."""

import yaml
from rendered import DEPLOY

RULES = DEPLOY / "monitoring/alerts.yaml"
COMPONENT = DEPLOY / "components/alerts/prometheusrule.yaml"
HEAD = """\
# Made from deploy/monitoring/alerts.yaml by `tests/deploy.sh write`: change that file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: bernstream
  labels: { app.kubernetes.io/name: bernstream, app.kubernetes.io/part-of: bernstream }
spec:
"""


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they were written."""


def _text(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _text)


def made():
    """The component as it should be."""
    rules = yaml.safe_load(RULES.read_text())
    assert set(rules) == {"groups"}, "a plain rule file has groups and nothing else"
    body = yaml.dump(rules, Dumper=Dumper, sort_keys=False, width=120, allow_unicode=True)
    return HEAD + "".join(f"  {line}\n" if line else "\n" for line in body.splitlines())


if __name__ == "__main__":
    COMPONENT.write_text(made())
