# An image with Python and wheels only. Build it and start a node that the host's clients reach:
#   docker build -t headrace .
#   docker run --rm -p 9092:9092 -v headrace:/data headrace
FROM python:3.13-slim AS wheels
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels --constraint /source/constraints.txt '/source[services]'

FROM python:3.13-slim
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'headrace[services]' && \
    useradd --uid 1000 headrace && install --directory --owner=headrace /data
USER headrace
VOLUME /data
EXPOSE 9092 9644
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:9644/health', timeout=2)"]
ENTRYPOINT ["headrace"]
CMD ["up", "--data", "/data", "--listen", "0.0.0.0:9092", "--metrics", "9644", "--set", "advertised.listeners=PLAINTEXT://localhost:9092"]
