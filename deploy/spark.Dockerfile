# TandemMQ with Spark: the same image for a node's store, for Spark's master and workers, and for jobs.
#
#   docker build --file deploy/spark.Dockerfile --tag tandemmq-spark .
#
# Behind a package index of your own, PACKAGES_BASE names an image that knows it (docs/install.md) and has the same Python
# as BASE; only packages are taken from there.
ARG BASE=python:3.11-slim-bookworm
ARG PACKAGES_BASE=${BASE}
FROM ${PACKAGES_BASE} AS packages

# A compiler for the core, whose kernels are what jobs run.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev \
    && { test -f "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
        || DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-dev; } \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /build
ENV VIRTUAL_ENV=/opt/tandemmq/.venv
COPY constraints.txt ./
RUN python3 -m venv ${VIRTUAL_ENV} \
    && ${VIRTUAL_ENV}/bin/pip install --no-cache-dir --disable-pip-version-check --quiet --no-deps --require-hashes \
        -r constraints.txt
COPY pyproject.toml README.md LICENSE setup.py ./
COPY services services
COPY spark spark
COPY src src
RUN ${VIRTUAL_ENV}/bin/python setup.py --quiet build_ext --inplace


FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

ENV VIRTUAL_ENV=/opt/tandemmq/.venv
ENV PATH=${VIRTUAL_ENV}/bin:${PATH} PYTHONUNBUFFERED=1 SPARK_NO_DAEMONIZE=1
WORKDIR /opt/tandemmq

# They change seldom, and are most of the image.
COPY --from=packages ${VIRTUAL_ENV} ${VIRTUAL_ENV}

COPY pyproject.toml README.md LICENSE setup.py ./
COPY --from=packages /build/services services
COPY spark spark
COPY src src
RUN TANDEMMQ_PURE=1 pip install --no-cache-dir --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable . \
    && useradd --uid 10001 --create-home tandem \
    && install -d -o tandem -g tandem /data /nodes/a /nodes/b \
    && chown -R tandem services spark
USER tandem
# Spark's classes, prepared in the user's cache.
RUN python -m tandemmq.spark.running.class_archive

ENTRYPOINT ["tini", "--"]
CMD ["tandem", "--help"]
