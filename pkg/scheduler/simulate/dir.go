// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// FromDir reads the objects from all .yaml, .yml and .json files of a directory and its subdirectories, or from one
// file. A file may contain several documents and lists. Unknown fields are rejected.
func FromDir(dir string, progress Progress) (*Objects, error) {
	files, err := objectFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading objects: there is no .yaml, .yml or .json file in %s", dir)
	}
	d := newDecoder(newObjects(progress))
	for _, file := range files {
		if err := d.file(file); err != nil {
			return nil, fmt.Errorf("reading objects: %w", err)
		}
	}
	return d.objects, nil
}

// objectFiles returns files in the order of their names.
func objectFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != dir && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir() || hidden:
		case path == dir, slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// decoder decodes documents into objects.
type decoder struct {
	objects    *Objects
	yaml, json *jsonserializer.Serializer
}

func newDecoder(objects *Objects) *decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	serializer := func(yaml bool) *jsonserializer.Serializer {
		return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Yaml: yaml, Strict: true})
	}
	return &decoder{objects: objects, yaml: serializer(true), json: serializer(false)}
}

func (d *decoder) file(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	split, serializer := yamlDocuments, d.yaml
	if filepath.Ext(path) == ".json" {
		split, serializer = jsonDocuments, d.json
	}
	documents, err := split(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for i, document := range documents {
		at := path
		if len(documents) > 1 {
			at = fmt.Sprintf("%s, document %d", path, i+1)
		}
		if err := d.document(serializer, document, at); err != nil {
			return err
		}
	}
	return nil
}

// yamlDocuments skips empty documents.
func yamlDocuments(data []byte) ([][]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if !blank(document) {
			documents = append(documents, document)
		}
	}
}

func blank(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

func jsonDocuments(data []byte) ([][]byte, error) {
	stream := json.NewDecoder(bytes.NewReader(data))
	var documents [][]byte
	for {
		var document json.RawMessage
		err := stream.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

// document adds an object, or all objects of a list.
func (d *decoder) document(serializer *jsonserializer.Serializer, document []byte, at string) error {
	obj, kind, err := serializer.Decode(document, nil, nil)
	if kind != nil {
		if a := groupapi.OfKind(*kind); a != nil {
			return d.objects.otherGroup(a, document, at)
		}
		if runtime.IsNotRegisteredError(err) && ownerapi.Reads(*kind) {
			return addOwner(d.objects, document, at)
		}
	}
	switch {
	case runtime.IsNotRegisteredError(err):
		d.objects.ignored[kind.GroupVersion().String()+" "+kind.Kind]++
		return nil
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return fmt.Errorf("%s: no apiVersion or no kind", at)
	case err != nil:
		return fmt.Errorf("%s: %w", at, err)
	}
	if list, ok := obj.(*v1.List); ok {
		for i, item := range list.Items {
			if err := d.document(d.json, item.Raw, fmt.Sprintf("%s, item %d", at, i+1)); err != nil {
				return err
			}
		}
		return nil
	}
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, func(item runtime.Object) error { return d.objects.add(item, kind.Kind+" item", at) })
	}
	return d.objects.add(obj, kind.GroupVersion().String()+" "+kind.Kind, at)
}
