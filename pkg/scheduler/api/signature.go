// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"sort"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// Signature is everything of a pod's spec that decides on which nodes it may run and which are preferred:
// namespace, requests, selectors, affinity, tolerations, ports, spread, volumes, claims and
// images; and the names of claims that were made for it. Never its labels or its name. Tasks of
// equal spec share one Signature, so what is found out for one of them holds for all.
type Signature struct {
	// Exemplar is the spec of one pod with this signature; read only.
	Exemplar  *v1.PodSpec
	Namespace string
	// Request is what a pod takes on its node: what its spec requests, and the devices of claims that a node must have.
	Request Resource
	// ShareRequest is what counts in the queue of the pod: Request, and devices of claims that do not count on nodes.
	ShareRequest Resource
	// PodRequest is Request without devices of claims.
	PodRequest Resource
	// BestEffort signatures request nothing but a pod slot.
	BestEffort bool
	// Preferred is nil without preferred node affinity.
	Preferred *nodeaffinity.PreferredSchedulingTerms
	// PreferredWeight is the sum of the positive weights of Preferred.
	PreferredWeight int64
	Ports           []HostPort

	// Terms select other pods: required and preferred (anti-)affinity and topology spread.
	Terms []Term
	// selfAffinityKey is the topology key of a required affinity to pods with the same signature.
	selfAffinityKey string
	// Volumes reports whether the signature uses claims or disks that tie it to nodes.
	Volumes bool
	// Claims reports whether the signature requests devices through resource claims.
	Claims bool
	// DeviceResources reports whether device classes provide some of the requested extended resources, so that the
	// scheduler may have to allocate devices. Package model sets it.
	DeviceResources bool

	nodes nodeMatcher
	key   string
	alike string // the key without the names of claims that were made for the pod

	// Tracking is maintained by package model.
	Tracking SignatureTracking
}

// SignatureTracking is what package model records about a signature.
type SignatureTracking struct {
	Number     uint64 // the order in which the model creates signatures
	References int    // tasks with this signature
	Members    int    // of these, members of queues that hold resources or wait
	// Kind is shared by signatures that are alike.
	Kind *SignatureKind
	// Classes are the equivalence classes of the signature as of ClassesAt, a version of the set of affinity terms.
	Classes   map[string]*EquivalenceClass
	ClassesAt uint64
}

// SignatureKind is what signatures that are alike have in common: the same nodes pass the filters for them. Each pod with
// claims that are made for it has a signature of its own, and all pods of its template have one kind.
type SignatureKind struct {
	Signatures int // of existing tasks
	Members    int // of these, those that have members
}

// Key is equal for equal signatures, and only for those.
func (s *Signature) Key() string { return s.key }

// KindKey is equal for signatures that are alike.
func (s *Signature) KindKey() string { return s.alike }

// Alike reports whether pods of the two signatures differ at most in the names of claims that were made for them.
func (s *Signature) Alike(o *Signature) bool { return s == o || s.alike == o.alike }

// HasMembers reports whether any task of a queue that holds resources or waits has this signature.
func (s *Signature) HasMembers() bool { return s.Tracking.Members > 0 }

// Unreferenced reports whether the last task with this signature is deleted: caches may drop their entries for it.
func (s *Signature) Unreferenced() bool { return s.Tracking.References == 0 }

// HasExternalResources reports whether feasibility depends on objects that are not in the model:
// volumes, claims of both kinds, and devices.
func (s *Signature) HasExternalResources() bool { return s.Volumes || s.RequestsDevices() }

// RequestsDevices reports whether devices may have to be allocated for pods with this signature.
func (s *Signature) RequestsDevices() bool { return s.Claims || s.DeviceResources }

// SelfAffinityKey returns the topology key of a required affinity of the signature to its own pods: they
// must all be in one domain of it. Empty if there is none.
func (s *Signature) SelfAffinityKey() string { return s.selfAffinityKey }

// HostPort is one port of the node that a pod uses.
type HostPort struct {
	IP       string // "0.0.0.0" for all addresses
	Protocol v1.Protocol
	Port     int32
}

const allAddresses = "0.0.0.0"

func (p HostPort) conflicts(o HostPort) bool {
	return p.Port == o.Port && p.Protocol == o.Protocol &&
		(p.IP == o.IP || p.IP == allAddresses || o.IP == allAddresses)
}

// SignatureKey returns a key that is equal for pods with equal signatures. It writes field after field rather than hashing
// the whole spec, because most pods have few of them and there may be 100,000 at start.
func SignatureKey(pod *v1.Pod, request Resource) string {
	spec := &pod.Spec
	key := make([]byte, 0, 256)
	key = append(key, pod.Namespace...)
	key = append(key, ';')
	key = request.AppendKey(key)
	key = appendSelector(key, spec.NodeSelector)
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		key = appendStrings(key, t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
	for _, p := range hostPorts(spec) {
		key = appendStrings(key, p.IP, string(p.Protocol), strconv.Itoa(int(p.Port)))
	}
	key = appendJSON(key, "affinity", spec.Affinity, spec.Affinity != nil)
	if domain := selfAffinityKeyOf(pod); domain != "" { // whether it selects itself depends on its labels
		key = appendStrings(key, "together", domain)
	}
	key = appendJSON(key, "spread", spec.TopologySpreadConstraints, len(spec.TopologySpreadConstraints) > 0)
	for i := range spec.TopologySpreadConstraints { // matchLabelKeys refer to the pod's own values
		for _, name := range spec.TopologySpreadConstraints[i].MatchLabelKeys {
			key = appendStrings(key, name, pod.Labels[name])
		}
	}
	key = appendJSON(key, "claims", spec.ResourceClaims, len(spec.ResourceClaims) > 0)
	for i := range pod.Status.ResourceClaimStatuses { // claims made from templates are the pod's own
		claim := &pod.Status.ResourceClaimStatuses[i]
		key = appendStrings(key, claim.Name, ptr.Deref(claim.ResourceClaimName, ""))
	}
	for i := range spec.Volumes {
		if BindsToNodes(&spec.Volumes[i]) {
			key = appendJSON(key, "volume", spec.Volumes[i], true)
			if spec.Volumes[i].Ephemeral != nil { // its claim is named after the pod
				key = appendStrings(key, pod.Name)
			}
		}
	}
	for _, containers := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			key = appendStrings(key, containers[i].Image)
		}
	}
	return string(key)
}

