// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"github.com/batch-scheduler/batch-scheduler/internal/image"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// container runs the one container of a pod.
type container struct {
	*scheduler.Scheduler
	site    *site
	pod     *corev1.Pod
	root    string
	address string // of the pod
}

// run starts the container of a pod at an address.
func (s *site) run(pod *corev1.Pod, address string) *container {
	s.t.Helper()
	c := &container{site: s, pod: pod, root: s.t.TempDir(), address: address}
	s.must(os.Chmod(c.root, 0o755)) // it is /, which the user of the container must be able to enter
	config, err := image.Unpack(built, c.root)
	s.must(err)
	c.mount()
	spec := pod.Spec.Containers[0]
	env := c.environment()
	var args []string
	for _, arg := range spec.Args {
		args = append(args, expansion.Expand(arg, expansion.MappingFuncFor(env)))
	}
	log := filepath.Join(s.t.TempDir(), "log")
	process, err := cluster.StartProcess(cluster.ProcessOptions{
		Path:   config.Config.Entrypoint[0],
		Args:   append(args, "--bind-address="+address),
		Env:    assignments(env),
		Output: log,
		Container: &cluster.Container{
			Root: c.root, UID: uint32(*pod.Spec.SecurityContext.RunAsUser), GID: uint32(*pod.Spec.SecurityContext.RunAsGroup),
		},
	})
	s.must(err)
	c.Scheduler = &scheduler.Scheduler{Process: process, Log: log}
	s.t.Cleanup(func() {
		process.Kill()
		<-process.Done()
		c.checkLog()
	})
	return c
}

// checkLog fails the test if the log contains an error, and shows the log if the test has failed.
func (c *container) checkLog() {
	faults, err := c.Faults()
	if err != nil || len(faults) > 0 {
		c.site.t.Errorf("%s: faults: %v, %s", c.pod.Name, err, strings.Join(faults, "\n"))
	}
	if c.site.t.Failed() {
		c.site.t.Logf("the log of %s:\n%s", c.pod.Name, c.log())
	}
}

func (c *container) log() string {
	data, err := os.ReadFile(c.Log)
	c.site.must(err)
	return string(data)
}

// environment is what the pod says, and the address of the API server.
func (c *container) environment() map[string]string {
	server, err := url.Parse(c.site.config.Host)
	c.site.must(err)
	env := map[string]string{"KUBERNETES_SERVICE_HOST": server.Hostname(), "KUBERNETES_SERVICE_PORT": server.Port()}
	for _, variable := range c.pod.Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil {
			env[variable.Name], err = fieldpath.ExtractFieldPathAsString(c.pod, from.FieldRef.FieldPath)
			c.site.must(err)
		}
	}
	return env
}

func assignments(env map[string]string) []string {
	var all []string
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// mount writes the volumes of the pod, and again when what they show has changed.
func (c *container) mount() {
	for _, mount := range c.pod.Spec.Containers[0].VolumeMounts {
		for _, volume := range c.pod.Spec.Volumes {
			if volume.Name == mount.Name {
				c.site.must(write(filepath.Join(c.root, mount.MountPath), c.files(volume)))
			}
		}
	}
}

// files are those of a volume.
func (c *container) files(volume corev1.Volume) map[string]string {
	switch {
	case volume.ConfigMap != nil:
		return c.configMap(volume.ConfigMap.Name)
	case volume.Projected != nil:
		files := map[string]string{}
		for _, source := range volume.Projected.Sources {
			switch {
			case source.ServiceAccountToken != nil:
				files[source.ServiceAccountToken.Path] = c.token(source.ServiceAccountToken)
			case source.ConfigMap != nil:
				all := c.configMap(source.ConfigMap.Name)
				for _, item := range source.ConfigMap.Items {
					files[item.Path] = all[item.Key]
				}
			case source.DownwardAPI != nil:
				for _, item := range source.DownwardAPI.Items {
					value, err := fieldpath.ExtractFieldPathAsString(c.pod, item.FieldRef.FieldPath)
					c.site.must(err)
					files[item.Path] = value
				}
			}
		}
		return files
	}
	c.site.t.Fatalf("pod %s has a volume of a kind that this test does not know: %v", c.pod.Name, volume)
	return nil
}

func (c *container) configMap(name string) map[string]string {
	configMap, err := c.site.client.CoreV1().ConfigMaps(c.pod.Namespace).Get(c.site.ctx, name, metav1.GetOptions{})
	c.site.must(err)
	return configMap.Data
}

// token is bound to the pod.
func (c *container) token(source *corev1.ServiceAccountTokenProjection) string {
	request, err := c.site.client.CoreV1().ServiceAccounts(c.pod.Namespace).CreateToken(c.site.ctx, c.pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: source.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: c.pod.Name, UID: c.pod.UID},
		},
	}, metav1.CreateOptions{})
	c.site.must(err)
	return request.Status.Token
}

// write puts files into a directory as kubelets do: all of them change at once, when the link ..data does.
func write(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	if err = os.Chmod(data, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err = os.WriteFile(filepath.Join(data, name), []byte(text), 0o644); err != nil {
			return err
		}
		if err = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	link := filepath.Join(dir, "..data")
	old, err := os.Readlink(link)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err = os.Symlink(filepath.Base(data), link+"_tmp"); err != nil {
		return err
	}
	if err = os.Rename(link+"_tmp", link); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

// probe asks what a probe of the pod asks.
func (c *container) probe(probe *corev1.Probe) error {
	get := probe.HTTPGet
	client := &http.Client{Transport: &http.Transport{ // kubelets trust any certificate
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	address := net.JoinHostPort(c.address, strconv.Itoa(c.port(get.Port)))
	response, err := client.Get(strings.ToLower(string(get.Scheme)) + "://" + address + get.Path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", get.Path, response.Status, body)
	}
	return err
}

func (c *container) port(port intstr.IntOrString) int {
	if port.Type == intstr.Int {
		return port.IntValue()
	}
	for _, known := range c.pod.Spec.Containers[0].Ports {
		if known.Name == port.StrVal {
			return int(known.ContainerPort)
		}
	}
	c.site.t.Fatalf("pod %s has no port %s", c.pod.Name, port.StrVal)
	return 0
}
