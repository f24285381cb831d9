{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* By which one process is found: of (root, name). */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "weir.registry" -}}
{{- required "registry: name the registry that holds Weir's image, such as registry.example.org/gpus" .Values.registry | trimSuffix "/" -}}
{{- end }}

{{- define "weir.image" -}}
{{- $image := .Values.image -}}
{{- include "weir.registry" . }}/{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "weir.secret" -}}
{{- .Values.secret.existing | default "weir" -}}
{{- end }}

{{- define "weir.config" -}}
{{- .Values.config.existing | default "weir" -}}
{{- end }}

{{/* The bounds of every container: nothing of root, nothing to write, no more than it needs of the kernel. */}}
{{- define "weir.contained" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "weir.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .uid }}
runAsGroup: {{ .uid }}
fsGroup: {{ .uid }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Names of the engines' Deployments, as JSON: one, or one for each part of the clusters. */}}
{{- define "weir.engines" -}}
{{- $names := list "engine" -}}
{{- range $index, $_ := rest .Values.engine.clusters }}{{ $names = append $names (printf "engine-%d" (add 2 $index)) }}{{ end -}}
{{- toJson $names -}}
{{- end }}

{{/* Of (root, role): by the size, and what is given goes before. */}}
{{- define "weir.resources" -}}
{{- $asked := index (.root.Files.Get "files/sizes.yaml" | fromYaml) .root.Values.size .role -}}
{{- $unit := hasSuffix "Gi" $asked.memory | ternary "Gi" "Mi" -}}
{{- $limit := printf "%d%s" (trimSuffix $unit $asked.memory | int | mul 2) $unit -}}
{{- mergeOverwrite (dict "requests" $asked "limits" (dict "memory" $limit)) (index .root.Values .role).resources | toYaml }}
{{- end }}

{{/* Settings: those of the ConfigMap and the Secret, and what follows from values. */}}
{{- define "weir.environment" -}}
envFrom:
  - configMapRef: {name: {{ include "weir.config" . }}}
  - secretRef: {name: {{ include "weir.secret" . }}}
{{- end }}

{{/* Half of a pod of Weir: of (root, name, account). What is written goes to memory or an empty folder: the image's
     var/, with the compiled kernels in it, is copied there, as the compiler's cache wants a folder it can write. */}}
{{- define "weir.pod" -}}
serviceAccountName: {{ .account | default "weir-worker" }}
automountServiceAccountToken: {{ ne (.account | default "") "" }}
enableServiceLinks: false
securityContext:
  {{- include "weir.podSecurity" (dict "uid" 10001) | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: var
    emptyDir: {sizeLimit: 1Gi}
  - name: tmp
    emptyDir: {sizeLimit: 1Gi}
{{- with .root.Values.trustedCertificates.configMap }}
  - name: trusted
    configMap: {name: {{ . }}, items: [{key: {{ $.root.Values.trustedCertificates.key }}, path: trusted.crt}]}
{{- end }}
initContainers:
  - name: kernels
    image: {{ include "weir.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    # Its entries, not the folder itself: that is the kubelet's, and only who owns it may set its times.
    command: [sh, -c, "cp -R --preserve=timestamps /weir/var/* /var-of-pod/"]
    securityContext:
      {{- include "weir.contained" . | nindent 6 }}
    resources:
      requests: {cpu: 10m, memory: 32Mi}
      limits: {memory: 128Mi}
    volumeMounts:
      - {name: var, mountPath: /var-of-pod}
{{- end }}

{{/* Of (root, name, command), with `probes` where a port for them is wanted beside, and `clusters` of an engine. */}}
{{- define "weir.container" -}}
{{- $trusts := .root.Values.trustedCertificates.configMap -}}
{{- $env := list -}}
{{- if .probes }}{{ $env = append $env (dict "name" "WEIR_PROBE_PORT" "value" "9100") }}{{ end -}}
{{- with .clusters }}{{ $env = append $env (dict "name" "WEIR_ENGINE_CLUSTERS" "value" (join "," .)) }}{{ end -}}
{{- if $trusts }}{{ range list "SSL_CERT_FILE" "REQUESTS_CA_BUNDLE" }}{{ $env = append $env (dict "name" . "value" "/etc/weir/trusted.crt") }}{{ end }}{{ end -}}
image: {{ include "weir.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: {{ toJson .command }}
{{ include "weir.environment" .root }}
{{- with $env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "weir.contained" . | nindent 2 }}
volumeMounts:
  - {name: var, mountPath: /weir/var}
  - {name: tmp, mountPath: /tmp}
{{- if $trusts }}
  - {name: trusted, mountPath: /etc/weir, readOnly: true}
{{- end }}
{{- end }}

{{- define "weir.ports" -}}
[{{ range $index, $port := . }}{{ if $index }}, {{ end }}{protocol: TCP, port: {{ $port }}}{{ end }}]
{{- end }}

{{- define "weir.policy" }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: weir-{{ .name }}
  labels:
    {{- include "weir.labels" .root | nindent 4 }}
{{- end }}
