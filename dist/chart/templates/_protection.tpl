{{- define "ringwright.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "ringwright.labels" .root | nindent 4 }}
spec:
  # Not minAvailable: with one replica that would keep its node from being drained.
  maxUnavailable: 1
  # A pod that is not ready is of no use where it is.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app.kubernetes.io/name: ringwright
      app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "ringwright.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "ringwright.labels" .root | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: ringwright
      app.kubernetes.io/component: {{ .component }}
  policyTypes: [Ingress, Egress]
  ingress:
  - ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  egress:
  # Names are looked up, also at a cache on the node, whose address is link-local.
  - ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
  # The API server, pods and Prometheus: their addresses and ports are in no manifest. Link-local addresses, where clouds hand out
  # credentials, are none of them.
  - to:
    - namespaceSelector: {}
    - ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16]}
    - ipBlock: {cidr: "::/0", except: ["fe80::/10"]}
    ports:
    - {protocol: TCP, port: 1, endPort: 65535}
{{- end }}
