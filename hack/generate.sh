#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Writes all generated files: from the types in pkg/apis the deep copies, apply configurations, clientset, listers and
# informers (pkg/client), and the CustomResourceDefinitions (config/crd); from the code the references of metrics,
# configuration and custom resources (docs/metrics.md, docs/configuration.md, docs/reference); from the alerts in
# config/alerts a PrometheusRule; and the parts of the chart that are equal to config/. The generators are tools of the
# module, so go.mod has their versions and no installation is needed.
#
#   hack/generate.sh [ROOT]    ROOT is the root of the module, by default the one that this script is in.
set -euo pipefail
cd "${1:-"$(dirname "${BASH_SOURCE[0]}")/.."}"

module=$(go list -m)
client=$module/pkg/client
types=$module/pkg/apis/scheduling/v1alpha1
config=$module/pkg/apis/config/v1alpha1
header=hack/boilerplate.go.txt

# Remove files that a generator no longer writes.
rm -rf pkg/client
find pkg/apis -name 'zz_generated.*' -delete
rm -f config/crd/scheduling.batch-scheduler.dev_*.yaml
rm -rf charts/batch-scheduler/crds charts/batch-scheduler/templates/{rbac,admission,groupsources,grouping}

go tool deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go "$types" "$config"

go tool applyconfiguration-gen --go-header-file "$header" \
	--output-dir pkg/client/applyconfiguration --output-pkg "$client/applyconfiguration" \
	"$types"

go tool client-gen --go-header-file "$header" \
	--clientset-name versioned --input-base "$module/pkg/apis" --input scheduling/v1alpha1 \
	--apply-configuration-package "$client/applyconfiguration" \
	--output-dir pkg/client/clientset --output-pkg "$client/clientset"

go tool lister-gen --go-header-file "$header" \
	--output-dir pkg/client/listers --output-pkg "$client/listers" \
	"$types"

go tool informer-gen --go-header-file "$header" \
	--versioned-clientset-package "$client/clientset/versioned" --listers-package "$client/listers" \
	--output-dir pkg/client/informers --output-pkg "$client/informers" \
	"$types"

go tool controller-gen crd paths=./pkg/apis/scheduling/... output:crd:dir=config/crd
# controller-gen has no marker for the values of a map, and the API server rejects rules over unbounded strings.
sed -i 's/^\( *\)pattern: \^(\\+|-)?((\[0-9\]+.*/\1maxLength: 64\n&/' config/crd/scheduling.batch-scheduler.dev_*.yaml

gofmt -w pkg/client

go run ./hack/reference metrics >docs/metrics.md
go run ./hack/reference configuration >docs/configuration.md
mkdir -p docs/reference
go run ./hack/reference api >docs/reference/scheduling-v1alpha1.md

# Indented, the rules are the spec of the object.
{
	cat <<-END
		# Generated from rules.yaml by "make generate".
		apiVersion: monitoring.coreos.com/v1
		kind: PrometheusRule
		metadata:
		  name: batch-scheduler
		  namespace: batch-scheduler-system
		  labels:
		    app.kubernetes.io/name: batch-scheduler
		spec:
	END
	sed -e '/^#/d' -e 's/^/  /' config/alerts/rules.yaml
} >config/alerts/prometheusrule.yaml

# The namespace of the chart is that of the release.
chart=charts/batch-scheduler
mkdir "$chart/crds" "$chart/templates/rbac" "$chart/templates/admission" "$chart"/templates/{groupsources,grouping}
cp config/crd/scheduling.batch-scheduler.dev_*.yaml "$chart/crds"
for file in config/{rbac,admission}/*.yaml; do
	if [[ $file == */kustomization.yaml ]]; then
		continue
	fi
	{
		[[ $file == config/rbac/* ]] || echo '{{- if .Values.admission.enabled }}'
		sed 's/batch-scheduler-system/{{ .Release.Namespace }}/g' "$file"
		[[ $file == config/rbac/* ]] || echo '{{- end }}'
	} >"$chart/templates/${file#config/}"
done
for dir in config/groupsources/*/ config/grouping/*/; do
	source=$(basename "$dir")
	directory=$(basename "$(dirname "$dir")")
	value=${directory/groupsources/groupSources}
	{
		echo "{{- if has \"$source\" .Values.$value }}"
		first=yes
		for file in "$dir"*.yaml; do
			[[ $file == */kustomization.yaml ]] && continue
			[[ $first ]] || echo ---
			first=
			sed 's/batch-scheduler-system/{{ .Release.Namespace }}/g' "$file"
		done
		echo '{{- end }}'
	} >"$chart/templates/$directory/$source.yaml"
done
