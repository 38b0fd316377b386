// Package scrub looks through the files of a stopped NATS server's streams
// before the server opens them.
//
// The server trusts its files more than they deserve. After a crash it reads
// each block up to the first record that fails its checksum and cuts off all
// that follows, without a word: one flipped bit then takes hours of commits of
// every conversation with it. A compressed block that cannot be unpacked keeps
// the whole stream from opening. So this package cuts out exactly what is
// damaged, keeps the damaged block beside, and tells what is gone. What was cut
// out is a gap to those who read the stream, and they notice gaps.
//
// Read next: record.go; replica.go for servers of a cluster.
package scrub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Damage is one place of a block that was cut out.
type Damage struct {
	Time   time.Time `json:"time"`
	Stream string    `json:"stream"`
	Block  int       `json:"block"`
	// From and Bytes say where in the content of the block.
	From  int `json:"from"`
	Bytes int `json:"bytes"`
	// After and Before are the sequences of the sound messages around it; 0 at
	// the block's beginning, and at its end.
	After  uint64 `json:"after,omitempty"`
	Before uint64 `json:"before,omitempty"`
	// Subject is what the first damaged message says.
	Subject string `json:"subject,omitempty"`
	// Torn is set at the end of a stream's last block: it may be a message that
	// was being written when the power went, and that nobody was told is stored.
	Torn bool `json:"torn,omitempty"`
	// Fetched is set when nothing was cut out: all messages of the stream were
	// put aside, to be fetched from the other servers (see Replicas).
	Fetched bool `json:"fetched,omitempty"`
	// Kept is the damaged block's copy; with Fetched, the directory of all blocks.
	Kept string `json:"kept"`
}

// Lost reports whether something is gone by it.
func (d Damage) Lost() bool { return d.Bytes > 0 && !d.Fetched }

func (d Damage) String() string {
	where := fmt.Sprintf("after message %d", d.After)
	if d.Before > 0 {
		where = fmt.Sprintf("between messages %d and %d", d.After, d.Before)
	}
	about := ""
	if d.Subject != "" {
		about = " (" + d.Subject + ")"
	}
	if d.Bytes == 0 {
		return fmt.Sprintf("%s: block %d was packed badly; all that it held is there", d.Stream, d.Block)
	}
	return fmt.Sprintf("%s: %d bytes in block %d %s%s", d.Stream, d.Bytes, d.Block, where, about)
}

// Streams looks through every stream below root, cuts out what is damaged, and
// returns what it was. Damaged blocks are kept in the directory aside, with an
// account of what is wrong with them. It must hold the lock of the data
// directory. A directory that is not there is an empty one.
func Streams(root, aside string) ([]Damage, error) {
	damaged, err := look(root)
	if err != nil {
		return nil, err
	}
	return mend(damaged, aside)
}

func mend(damaged []*block, aside string) ([]Damage, error) {
	var all []Damage
	for _, b := range damaged {
		found, err := b.mend(aside)
		all = append(all, found...)
		if err != nil {
			return all, fmt.Errorf("mend %s: %w", b.path, err)
		}
	}
	return all, nil
}

// look finds the damaged blocks of every stream below root, and changes nothing.
func look(root string) ([]*block, error) {
	dirs, err := below(root, "streams", "msgs")
	if err != nil {
		return nil, fmt.Errorf("look through the streams: %w", err)
	}
	var damaged []*block
	readable := 0
	for _, dir := range dirs {
		names, err := list(dir)
		if err != nil {
			return nil, fmt.Errorf("look through the streams: %w", err)
		}
		last := 0
		for _, name := range names {
			last = max(last, number(name))
		}
		for _, name := range names {
			n := number(name)
			if n == 0 {
				continue
			}
			b := &block{path: filepath.Join(dir, name), stream: filepath.Base(filepath.Dir(dir)), number: n, last: n == last}
			if err := b.examine(); err != nil {
				return nil, fmt.Errorf("look through %s: %w", b.path, err)
			}
			readable += b.records
			if b.damaged() {
				damaged = append(damaged, b)
			}
		}
	}
	if len(damaged) > 0 && readable == 0 {
		return nil, fmt.Errorf("%s: %w", root, ErrForeign)
	}
	return damaged, nil
}

