// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gpuClaim is a resource claim for devices of the class gpu.
func gpuClaim(name string, count int) string {
	return fmt.Sprintf("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: %s, uid: %s}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: %d}}]}}\n", name, name, count)
}

// allocatedTo is what the status of a claim says whose devices, the ones from first on, a pod of a node uses.
func allocatedTo(pod, node string, first, count int) string {
	var devices []string
	for i := range count {
		devices = append(devices, fmt.Sprintf("{request: gpu, driver: test.driver, pool: %s, device: gpu-%d}", node, first+i))
	}
	return fmt.Sprintf("status:\n  reservedFor: [{resource: pods, name: %s, uid: %s}]\n  allocation: {devices: {results: [%s]}}\n", pod, pod, strings.Join(devices, ", "))
}

func usingClaim(name string) string {
	return fmt.Sprintf("spec: resourceClaims: [{name: gpu, resourceClaimName: %s}]", name)
}

func uid(name string) string { return "uid: " + name }

func gpuNode(name string, gpus int) string {
	return strings.Replace(node(name, "64"), "pods: ", fmt.Sprintf("nvidia.com/gpu: \"%d\", pods: ", gpus), 1)
}

func gpuPod(name, queue string, gpus int) string {
	return pod(name, queue, "1", fmt.Sprintf("spec: initContainers: [{name: init, image: busybox, resources: {limits: {nvidia.com/gpu: \"%d\"}}}]", gpus))
}

func gangOf(name, queue string, members int, pods func(name string) []string) []string {
	documents := []string{fmt.Sprintf("apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: %d, queue: %s}\n", name, members, queue)}
	for i := range members {
		documents = append(documents, pods(fmt.Sprintf("%s-%02d", name, i))...)
	}
	return documents
}

func inGang(gang string) string {
	return "annotations: {scheduling.k8s.io/group-name: " + gang + "}"
}

// modelClass is the class of the devices of one model.
func modelClass(model string) string {
	return fmt.Sprintf("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: %s}\nspec:\n  extendedResourceName: example.com/%s\n"+
		"  selectors: [{cel: {expression: \"device.attributes['test.driver'].productName == '%s'\"}}]\n", model, model, model)
}

// modelSlice is the devices of a node, all of one model.
func modelSlice(node, model string, count int) string {
	return strings.ReplaceAll(gpuSlice(node, count), "{name: gpu-", "{attributes: {productName: {string: "+model+"}}, name: gpu-")
}

// modelPod requests devices of one model as an extended resource.
func modelPod(name, model string, count int) string {
	return strings.Replace(gpuPod(name, "q", count), "nvidia.com/gpu", "example.com/"+model, 1)
}

// waitingFor is a pod with a claim for devices of one model.
func waitingFor(name, model string, count int) []string {
	return []string{pod(name, "q", "1", uid(name), usingClaim(name)), strings.Replace(gpuClaim(name, count), "deviceClassName: gpu", "deviceClassName: "+model, 1)}
}

