// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scraped is two scrapes of one target, a minute apart.
func scraped(t *testing.T) (store *Store, now time.Time) {
	t.Helper()
	store, now = NewStore(), time.Unix(60, 0)
	for i, text := range []string{
		"# TYPE a_total counter\na_total{kind=\"x\"} 0\na_total{kind=\"y\"} 5\n",
		"# TYPE a_total counter\na_total{kind=\"x\"} 60\na_total{kind=\"y\"} 5\n# TYPE late gauge\nlate 7\n",
	} {
		at := time.Unix(int64(60*i), 0)
		if err := store.Scrape([]byte(text), at, map[string]string{"job": "j"}); err != nil {
			t.Fatal(err)
		}
	}
	return store, now
}

func TestQuery(t *testing.T) {
	for expression, want := range map[string][]string{
		`a_total{kind="x"}`:               {`{__name__="a_total", job="j", kind="x"} 60`},
		`a_total{kind!="x", job="j"} > 1`: {`{__name__="a_total", job="j", kind="y"} 5`},
		`sum(a_total)`:                    {`{} 65`},
		`round(increase(a_total[61s]))`:   {`{job="j", kind="x"} 60`, `{job="j", kind="y"} 0`},
		`late offset 30s`:                 nil,
		`sum(a_total offset 30s)`:         {`{} 5`},
		`time() + 1`:                      {`{} 61`},
	} {
		t.Run(expression, func(t *testing.T) {
			store, now := scraped(t)
			found, err := store.Query(t.Context(), expression, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range found {
				got = append(got, fmt.Sprint(s.Metric, " ", s.F))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"existing series":             {`sum by (kind) (rate(a_total{job="j"}[1m])) > on () group_left () late`, "<nil>"},
		"an unknown series":           {`sum(b_total)`, `there is no series "b_total"`},
		"a selector without a name":   {`absent({job="j"})`, `there is no series ""`},
		"an unknown label":            {`a_total{kinds="x"}`, "a_total has no label kinds"},
		"a label of another series":   {`late{kind="x"}`, "late has no label kind"},
		"a sum by an unknown label":   {`sum by (kinds) (a_total)`, "nothing has the label kinds"},
		"a match on an unknown label": {`a_total / on (kinds) late`, "nothing has the label kinds"},
		"half an expression":          {`sum(a_total`, "unclosed left parenthesis"},
	} {
		t.Run(name, func(t *testing.T) {
			store, _ := scraped(t)
			if got := fmt.Sprint(store.Schema().Check(test.given)); !strings.Contains(got, test.want) {
				t.Errorf("got error %s, want %s", got, test.want)
			}
		})
	}
}

func TestDescribed(t *testing.T) {
	schema := Described("job")
	for _, expression := range []string{
		`batch_scheduler_leader{job="j"}`,
		`batch_scheduler_podgroup_scheduling_duration_seconds_bucket{queue="q", le="1"}`,
		`batch_scheduler_podgroup_scheduling_duration_seconds_count{queue="q"}`,
	} {
		if err := schema.Check(expression); err != nil {
			t.Error(err)
		}
	}
	if err := schema.Check(`batch_scheduler_podgroup_scheduling_duration_seconds_count{le="1"}`); err == nil {
		t.Error("a count has buckets")
	}
}
