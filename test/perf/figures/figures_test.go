// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdd(t *testing.T) {
	bound := 2.0
	a, again, b := Figure{Name: "a", Value: 1, Unit: "ms"}, Figure{Name: "a", Value: 3, Unit: "ms", Bound: &bound}, Figure{Name: "b", Unit: "ms", OK: true}
	for name, test := range map[string]struct {
		given [][]Figure // one per call
		want  []Figure
	}{
		"the first figure creates the file":        {[][]Figure{{a}}, []Figure{a}},
		"more figures are appended":                {[][]Figure{{a}, {b}}, []Figure{a, b}},
		"a figure replaces one with the same name": {[][]Figure{{a, b}, {again}}, []Figure{again, b}},
		"an empty list changes nothing":            {[][]Figure{{a}, nil}, []Figure{a}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new", "figures.json")
			var got []Figure
			for _, list := range test.given {
				var err error
				if got, err = Add(file, list); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddToInvalidFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	if err := os.WriteFile(file, []byte(`{"pods": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(file, nil); err == nil {
		t.Error("no error")
	}
}

func TestTable(t *testing.T) {
	bound := 600.0
	var got bytes.Buffer
	err := Table(&got, []Figure{
		{Name: "drain", Value: 599.4, Unit: "pods/s", Bound: &bound},
		{Name: "reclaim/cycle", Value: 0.126, Unit: "ms", OK: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `name           value   unit    bound  ok
drain          599.40  pods/s  600    NO
reclaim/cycle  0.13    ms      -      yes
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
