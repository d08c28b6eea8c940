#!/usr/bin/env bash
# Makes an environment in .venv and its stamp, for the Makefile: core, dev, extra, docs and mutmut lie
# on top of one another; libraries/ready, linters/ready and servers/NAME/ready are of their own.
set -euo pipefail
name=$1
venv=.venv
bin=$venv/bin

install() { # an environment's python, and what to install there
  "$1" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

compile() { # code, as pip does of a wheel; where Python may write none, each start would take .25 s longer
  $bin/python -m compileall -q "$@"
}

own() { # an environment beside the others
  "${PYTHON:-python3}" -m venv "$venv/$1"
}

case $name in
core)
  echo "installing into $venv (once, about half a minute)"
  "${PYTHON:-python3}" -m venv "$venv"
  install $bin/python --require-hashes -r requirements.lock
  install $bin/python --no-deps --no-build-isolation --editable packages/osler
  compile packages/osler/src
  ;;
dev)
  install $bin/python --require-hashes -r requirements-dev.lock
  install $bin/python --no-deps --no-build-isolation --editable packages/osler-lab --editable packages/osler-serve
  compile packages/osler-lab/src packages/osler-serve/src
  ;;
extra)
  install $bin/python torch==2.13.0
  install $bin/python --no-deps --require-hashes -r requirements-extra.lock
  ;;
docs) install $bin/python --require-hashes -r requirements-docs.lock ;;
mutmut) install $bin/python --require-hashes -r requirements-mutants.lock ;;
libraries/ready)
  own libraries
  # On top of the tests' environment: `addsitedir` reads that one's .pth files too.
  packages='import sysconfig; print(sysconfig.get_path("purelib"))'
  echo "import site; site.addsitedir('$($bin/python -c "$packages")')" \
    >"$($venv/libraries/bin/python -c "$packages")/tests.pth"
  install $venv/libraries/bin/python --require-hashes -r requirements-libraries.lock
  $venv/libraries/bin/python -W ignore -c "import openai, mcp, langchain_core, llama_index.core, haystack"
  ;;
linters/ready)
  own linters
  install $venv/linters/bin/python --require-hashes -r requirements-linters.lock
  ;;
servers/*/ready)
  server=${name#servers/} server=${server%/ready}
  # llama-cpp-python is built from source (a C++ compiler, minutes). Not for this processor: a virtual
  # machine may show AMX and forbid it, and the server dies at its first prompt.
  export CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"
  own "servers/$server"
  install "$venv/servers/$server/bin/python" --require-hashes -r "requirements-$server.lock"
  ;;
*)
  echo "no environment is called $name" >&2
  exit 2
  ;;
esac
touch "$venv/$name"
