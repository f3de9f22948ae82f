// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// lister lists and watches objects of one kind.
type lister[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}] struct {
	kind      string
	resource  schema.GroupResource
	namespace string // empty for all, and for what has none
	parts     []part[T]
	table     func([]T, show.Options) text.Table
}

// part is an API from which objects are listed.
type part[T any] struct {
	list  func(context.Context, metav1.ListOptions) (objects []T, version string, err error) // without version: not to be watched
	watch watchFunc
	// object converts an object of the watch.
	object func(runtime.Object) (T, bool)
}

// partOf returns an API with a client of its own. E is the type that it watches, which as converts.
func partOf[E any, T any, P interface {
	*E
	runtime.Object
}](list func(context.Context, metav1.ListOptions) ([]T, string, error), watch watchFunc, as func(E) T) part[T] {
	return part[T]{list: list, watch: watch, object: func(o runtime.Object) (converted T, ok bool) {
		object, ok := o.(P)
		if ok {
			converted = as(*object)
		}
		return converted, ok
	}}
}

// run lists the named objects, or all, and then their changes if that is asked for.
func (l lister[T, P]) run(cmd *cobra.Command, c cluster, o getOptions, names []string) error {
	if err := o.check(names); err != nil {
		return err
	}
	objects, versions, err := l.read(cmd.Context(), names, o.selector)
	if err != nil {
		return advised(err, l.namespace)
	}
	if o.sortBy != "" {
		if err = sortObjects[T, P](objects, o.sortBy); err != nil {
			return fmt.Errorf("--sort-by %s: %w", o.sortBy, err)
		}
	}
	if len(objects) == 0 && !structured(o.output) {
		fmt.Fprintf(cmd.ErrOrStderr(), "No %s found%s.\n", shown(l.resource), place(l.namespace))
	}
	show, err := l.printer(cmd.OutOrStdout(), c, o, names)
	if err != nil {
		return err
	}
	if err = show(objects); err != nil || !o.watch {
		return err
	}
	return advised(l.follow(cmd.Context(), versions, names, o.selector, show), l.namespace)
}

func (o getOptions) check(names []string) error {
	if err := checkOutput(o.output, getFormats()...); err != nil {
		return err
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("-l %s: %w", o.selector, err)
	}
	switch {
	case o.watch && len(names) > 1:
		return errors.New("--watch accepts at most one name")
	case o.all && len(names) > 0:
		return errors.New("names and -A cannot be combined")
	case o.selector != "" && len(names) > 0:
		return errors.New("names and -l cannot be combined")
	}
	return nil
}

// read lists the named objects, or those that the selector selects, by namespace and name, with a version of each part.
func (l lister[T, P]) read(ctx context.Context, names []string, selector string) (objects []T, versions []string, err error) {
	selections := []metav1.ListOptions{{LabelSelector: selector}}
	if len(names) > 0 {
		selections = nil
	}
	for _, name := range names {
		selections = append(selections, named(name))
	}
	versions = make([]string, len(l.parts))
	for i, selection := range selections {
		before := len(objects)
		for p := range l.parts {
			found, version, err := l.parts[p].list(ctx, selection)
			if err != nil {
				return nil, nil, err
			}
			objects, versions[p] = append(objects, found...), version
		}
		if len(names) > 0 && len(objects) == before {
			return nil, nil, apierrors.NewNotFound(l.resource, names[i])
		}
	}
	slices.SortStableFunc(objects, func(a, b T) int {
		return strings.Compare(P(&a).GetNamespace()+"/"+P(&a).GetName(), P(&b).GetNamespace()+"/"+P(&b).GetName())
	})
	return objects, versions, nil
}

