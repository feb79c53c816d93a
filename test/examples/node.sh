#!/bin/sh
# Runs examples/node against the server and the empty database that PGHOST,
# PGPORT, PGUSER and PGDATABASE name. An argument is taken as the seed.
set -eu

example=$(cd "$(dirname "$0")/../../examples/node" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT TERM

cp -R "$example/." "$copy"
cd "$copy"

# The cache would otherwise stay behind in the home directory.
npm_config_cache="$copy/.npm-cache"
export npm_config_cache
npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier

node deliver.js "$@"
