# A container with pairscale's commands, and KenLM's programs for n-gram models.
#
#   docker build -t pairscale .
#   docker run --rm -v "$PWD:/work" -v /path/to/data:/data:ro pairscale eval -m experiment=demo
#   apptainer build pairscale.sif docker-daemon:pairscale:latest      for a cluster (docs/guides/slurm.md)
#
# On Linux, torch comes with CUDA. For a small image without it, set --build-arg INDEX to PyTorch's index of CPU wheels.
FROM python:3.12-slim-bookworm

# The Debian release named above determines the versions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes g++ make cmake git zlib1g-dev libbz2-dev liblzma-dev \
        libboost-program-options-dev libboost-system-dev libboost-thread-dev libboost-test-dev \
    && rm -rf /var/lib/apt/lists/*

ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PAIRSCALE_DATA=/data
WORKDIR /opt/pairscale
COPY constraints.txt ./
ARG INDEX=
RUN python -m venv "$VIRTUAL_ENV" && pip install -c constraints.txt ${INDEX:+--index-url "$INDEX"} torch
COPY . .
RUN pip install -c constraints.txt -e ".[syntax]" && python -m train.lmplz

# store/, runs/ and reports/ are made in the folder that is mounted here.
WORKDIR /work
ENTRYPOINT ["pairscale"]
