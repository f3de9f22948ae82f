// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the words that are left to testdata/words.txt")

// bannedWords are words and phrases, separated by commas, with the term of docs/glossary.md to use instead. Identifiers
// are split into words, so a phrase is also found in camel case and with underscores. Words of the glossary with a usual meaning
// as well (memory, class, short, question) are not here.
var bannedWords = []struct{ words, use string }{
	{"promise,promises,promised", "nomination, nominated"},
	{"aside,asides", "reservation, reserved"},
	{"forming gang,forming gangs", "gang with a starvation reservation"},
	{"seat,seats,seated", "placement"},
	{"whose turn", "current job"},
	{"launch,launched,launches,landing,tower", "assume, in-flight bind, bind result handler"},
	{"doom,doomed", "mark evicting"},
	{"spare,spares,spared,pardon,pardoned,bailiff", "eviction failed, allow eviction, reprieve, eviction result handler"},
	{"rehearse,rehearsed,rehearses,rehearsal", "dry run"},
	{"taker,takers,giver,givers", "preemptor, reclaimer, victim"},
	{"offer,offers,offered,price,prices,priced,dearest,bundle,bundles", "candidate, cost, highest victim priority, victim set"},
	{"give back,gives back,gave back,given back,giving back", "release, reprieve, Unreserve"},
	{"harmless,hope,hopes,hopeless", "negative plan cache, ValidatePlan, PreFilterPlan"},
	{"debt,debts,debtor,debtors,indebted,gift,gifts,paid", "reclaim cooldown, recorded reclaim, expired"},
	{"put off,puts off,readmit,readmitted,patience", "backoff, requeue"},
	{"shape,shapes", "pod signature"},
	{"social,looks outside,look outside,together in", "affects other pods, has external resources, self-affinity topology key"},
	{"room,slots,lack,lacks", "available resources, capacity, insufficient"},
	{"judge,judges,judged,opinion,opinions,mirror,mirrors,mirrored,reflection", "upstream filter runner, PreFilter result, snapshot"},
	{"tame,tamed,absurd,bump,bumps,bumped,respecified,settle,settles,settled", "clamp, out of range, notify, spec changed, recompute"},
	{"tally,census", "node verdict counts, contribution"},
	{"wish,wishes,wished,draft,drafts,calm,quiet", "desired status, patch, convergence, idle"},
	{"stale gang,stale gangs,gang stale,gang is stale", "degraded gang, GangDegraded"},
	{"pod wait seconds,group wait seconds", "pod_scheduling_duration_seconds, podgroup_scheduling_duration_seconds"},
	{"model objects,event queue lag,pending groups", "cache_objects, event_processing_lag_seconds, pending_podgroups"},
	{"happening,happenings,barrage,crowd,crowds,surge,surges,shelf,stranger,strangers,news,world,worlds,weaker", "event, scenario, harness, fixture, fakecluster"},
	{"thief,thieves,robbed,left to chance,forgiven,forgives,it is young", "lost nomination, known limitation, strict validation, alpha"},
	{"nobody,somebody,whoever,goes before,has a say,stands in the way,stand in the way", "the component or object that acts"},
	{"for ever,anew,thus,hence,mostly so", "plain technical English"},
	{"tells whether,told,stands on,stand on,takes up,a no,a yes", "reports whether, reported, runs on, uses"},
}

// bannedFiles are names of files, without extension, that a Kubernetes engineer would not look for.
var bannedFiles = strings.Fields(`memory same tame short aside asides nearest happenings debtors course stage takers themes weaker
	odd barrage picture crowds surges calm news sheet scene story strangers shelf world tally promises`)

// wordExceptions allow words in the files that match a pattern of path.Match, "*" for all files.
var wordExceptions = []struct{ file, words, because string }{
	{"internal/architecture/words_test.go", "*", "the list itself"},
	{"internal/architecture/testdata/words.txt", "*", "names files that have not been renamed yet"},
	{"CHANGELOG.md", "*", "states the old names beside the new ones"},
	{"docs/glossary.md", "*", "states the words of other schedulers"},
	{"CODE_OF_CONDUCT.md", "*", "the text of others"},
	{"internal/architecture/*", "a no", "a file named a, in cases of tests"},
	{"test/integration/*", "a no", "a job named a, in cases of tests"},
	{"test/integration/queues_test.go", "pending groups", "the fields Pending and Groups side by side"},
	{"config/samples/workloads/mpijob.yaml", "slots", "a field of MPIJob"},
	{"charts/batch-scheduler/values.schema.json", "draft", "the version of JSON Schema"},
	{"cmd/batch-scheduler/app/serving_test.go", "opinion", "a constant of the authorizer's API"},
	{"internal/image/*", "quiet", "a flag of git"},
	{"*", "mirror pod,mirror pods", "the kubelet's term"},
	{"*", "lack,lacks", "a word of the messages: nearest: node n1 lacks 2 cpu"},
	{"*", "max surge", "a field of Deployment"},
	{"*", "ca bundle", "a field of webhooks"},
}

// wordFiles are the endings of files that are checked.
var wordFiles = []string{".go", ".md", ".yaml", ".yml", ".sh", ".txt", ".tmpl", ".tpl", ".json", "Makefile", "Dockerfile", "run"}

const wordsLeft = "testdata/words.txt"

