#!/bin/sh
# Installs the official clients of MCP, and others that people use, which clients_test.go speaks
# through, into a cache outside the repository: the first argument, or trunkline/mcp-clients in the
# user's cache.
set -eu
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/trunkline/mcp-clients}
mkdir -p "$dir/node"
npm install --prefix "$dir/node" --no-audit --no-fund --ignore-scripts @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/sdk@1.32.2 \
	mcp-remote@0.15.1 @modelcontextprotocol/inspector@2.12.0
for package in mcp==2.3.0 mcp==1.30.0 fastmcp==4.2.3 langchain-mcp-adapters==0.3.2; do
	python3 -m venv "$dir/python-$package"
	"$dir/python-$package/bin/pip" install --quiet --disable-pip-version-check "$package"
done
echo "clients are in $dir"
