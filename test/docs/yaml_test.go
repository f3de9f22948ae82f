// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	config "github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// text is one YAML document of a block.
type text struct {
	at, kind, text string
}

// valuesKind stands for the kind of values of the chart, which have none.
const valuesKind = "values"

// volcanoKind stands for the kinds of Volcano.
const volcanoKind = "volcano"

// operatorKind stands for the kinds of operators.
const operatorKind = "operator"

// laterKind stands for the kinds of scheduling.k8s.io that Kubernetes 1.37 serves.
const laterKind = "scheduling.k8s.io of 1.37"

// texts returns the YAML documents of all blocks. What has actions is a policy, with or without its kind.
func texts(t *testing.T) []text {
	t.Helper()
	var found []text
	for _, b := range blocks(t) {
		if b.language != "yaml" {
			continue
		}
		for document := range strings.SplitSeq(b.text, "\n---\n") {
			var head struct {
				metav1.TypeMeta `json:",inline"`
				Actions         any `json:"actions"`
				ScrapeConfigs   any `json:"scrape_configs"`
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v", b.at, err)
			}
			if head.Actions != nil {
				head.Kind = config.SchedulerConfigurationKind
			}
			if head.ScrapeConfigs != nil {
				head.Kind = scrapeKind
			}
			if strings.HasPrefix(document, "# values.yaml\n") {
				head.Kind = valuesKind
			}
			if strings.HasPrefix(head.APIVersion, "scheduling.volcano.sh/") {
				head.Kind = volcanoKind
			}
			if head.APIVersion == "scheduling.k8s.io/v1beta1" || head.APIVersion == "scheduling.k8s.io/v1alpha3" {
				head.Kind = laterKind
			}
			switch group, _, _ := strings.Cut(head.APIVersion, "/"); group {
			case "argoproj.io", "kubeflow.org", "leaderworkerset.x-k8s.io", "ray.io", "sparkoperator.k8s.io", "trainer.kubeflow.org":
				head.Kind = operatorKind
			}
			found = append(found, text{b.at, head.Kind, document})
		}
	}
	return found
}

func TestYAMLIsKnownToItsLastField(t *testing.T) {
	t.Parallel()
	for _, y := range texts(t) {
		t.Run(y.at+" "+y.kind, func(t *testing.T) {
			switch y.kind {
			case config.SchedulerConfigurationKind:
				checkPolicy(t, y.text)
			case types.KustomizationKind:
				checkKustomization(t, y.text)
			case scrapeKind:
				checkScrape(t, y.text)
			case valuesKind: // see checkHelm
			case volcanoKind: // see checkConvert
			case operatorKind: // see TestOperatorPagesAreTested
			case laterKind:
				checkLater(t, y.text)
			default:
				decode(t, y.text)
			}
		})
	}
}

// decode decodes an object of the API, strictly.
func decode(t *testing.T, text string) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// checkLater reads a group as the scheduler does, and compares its fields with those that the tests serve.
func checkLater(t *testing.T, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	a := groupapi.OfKind(u.GroupVersionKind())
	if a == nil {
		t.Fatalf("no API has %s", u.GroupVersionKind())
	}
	if g := a.Read(u); g.NotSupported != "" {
		t.Error(g.NotSupported)
	}
	definitions, err := os.ReadFile("../integration/testdata/groups/native137.crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(definitions), "\n---\n") {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(document), &definition); err != nil {
			t.Fatal(err)
		}
		spec, _, err := unstructured.NestedMap(u.Object, "spec")
		if err != nil {
			t.Fatal(err)
		}
		for field := range spec {
			if _, known := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field]; !known && definition.Spec.Names.Kind == a.Kind {
				t.Errorf("%s has no field spec.%s", a.Kind, field)
			}
		}
	}
}

// checkKustomization looks for what it names.
func checkKustomization(t *testing.T, text string) {
	t.Helper()
	var k types.Kustomization
	if err := k.Unmarshal([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, resource := range k.Resources {
		render(t, resource)
	}
	for _, image := range k.Images {
		found := false
		for _, resource := range k.Resources {
			for _, object := range render(t, resource) {
				found = found || strings.Contains(object, "image: "+image.Name+":")
			}
		}
		if !found {
			t.Errorf("no object has the image %s", image.Name)
		}
	}
}

// scrapeKind is what this test calls a configuration of Prometheus, which has no kind.
const scrapeKind = "ScrapeConfigs"

// checkScrape looks for fields that Prometheus does not have, and for what the Deployment has not.
func checkScrape(t *testing.T, text string) {
	t.Helper()
	var config struct {
		ScrapeConfigs []struct {
			JobName       string `json:"job_name"`
			Scheme        string `json:"scheme"`
			Authorization struct {
				CredentialsFile string `json:"credentials_file"`
			} `json:"authorization"`
			TLS struct {
				InsecureSkipVerify bool `json:"insecure_skip_verify"`
			} `json:"tls_config"`
			Kubernetes []struct {
				Role       string `json:"role"`
				Namespaces struct {
					Names []string `json:"names"`
				} `json:"namespaces"`
			} `json:"kubernetes_sd_configs"`
			Relabel []struct {
				SourceLabels []string `json:"source_labels"`
				Regex        string   `json:"regex"`
				Action       string   `json:"action"`
				TargetLabel  string   `json:"target_label"`
			} `json:"relabel_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	for _, object := range render(t, "config/default") {
		deployment, ok := decode(t, object).(*appsv1.Deployment)
		if !ok {
			continue
		}
		template, scrape := deployment.Spec.Template, config.ScrapeConfigs[0]
		want := template.Labels["app.kubernetes.io/name"] + ";" + template.Spec.Containers[0].Ports[0].Name
		if got := scrape.Relabel[0].Regex; got != want {
			t.Errorf("keeps pods with label and port %q, want %q", got, want)
		}
		if got := scrape.Kubernetes[0].Namespaces.Names; !slices.Equal(got, []string{deployment.Namespace}) {
			t.Errorf("looks in %q, want %q", got, deployment.Namespace)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fileOf returns the YAML text that the documentation says to write to the file.
func fileOf(t *testing.T, name string) (string, bool) {
	t.Helper()
	for _, b := range blocks(t) {
		if b.language == "yaml" && strings.HasPrefix(b.text, "# "+name+"\n") {
			return b.text, true
		}
	}
	data, err := os.ReadFile(filepath.Join(root, name))
	return string(data), err == nil
}
