#!/usr/bin/env bash
# Builds helm and promtool from the modules pinned in go.mod, once (about 3 minutes of two cores), and prints the
# folder that has them. They are kept outside the checkout, under the checksum of go.sum.
set -euo pipefail
cd "$(dirname "$0")"
sum=$(sha256sum go.sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/weir/tools/$sum
mkdir -p "$(dirname "$folder")"
# Of two processes that need them at once one builds, the other finds them.
exec 9> "$folder.lock"
flock 9
if ! [ -x "$folder/helm" ] || ! [ -x "$folder/promtool" ]; then
    go=$(command -v go || echo /usr/local/go/bin/go)
    [ -x "$go" ] || { echo "Weir: helm and promtool are built with Go: https://go.dev/dl/" >&2; exit 1; }
    echo "Weir: building helm and promtool from their Go modules, once: about 3 minutes" >&2
    making=$folder.$$
    mkdir -p "$making"
    trap 'rm -rf "$making"' EXIT
    # Helm tells charts that no cluster is asked the version it was linked with; promtool discovers no targets here.
    version=helm.sh/helm/v3/pkg/chartutil.k8sVersion
    CGO_ENABLED=0 GOBIN="$making" "$go" install -trimpath -tags remove_all_sd "-gcflags=all=-dwarf=false -l" \
        -ldflags "-s -w -X ${version}Major=1 -X ${version}Minor=37" tool >&2
    mv -T "$making" "$folder" 2>/dev/null || [ -x "$folder/helm" ]
fi
echo "$folder"
