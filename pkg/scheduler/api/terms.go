package api

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Term selects pods on behalf of a shape: a term of pod affinity or anti-affinity, or a
// topology spread constraint. Which pods it selects makes the difference between tasks of one
// shape, because it is the only way in which labels have a say.
type Term struct {
	key               string
	namespaces        []string
	namespaceSelector labels.Selector // nil selects no namespace
	selector          labels.Selector
	// requires is a label that every selected pod has, as "key=value"; empty if there is none
	// that could be looked up.
	requires string
}

// termsOf reads the terms of a pod's spec. A selector that cannot be parsed selects nothing; its
// term is kept, so that upstream's plugins are asked, which then refuse the pod.
func termsOf(pod *v1.Pod) []Term {
	var terms []Term
	add := func(kind string, selector *metav1.LabelSelector, namespaces []string, namespaceSelector *metav1.LabelSelector) {
		t := Term{selector: parseSelector(selector), namespaces: namespaces, requires: requiredLabel(selector)}
		if namespaceSelector != nil {
			t.namespaceSelector = parseSelector(namespaceSelector)
		} else if len(namespaces) == 0 {
			t.namespaces = []string{pod.Namespace}
		}
		t.key = kind + "|" + strings.Join(t.namespaces, ",") + "|" + selectorKey(t.namespaceSelector) + "|" + selectorKey(t.selector)
		terms = append(terms, t)
	}
	if a := pod.Spec.Affinity; a != nil {
		for _, t := range podTerms(a) {
			add("pod", t.LabelSelector, t.Namespaces, t.NamespaceSelector)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		add("spread", pod.Spec.TopologySpreadConstraints[i].LabelSelector, nil, nil)
	}
	return terms
}

// selfAffinityKeyOf returns the topology key of the first required affinity term that selects the pod
// itself.
func selfAffinityKeyOf(pod *v1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return ""
	}
	for _, t := range pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		own := len(t.Namespaces) == 0 && t.NamespaceSelector == nil || slices.Contains(t.Namespaces, pod.Namespace)
		if err == nil && own && selector.Matches(labels.Set(pod.Labels)) {
			return t.TopologyKey
		}
	}
	return ""
}

func parseSelector(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

// selectorKey writes a selector so that all and nothing, which both read as "", differ.
func selectorKey(selector labels.Selector) string {
	if selector == nil {
		return "nothing"
	}
	if _, selectable := selector.Requirements(); !selectable {
		return "nothing"
	}
	return "{" + selector.String() + "}"
}

func podTerms(a *v1.Affinity) []v1.PodAffinityTerm {
	var terms []v1.PodAffinityTerm
	weighted := func(preferred []v1.WeightedPodAffinityTerm) {
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

func requiredLabel(selector *metav1.LabelSelector) string {
	if selector == nil {
		return ""
	}
	best := ""
	for name, value := range selector.MatchLabels {
		if pair := name + "=" + value; best == "" || pair < best {
			best = pair
		}
	}
	return best
}

func (t *Term) selects(pod *v1.Pod, namespaceLabels labels.Set) bool {
	if !slices.Contains(t.namespaces, pod.Namespace) &&
		(t.namespaceSelector == nil || !t.namespaceSelector.Matches(namespaceLabels)) {
		return false
	}
	return t.selector.Matches(labels.Set(pod.Labels))
}

// EquivalenceClass is a set of tasks that the scheduler need not tell apart: equal in shape, and selected
// by the same terms of living pods.
type EquivalenceClass struct {
	Signature *Signature
	// Selected tells whether any living term selects the tasks of this class.
	Selected bool
}

// AffectedByPods tells whether other pods have a say in where tasks of this class may go, or the other
// way round, so that upstream's plugins have to be asked about it.
func (c *EquivalenceClass) AffectedByPods() bool { return c.Selected || len(c.Signature.Terms) > 0 }

// NodeLocal tells whether nobody but a node itself has a say in whether tasks of the class may go there: no
// pods elsewhere, and nothing that is not in the model.
func (c *EquivalenceClass) NodeLocal() bool {
	return !c.AffectedByPods() && !c.Signature.HasExternalResources()
}

// terms is the register of terms of all living shapes. Looking up by one required label keeps
// the cost of a class at the number of a pod's labels, not at the number of terms.
type terms struct {
	byKey   map[string]*activeTerm
	byLabel map[string][]*activeTerm // by Term.requires
	others  []*activeTerm
	next    uint64
	// generation changes whenever the set of terms does: older classes are then void.
	generation uint64
}

type activeTerm struct {
	Term
	number uint64
	refs   int
}

func newTerms() *terms {
	return &terms{byKey: map[string]*activeTerm{}, byLabel: map[string][]*activeTerm{}}
}

func (ts *terms) add(list []Term) {
	for _, t := range list {
		live, ok := ts.byKey[t.key]
		if !ok {
			live = &activeTerm{Term: t, number: ts.next}
			ts.next++
			ts.generation++
			ts.byKey[t.key] = live
			if t.requires == "" {
				ts.others = append(ts.others, live)
			} else {
				ts.byLabel[t.requires] = append(ts.byLabel[t.requires], live)
			}
		}
		live.refs++
	}
}

func (ts *terms) remove(list []Term) {
	for _, t := range list {
		live := ts.byKey[t.key]
		if live.refs--; live.refs > 0 {
			continue
		}
		ts.generation++
		delete(ts.byKey, t.key)
		gone := func(other *activeTerm) bool { return other == live }
		if t.requires == "" {
			ts.others = slices.DeleteFunc(ts.others, gone)
		} else if rest := slices.DeleteFunc(ts.byLabel[t.requires], gone); len(rest) > 0 {
			ts.byLabel[t.requires] = rest
		} else {
			delete(ts.byLabel, t.requires)
		}
	}
}

// selecting returns the numbers of the terms that select pod, in order, as a key.
func (ts *terms) selecting(pod *v1.Pod, namespaceLabels labels.Set) string {
	if len(ts.byKey) == 0 {
		return ""
	}
	var numbers []uint64
	try := func(candidates []*activeTerm) {
		for _, t := range candidates {
			if t.selects(pod, namespaceLabels) {
				numbers = append(numbers, t.number)
			}
		}
	}
	try(ts.others)
	for name, value := range pod.Labels {
		try(ts.byLabel[name+"="+value])
	}
	slices.Sort(numbers)
	var key []byte
	for _, n := range numbers {
		key = append(strconv.AppendUint(key, n, 36), ',')
	}
	return string(key)
}
