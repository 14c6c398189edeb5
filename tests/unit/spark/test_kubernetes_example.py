"""The manifests, settings and images of examples/kubernetes fit together, and the page quotes them.

`make kubernetes` runs them on a cluster.
"""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest
import yaml

from headrace.pipelines.project import load

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "kubernetes"
VOLUME = "spark.kubernetes.executor.volumes.persistentVolumeClaim.lake"


def documents(file: str) -> dict[str, dict[str, Any]]:
    """The objects of a manifest by their kind."""
    found = list(yaml.safe_load_all((EXAMPLE / file).read_text()))
    return {document["kind"]: document for document in found}


def java_constant(text: str) -> bytes:
    """A text as a class file has it."""
    return b"\x01" + len(text).to_bytes(2, "big") + text.encode()


@pytest.fixture(scope="module")
def spark() -> dict[str, str]:
    """The example's settings of Spark."""
    return dict(load(EXAMPLE / "orders", {}).settings.spark)


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    """The pod of the driver."""
    spec: dict[str, Any] = documents("driver.yaml")["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def test_everything_is_in_the_namespace_configured_for_spark(spark: dict[str, str]) -> None:
    access = documents("access.yaml")
    made = access.pop("Namespace")["metadata"]["name"]
    others = [
        *access.values(),
        *documents("lake.yaml").values(),
        *documents("driver.yaml").values(),
    ]
    assert {one["metadata"]["namespace"] for one in others} == {made}
    assert spark["spark.kubernetes.namespace"] == made


def test_the_driver_has_the_account_that_is_given_the_rights(pod: dict[str, Any]) -> None:
    access = documents("access.yaml")
    binding = access["RoleBinding"]
    assert pod["serviceAccountName"] == access["ServiceAccount"]["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [pod["serviceAccountName"]]
    assert binding["roleRef"]["name"] == access["Role"]["metadata"]["name"]


def test_driver_and_executors_mount_one_claim_where_the_lake_is(
    pod: dict[str, Any], spark: dict[str, str]
) -> None:
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    claims = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod["volumes"]}
    claim = documents("lake.yaml")["PersistentVolumeClaim"]["metadata"]["name"]
    lake = load(EXAMPLE / "orders", {}).settings.lake
    assert claims["lake"] == {"claimName": claim}
    assert spark[f"{VOLUME}.options.claimName"] == claim
    assert {mounts["lake"], spark[f"{VOLUME}.mount.path"]} == {lake}


def test_the_images_are_those_that_the_dockerfile_makes(
    pod: dict[str, Any], spark: dict[str, str]
) -> None:
    text = (EXAMPLE / "Dockerfile").read_text()
    made = dict(re.findall(r"--target (\w+) -t (\S+)", text))
    assert re.findall(r"^FROM \S+ AS (\w+)", text, re.MULTILINE) == list(made)
    assert spark["spark.kubernetes.container.image"] == made["executor"]
    assert pod["containers"][0]["image"] == made["driver"]


def test_every_setting_of_kubernetes_exists_in_spark(
    pod: dict[str, Any], spark: dict[str, str]
) -> None:
    """A setting with a typo would silently have no effect."""
    arguments = " ".join(pod["containers"][0]["args"])
    names = {*spark, *re.findall(r"--conf=([\w.]+)=", arguments)}
    (jar,) = (Path(pyspark.__path__[0]) / "jars").glob("spark-kubernetes_*.jar")
    with ZipFile(jar) as archive:
        known = archive.read("org/apache/spark/deploy/k8s/Config$.class")
    for name in names:
        if name.startswith("spark.kubernetes."):
            constant = "spark.kubernetes.executor.volumes." if name.startswith(VOLUME) else name
            assert java_constant(constant) in known, name


def test_the_page_shows_the_settings_of_the_example() -> None:
    page = (ROOT / "docs" / "guides" / "spark-cluster.md").read_text()
    shown = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    example = tomllib.loads((EXAMPLE / "orders" / "pipeline.toml").read_text())
    assert example["spark"] in [block.get("spark") for block in shown]


def test_the_image_becomes_an_executor_by_the_arguments_of_the_pod(tmp_path: Path) -> None:
    for program in ("java", "tini"):
        path = tmp_path / program
        path.write_text('#!/bin/bash\nprintf "%s\\n" "$0" "$@"\n')
        path.chmod(0o755)
    pod = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_EXECUTOR_MEMORY": "1024m",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
        "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_JAVA_OPT_0": "-Dtwo=words in one",
        "SPARK_JAVA_OPT_1": "-Dspark.driver.port=7078",
    }
    done = subprocess.run(
        ["bash", str(EXAMPLE / "entrypoint.sh"), "executor"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SPARK_HOME": "/spark", **pod},
        capture_output=True,
        text=True,
        check=True,
    )
    backend = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert done.stdout.splitlines() == [
        *(str(tmp_path / "tini"), "-s", "--", "java"),
        *("-Dtwo=words in one", "-Dspark.driver.port=7078", "-Xmx1024m"),
        *("-cp", "/opt/spark/conf:/spark/jars/*", backend),
        *("--driver-url", pod["SPARK_DRIVER_URL"], "--executor-id", "3", "--cores", "2"),
        *("--app-id", "spark-1", "--hostname", "10.0.0.9", "--resourceProfileId", "0"),
        *("--podName", "orders-exec-3"),
    ]
