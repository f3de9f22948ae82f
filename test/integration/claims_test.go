// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestClaims: pods get the devices of their resource claims with their nodes, all of a gang or none.
func TestClaims(t *testing.T) {
	host := corev1.LabelHostname
	play(t, map[string]scenario{
		"a gang shares out the devices of two nodes": {
			given: rows(
				nodes("n", 3, "8cpu"), deviceClass, devices("n1", 1), devices("n2", 2), deviceClaims("a-0", "a-1", "a-2"),
				gang("a", 3, pods(3, "1cpu", usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 3 running (n1 1, n2 2)`, by: host},
			then: []step{{do: rows(hold("a-0: n", "a-1: n", "a-2: n")), want: `a: Running Scheduled; 3 running`}},
		},
		"a gang with one claim more than there are devices takes none": {
			given: rows(
				nodes("n", 2, "8cpu"), deviceClass, devices("n1", 1), deviceClaims("a-0", "a-1", "b-0"),
				gang("a", 2, pods(2, "1cpu", usingOwn("a")))),
			step: step{
				want:   `a: Pending NotEnoughResources; 2 waiting Unschedulable`,
				prints: map[string]string{"a": "1/2 nodes are available: 1 without deviceclass.resource.kubernetes.io/gpu"},
			},
			then: []step{{
				do: rows(hold("a-0: nothing", "a-1: nothing"), gang("b", 1, pods(1, "1cpu", usingOwn("b")))),
				want: `
					a: Pending NotEnoughResources; 2 waiting Unschedulable
					b: Running Scheduled; 1 running`,
				prints: map[string]string{"a": "0/2 nodes are available: 1 Insufficient deviceclass.resource.kubernetes.io/gpu, 1 without deviceclass.resource.kubernetes.io/gpu; nearest: node n1 lacks 1 deviceclass.resource.kubernetes.io/gpu"},
			}, {
				do: rows(devices("n2", 2)),
				want: `
					a: Running Scheduled; 2 running
					b: Running Scheduled; 1 running`,
			}},
		},
		"a gang that shares a claim is where its device is": {
			given: rows(
				nodes("n", 3, "64cpu"), deviceClass, devices("n2", 1), deviceClaims("shared"),
				gang("a", 40, pods(40, "1cpu", usingClaim("shared")))),
			step: step{want: `a: Running Scheduled; 40 running (n2 40)`, by: host},
			then: []step{{do: rows(hold("shared: n2 for a-0 a-1 a-10")), want: `a: Running Scheduled; 40 running`}},
		},
		"a gang that shares a claim and does not fit on the node of its device waits": {
			given: rows(
				nodes("n", 3, "2cpu"), deviceClass, devices("n2", 1), deviceClaims("shared"),
				gang("a", 3, pods(3, "1cpu", usingClaim("shared")))),
			step: step{
				want:   `a: Pending NotEnoughResources; 3 waiting Unschedulable`,
				prints: map[string]string{"a": "needs 3 more pods of 1 cpu + claim shared (1 device of class gpu), 2 of them could start now; 1/3 nodes are available: 2 without devices of class gpu"},
			},
			then: []step{{do: rows(hold("shared: nothing")), want: `a: Pending NotEnoughResources; 3 waiting Unschedulable`}},
		},
		"a claim that does not exist is a reason, until it is created": {
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, devices("n1", 1),
				gang("a", 1, pods(1, "1cpu", usingOwn("a")))),
			step: step{
				want:   `a: Pending Unschedulable; 1 waiting Unschedulable`,
				prints: map[string]string{"a": `could not find ResourceClaim "default/a-0"`},
			},
			then: []step{{do: rows(deviceClaims("a-0")), want: `a: Running Scheduled; 1 running`}},
		},
		"claims are made from a template, and deallocated": {
			cluster: controllers,
			given: rows(
				nodes("n", 2, "8cpu"), deviceClass, devices("n1", 1), devices("n2", 1), claimTemplate,
				gang("a", 2, pods(2, "1cpu", usingTemplate)), gang("b", 1, pods(1, "1cpu", usingTemplate))),
			step: step{want: `
				a: Running Scheduled; 2 running
				b: Pending NotEnoughResources; 1 waiting Unschedulable`,
				prints: map[string]string{"b": "needs 1 more pod of 1 cpu + 1 device of class gpu; 0/2 nodes are available: 2 Insufficient deviceclass.resource.kubernetes.io/gpu; nearest: node n1 lacks 1 deviceclass.resource.kubernetes.io/gpu"}},
			then: []step{{
				do:   rows(func(h *harness) { h.remove(jobLabel+"=a", 1) }),
				want: `b: Running Scheduled; 1 running`,
			}},
		},
		"DR9: a claim gets the smallest device that satisfies it": {
			config: smallestDevices,
			given: rows(
				nodes("n", 3, "8cpu"), deviceClass, sizedDevices("n1", "80Gi"), sizedDevices("n2", "24Gi"), sizedDevices("n3", "40Gi"),
				claimsForMemory("30Gi", "a-0", "b-0"), claimsForMemory("10Gi", "c-0"), gang("a", 1, pods(1, "1cpu", usingOwn("a")))),
			step: step{want: `a: Running Scheduled; 1 running (n3 1)`, by: host},
			then: []step{{
				do: rows(hold("a-0: n3"), gang("b", 1, pods(1, "1cpu", usingOwn("b"))), gang("c", 1, pods(1, "1cpu", usingOwn("c")))),
				want: `
					a: Running Scheduled; 1 running (n3 1)
					b: Running Scheduled; 1 running (n1 1)
					c: Running Scheduled; 1 running (n2 1)`,
				by: host,
			}},
		},
		"if one pod does not get its device, no pod of its gang is bound": {
			given: rows(
				nodes("n", 1, "8cpu"), deviceClass, devices("n1", 3), deviceClaims("a-0", "a-1", "a-2"), refusing("a-1"),
				gang("a", 3, pods(3, "1cpu", usingOwn("a")))),
			step: step{
				want:   `a: Pending ClaimsNotReady; 3 waiting ClaimsNotReady`,
				prints: map[string]string{"a": "claim a-1 of pod a-1 on node n1"},
			},
			then: []step{{
				do:   rows(hold("a-0: nothing", "a-1: nothing", "a-2: nothing"), refusingNoMore),
				want: `a: Running Scheduled; 3 running`,
			}},
		},
	})
}

const gpu = "gpu"

// smallestDevices is the built-in policy with the score for small devices.
var smallestDevices = strings.Replace(builtinPolicy, "{name: predicates}", "{name: predicates, arguments: {smallestdevice.weight: 50}}", 1)

// deviceClass is all devices.
func deviceClass(h *harness) {
	_, err := h.client.ResourceV1().DeviceClasses().Create(h.ctx, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: gpu}}, metav1.CreateOptions{})
	h.must(err)
}

// devices are what the driver of a node publishes.
func devices(node string, count int) row {
	return func(h *harness) {
		s := newSlice(node)
		for i := range count {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint(gpu, i)})
		}
		h.publish(s)
	}
}

// sizedDevices are devices with a capacity memory.
func sizedDevices(node string, memory ...string) row {
	return func(h *harness) {
		s := newSlice(node)
		for i := range memory {
			capacity := map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory[i])}}
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint(gpu, i), Capacity: capacity})
		}
		h.publish(s)
	}
}

func newSlice(node string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, NodeName: &node},
	}
}

func (h *harness) publish(s *resourcev1.ResourceSlice) {
	_, err := h.client.ResourceV1().ResourceSlices().Create(h.ctx, s, metav1.CreateOptions{})
	h.must(err)
}

// oneDevice asks for one device.
func oneDevice() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: gpu, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: gpu}},
	}}}
}

// deviceClaims are claims for one device each.
func deviceClaims(names ...string) row { return claimsOf(oneDevice(), names...) }

// claimsForMemory are claims for one device each that has this memory at least.
func claimsForMemory(memory string, names ...string) row {
	spec := oneDevice()
	spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf("device.capacity[%q].memory.compareTo(quantity(%q)) >= 0", driver, memory),
	}}}
	return claimsOf(spec, names...)
}

func claimsOf(spec resourcev1.ResourceClaimSpec, names ...string) row {
	return func(h *harness) {
		for _, name := range names {
			c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
			_, err := h.client.ResourceV1().ResourceClaims(namespace).Create(h.ctx, c, metav1.CreateOptions{})
			h.must(err)
		}
	}
}

// claimTemplate is what claims for one device are made from.
func claimTemplate(h *harness) {
	c := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: gpu}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: oneDevice()}}
	_, err := h.client.ResourceV1().ResourceClaimTemplates(namespace).Create(h.ctx, c, metav1.CreateOptions{})
	h.must(err)
}

// usingOwn gives each pod of a gang the claim that has the name of the pod.
func usingOwn(gang string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { usingClaim(gang + "-" + p.Name)(p) }
}

// usingClaim gives all pods the same claim.
func usingClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: gpu, ResourceClaimName: &name}}
	}
}

func usingTemplate(p *corev1.Pod) {
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: gpu, ResourceClaimTemplateName: ptr.To(gpu)}}
}

// refusing has the API server refuse to write the status of a claim.
func refusing(claim string) row {
	return func(h *harness) {
		h.deny(refusal, admissionv1.Update, admissionv1.Rule{APIGroups: []string{resourcev1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"resourceclaims/status"}},
			fmt.Sprintf("object.metadata.name != %q", claim))
		h.eventually(func() error { // until it is in force
			c, err := h.client.ResourceV1().ResourceClaims(namespace).Get(h.ctx, claim, metav1.GetOptions{})
			h.must(err)
			if _, err = h.client.ResourceV1().ResourceClaims(namespace).UpdateStatus(h.ctx, c, metav1.UpdateOptions{}); err == nil {
				return fmt.Errorf("the status of claim %s can be written", claim)
			}
			return nil
		})
	}
}

const refusal = "refusal"

// deny has the API server refuse operations on a resource unless the expression is true, as soon as it has taken notice.
func (h *harness) deny(name string, operation admissionv1.OperationType, rule admissionv1.Rule, unless string) {
	h.t.Helper()
	admission := h.client.AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Create(h.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{operation}, Rule: rule,
			}}}},
			Validations: []admissionv1.Validation{{Expression: unless, Message: "not this one"}},
		},
	}, metav1.CreateOptions{})
	h.must(err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(h.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	h.must(err)
}

func refusingNoMore(h *harness) {
	h.must(h.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(h.ctx, refusal, metav1.DeleteOptions{}))
}

// hold waits until claims hold what is wanted: a device of a node, for whom, or nothing. What is left out at the end
// of a line is not looked at.
func hold(want ...string) row {
	return func(h *harness) {
		h.t.Helper()
		h.eventually(func() error {
			got := make([]string, len(want))
			for i := range want {
				name, _, _ := strings.Cut(want[i], ":")
				if got[i] = h.holding(name); strings.HasPrefix(got[i], want[i]) {
					got[i] = want[i]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("claims (-want +got):\n%s", diff)
			}
			return nil
		})
	}
}

func (h *harness) holding(name string) string {
	c, err := h.client.ResourceV1().ResourceClaims(namespace).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	if c.Status.Allocation == nil {
		return name + ": nothing"
	}
	var users []string
	for _, user := range c.Status.ReservedFor {
		users = append(users, user.Name)
	}
	slices.Sort(users)
	return fmt.Sprintf("%s: %s for %s", name, c.Status.Allocation.Devices.Results[0].Pool, strings.Join(users, " "))
}
