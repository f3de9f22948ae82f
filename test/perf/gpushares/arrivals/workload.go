// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

func sortByName[T any](list []T, name func(*T) string) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(name(&a), name(&b)) })
}

// classify groups equal pods, in the order of the pods. The counts are those of the classes.
func (w *Workload) classify(pods []Pod) (classes []*class, counts []int64) {
	known := map[string]*class{}
	for i := range pods {
		p := &pods[i]
		c := &class{
			number: len(classes), request: api.Resource{cpu: p.CPU, memory: p.Memory, gpu: p.GPUs},
			share: p.Share, models: strings.Join(p.Models, "|"),
		}
		key := fmt.Sprint(c.request, c.share, c.models)
		if known[key] == nil {
			for n := range w.nodes {
				c.admits = append(c.admits, len(p.Models) == 0 || slices.Contains(p.Models, w.nodes[n].Model))
			}
			known[key] = c
			classes, counts = append(classes, c), append(counts, 0)
		}
		c = known[key]
		w.pods = append(w.pods, c)
		counts[c.number]++
	}
	return classes, counts
}

// typesOf makes types of the classes. With withCPU, pods that request no GPU are types too.
func typesOf(classes []*class, counts []int64, withCPU bool) (types []fragmentation.Type) {
	for i, c := range classes {
		if withCPU || c.request[gpu] > 0 {
			types = append(types, fragmentation.Type{Request: c.request, Share: c.share, Weight: counts[i], Key: i})
		}
	}
	return types
}

// withoutMemory merges types that differ in memory alone, which the paper does not consider.
func withoutMemory(classes []*class, types []fragmentation.Type) (merged []fragmentation.Type) {
	known := map[string]int{}
	for _, t := range types {
		t.Request = api.Resource{cpu: t.Request[cpu], gpu: t.Request[gpu]}
		key := fmt.Sprint(t.Request, t.Share, classes[t.Key].models)
		if i, ok := known[key]; ok {
			merged[i].Weight += t.Weight
			continue
		}
		known[key] = len(merged)
		merged = append(merged, t)
	}
	return merged
}

// frequent returns the types of the paper: the most frequent ones, until they are 95 % of all pods, with exact weights.
func frequent(types []fragmentation.Type) []fragmentation.Type {
	slices.SortStableFunc(types, func(a, b fragmentation.Type) int { return cmp.Compare(b.Weight, a.Weight) })
	var all, covered int64
	for i := range types {
		all += types[i].Weight
	}
	for i := range types {
		if covered*100 >= all*95 {
			return types[:i]
		}
		covered += types[i].Weight
	}
	return types
}

// measure returns the measure with some types of the classes.
func (w *Workload) measure(classes []*class, types []fragmentation.Type) (m measure) {
	for some := range slices.Chunk(types, fragmentation.MaxTypes) {
		p := part{set: fragmentation.NewSet(gpu, some), admits: make([]fragmentation.Mask, len(w.nodes))}
		for i := range some {
			for n, admitted := range classes[some[i].Key].admits {
				if admitted {
					p.admits[n] |= 1 << i
				}
			}
		}
		m = append(m, p)
	}
	return m
}

// lost returns F of a node, in thousandths of a GPU, times total.
func (m measure) lost(node int, n *fragmentation.Node) (lost int64) {
	for i := range m {
		n.Admits = m[i].admits[node]
		lost += m[i].set.Lost(n)
	}
	return lost
}

// total returns the sum of the weights of all types.
func (m measure) total() (sum int64) {
	for i := range m {
		sum += m[i].set.Total()
	}
	return sum
}

// Read reads the nodes and pods of Alibaba's cluster-trace-gpu-v2023.
func Read(nodeFile, podFile string) (nodes []Node, pods []Pod, err error) {
	err = eachRow(nodeFile, func(r *row) {
		nodes = append(nodes, Node{
			Name: r.text("sn"), Model: r.text("model"), CPU: r.number("cpu_milli"), Memory: r.number("memory_mib"), GPUs: r.number("gpu"),
		})
	})
	if err != nil {
		return nil, nil, err
	}
	err = eachRow(podFile, func(r *row) {
		p := Pod{
			Name: r.text("name"), CPU: r.number("cpu_milli"), Memory: r.number("memory_mib"),
			GPUs: r.number("num_gpu"), Share: r.number("gpu_milli"),
		}
		if models := r.text("gpu_spec"); models != "" {
			p.Models = strings.Split(models, "|")
		}
		if p.GPUs > 0 && (p.Share < 1 || p.Share > fragmentation.Whole) {
			r.fail("gpu_milli", fmt.Errorf("must be 1 to %d", fragmentation.Whole))
		}
		pods = append(pods, p)
	})
	return nodes, pods, err
}

// row is one row of a file.
type row struct {
	file    string
	line    int
	columns map[string]int
	cells   []string
	err     error // the first one
}

func eachRow(file string, visit func(*row)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	reader := csv.NewReader(f)
	header, err := reader.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r := &row{file: file, line: 1, columns: map[string]int{}}
	for i, name := range header {
		r.columns[name] = i
	}
	for r.err == nil {
		r.line++
		r.cells, err = reader.Read()
		if err == io.EOF { //nolint:errorlint // it is not wrapped
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		visit(r)
	}
	return r.err
}

func (r *row) fail(column string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s:%d: %s: %w", r.file, r.line, column, err)
	}
}

func (r *row) text(column string) string {
	i, known := r.columns[column]
	if !known {
		r.fail(column, fmt.Errorf("there is no such column"))
		return ""
	}
	return r.cells[i]
}

func (r *row) number(column string) int64 {
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	if err != nil || n < 0 {
		r.fail(column, fmt.Errorf("%q is no number", r.text(column)))
	}
	return n
}
