{{/* Labels of every object: those of config/default, and Helm's. */}}
{{- define "ringwright.labels" -}}
app.kubernetes.io/name: ringwright
app.kubernetes.io/part-of: ringwright
{{ include "ringwright.helmLabels" . }}
{{- end }}

{{- define "ringwright.helmLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{/* A file of config as it is, with Helm's labels behind the last of its own. Nothing in it is a template. */}}
{{- define "ringwright.file" -}}
{{- $own := "    app.kubernetes.io/part-of: ringwright\n" -}}
{{- .text | replace $own (printf "%s%s\n" $own (include "ringwright.helmLabels" .root | indent 4)) -}}
{{- end }}

{{- define "ringwright.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{/* What users say of the pods of one of the Deployments. */}}
{{- define "ringwright.scheduling" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Arguments that both programs have. */}}
{{- define "ringwright.args" -}}
{{- with .root.Values.watchNamespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- if not .root.Values.metrics.auth }}
- --metrics-insecure
{{- else if .root.Values.metrics.certSecret }}
- --metrics-cert-dir=/var/run/secrets/ringwright-metrics
{{- end }}
{{- range .own.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "ringwright.metricsEndpoint" -}}
- port: metrics
  {{- if .Values.metrics.auth }}
  scheme: https
  bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
  tlsConfig:
    insecureSkipVerify: true
  {{- end }}
  honorLabels: true
{{- end }}

{{/* The rules of a program: a ClusterRole, or a Role in each namespace that it watches. */}}
{{- define "ringwright.programRole" -}}
{{- $rules := .root.Files.Get (printf "files/%s-rules.yaml" .program) }}
{{- $kind := ternary "Role" "ClusterRole" (not (empty .root.Values.watchNamespaces)) }}
{{- range $namespace := default (list "") .root.Values.watchNamespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: ringwright-{{ $.program }}-role
  {{- with $namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "ringwright.labels" $.root | nindent 4 }}
rules:
{{ $rules }}
{{- include "ringwright.binding" (dict "root" $.root "namespace" $namespace "name" (printf "ringwright-%s-rolebinding" $.program) "roleKind" $kind "role" (printf "ringwright-%s-role" $.program) "accounts" (list $.account)) }}
{{- end }}
{{- end }}

{{/* A RoleBinding in a namespace, or a ClusterRoleBinding, to service accounts of the release. */}}
{{- define "ringwright.binding" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (not (empty .namespace)) }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "ringwright.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .roleKind }}
  name: {{ .role }}
subjects:
{{- range .accounts }}
- kind: ServiceAccount
  name: {{ . }}
  namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- end }}
