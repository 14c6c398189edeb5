"""A Kubernetes cluster by `kubectl` and its configuration; this machine is a node of it.

The lake is a folder of this machine that pods get as a volume, so that a driver outside of the
cluster, and the test, see the same files.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "kubernetes"
NAMESPACE = "pipelines"
ACCOUNT = "pipelines"
EXECUTOR = "spark-role=executor"
VOLUME = "headrace-test-lake"
COMMAND_S_MAX = 120.0


def kubectl(*words: str, text: str = "") -> str:
    """Run `kubectl` and return its output; raise with its error output if it fails."""
    done = subprocess.run(
        ["kubectl", *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
    return done.stdout


def address() -> str:
    """The address of the cluster's API, from the configuration."""
    server = "jsonpath={.clusters[0].cluster.server}"
    return kubectl("config", "view", "--minify", "-o", server)


def account(directory: Path) -> Path:
    """A configuration of `kubectl` for the account that the example's drivers have."""
    config = json.loads(kubectl("config", "view", "--minify", "--raw", "--flatten", "-o", "json"))
    token = kubectl("-n", NAMESPACE, "create", "token", ACCOUNT, "--duration=1h").strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = directory / "account.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def running(selector: str) -> dict[str, str]:
    """The pods that run and are not on their way out: name and unique id."""
    words = ("-n", NAMESPACE, "get", "pods", "-l", selector, "-o", "json")
    pods: list[dict[str, Any]] = json.loads(kubectl(*words))["items"]
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in pods
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    }


def kill(pod: str) -> None:
    """End a pod at once, as the loss of its node does."""
    kubectl("-n", NAMESPACE, "delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")


@contextmanager
def access_and_lake(lake: Path) -> Iterator[None]:
    """Create the accounts and volumes of the example's manifests; delete them at the end."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": VOLUME},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"namespace": NAMESPACE, "name": "lake"},
            "hostPath": {"path": str(lake), "type": "Directory"},
        },
    }
    try:
        kubectl("apply", "-f", str(EXAMPLE / "access.yaml"))
        kubectl("apply", "-f", "-", text=json.dumps(volume))
        kubectl("apply", "-f", str(EXAMPLE / "lake.yaml"))
        yield
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
        kubectl("delete", "persistentvolume", VOLUME, "--ignore-not-found")
