// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Journal lists the indexes of changed nodes, or of changed jobs, in the order of their changes. Those of the model belong to
// it; what is derived from nodes or jobs follows them with a JournalReader.
//
// A change of a node appends one entry, so that an index may be repeated. The journal is bounded: when it is
// full it drops the older half of its entries. Positions count all entries that were ever appended, also
// those that were dropped.
type Journal struct {
	base    uint64 // position of entries[0]
	entries []int32
}

// journalLimit bounds the number of entries.
const journalLimit = 1 << 16

// Add appends a node or a job. Only the package that the journal belongs to calls it.
func (j *Journal) Add(index int) {
	if len(j.entries) >= journalLimit {
		half := len(j.entries) / 2
		j.base += uint64(half)
		j.entries = append(j.entries[:0], j.entries[half:]...)
	}
	j.entries = append(j.entries, int32(index))
}

// Position returns the position after the last entry. It stands still while no node changes.
func (j *Journal) Position() uint64 { return j.base + uint64(len(j.entries)) }

// Since returns the entries from a position on. It returns false if some of them were dropped: then any node
// may have changed.
func (j *Journal) Since(position uint64) ([]int32, bool) {
	if position < j.base {
		return nil, false
	}
	return j.entries[position-j.base:], true
}

// JournalReader keeps the position up to which something that is derived from nodes has followed a journal. The
// zero value has read nothing.
//
// Whatever is derived node by node is updated in the same way: the nodes that have changed since the last
// time are examined again; all nodes are, if this is the first time, if the journal has dropped entries, or
// if so much has changed that examining all nodes costs less. For example, a reader at position 40 of a
// journal that ends at position 43 with the entries 7, 2 and 7 updates the nodes 7, 2 and 7 and is then at
// position 43. With a limit of 2 it rebuilds.
//
// A reader follows one journal. It does not allocate.
type JournalReader struct {
	position  uint64
	following bool // position is valid
}

// CatchUp returns the entries since the last call, in order, for the caller to update these nodes. It returns false if
// the caller must rebuild: if CatchUp has not been called since Invalidate, if the journal has dropped some of the
// entries, or if there are more than limit. The number of nodes is a good limit where an update of a node costs as
// much as its part of a rebuild. The entries are valid until a node changes.
//
// It calls no functions of the caller, because a call for each entry is measurable: placing tasks reads the journal
// once per task, and most updates cost little.
func (r *JournalReader) CatchUp(j *Journal, limit int) (changed []int32, known bool) {
	changed, known = j.Since(r.position)
	known = known && r.following && len(changed) <= limit
	r.position, r.following = j.Position(), true
	if !known {
		return nil, false
	}
	return changed, true
}

// Position returns the position up to which the reader has followed its journal.
func (r *JournalReader) Position() uint64 { return r.position }

// UpToDate reports whether CatchUp would return that nothing has changed.
func (r *JournalReader) UpToDate(j *Journal) bool { return r.following && r.position == j.Position() }

// Invalidate makes the next CatchUp return false. Callers need it when something changes that is not in the
// journal.
func (r *JournalReader) Invalidate() { r.following = false }
