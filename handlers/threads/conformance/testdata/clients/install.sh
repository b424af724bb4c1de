#!/bin/sh
# Installs the official clients of MCP that clients_test.go speaks through, into a cache outside
# the repository: the first argument, or trunkline/mcp-clients in the user's cache.
set -eu
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/trunkline/mcp-clients}
mkdir -p "$dir/node"
npm install --prefix "$dir/node" --no-audit --no-fund --ignore-scripts @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/sdk@1.32.2
for version in 2.3.0 1.30.0; do
	python3 -m venv "$dir/python-$version"
	"$dir/python-$version/bin/pip" install --quiet --disable-pip-version-check "mcp==$version"
done
echo "clients are in $dir"
