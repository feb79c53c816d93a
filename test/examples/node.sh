#!/bin/sh
# Runs examples/node against the server and the empty database that PGHOST,
# PGPORT, PGUSER and PGDATABASE name. An argument is taken as the seed.
set -eu

if ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'
then
	echo "node $(node --version) is too old"
	exit 77
fi

examples=$(cd "$(dirname "$0")/../../examples" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT TERM

cp -R "$examples/node" "$examples/webhooks-declaration.json" "$copy"
cd "$copy/node"

# The cache would otherwise stay behind in the home directory.
npm_config_cache="$copy/.npm-cache"
export npm_config_cache
npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier

node deliver.js "$@"
node deliver-in-sequence.js "$@"
