#!/usr/bin/env bash
# Rebuilds three.bundle.js from npm. Only needed to move to another three.js or to use more of it;
# nobody who builds or uses turnbuckle needs npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --no-audit --no-fund three@0.187.0 esbuild@0.28.2
cp "$here/entry.js" .
npx esbuild entry.js --bundle --minify --format=iife --global-name=THREE --legal-comments=none \
  --target=es2022 --outfile="$here/three.bundle.js"
cp node_modules/three/LICENSE "$here/LICENSE"