// ErrForeign: nothing at all can be read. That is no damage to be cut out: it
// may be another version's way of writing.
var ErrForeign = errors.New("no message of any stream can be read: another version wrote them, or nothing is left of them")

// Held names the streams below root that have a place for messages.
func Held(root string) (streams []string) {
	dirs, _ := below(root, "streams", "msgs")
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			streams = append(streams, filepath.Base(filepath.Dir(dir)))
		}
	}
	return streams
}

// below finds the directories root/*/first/*/second.
func below(root, first, second string) (found []string, err error) {
	accounts, err := list(root)
	if err != nil {
		return nil, err
	}
	for _, account := range accounts {
		streams, err := list(filepath.Join(root, account, first))
		if err != nil {
			return nil, err
		}
		for _, stream := range streams {
			found = append(found, filepath.Join(root, account, first, stream, second))
		}
	}
	return found, nil
}

// list names what is in a directory; nothing when it is not there, or is none.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// number is that of a block; 0 for a file that is none.
func number(name string) int {
	digits, ok := strings.CutSuffix(name, ".blk")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0
	}
	return n
}

// block is one file of messages.
type block struct {
	path, stream string
	number       int
	last         bool

	gaps []gap
	// whole is false when its packing is damaged; empty when nothing but gaps
	// is in it; records counts what can be read.
	whole, empty bool
	records      int
}

func (b *block) damaged() bool { return !b.whole || len(b.gaps) > 0 }

// examine finds what is damaged, and changes nothing.
func (b *block) examine() error {
	raw, whole, err := b.content()
	if err != nil {
		return err
	}
	read, err := newRecords(b.stream, b.number)
	if err != nil {
		return err
	}
	b.whole = whole
	b.gaps, b.records = read.gaps(raw)
	b.empty = b.records == 0
	if !whole && len(b.gaps) == 0 { // only the packing is damaged
		b.gaps = append(b.gaps, gap{from: len(raw), to: len(raw)})
	}
	return nil
}

func (b *block) content() (raw []byte, whole bool, err error) {
	data, err := os.ReadFile(b.path)
	if err != nil {
		return nil, false, err
	}
	raw, whole = content(data)
	return raw, whole, nil
}

// mend cuts the gaps out.
func (b *block) mend(aside string) ([]Damage, error) {
	now := time.Now().UTC()
	kept := filepath.Join(aside, fmt.Sprintf("%s-%d-%s.blk", b.stream, b.number, now.Format("20060102T150405.000000000")))
	found := make([]Damage, len(b.gaps))
	for i, g := range b.gaps {
		found[i] = Damage{
			Time: now, Stream: b.stream, Block: b.number, From: g.from, Bytes: g.to - g.from,
			After: g.after, Before: g.before, Subject: g.subject, Torn: b.last && g.before == 0, Kept: kept,
		}
	}
	if err := keep(b.path, kept, found); err != nil {
		return nil, err
	}
	// What the server remembers of the blocks no longer fits.
	if err := os.Remove(filepath.Join(filepath.Dir(b.path), "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if b.empty {
		return found, os.Remove(b.path)
	}
	raw, _, err := b.content()
	if err != nil {
		return nil, err
	}
	return found, replace(b.path, without(raw, b.gaps))
}

// keep puts the damaged block beside before anything is changed.
func keep(path, kept string, found []Damage) error {
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	account, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return err
	}
	if err := os.Link(path, kept); err != nil { // a file system without links
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := write(kept, b); err != nil {
			return err
		}
	}
	return write(strings.TrimSuffix(kept, ".blk")+".json", append(account, '\n'))
}

// replace puts other bytes in the place of a file, in one step.
func replace(path string, b []byte) error {
	tmp := path + ".mended"
	if err := write(tmp, b); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func write(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Known reads the accounts of all damage that was cut out and is still kept, the
// newest last.
func Known(aside string) ([]Damage, error) {
	names, err := list(aside)
	if err != nil {
		return nil, err
	}
	var all []Damage
	for _, name := range names {
		path := filepath.Join(aside, name)
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return all, err
		}
		var found []Damage
		if err := json.Unmarshal(b, &found); err != nil {
			return all, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b Damage) int { return a.Time.Compare(b.Time) })
	return all, nil
}
