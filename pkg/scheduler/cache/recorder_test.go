package cache

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEvents gives notes to the recorder and counts the events that are written in three
// minutes, by object and reason. Of events that stand for several pods, the pods are counted.
func TestEvents(t *testing.T) {
	waits := func(reason, message string) note {
		return groupWaits(group("g", 1), &metav1.Condition{Reason: reason, Message: message})
	}
	burst := func(w *world, pods int) {
		u := &unit{group: referenceTo(group("g", 1))}
		for i := range pods {
			name := fmt.Sprintf("p-%d", i)
			w.recorder.podBound(&flight{unit: u, namespace: "default", name: name, uid: types.UID(name), landing: landing{node: "n1"}})
		}
	}
	tests := map[string]struct {
		given func(*world)
		want  map[string]int
	}{
		"each reason is told": {
			given: func(w *world) {
				w.recorder.add(waits("QueueFull", "4 cpu"))
				w.recorder.add(waits("Unschedulable", "3 nodes"))
			},
			want: map[string]int{"PodGroup QueueFull": 1, "PodGroup Unschedulable": 1},
		},
		"reasons that flip back and forth are told once a minute": {
			given: func(w *world) {
				for range 90 {
					w.recorder.add(waits("QueueFull", "4 cpu"))
					w.recorder.add(waits("Unschedulable", "3 nodes"))
					w.wait(time.Second)
				}
			},
			want: map[string]int{"PodGroup QueueFull": 2, "PodGroup Unschedulable": 2},
		},
		"a few pods are told one by one, and their group in sum": {
			given: func(w *world) { burst(w, 5) },
			want:  map[string]int{"PodGroup Scheduled": 5, "Pod Scheduled": 5},
		},
		"of very many pods only some are told": {
			given: func(w *world) { burst(w, 5000) },
			want:  map[string]int{"PodGroup Scheduled": 5000, "Pod Scheduled": podNotes},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, objects(), func(w *world) {
				test.given(w)
				w.wait(3 * time.Minute)
				got := map[string]int{}
				for _, line := range w.written() {
					fields := strings.Fields(line)
					count := 1
					if strings.HasSuffix(line, " pods bound") {
						count, _ = strconv.Atoi(fields[6])
					}
					got[fields[3]+" "+strings.TrimSuffix(fields[5], ":")] += count
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEventsAreWhatTheAPIServerTakes(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		long := group(strings.Repeat("a", 229)+"."+strings.Repeat("b", 23), 1)
		n := groupWaits(long, &metav1.Condition{Reason: "Unschedulable", Message: strings.Repeat("ä", 600)})
		event := w.recorder.event(n)
		if len(event.Note) > 1024 || !strings.HasPrefix(n.text, event.Note) {
			t.Errorf("note of %d bytes: %q", len(event.Note), event.Note)
		}
		if len(event.Name) > 253 || strings.Contains(event.Name, "..") {
			t.Errorf("name of %d bytes: %q", len(event.Name), event.Name)
		}
		if event.EventTime.IsZero() || event.ReportingController == "" || event.ReportingInstance == "" || event.Action == "" {
			t.Errorf("a required field is missing: %+v", event)
		}
	})
}
