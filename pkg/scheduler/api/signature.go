package api

import (
	"encoding/json"
	"sort"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// Signature is everything of a pod's spec that decides where it may go and where it should:
// namespace, requests, selectors, affinity, tolerations, ports, spread, volumes, claims and
// images; and the names of claims that were made for it. Never its labels or its name. Tasks of
// equal spec share one Shape, so what is found out for one of them holds for all.
type Signature struct {
	// Exemplar is the spec of one pod of this shape; read only.
	Exemplar  *v1.PodSpec
	Namespace string
	Request   Resource
	// BestEffort shapes ask for nothing but one pod's place.
	BestEffort bool
	// Preferred is nil without preferred node affinity.
	Preferred *nodeaffinity.PreferredSchedulingTerms
	// PreferredWeight is the sum of the positive weights of Preferred.
	PreferredWeight int64
	Ports           []HostPort

	// Terms select other pods: required and preferred (anti-)affinity and topology spread.
	Terms []Term
	// selfAffinityKey is the topology key of a required affinity to pods of the shape's own kind.
	selfAffinityKey string
	// Volumes tells whether the shape uses claims or disks that tie it to nodes.
	Volumes bool
	// Claims tells whether the shape asks for devices through resource claims.
	Claims bool

	nodes   nodeMatcher
	key     string
	refs    int // tasks of this shape
	members int // of these, members of queues that hold room or wait
	classes map[string]*EquivalenceClass
	// classesAt is the generation of terms that classes were made for.
	classesAt uint64
}

// Key is equal for equal shapes, and only for those.
func (s *Signature) Key() string { return s.key }

// HasMembers tells whether any task of a queue that holds room or waits has this shape.
func (s *Signature) HasMembers() bool { return s.members > 0 }

// Unreferenced tells whether the last task of this shape is gone: what is remembered for it may go too.
func (s *Signature) Unreferenced() bool { return s.refs == 0 }

// HasExternalResources tells whether the answer where the shape may go depends on objects that are not in the model:
// volumes, and claims of both kinds.
func (s *Signature) HasExternalResources() bool { return s.Volumes || s.Claims }

// SelfAffinityKey returns the topology key of a required affinity of the shape to its own pods: they
// must all be in one domain of it. Empty if there is none.
func (s *Signature) SelfAffinityKey() string { return s.selfAffinityKey }

// HostPort is one port of the node that a pod takes.
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

// signatureKey says which pods have equal shapes. It writes field after field rather than hashing
// the whole spec, because most pods have few of them and there may be 100,000 at start.
func signatureKey(pod *v1.Pod, request Resource) string {
	spec := &pod.Spec
	key := make([]byte, 0, 256)
	key = append(key, pod.Namespace...)
	key = append(key, ';')
	key = request.appendKey(key)
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
	for i := range spec.TopologySpreadConstraints { // matchLabelKeys stand for the pod's own values
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

// BindsToNodes tells whether a volume has a say in where its pod can run.
func BindsToNodes(v *v1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.GCEPersistentDisk != nil ||
		v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil || v.CSI != nil
}

func newSignature(key string, pod *v1.Pod, request Resource) *Signature {
	spec := &pod.Spec
	s := &Signature{
		key:             key,
		Exemplar:        spec,
		Namespace:       pod.Namespace,
		Request:         request,
		BestEffort:      asksForNothing(request),
		nodes:           newNodeMatcher(pod),
		Ports:           hostPorts(spec),
		Terms:           termsOf(pod),
		Claims:          len(spec.ResourceClaims) > 0,
		classes:         map[string]*EquivalenceClass{},
		selfAffinityKey: selfAffinityKeyOf(pod),
	}
	for i := range spec.Volumes {
		s.Volumes = s.Volumes || BindsToNodes(&spec.Volumes[i])
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		s.readPreferred(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return s
}

func (s *Signature) readPreferred(terms []v1.PreferredSchedulingTerm) {
	if len(terms) == 0 {
		return
	}
	preferred, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
	if err != nil { // what the API server accepted but the matcher does not attracts nobody
		return
	}
	s.Preferred = preferred
	for i := range terms {
		s.PreferredWeight += int64(terms[i].Weight)
	}
}

func asksForNothing(request Resource) bool {
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

// requestOf follows k8s.io/component-helpers, as kube-scheduler does: init containers,
// sidecars, overhead, pod-level resources, and in-place resize of pods that have a node.
func (d *Dimensions) requestOf(pod *v1.Pod) Resource {
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
