// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// The kinds that can be translated.
const (
	volcanoGroup, volcanoVersion = "scheduling.volcano.sh", "v1beta1"
	kaiGroup, kaiVersion         = "scheduling.run.ai", "v2"
)

// Read reads the Queues of a file of YAML or JSON, which can have several documents and lists. Errors name the document,
// and the field if there is one. The name of the file is for errors about several files.
func (c *Converter) Read(file string, from io.Reader) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(from))
	for number := 1; ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		where := fmt.Sprintf("document %d", number)
		var content map[string]any
		if err = yaml.UnmarshalStrict(document, &content); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if content == nil {
			continue // only comments
		}
		number++
		if err = c.take(file, where, content); err != nil {
			return err
		}
	}
}

// take reads an object, or the objects of a list.
func (c *Converter) take(file, where string, content map[string]any) error {
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if version == "" || kind == "" {
		return fmt.Errorf("%s: apiVersion and kind are required", where)
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return fmt.Errorf("%s: apiVersion: %w", where, err)
	}
	if kind != "List" && kind != "QueueList" {
		return c.add(file, where, gv, kind, content)
	}
	items, ok := content["items"].([]any)
	if !ok && content["items"] != nil {
		return fmt.Errorf("%s: items: not a list", where)
	}
	for i, item := range items {
		at := fmt.Sprintf("%s, item %d", where, i+1)
		object, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: not an object", at)
		}
		if kind == "QueueList" && object["kind"] == nil { // the items of a typed list need not repeat it
			object["apiVersion"], object["kind"] = version, "Queue"
		}
		if err := c.take(file, at, object); err != nil {
			return err
		}
	}
	return nil
}

// add translates a queue.
func (c *Converter) add(file, where string, gv schema.GroupVersion, kind string, content map[string]any) error {
	translate, ok := map[schema.GroupVersion]func(*queue, *reader, Options){
		{Group: volcanoGroup, Version: volcanoVersion}: volcano,
		{Group: kaiGroup, Version: kaiVersion}:         kai,
	}[gv]
	switch {
	case kind == "Queue" && gv.Group == v1alpha1.GroupName:
		return fmt.Errorf("%s: this is already a Queue of %s", where, v1alpha1.GroupName)
	case !ok || kind != "Queue":
		return fmt.Errorf("%s: %s (%s) cannot be converted; convert reads Queues of Volcano (%s/%s) and KAI Scheduler (%s/%s)",
			where, kind, gv, volcanoGroup, volcanoVersion, kaiGroup, kaiVersion)
	}
	r := newReader(content)
	q := &queue{where: fmt.Sprintf("-f %s: %s", file, where), api: gv.Group, name: r.in("metadata").text("name")}
	if r.err == nil {
		r.err = checkName(q.name)
	}
	if r.err != nil {
		return fmt.Errorf("%s: %w", where, r.err)
	}
	q.spec.Weight = 1
	q.settings = r.in("spec").set()
	translate(q, r, c.options)
	if !q.isVolcanoRoot() {
		for _, field := range r.unread() {
			q.lose(field, "this field is not known, and not converted")
		}
	}
	if r.err != nil {
		return fmt.Errorf("%s: Queue %q: %w", where, q.name, r.err)
	}
	c.queues = append(c.queues, q)
	return nil
}

// checkName returns an error unless a Queue can have the name. Jobs refer to their queue by name, so it cannot change.
func checkName(name string) error {
	if name == "" {
		return errors.New("metadata.name: is required")
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("metadata.name: %q cannot be the name of a Queue, which is the value of a label: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
