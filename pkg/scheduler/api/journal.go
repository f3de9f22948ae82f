package api

// Journal lists touched nodes in the order of their changes. Readers keep a position of their
// own and ask what came after it.
type Journal struct {
	base    uint64 // position of entries[0]
	entries []int32
}

// journalLimit bounds the journal: a reader that is further behind looks at everything.
const journalLimit = 1 << 16

func (j *Journal) add(index int) {
	if len(j.entries) >= journalLimit {
		half := len(j.entries) / 2
		j.base += uint64(half)
		j.entries = append(j.entries[:0], j.entries[half:]...)
	}
	j.entries = append(j.entries, int32(index))
}

// Position is where the journal ends now.
func (j *Journal) Position() uint64 { return j.base + uint64(len(j.entries)) }

// Since returns the indexes touched after position, possibly repeated. It reports false when
// they are no longer known: then every node may have changed.
func (j *Journal) Since(position uint64) ([]int32, bool) {
	if position < j.base {
		return nil, false
	}
	return j.entries[position-j.base:], true
}
