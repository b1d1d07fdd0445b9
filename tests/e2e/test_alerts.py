#!/usr/bin/env python3
"""The alert rules of deploy/alerts: they are well-formed, fire on what they are for, stay silent on a healthy server,
and have a section in the runbook. promtool and vmalert judge them; tests/e2e/test_dashboards.py runs them on Varve.

usage: tests/e2e/test_alerts.py
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peerlib  # noqa: E402

RULES = os.path.join(peerlib.ROOT, "deploy/alerts/varve.yml")
RUNBOOK = os.path.join(peerlib.ROOT, "deploy/RUNBOOK.md")

# promtool's notation, a sample a minute for so many minutes
SHORT, LONG = 240, 1200

# a server in good health
HEALTHY = {
    "up": "1x{n}",
    "process_start_time_seconds": "1000x{n}",
    "varve_storage_samples_total": "0+600000x{n}",
    'varve_ingest_samples_total{protocol="remote_write"}': "0+600000x{n}",
    'varve_http_requests_total{path="/api/v1/write",code="204"}': "0+600x{n}",
    "varve_storage_new_series_total": "10000+10x{n}",
    "varve_storage_registry_series": "10000x{n}",
    "varve_storage_part_bytes": "5e9+1e5x{n}",
    "varve_storage_read_only": "0x{n}",
    "varve_corruption_errors_total": "0x{n}",
    "varve_storage_damaged_parts": "0x{n}",
    "varve_lost_parts_total": "0x{n}",
    "varve_wal_damaged_records_total": "0x{n}",
    "varve_wal_failed_writes_total": "0x{n}",
    "varve_flush_failures_total": "0x{n}",
    "varve_merge_failures_total": "0x{n}",
    "varve_storage_parts": "40x{n}",
    'varve_wal_sync_seconds_bucket{le="0.01"}': "0+590x{n}",
    'varve_wal_sync_seconds_bucket{le="1"}': "0+600x{n}",
    'varve_wal_sync_seconds_bucket{le="+Inf"}': "0+600x{n}",
    "varve_storage_busy_batches_total": "0x{n}",
    'varve_ingest_samples_rejected_total{protocol="remote_write",reason="too_old"}': "0+10x{n}",
    "varve_query_waiting": "0x{n}",
    'varve_query_seconds_bucket{le="0.1"}': "0+600x{n}",
    'varve_query_seconds_bucket{le="30"}': "0+610x{n}",
    'varve_query_seconds_bucket{le="+Inf"}': "0+610x{n}",
    "process_open_fds": "200x{n}",
    "process_max_fds": "20000x{n}",
}

# alert -> what is different when it has to fire
SICK = {
    "VarveDown": {"up": "1x{early} 0x99"},
    "VarveRestarts": {"process_start_time_seconds": "1000x{late} 2000x3 3000x3 4000x3"},
    "VarveReadOnly": {"varve_storage_read_only": "0x{late} 1x9"},
    "VarveDiskFullSoon": {"varve_storage_part_bytes": "5e9+5e6x{n}"},
    "VarveCorruption": {"varve_corruption_errors_total": "0x{late} 1x9"},
    "VarveDataLost": {"varve_lost_parts_total": "1x{n}"},
    "VarveLogWriteFailures": {"varve_wal_failed_writes_total": "0x{late} 2x9"},
    "VarveFlushFailures": {"varve_flush_failures_total": "0x{late} 2x9"},
    "VarveMergeFailures": {"varve_merge_failures_total": "0x{late} 2x9"},
    "VarveMergesLag": {"varve_storage_parts": "200+1x{n}"},
    "VarveSlowLog": {'varve_wal_sync_seconds_bucket{le="0.01"}': "0+10x{n}"},
    "VarveWritesRefused": {"varve_storage_busy_batches_total": "0+1x{n}"},
    "VarveSamplesRejected": {
        'varve_ingest_samples_rejected_total{protocol="remote_write",reason="too_old"}': "0+10000x{n}"},
    "VarveNoSamples": {"varve_storage_samples_total": "0+600000x{early} {stuck}x99"},
    "VarveChurn": {"varve_storage_new_series_total": "0+5000x{n}", "varve_storage_registry_series": "200000x{n}"},
    "VarveQueriesWait": {"varve_query_waiting": "50x{n}"},
    "VarveSlowQueries": {'varve_query_seconds_bucket{le="0.1"}': "0+10x{n}"},
    "VarveErrors": {'varve_http_requests_total{path="/api/v1/write",code="503"}': "0+600x{n}"},
    "VarveFilesRunOut": {"process_open_fds": "19000x{n}"},
}


def labelled(name):
    """The series as the scrape of Varve makes it."""
    name, _, labels = name.partition("{")
    return f'{name}{{job="varve",instance="a:8428"{"," + labels if labels else "}"}'


def case(name, changes, firing, minutes):
    """One test of promtool's: which alerts fire at the end."""
    early, late = minutes - 100, minutes - 10
    places = {"n": minutes, "early": early, "late": late, "stuck": 600000 * early}
    series = {**HEALTHY, **changes}
    expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in firing]
    return {"name": name, "interval": "1m",
            "input_series": [{"series": labelled(key), "values": value.format(**places)}
                             for key, value in series.items()],
            "promql_expr_test": [{"expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                                  "eval_time": f"{minutes - 1}m", "exp_samples": expected}]}


def command(*words):
    """Exit code and all output."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


def check_runbook(tally, rules):
    """Each alert has a link to a section that is there; each section belongs to an alert."""
    with open(RUNBOOK, encoding="utf-8") as file:
        sections = re.findall(r"^## (\w+)$", file.read(), re.M)
    alerts = re.findall(r"- alert: (\w+)", rules)
    links = re.findall(r"runbook_url: deploy/RUNBOOK\.md#(\w+)", rules)
    tally.note(links == [alert.lower() for alert in alerts], "each alert links to its own section", links)
    tally.note(sections == alerts, "the runbook has a section for each alert, in order",
               sorted(set(sections) ^ set(alerts)))
    tally.note(sorted(SICK) == sorted(alerts), "each alert is tested here", sorted(set(SICK) ^ set(alerts)))


def main():
    """All checks; the last line is what tests/run reads."""
    tally = peerlib.Tally()
    with open(RULES, encoding="utf-8") as file:
        check_runbook(tally, file.read())
    peers = peerlib.find_peers(["promtool", "vmalert"])
    code, output = command(peers["promtool"], "check", "rules", RULES)
    tally.note(code == 0 and "SUCCESS" in output, "promtool check rules", output)
    code, output = command(peers["vmalert"], "-dryRun", f"-rule={RULES}")
    tally.note(code == 0, "vmalert -dryRun", output)
    cases = [case("healthy", {}, [], LONG)]
    for alert, changes in SICK.items():
        cases.append(case(alert, changes, [alert], LONG if alert == "VarveDiskFullSoon" else SHORT))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:  # JSON is YAML
        json.dump({"rule_files": [RULES], "evaluation_interval": "1m", "tests": cases}, file)
        file.flush()
        code, output = command(peers["promtool"], "test", "rules", file.name)
    tally.note(code == 0, "each alert fires on what it is for, and nothing else does", output)
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
