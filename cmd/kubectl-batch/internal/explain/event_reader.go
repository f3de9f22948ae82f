// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// grace is for how long an answer is held up for events, at least. Where all else took long, because the API server
// is far away, it is half as long as that.
const grace = 50 * time.Millisecond

// eventReader reads events while other things are read. The API server has no index of them: to find those of one object it
// looks through all of the namespace, which takes a second where ten thousand gangs wait. So they are what an answer
// can do without.
type eventReader struct {
	core      kubernetes.Interface
	namespace string
	began     time.Time
	reading   sync.WaitGroup

	mu     sync.Mutex
	events []corev1.Event
	err    error
}

// read starts to read the events of an object.
func (n *eventReader) read(ctx context.Context, kind, name string) {
	n.reading.Go(func() {
		selector := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.String()
		list, err := n.core.CoreV1().Events(n.namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		n.mu.Lock()
		defer n.mu.Unlock()
		if err != nil {
			n.err = err
			return
		}
		n.events = append(n.events, list.Items...)
	})
}

// wait returns what has been read, and whether that is all. It waits for all if it has to be complete.
func (n *eventReader) wait(complete bool) (events []corev1.Event, all bool, err error) {
	read := make(chan struct{})
	go func() {
		n.reading.Wait()
		close(read)
	}()
	late := make(<-chan time.Time)
	if !complete {
		late = time.After(max(grace, time.Since(n.began)/2))
	}
	select {
	case <-read:
		all = true
	case <-late:
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events), all, n.err
}
