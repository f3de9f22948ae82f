// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

func TestDecoder(t *testing.T) {
	type read struct {
		Weight int64
		Hard   bool
		Mode   string
		Label  string
	}
	defaults := read{Weight: 1, Hard: true, Mode: "spread", Label: "none"}
	for name, tc := range map[string]struct {
		given conf.Arguments
		want  read
		errs  []string
	}{
		"no arguments give the defaults": {given: nil, want: defaults},
		"all of them given": {
			given: conf.Arguments{"weight": "10", "hard": "false", "mode": "pack", "label": "zone"},
			want:  read{Weight: 10, Hard: false, Mode: "pack", Label: "zone"},
		},
		"the lowest number that is allowed": {
			given: conf.Arguments{"weight": "-2"},
			want:  read{Weight: -2, Hard: true, Mode: "spread", Label: "none"},
		},
		"an empty string is a string": {
			given: conf.Arguments{"label": ""},
			want:  read{Weight: 1, Hard: true, Mode: "spread", Label: ""},
		},
		"what cannot be used leaves the default and is reported": {
			given: conf.Arguments{"weight": "11", "hard": "", "mode": "pak", "label": "x"},
			want:  read{Weight: 1, Hard: true, Mode: "spread", Label: "x"},
			errs: []string{
				`p[weight]: Invalid value: "11": must be a whole number from -2 to 10`,
				`p[hard]: Invalid value: "": must be true or false`,
				`p[mode]: Invalid value: "pak": no such value; did you mean "pack"?`,
			},
		},
		"no other base than ten": {
			given: conf.Arguments{"weight": "0x1"},
			want:  defaults,
			errs:  []string{`p[weight]: Invalid value: "0x1": must be a whole number from -2 to 10`},
		},
		"unknown keys come last, by name": {
			given: conf.Arguments{"zz": "1", "weigth": "2", "hard": "no"},
			want:  defaults,
			errs: []string{
				`p[hard]: Invalid value: "no": must be true or false`,
				`p[weigth]: Forbidden: no such argument; did you mean "weight"?`,
				`p[zz]: Forbidden: no such argument; known arguments: hard, label, mode, weight`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := tc.given.Decoder(field.NewPath("p"))
			got := read{
				Weight: d.Int("weight", 1, -2, 10, "how heavy"),
				Hard:   d.Bool("hard", true, "how hard"),
				Mode:   d.String("mode", "spread", "how", "spread", "pack"),
				Label:  d.String("label", "none", "by what"),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			var errs []string
			for _, err := range d.Done() {
				errs = append(errs, err.Error())
			}
			if diff := cmp.Diff(tc.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]conf.Argument{
				{Key: "weight", Default: "1", Values: "a whole number from -2 to 10", About: "how heavy"},
				{Key: "hard", Default: "true", Values: "true or false", About: "how hard"},
				{Key: "mode", Default: "spread", Values: "spread, pack", About: "how"},
				{Key: "label", Default: "none", Values: "any string", About: "by what"},
			}, d.Known()); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBooleans: switches and arguments accept the same spellings, quoted or not.
func TestBooleans(t *testing.T) {
	const neither = "must be true or false"
	for text, want := range map[string]string{
		"true": "true", "True": "true", "TRUE": "true", `"true"`: "true",
		"false": "false", "False": "false", "FALSE": "false", "'False'": "false",
		"yes": neither, "no": neither, "on": neither, "off": neither, "y": neither, "n": neither, "1": neither, "0": neither,
		"tRUE": neither, "t": neither, `""`: neither, `" true"`: neither,
	} {
		t.Run(text, func(t *testing.T) {
			var read []bool
			catalog := conf.Catalog{Actions: []string{"allocate"}, Plugins: map[string]conf.PluginInfo{"acme": {Arguments: func(d *conf.Decoder) {
				read = append(read, d.Bool("hard", false, ""), d.Bool("soft", true, ""))
			}}}}
			given := "actions: allocate\ntiers: [{plugins: [{name: acme, enableJobOrder: " + text + ", arguments: {hard: " + text + ", soft: " + text + "}}]}]"
			c, _, err := conf.Parse("f", []byte(given), catalog)
			got := ""
			switch {
			case err != nil && strings.Count(err.Error(), neither) == 3: // of the switch and both arguments
				got = neither
			case err != nil:
				got = err.Error()
			default:
				got = fmt.Sprint(c.Tiers[0].Plugins[0].Enabled(conf.JobOrder))
				if want := fmt.Sprintf("[%s %s]", got, got); fmt.Sprint(read) != want {
					t.Errorf("the arguments are %v, want %s as the switch", read, want)
				}
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