func appendStrings(key []byte, fields ...string) []byte {
	for _, field := range fields {
		key = strconv.AppendQuote(key, field)
	}
	return append(key, ';')
}

func appendSelector(key []byte, selector map[string]string) []byte {
	names := make([]string, 0, len(selector))
	for name := range selector {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		key = appendStrings(key, name, selector[name])
	}
	return key
}

// appendJSON writes rare fields; encoding/json sorts maps, so equal values give equal keys.
func appendJSON[T any](key []byte, name string, value T, present bool) []byte {
	if !present {
		return key
	}
	text, err := json.Marshal(value)
	if err != nil { // API types always marshal; a key of its own is the safe answer if not
		text = []byte(err.Error())
	}
	key = append(key, name...)
	return append(append(key, text...), ';')
}

// BindsToNodes reports whether a volume restricts the nodes on which its pod can run.
func BindsToNodes(v *v1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.GCEPersistentDisk != nil ||
		v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil || v.CSI != nil
}

// NewSignature reads the spec of a pod; key is its SignatureKey.
func NewSignature(key string, pod *v1.Pod, request Resource) *Signature {
	spec := &pod.Spec
	s := &Signature{
		key:             key,
		alike:           key,
		Exemplar:        spec,
		Namespace:       pod.Namespace,
		Request:         request,
		ShareRequest:    request,
		PodRequest:      request,
		BestEffort:      requestsNothing(request),
		nodes:           newNodeMatcher(pod),
		Ports:           hostPorts(spec),
		Terms:           termsOf(pod),
		Claims:          len(spec.ResourceClaims) > 0,
		selfAffinityKey: selfAffinityKeyOf(pod),
		Tracking:        SignatureTracking{Classes: map[string]*EquivalenceClass{}, Kind: &SignatureKind{}},
	}
	for i := range spec.Volumes {
		s.Volumes = s.Volumes || BindsToNodes(&spec.Volumes[i])
	}
	if s.HasExternalResources() {
		nameless := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Labels: pod.Labels}, Spec: pod.Spec}
		s.alike = SignatureKey(nameless, request)
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		s.readPreferred(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return s
}

// AddDevices adds the devices of claims that count for a pod with the signature.
func (s *Signature) AddDevices(required, counted Resource) {
	s.Request = s.PodRequest.Plus(required)
	s.ShareRequest = s.Request
	if !required.Equal(counted) {
		s.ShareRequest = s.PodRequest.Plus(counted)
	}
	s.BestEffort = s.BestEffort && requestsNothing(counted)
}

func (s *Signature) readPreferred(terms []v1.PreferredSchedulingTerm) {
	if len(terms) == 0 {
		return
	}
	preferred, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
	if err != nil { // the API server accepted it but the matcher does not: no preference
		return
	}
	s.Preferred = preferred
	for i := range terms {
		s.PreferredWeight += int64(terms[i].Weight)
	}
}

func requestsNothing(request Resource) bool {
	for i, n := range request {
		if i != Pods && n > 0 {
			return false
		}
	}
	return true
}

func hostPorts(spec *v1.PodSpec) []HostPort {
	var ports []HostPort
	collect := func(c *v1.Container) {
		for i := range c.Ports {
			p := &c.Ports[i]
			if p.HostPort <= 0 {
				continue
			}
			port := HostPort{IP: p.HostIP, Protocol: p.Protocol, Port: p.HostPort}
			if port.IP == "" {
				port.IP = allAddresses
			}
			if port.Protocol == "" {
				port.Protocol = v1.ProtocolTCP
			}
			ports = append(ports, port)
		}
	}
	for i := range spec.Containers {
		collect(&spec.Containers[i])
	}
	for i := range spec.InitContainers { // only sidecars run beside the containers
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			collect(c)
		}
	}
	return ports
}

// RequestOf follows k8s.io/component-helpers, as kube-scheduler does: init containers,
// sidecars, overhead, pod-level resources, and in-place resize of pods that have a node.
func (d *Dimensions) RequestOf(pod *v1.Pod) Resource {
	resizable := pod.Spec.NodeName != ""
	request := d.Vector(resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: resizable,
		InPlacePodLevelResourcesVerticalScalingEnabled: resizable,
	}))
	for i := range request {
		request[i] = min(request[i], MaxRequest)
	}
	request[Pods] = 1
	return request
}

// AppendKey appends a text that is the same for equal vectors, and only for these.
func (r Resource) AppendKey(key []byte) []byte {
	for i, n := range r {
		if n != 0 {
			key = strconv.AppendInt(key, int64(i), 36)
			key = append(key, '=')
			key = strconv.AppendInt(key, n, 36)
			key = append(key, ',')
		}
	}
	return append(key, ';')
}
