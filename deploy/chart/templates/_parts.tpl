{{- define "mnemoscope.name" -}}
{{- printf "%s-%s" .Release.Name .part | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "mnemoscope.labels" -}}
app.kubernetes.io/name: {{ .part }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: mnemoscope
{{- end -}}

{{- define "mnemoscope.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* What each container is given: settings, the trail's address, and folders that can be written. */ -}}
{{- define "mnemoscope.env" -}}
- name: MNEMOSCOPE_AUDIT_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.secretName }}, key: audit-url}
- name: MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE
  value: /run/secrets/mnemoscope/pseudonym-key
- name: MNEMOSCOPE_AUDIT_SPOOL
  value: /var/lib/mnemoscope/spool
- name: XDG_DATA_HOME
  value: /var/lib/mnemoscope
- name: HOME
  value: /var/lib/mnemoscope
- name: OTEL_SERVICE_NAME
  valueFrom:
    fieldRef: {fieldPath: "metadata.labels['app.kubernetes.io/name']"}
{{- if .Values.retentionPolicy }}
- name: MNEMOSCOPE_RETENTION
  value: /etc/mnemoscope/retention.yaml
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $at := .Values.secretSettings }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: {name: {{ $at.name }}, key: {{ $at.key }}}
{{- end }}
{{- end -}}

{{- define "mnemoscope.mounts" -}}
- {name: state, mountPath: /var/lib/mnemoscope}
- {name: temporary, mountPath: /tmp}
- {name: keys, mountPath: /run/secrets/mnemoscope, readOnly: true}
{{- if .Values.retentionPolicy }}
- {name: policy, mountPath: /etc/mnemoscope, readOnly: true}
{{- end }}
{{- end -}}

{{- define "mnemoscope.volumes" -}}
- name: temporary
  emptyDir: {sizeLimit: 256Mi}
- name: keys
  secret:
    secretName: {{ .Values.secretName }}
    items:
      - {key: pseudonym-key, path: pseudonym-key}
{{- if .Values.retentionPolicy }}
- name: policy
  configMap: {name: {{ include "mnemoscope.name" (merge (dict "part" "retention") .) }}}
{{- end }}
{{- end -}}

{{- define "mnemoscope.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* A relay: an item of initContainers. It is there before the agent, and delivers what that leaves. */ -}}
{{- define "mnemoscope.relay" -}}
- name: relay
  image: {{ include "mnemoscope.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [relay]
  restartPolicy: Always
  ports:
    - {name: metrics, containerPort: {{ .Values.relay.metricsPort }}}
  env:
    {{- include "mnemoscope.env" . | nindent 4 }}
    - name: MNEMOSCOPE_RELAY
      value: /var/lib/mnemoscope/relay
    - name: MNEMOSCOPE_PROMETHEUS_PORT
      value: {{ .Values.relay.metricsPort | quote }}
    - name: MNEMOSCOPE_PROMETHEUS_ADDRESS
      value: 0.0.0.0
  # The agent begins when there is one. Liveness is a file that it writes each second.
  startupProbe:
    exec: {command: [mnemoscope, relay, --check]}
    periodSeconds: 5
    timeoutSeconds: 10
    failureThreshold: 24
  livenessProbe:
    exec: {command: [mnemoscope, relay, --check]}
    periodSeconds: 30
    timeoutSeconds: 10
    failureThreshold: 4
  resources:
    {{- toYaml .Values.relay.resources | nindent 4 }}
  securityContext:
    {{- include "mnemoscope.security" . | nindent 4 }}
  volumeMounts:
    {{- include "mnemoscope.mounts" . | nindent 4 }}
{{- end -}}

{{- /* What the agent beside it is given. */ -}}
{{- define "mnemoscope.agentEnv" -}}
{{ include "mnemoscope.env" . }}
- name: MNEMOSCOPE_RELAY
  value: /var/lib/mnemoscope/relay
- name: MNEMOSCOPE_JOURNAL
  value: /var/lib/mnemoscope/journal
{{- end -}}

{{- define "mnemoscope.pod" -}}
serviceAccountName: {{ include "mnemoscope.name" (merge (dict "part" "mnemoscope") .) }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- range $name := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" }}
{{- with get $.Values $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