func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// follow shows each change after the versions until the context ends.
func (l lister[T, P]) follow(ctx context.Context, versions []string, names []string, selector string, show func([]T) error) error {
	selection := metav1.ListOptions{LabelSelector: selector}
	if len(names) == 1 {
		selection = named(names[0])
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var showing sync.Mutex
	ended, running := make(chan error, len(l.parts)), 0
	for i, p := range l.parts {
		if versions[i] == "" {
			continue
		}
		running++
		go func() {
			ended <- follow(ctx, versions[i], selection, p.watch, func(event watch.Event) error {
				object, ok := p.object(event.Object)
				if !ok {
					return nil
				}
				showing.Lock()
				defer showing.Unlock()
				return show([]T{object})
			})
		}()
	}
	var first error
	for range running {
		first = cmp.Or(first, <-ended)
		stop() // a watch ends by an error or with the context
	}
	return first
}

// watchFunc starts a watch.
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// follow calls changed for each change of the selected objects after a version until the context ends.
func follow(ctx context.Context, version string, selection metav1.ListOptions, start watchFunc, changed func(watch.Event) error) error {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector, options.LabelSelector = selection.FieldSelector, selection.LabelSelector
			return start(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch event.Type {
		case watch.Error:
			return apierrors.FromObject(event.Object)
		case watch.Added, watch.Modified, watch.Deleted:
			if err = changed(event); err != nil {
				return err
			}
		}
	}
	return nil
}

// printer returns a function that prints objects, and remembers what it has printed.
func (l lister[T, P]) printer(out io.Writer, c cluster, o getOptions, names []string) (func([]T) error, error) {
	if !structured(o.output) {
		return l.rows(out, c, o), nil
	}
	if inColumns(o.output) {
		return l.columns(out, o.output)
	}
	// A name is of one object, and a template that prints changes is one for an object.
	whole := o.output == "json" || o.output == "yaml" || !o.watch
	return l.documents(out, o.output, len(names) == 1 || o.output == formatName || !whole)
}

// rows prints titles once, and leaves columns where they are.
func (l lister[T, P]) rows(out io.Writer, c cluster, o getOptions) func([]T) error {
	var widths []int
	return func(objects []T) error {
		if len(objects) == 0 {
			return nil
		}
		t := l.table(objects, show.Options{Now: c.now(), Wide: o.output == formatWide, Namespaces: o.all, Watch: o.watch})
		first := widths == nil
		widths = t.Widths(widths)
		if first {
			fmt.Fprintln(out, t.Head(widths))
		}
		for _, line := range t.Body(widths, show.Width, -1) {
			fmt.Fprintln(out, line)
		}
		return nil
	}
}

// columns prints all as lists, so that the titles are printed once.
func (l lister[T, P]) columns(out io.Writer, format string) (func([]T) error, error) {
	printer, err := columnsPrinter(format)
	if err != nil {
		return nil, err
	}
	return func(objects []T) error {
		list := &unstructured.UnstructuredList{}
		for i := range objects {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l.document(&objects[i]))
			if err != nil {
				return err
			}
			list.Items = append(list.Items, unstructured.Unstructured{Object: content})
		}
		return printer.PrintObj(list, out)
	}, nil
}

// documents prints a list first, and then object by object; if single, it prints object by object from the beginning.
func (l lister[T, P]) documents(out io.Writer, format string, single bool) (func([]T) error, error) {
	printer, err := objectPrinter(format)
	if err != nil {
		return nil, err
	}
	return func(objects []T) error {
		list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
		for i := range objects {
			object := l.document(&objects[i])
			if single {
				if err = printer.PrintObj(object, out); err != nil {
					return err
				}
			}
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
		if single {
			return nil
		}
		single = true
		return printer.PrintObj(list, out)
	}, nil
}

// document returns what is printed for programs.
func (l lister[T, P]) document(object *T) runtime.Object {
	printed := asDocument(P(object))
	if printed.GetObjectKind().GroupVersionKind().Empty() {
		printed.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(l.kind))
	}
	return printed
}

// asDocument returns the object of the API server for an object that is converted from it.
func asDocument(object runtime.Object) runtime.Object {
	if converted, ok := object.(interface{ Document() runtime.Object }); ok {
		return converted.Document()
	}
	return object
}

func shown(resource schema.GroupResource) string { return resource.Resource }

func place(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}
