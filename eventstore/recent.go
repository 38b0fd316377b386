package eventstore

import (
	"container/list"
	"sort"
	"sync"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// recent remembers commits that were just read or written, by version, and
// where versions stand in the stream. The newest stay, within a bound of bytes.
// They were checked when they came and are kept decoded: a step of a long
// conversation asks for hundreds.
type recent struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List // of *recalled, the last used in front
	byKey map[recallKey]*list.Element
	marks map[domain.Key][]mark
}

type recallKey struct {
	key     domain.Key
	version uint64
}

type recalled struct {
	recallKey
	commit *rollcallv1.Commit
	size   int
}

// mark says where a version stands. A conversation keeps one every markEvery
// versions, and the highest.
type mark struct{ version, seq uint64 }

const (
	markEvery = 64
	// markedKeys bounds the conversations with marks; beyond it all are
	// dropped and found again by search.
	markedKeys = 8192
	// A commit is about recallFactor times its sealed bytes when decoded, and an
	// entry costs recallCost beside it.
	recallFactor = 3
	recallCost   = 200
)

func newRecent(limit int) *recent {
	return &recent{
		limit: limit, order: list.New(),
		byKey: make(map[recallKey]*list.Element), marks: make(map[domain.Key][]mark),
	}
}

func (r *recent) add(c Recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := c.Commit.GetVersion()
	r.mark(c.Key, mark{v, c.Seq})
	k := recallKey{c.Key, v}
	if e := r.byKey[k]; e != nil {
		r.order.MoveToFront(e)
		return
	}
	size := recallFactor*len(c.Raw) + recallCost
	r.byKey[k] = r.order.PushFront(&recalled{k, c.Commit, size})
	r.size += size
	for r.size > r.limit && r.order.Len() > 1 {
		old := r.order.Remove(r.order.Back()).(*recalled)
		delete(r.byKey, old.recallKey)
		r.size -= old.size
	}
}

// mark keeps the list sorted; only its last entry may be off the grid.
func (r *recent) mark(key domain.Key, m mark) {
	if _, ok := r.marks[key]; !ok && len(r.marks) >= markedKeys {
		clear(r.marks)
	}
	all := r.marks[key]
	i := sort.Search(len(all), func(i int) bool { return all[i].version >= m.version })
	switch {
	case i < len(all) && all[i].version == m.version:
		return
	case i == len(all):
		if i > 0 && all[i-1].version%markEvery != 0 {
			all = all[:i-1]
		}
		all = append(all, m)
	case m.version%markEvery == 0:
		all = append(all[:i], append([]mark{m}, all[i:]...)...)
	}
	r.marks[key] = all
}

func (r *recent) get(key domain.Key, version uint64) (*rollcallv1.Commit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byKey[recallKey{key, version}]
	if e == nil {
		return nil, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*recalled).commit, true
}

// around returns the nearest marks below and above a version: the zero mark
// when there is none below, ok false when there is none above.
func (r *recent) around(key domain.Key, version uint64) (below, above mark, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.marks[key]
	i := sort.Search(len(all), func(i int) bool { return all[i].version >= version })
	if i > 0 {
		below = all[i-1]
	}
	if i < len(all) {
		return below, all[i], true
	}
	return below, mark{}, false
}