// TestWords fails if a file has more banned words than testdata/words.txt allows to it: none, unless it is listed. Go test with
// -update writes the list of what is left; in a review it may only become shorter.
func TestWords(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for file, text := range readTexts(t) {
		if hits := bannedIn(file, text); len(hits) > 0 {
			found[file] = hits
		}
	}
	if *update {
		writeWordsLeft(t, found)
		return
	}
	allowed := readWordsLeft(t)
	for _, file := range slices.Sorted(maps.Keys(found)) {
		if hits := found[file]; len(hits) > allowed[file] {
			t.Errorf("%s has %d banned words, %d are allowed; see docs/glossary.md:\n\t%s", file, len(hits), allowed[file], strings.Join(hits, "\n\t"))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(allowed)) {
		if _, err := os.Stat(filepath.Join(moduleRoot(t), file)); err == nil && len(found[file]) == 0 {
			t.Logf("%s has no banned words left: go test ./internal/architecture -run TestWords -update", file)
		}
	}
}

// bannedIn returns one complaint for each banned word in the text, in order.
func bannedIn(file, text string) []string {
	var hits []string
	base := path.Base(file)
	stem := strings.TrimSuffix(strings.TrimSuffix(base, path.Ext(base)), "_test")
	if slices.Contains(bannedFiles, stem) && !excepted(file, "*") {
		hits = append(hits, "the name of the file")
	}
	words := splitWords(text)
	for i := range words {
		for length := 1; length <= 4 && i+length <= len(words); length++ {
			phrase := join(words[i : i+length])
			use, banned := replacements[phrase]
			if banned && !excepted(file, phrase) && !excepted(file, join(words[max(i-1, 0):i+length])) &&
				!excepted(file, join(words[i:min(i+length+1, len(words))])) {
				hits = append(hits, fmt.Sprintf("line %d: %s -> %s", words[i].line, phrase, use))
			}
		}
	}
	return hits
}

// replacements maps each banned word and phrase to the term to use.
var replacements = func() map[string]string {
	all := map[string]string{}
	for _, rule := range bannedWords {
		for phrase := range strings.SplitSeq(rule.words, ",") {
			all[phrase] = rule.use
		}
	}
	return all
}()

func excepted(file, phrase string) bool {
	for _, exception := range wordExceptions {
		matches, _ := path.Match(exception.file, file)
		if (exception.file == "*" || matches) &&
			(exception.words == "*" || slices.Contains(strings.Split(exception.words, ","), phrase)) {
			return true
		}
	}
	return false
}

// word is a word in lower case.
type word struct {
	text string
	line int
}

func join(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// splitWords returns the words of a text, and the words that identifiers are made of: jobOrder and job_order are two.
func splitWords(text string) []word {
	var words []word
	line := 1
	var current []rune
	flush := func() {
		if len(current) > 0 {
			words = append(words, word{strings.ToLower(string(current)), line})
			current = current[:0]
		}
	}
	var before rune
	for _, r := range text {
		if !unicode.IsLetter(r) || unicode.IsUpper(r) && unicode.IsLower(before) {
			flush()
		}
		if unicode.IsLetter(r) {
			current = append(current, r)
		}
		if r == '\n' {
			line++
		}
		before = r
	}
	flush()
	return words
}

// readTexts returns the texts of the repository that people read, by path.
func readTexts(t *testing.T) map[string]string {
	t.Helper()
	root := moduleRoot(t)
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != root && slices.Contains([]string{"bin", "vendor", "_artifacts", ".git", "fuzz", "rapid"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(wordFiles, func(ending string) bool { return name == ending || path.Ext(name) == ending }) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err == nil && !strings.Contains(string(text[:min(len(text), 2000)]), "// Code generated") {
			texts[filepath.ToSlash(relative)] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func writeWordsLeft(t *testing.T, found map[string][]string) {
	t.Helper()
	var out strings.Builder
	for _, file := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&out, "%s %d\n", file, len(found[file]))
	}
	if err := os.WriteFile(wordsLeft, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func readWordsLeft(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(wordsLeft)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(text)) {
		file, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if allowed[file], err = strconv.Atoi(number); err != nil {
			t.Fatalf("%s: %q: %v", wordsLeft, line, err)
		}
	}
	return allowed
}

func TestBannedIn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		file, given string
		want        []string
	}{
		"a word":                       {"a.go", "// A promise.", []string{"line 1: promise -> nomination, nominated"}},
		"a part of an identifier":      {"a.go", "\nfunc setAside()", []string{"line 2: aside -> reservation, reserved"}},
		"a part of a word":             {"a.go", "roommate, compromised", nil},
		"a phrase over two lines":      {"a.go", "// for\n// ever", []string{"line 1: for ever -> plain technical English"}},
		"a phrase as an identifier":    {"a.go", "GangStale", []string{"line 1: gang stale -> degraded gang, GangDegraded"}},
		"a phrase as a metric":         {"a.md", "`pending_groups`", []string{"line 1: pending groups -> cache_objects, event_processing_lag_seconds, pending_podgroups"}},
		"a word with another meaning":  {"a.go", "memory of a node of the same class", nil},
		"a term of the kubelet":        {"a.go", "a mirror pod", nil},
		"a field of another API":       {"a.yaml", "maxSurge: 1", nil},
		"the name of a file":           {"pkg/a/tally_test.go", "", []string{"the name of the file"}},
		"a file that states old names": {"CHANGELOG.md", "promise", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, bannedIn(tc.file, tc.given)); diff != "" {
				t.Errorf("banned (-want +got):\n%s", diff)
			}
		})
	}
}
