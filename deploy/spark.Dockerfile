# TandemMQ with Spark: the same image for a node's store, for Spark's master and workers, and for jobs.
#
#   docker build --file deploy/spark.Dockerfile --tag tandemmq-spark .
#
# Behind a package index of your own: --secret id=pip,src=/etc/pip.conf --secret id=certificates,src=/path/to/ca.crt;
# both are there while packages are installed, and not in the image.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

ENV VIRTUAL_ENV=/opt/tandemmq/.venv
ENV PATH=${VIRTUAL_ENV}/bin:${PATH} PYTHONUNBUFFERED=1 SPARK_NO_DAEMONIZE=1
WORKDIR /opt/tandemmq

# Packages first: they change seldom, and are most of the image.
COPY constraints.txt ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/run/certificates \
    if [ -s /run/certificates ]; then export PIP_CERT=/run/certificates; fi \
    && python3 -m venv ${VIRTUAL_ENV} \
    && pip install --no-cache-dir --disable-pip-version-check --quiet --no-deps --require-hashes -r constraints.txt

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
