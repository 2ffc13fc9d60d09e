# tacit on the command line, as a user who is not root:
#     docker build -t tacit .
#     docker run --rm --network none -v "$PWD:/data" tacit fit train.parquet -o model.tacit --epsilon 1 --rating-range 1 5
# A fit needs no network: --network none makes sure.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
COPY experiments ./experiments
RUN python -m venv /opt/tacit \
    && /opt/tacit/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[sign]"

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 tacit && mkdir /data && chown tacit /data
COPY --from=build /opt/tacit /opt/tacit
ENV PATH=/opt/tacit/bin:$PATH NUMBA_CACHE_DIR=/home/tacit/.cache/numba
USER tacit
# Loops are compiled once, here, instead of during the first fit of every container.
RUN tacit synth -o /tmp/t.parquet --users 500 --items 30 --per-user 10 --quiet \
    && tacit fit /tmp/t.parquet -o /tmp/m.tacit --epsilon 1 --rating-range 0.5 5 --quiet \
    && rm /tmp/t.parquet /tmp/m.tacit
WORKDIR /data
ENTRYPOINT ["tacit"]
CMD ["--help"]
