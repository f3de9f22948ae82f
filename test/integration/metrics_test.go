package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// scraper reads the metrics of the scheduler as a collector does: over TLS that it verifies,
// with the token of an account that has the role shipped for it.
type scraper struct {
	client *http.Client
	url    string
	token  string
}

const collector = "collector"

// newScraper prepares a scraper and returns the arguments that the scheduler needs for it.
func (w *world) newScraper() (*scraper, []string) {
	w.t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	w.must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	port := strconv.Itoa(w.freePort())
	args := []string{
		"--bind-address=127.0.0.1", "--secure-port=" + port,
		"--tls-cert-file=" + w.file("tls.crt", string(cert)), "--tls-private-key-file=" + w.file("tls.key", string(key)),
	}
	return &scraper{
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
		url:    "https://" + net.JoinHostPort("127.0.0.1", port) + "/metrics",
		token:  w.collectorToken(),
	}, args
}

func (w *world) freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// collectorToken makes an account that may read metrics and nothing else.
func (w *world) collectorToken() string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: collector}}
	_, err := w.client.CoreV1().ServiceAccounts(scheduler.Namespace).Create(w.ctx, account, metav1.CreateOptions{})
	w.must(err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: collector},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "batch-scheduler-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: scheduler.Namespace, Name: collector}},
	}, metav1.CreateOptions{})
	w.must(err)
	path := filepath.Join(w.dir, "collector.kubeconfig")
	w.must(w.cluster.ServiceAccountKubeconfig(w.ctx, scheduler.Namespace, collector, path))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	w.must(err)
	w.must(os.Remove(path))
	return config.BearerToken
}

// read returns all metrics of the scheduler, by name.
func (s *scraper) read(w *world) (families, error) {
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %s", s.url, response.Status, body)
	}
	return parse(body)
}

// apiServerMetrics returns all metrics of the API server.
func (w *world) apiServerMetrics() (families, error) {
	body, err := w.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(w.ctx)
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// families are metrics by name.
type families map[string]*dto.MetricFamily

func parse(text []byte) (families, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// count sums the counter over all series whose labels are as asked for.
func (f families) count(name string, asked func(labels map[string]string) bool) int {
	sum := 0.0
	for _, m := range f[name].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if asked(labels) {
			sum += m.GetCounter().GetValue()
		}
	}
	return int(sum)
}
