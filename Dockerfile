# Recollect on a CPU, for people who would rather not install it. Text and answers stay in the folders that are mounted:
#   docker build -t recollect . && docker run --rm -v "$PWD:/work" recollect run plan.yaml
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/recollect \
    && /opt/recollect/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        --constraint constraints.txt '.[private,peft]'

FROM python:3.12-slim
COPY --from=build /opt/recollect /opt/recollect
RUN useradd --create-home --uid 1000 auditor && mkdir /work && chown auditor /work
ENV PATH=/opt/recollect/bin:$PATH \
    HF_HUB_OFFLINE=1
USER 1000
WORKDIR /work
ENTRYPOINT ["recollect"]
CMD ["--help"]
