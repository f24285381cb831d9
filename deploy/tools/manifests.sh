#!/usr/bin/env bash
# The chart as plain manifests and a Kustomize base: manifests.sh VALUES FOLDER
set -euo pipefail
values=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
"$("$here/install.sh")/helm" template weir "$here/../helm/weir" --namespace weir-system --values "$values" \
    2> >(grep -v "found symbolic link" >&2) > "$folder/weir.yaml"
cat > "$folder/kustomization.yaml" <<'END'
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: weir-system
resources: [weir.yaml]
END
echo "$folder/weir.yaml and $folder/kustomization.yaml: kubectl apply --server-side -k $folder"
