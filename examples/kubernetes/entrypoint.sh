#!/bin/bash
# What Spark expects of an image: with the argument "executor" it becomes one, told how by the environment that
# Spark gives the pod. PySpark from pip has the program but no script that starts it. All other arguments are a command.
set -euo pipefail

if [ "${1:-}" != executor ]; then
    exec tini -- "$@"
fi

options=()
for ((number = 0; ; number++)); do
    name=SPARK_JAVA_OPT_$number
    [ -n "${!name+set}" ] || break
    options+=("${!name}")
done

exec tini -s -- java \
    ${options[@]+"${options[@]}"} \
    "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:-/opt/spark/conf}:$SPARK_HOME/jars/*${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