// TestDevicesOfClaims: devices of claims count in queues as extended resources do.
func TestDevicesOfClaims(t *testing.T) {
	capped := strings.Replace(queue("q", 1), "spec: {", "spec: {capability: {nvidia.com/gpu: 8}, ", 1)
	guaranteed := strings.Replace(queue("poor", 1), "spec: {", "spec: {guarantee: {nvidia.com/gpu: 6}, ", 1)
	with := func(documents []string, more ...string) []string { return append(documents, more...) }
	// running returns a pod of a queue that holds a claim for devices of a node.
	running := func(name, queue, node string, first, count int) []string {
		return []string{pod(name, queue, "1", uid(name), on(node), usingClaim(name), ownedBy("set-"+name)), gpuClaim(name, count) + allocatedTo(name, node, first, count)}
	}
	waiting := func(name, queue string, count int) []string {
		return []string{pod(name, queue, "1", uid(name), usingClaim(name)), gpuClaim(name, count)}
	}
	all := func(lists ...[]string) []string {
		var documents []string
		for _, list := range lists {
			documents = append(documents, list...)
		}
		return documents
	}
	for name, tc := range map[string]struct {
		given []string
		want  string
	}{
		"DR4: the capability of a queue counts device plugins and claims": {
			given: all(
				[]string{node("driver", "64"), gpuNode("plugin", 8), gpuClass, gpuSlice("driver", 8), capped, gpuPod("a", "q", 4)},
				waiting("b", "q", 4), waiting("c", "q", 4)),
			want: "1: bind default/a driver\n1: bind default/b driver\n1 of default/c wait: QueueFull",
		},
		"a quota per GPU model: a resource for each": {
			given: all([]string{node("n1", "64"), node("n2", "64"), modelClass("h100"), modelClass("a100"), modelSlice("n1", "h100", 8), modelSlice("n2", "a100", 8),
				strings.Replace(queue("q", 1), "spec: {", "spec: {capability: {example.com/h100: 4, example.com/a100: 8}, ", 1)},
				waitingFor("a", "h100", 3), []string{modelPod("b", "h100", 1)}, waitingFor("c", "h100", 1), []string{modelPod("d", "h100", 1)}, waitingFor("e", "a100", 8)),
			want: "1: bind default/a n1\n1: bind default/b n1\n1: bind default/e n2\n1 of default/c wait: QueueFull\n1 of default/d wait: QueueFull",
		},
		"the claim of a running pod counts": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 16), capped}, running("a", "q", "n1", 0, 6), waiting("b", "q", 4)),
			want:  "1 of default/b wait: QueueFull",
		},
		"a job that its queue never allows": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 16), capped}, waiting("b", "q", 9)),
			want:  "1 of default/b wait: ExceedsQueueCapability",
		},
		"more devices than any node has": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 8), queue("q", 1)}, waiting("b", "q", 9)),
			want:  "1 of default/b wait: ExceedsClusterCapacity",
		},
		"DR6: a claim that 17 pods share counts once": {
			given: with(all(gangOf("g", "q", 17, func(name string) []string {
				return []string{pod(name, "q", "1", uid(name), inGang("g"), usingClaim("shared"))}
			}), waiting("h", "q", 4)), node("n1", "64"), gpuClass, gpuSlice("n1", 16), capped, gpuClaim("shared", 8)),
			want: func() string {
				var lines []string
				for i := range 17 {
					lines = append(lines, fmt.Sprintf("1: bind default/g-%02d n1", i))
				}
				return strings.Join(lines, "\n") + "\n1 of default/h wait: QueueFull"
			}(),
		},
		"the queue that holds less of the devices is first": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 8), queue("a", 1), queue("b", 1)},
				running("a1", "a", "n1", 0, 4), waiting("a2", "a", 4), waiting("b1", "b", 4)),
			want: "1: bind default/b1 n1\n1 of default/a2 wait: NotEnoughResources",
		},
		"drf: of two jobs the one that holds fewer devices is first": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 8), queue("q", 1)},
				[]string{strings.Replace(running("a1", "q", "n1", 0, 4)[0], "name: set-a1, uid: set-a1", "name: a, uid: a", 1), running("a1", "q", "n1", 0, 4)[1]},
				[]string{pod("a2", "q", "1", uid("a2"), usingClaim("a2"), ownedBy("a")), gpuClaim("a2", 4)},
				[]string{pod("b1", "q", "1", uid("b1"), usingClaim("b1"), ownedBy("b")), gpuClaim("b1", 4)}),
			want: "1: bind default/b1 n1\n1 of default/a wait: NotEnoughResources",
		},
		"a queue takes back devices that another one has borrowed": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 8), queue("rich", 1), queue("poor", 1)},
				running("a", "rich", "n1", 0, 4), running("b", "rich", "n1", 4, 4), waiting("c", "poor", 4)),
			want: "1: evict default/b for default/c, reclaimed\n2: bind default/c n1\n1 of default/set-b wait: OverShare",
		},
		"a queue takes back devices up to its guarantee": {
			given: all([]string{node("n1", "64"), gpuClass, gpuSlice("n1", 8), queue("rich", 9), guaranteed},
				running("a", "rich", "n1", 0, 2), running("b", "rich", "n1", 2, 6), waiting("c", "poor", 6)),
			want: "1: evict default/b for default/c, reclaimed\n2: bind default/c n1\n1 of default/set-b wait: OverShare",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, format(run(t, snapshot(t, dir(t, tc.given...)), reclaiming))); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}
