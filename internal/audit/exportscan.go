package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/rollcall-dev/rollcall/domain"
)

// maxLine bounds a line of an export: a commit in base64 with its headers, or a
// piece of a body.
const maxLine = 4 << 20

// scan is the one reading of all lines.
type scan struct {
	*Export
	in    *bufio.Reader
	at    place
	ended bool
	last  map[domain.Key]string
	// suspect is the first commit that was changed.
	suspect error
}

func (s *scan) run() error {
	sum := sha256.New()
	s.last = map[domain.Key]string{}
	for {
		raw, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if s.ended {
			return broken(s.at.line, "something stands after the end")
		}
		if err := s.take(raw, hex.EncodeToString(sum.Sum(nil))); err != nil {
			return err
		}
		sum.Write(raw)
		s.at.offset += int64(len(raw))
	}
	if s.at.line == 0 {
		return s.head(nil)
	}
	if !s.ended {
		return broken(s.at.line, "it was cut off: the last line is missing")
	}
	return nil
}

// next is the next line with its end.
func (s *scan) next() ([]byte, error) {
	var raw []byte
	s.at.line++
	for {
		part, err := s.in.ReadSlice('\n')
		raw = append(raw, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(raw) <= maxLine:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, broken(s.at.line, "it is longer than any line of an export")
		case errors.Is(err, io.EOF) && len(raw) == 0:
			s.at.line--
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, broken(s.at.line, "it was cut off in the middle")
		case err != nil:
			return nil, fmt.Errorf("read the export: %w", err)
		default:
			s.at.length = len(raw)
			return raw, nil
		}
	}
}

func (s *scan) take(raw []byte, sum string) error {
	if s.at.line == 1 {
		return s.head(raw)
	}
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return broken(s.at.line, "it is no JSON object of an export: %v", err)
	}
	switch l.Type {
	case lineCommit:
		return s.commit(l)
	case lineBody, lineMissing:
		return s.body(l)
	case lineEnd:
		s.ended = true
		return s.end(l, sum)
	}
	return nil
}

func (s *scan) head(raw []byte) error {
	if json.Unmarshal(raw, &s.Head) != nil || s.Head.Type != lineHead || s.Head.Format < 1 {
		return domain.Refuse("export-broken", "this is no export of Rollcall", "it does not begin as one", "name a file that rollcall export wrote")
	}
	if s.Head.Format > Format {
		return domain.Refuse("export-newer", "the export cannot be read", fmt.Sprintf("it has format %d, this program knows %d", s.Head.Format, Format), "use the Rollcall that wrote it: "+short(s.Head.By))
	}
	return nil
}

// shelf finds the conversation of a line.
func (s *scan) shelf(subject string) (domain.Key, *shelf, error) {
	key, ok := parseSubject(subject)
	if !ok {
		return key, nil, broken(s.at.line, "%q is the log of no conversation", short(subject))
	}
	if s.shelves[key] == nil {
		s.shelves[key] = &shelf{bodies: map[string][]place{}, missing: map[string]string{}}
	}
	return key, s.shelves[key], nil
}

func (s *scan) commit(l line) error {
	key, shelf, err := s.shelf(l.Subject)
	if err != nil {
		return err
	}
	s.note(key, len(shelf.commits)+1, l)
	if l.Seq <= shelf.seq {
		return broken(s.at.line, "sequence %d of %s comes after %d: the order was changed", l.Seq, key, shelf.seq)
	}
	shelf.seq = l.Seq
	s.directory.Add(key, l.Data)
	s.last[key] = lastHash(l.Data)
	shelf.commits = append(shelf.commits, s.at)
	return nil
}

// note keeps the first commit that was changed, to tell where once it is known
// that something was.
func (s *scan) note(key domain.Key, number int, l line) {
	if s.suspect != nil {
		return
	}
	c, err := domain.Unseal(l.Data)
	if err != nil {
		s.suspect = broken(s.at.line, "commit %d of %s was changed: %v", number, key, err)
		return
	}
	if id := l.Header["Nats-Msg-Id"]; len(id) == 1 && id[0] != c.GetId() {
		s.suspect = broken(s.at.line, "the headers are not those of commit %d of %s", number, key)
	}
}

func (s *scan) body(l line) error {
	_, shelf, err := s.shelf(l.Subject)
	if err != nil {
		return err
	}
	if l.Type == lineMissing {
		shelf.missing[l.SHA256] = l.Why
		return nil
	}
	if want := uint64(len(shelf.bodies[l.SHA256])) * bodyPiece; l.Offset != want || l.Size > math.MaxInt64 {
		return broken(s.at.line, "piece at %d of a body comes where the one at %d was due", l.Offset, want)
	}
	shelf.bodies[l.SHA256] = append(shelf.bodies[l.SHA256], s.at)
	return nil
}

// end holds what was read against what the writer counted.
func (s *scan) end(l line, sum string) error {
	for _, e := range l.Conversations {
		key, shelf, err := s.shelf(e.Subject)
		if err != nil {
			return err
		}
		if shelf.ended = true; len(shelf.commits) != e.Commits || s.last[key] != e.Last {
			return broken(s.at.line, "%s has %d commits, and %d were written: some are missing, or in another order", key, len(shelf.commits), e.Commits)
		}
	}
	for key, shelf := range s.shelves {
		if !shelf.ended && len(shelf.commits) > 0 {
			return broken(s.at.line, "%s was added", key)
		}
	}
	if l.Lines != s.at.line-1 {
		return broken(s.at.line, "%d lines stand before it, and %d were written", s.at.line-1, l.Lines)
	}
	if l.Sum != sum {
		if s.suspect != nil {
			return s.suspect
		}
		return broken(s.at.line, "the lines before it are not those that were written: something beside the commits was changed, or their order")
	}
	return nil
}
