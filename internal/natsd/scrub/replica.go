package scrub

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Replicas is Streams for a server that is one of a cluster. A stream that has
// copies on other servers must not come back with a hole: this server would
// answer for what the others still have. All its messages are put aside, and
// the server fetches them from the others.
//
// That is safe because only the messages go. The group of servers that keeps a
// stream decides by its log (Raft), and that stays: this server votes as before
// for nobody who knows less than it did, and it does not stand for election
// before it holds all that its log speaks of. If every server's copy is put
// aside, none is elected, and the stream stands still; nothing is thrown away.
// Without that log the copy is not touched: see AloneError.
//
// The torn end of a stream is cut off as ever: the server fetches what follows
// the last message it has by itself. A power cut may leave it on every server
// at once.
func Replicas(root, aside string) ([]Damage, error) {
	damaged, err := look(root)
	if err != nil {
		return nil, err
	}
	holed := map[string][]*block{}
	for _, b := range damaged {
		if b.holed() && replicas(b.streamDir()) > 1 {
			holed[b.streamDir()] = append(holed[b.streamDir()], b)
		}
	}
	for dir, blocks := range holed {
		if !remembered(root, dir) {
			return nil, &AloneError{Stream: filepath.Base(dir), Block: blocks[0].number}
		}
	}
	var all []Damage
	for dir, blocks := range holed {
		found, err := setAside(dir, aside, blocks)
		all = append(all, found...)
		if err != nil {
			return all, fmt.Errorf("set %s aside: %w", dir, err)
		}
	}
	rest := slices.DeleteFunc(damaged, func(b *block) bool { return holed[b.streamDir()] != nil })
	found, err := mend(rest, aside)
	return append(all, found...), err
}

// AloneError: a copy is damaged, and nothing on this server tells how far the
// stream had come. Empty, it could be taken for all there is.
type AloneError struct {
	Stream string
	Block  int
}

func (e *AloneError) Error() string {
	return fmt.Sprintf("block %d of this server's copy of %s is damaged, and the log of its group is gone", e.Block, e.Stream)
}

func (b *block) streamDir() string { return filepath.Dir(filepath.Dir(b.path)) }

// holed reports whether messages are gone that others follow.
func (b *block) holed() bool {
	return slices.ContainsFunc(b.gaps, func(g gap) bool { return g.to > g.from && (!b.last || g.before > 0) })
}

// replicas is how many servers keep a stream; 1 when its settings cannot be read.
func replicas(dir string) int {
	var settings struct {
		Replicas int `json:"num_replicas"`
	}
	if !readSettings(dir, &settings) {
		return 1
	}
	return settings.Replicas
}

// remembered reports whether the log of the group that keeps a stream, or its
// summary, is there.
func remembered(root, dir string) bool {
	account, stream := filepath.Base(filepath.Dir(filepath.Dir(dir))), filepath.Base(dir)
	for _, sub := range []string{"msgs", "snapshots"} {
		groups, _ := below(root, "_js_", sub)
		for _, group := range groups {
			var settings struct {
				Metadata map[string]string `json:"metadata"`
			}
			about := &settings.Metadata
			if !readSettings(filepath.Dir(group), &settings) ||
				(*about)["type"] != "stream" || (*about)["stream"] != stream || (*about)["account"] != account {
				continue
			}
			if holds(group) {
				return true
			}
		}
	}
	return false
}

// holds reports whether a directory has a block or a summary that is not empty.
func holds(dir string) bool {
	names, _ := list(dir)
	return slices.ContainsFunc(names, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Size() > 0 && (number(name) > 0 || strings.HasPrefix(name, "snap."))
	})
}

func readSettings(dir string, into any) bool {
	b, err := os.ReadFile(filepath.Join(dir, "meta.inf"))
	return err == nil && json.Unmarshal(b, into) == nil
}

// setAside moves all messages of a stream away, in one step.
func setAside(dir, aside string, blocks []*block) ([]Damage, error) {
	now := time.Now().UTC()
	kept := filepath.Join(aside, filepath.Base(dir)+"-"+now.Format("20060102T150405.000000000"))
	var found []Damage
	for _, b := range blocks {
		for _, g := range b.gaps {
			found = append(found, Damage{
				Time: now, Stream: b.stream, Block: b.number, From: g.from, Bytes: g.to - g.from,
				After: g.after, Before: g.before, Subject: g.subject, Fetched: true, Kept: kept,
			})
		}
	}
	account, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return nil, err
	}
	if err := write(kept+".json", append(account, '\n')); err != nil {
		return nil, err
	}
	msgs := filepath.Join(dir, "msgs")
	if err := os.Rename(msgs, kept); err != nil {
		return nil, err
	}
	return found, os.Mkdir(msgs, 0o700)
}
