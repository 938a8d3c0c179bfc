#!/usr/bin/env bash
# The steps of the Dockerfile where no builder is at hand: a folder takes the place of the image's root, the same
# commands install into it, and the entry point runs as somebody who may write nowhere but in the working folder.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(mktemp -d); trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root/build" "$root/work"
cp pyproject.toml constraints.txt README.md LICENSE "$root/build"; cp -r src "$root/build/src"
cd "$root/build"
# the RUN line of the build stage, with its paths under the folder
step=$(sed -n '/^RUN python -m venv/,/[^\\]$/p' "$OLDPWD/Dockerfile" | sed 's/^RUN //; s/\\$//' | tr -d '\n' | sed "s#/opt/recollect#$root/opt/recollect#g")
[ -n "$step" ] || { echo "the Dockerfile has no such step" >&2; exit 1; }
if [ "${1:-}" = --offline ]; then step=${step/--extra-index-url https:\/\/download.pytorch.org\/whl\/cpu/}; fi
bash -c "$step"
cd "$root/work"
run=("$root/opt/recollect/bin/recollect")
if [ "$(id -u)" = 0 ]; then chown 1000 "$root/work"; run=(setpriv --reuid=1000 --clear-groups env HOME="$root/work" "${run[@]}"); fi
HF_HUB_OFFLINE=1 "${run[@]}" --help > /dev/null
HF_HUB_OFFLINE=1 "${run[@]}" --version
HF_HUB_OFFLINE=1 "${run[@]}" list > /dev/null
echo "The image's steps work."
