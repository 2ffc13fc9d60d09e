# tacit on the command line, as a user who is not root:
#     docker build -t tacit .
#     docker run --rm --network none -v "$PWD:/data" tacit fit train.parquet -o model.tacit --epsilon 1 --rating-range 1 5
# It is not built in CI; docs/dependencies.md says how it was tried.
# A fit needs no network: --network none makes sure. Files are written as user 1000; if the folder is another's, add
# --user "$(id -u):$(id -g)".
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
COPY experiments ./experiments
COPY web ./web
RUN python -m venv /opt/tacit \
    && /opt/tacit/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[sign]"

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 tacit \
    && mkdir /data /var/cache/tacit && chown tacit /data /var/cache/tacit
COPY --from=build /opt/tacit /opt/tacit
ENV PATH=/opt/tacit/bin:$PATH NUMBA_CACHE_DIR=/var/cache/tacit
USER tacit
# Loops are compiled once, here, instead of during the first command of every container, whoever runs it.
RUN tacit synth -o /tmp/t.parquet --users 500 --items 30 --per-user 10 --quiet \
    && tacit fit /tmp/t.parquet -o /tmp/m.tacit --epsilon 1 --rating-range 0.5 5 --quiet \
    && tacit recommend /tmp/m.tacit --ratings /tmp/t.parquet -o /tmp/l.parquet \
    && tacit evaluate /tmp/m.tacit --new-users /tmp/t.parquet --json > /dev/null \
    && rm /tmp/t.parquet /tmp/m.tacit /tmp/l.parquet \
    && chmod -R a+rwX /var/cache/tacit
WORKDIR /data
ENTRYPOINT ["tacit"]
CMD ["--help"]
