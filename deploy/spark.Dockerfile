# TandemMQ with Spark: the same image for a node's store, for Spark's master and workers, and for jobs.
#
#   docker build --file deploy/spark.Dockerfile --tag tandemmq-spark .
#
# Behind a package index of your own, PACKAGES_BASE names an image that knows it (docs/install.md) and has the same Python
# as BASE; only packages are taken from there.
ARG BASE=python:3.11-slim-bookworm
ARG PACKAGES_BASE=${BASE}
FROM ${PACKAGES_BASE} AS packages

ENV VIRTUAL_ENV=/opt/tandemmq/.venv
COPY constraints.txt ./
RUN python3 -m venv ${VIRTUAL_ENV} \
    && ${VIRTUAL_ENV}/bin/pip install --no-cache-dir --disable-pip-version-check --quiet --no-deps --require-hashes \
        -r constraints.txt


FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

ENV VIRTUAL_ENV=/opt/tandemmq/.venv
ENV PATH=${VIRTUAL_ENV}/bin:${PATH} PYTHONUNBUFFERED=1 SPARK_NO_DAEMONIZE=1
WORKDIR /opt/tandemmq

# They change seldom, and are most of the image.
COPY --from=packages ${VIRTUAL_ENV} ${VIRTUAL_ENV}

COPY pyproject.toml README.md LICENSE ./
COPY services services
COPY spark spark
COPY src src
COPY tools/compile_walker.py tools/
RUN pip install --no-cache-dir --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable . \
    && useradd --uid 10001 --create-home tandem \
    && install -d -o tandem -g tandem /data /nodes/a /nodes/b \
    && chown -R tandem services spark
USER tandem
# Compiled code is kept beside its source; Spark's classes in the user's cache (spark/running/class_archive.py).
RUN python tools/compile_walker.py && python -m tandemmq.spark.running.class_archive
# Workers run what the driver sends (spark/running/shipping.py): of a driver of this image, that is compiled here too.
RUN python -m tandemmq.spark.running.shipping /tmp/sent.zip \
    && PYTHONPATH=/tmp/sent.zip python tools/compile_walker.py \
    && rm /tmp/sent.zip

ENTRYPOINT ["tini", "--"]
CMD ["tandem", "--help"]
