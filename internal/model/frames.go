package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// longFrame is the length from which the bytes of one unfinished event count
// as data for the idle timeout.
const longFrame = 1 << 10

// A normaliser reads a server's answer to a streamed request and gives it on
// as plain events, "data: {...}" and a blank line each, that go-openai can
// read: byte order mark, comments and other fields are gone, data of several
// lines is joined, every chunk is mended. An answer that is one JSON document,
// or several, becomes events too. A failure told in the answer ends Read with
// an *Error; a clean end of the answer, wherever it comes, ends it with io.EOF.
//
// It runs on the goroutine that reads and owns none.
type normaliser struct {
	x     *exchange
	src   io.ReadCloser
	left  int64 // bytes of the answer that may still come
	in    []byte
	out   bytes.Buffer
	err   error
	tails tails

	form   form
	done   bool   // [DONE] was seen
	start  []byte // what came before the form was known
	afterR bool   // the last byte ended a line as \r
	line   []byte // the unfinished line
	data   []byte // data of the unfinished event
	lines  int    // data lines in it
	depth  depth  // how far data is a complete JSON value
	event  string // its event field
}

type form int

const (
	unknownForm form = iota
	eventForm
	jsonForm
	pageForm
)

func newNormaliser(x *exchange, body io.ReadCloser, limit int64) *normaliser {
	return &normaliser{x: x, src: body, left: limit, in: make([]byte, 16<<10), tails: tails{}}
}

// Close reads a finished answer to its end, so that its connection can be used
// again.
func (n *normaliser) Close() error {
	for n.done && n.err == nil {
		n.out.Reset()
		n.fill()
	}
	return n.src.Close()
}

func (n *normaliser) Read(p []byte) (int, error) {
	for n.out.Len() == 0 {
		if n.err != nil {
			return 0, n.err
		}
		n.fill()
	}
	return n.out.Read(p)
}

func (n *normaliser) fill() {
	k, err := n.src.Read(n.in)
	got := n.in[:k]
	if n.left -= int64(k); n.left < 0 {
		n.err = tooLong("it goes on after the limit for one reply")
		return
	}
	if len(got) > 0 {
		n.x.see(got)
		n.take(got)
	}
	if err == nil || n.err != nil {
		return
	}
	n.end()
	if n.err != nil {
		return
	}
	if n.err = io.EOF; !errors.Is(err, io.EOF) {
		n.err = network(err, true)
	}
}

// take sorts bytes by the form of the answer, which its first sign decides.
func (n *normaliser) take(b []byte) {
	if n.form == unknownForm {
		n.start = append(n.start, b...)
		b = bytes.TrimLeft(bytes.TrimPrefix(n.start, []byte("\ufeff")), " \t\r\n")
		if len(b) == 0 || bytes.HasPrefix([]byte("\ufeff"), b) {
			n.start = append(n.start[:0], b...) // what was blank is not looked at again
			n.x.watch.alive()
			return
		}
		switch n.start = nil; b[0] {
		case '{', '[':
			n.form = jsonForm
		case '<':
			n.form = pageForm
		default:
			n.form = eventForm
		}
	}
	switch n.form {
	case eventForm:
		n.split(b)
		if len(n.line) >= longFrame {
			n.x.watch.data()
		}
	case pageForm:
		n.data = append(n.data, b[:min(len(b), maxRefusal-len(n.data))]...) // its title is in front
		n.x.watch.data()
	default:
		n.data = append(n.data, b...)
		n.x.watch.data()
	}
}

// split cuts lines, which end with \n, \r or both.
func (n *normaliser) split(b []byte) {
	for len(b) > 0 && n.err == nil {
		if n.afterR && b[0] == '\n' {
			b = b[1:]
		}
		n.afterR = false
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			n.line = append(n.line, b...)
			return
		}
		n.afterR = b[i] == '\r'
		line := b[:i]
		if len(n.line) > 0 {
			line = append(n.line, line...)
		}
		n.field(line)
		n.line = n.line[:0]
		b = b[i+1:]
	}
}

// field reads one line of an event stream.
func (n *normaliser) field(line []byte) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 {
		n.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		// Some servers leave out the blank line between events.
		if n.lines > 0 && (n.depth.complete() || string(n.data) == "[DONE]") {
			event := n.event
			n.dispatch()
			n.event = event
		}
		if n.lines > 0 {
			n.data = append(n.data, '\n')
		}
		n.lines++
		n.data = append(n.data, value...)
		n.depth.feed(value)
	case "event":
		n.event = string(value)
		n.x.watch.alive()
	default: // a comment, an id, a retry time, or no field at all
		n.x.watch.alive()
	}
}

// dispatch gives a finished event on.
func (n *normaliser) dispatch() {
	data, event := bytes.TrimSpace(n.data), n.event
	n.data, n.lines, n.event, n.depth = n.data[:0], 0, "", depth{}
	switch {
	case n.err != nil:
	case len(data) == 0:
		n.x.watch.alive()
	case string(data) == "[DONE]":
		n.done = true
		n.x.watch.end()
		n.out.WriteString("data: [DONE]\n\n")
	case event == "error":
		n.err = fault(0, complaintOf(data))
	default:
		n.give(data)
	}
}

// give mends one chunk and writes it out.
func (n *normaliser) give(payload []byte) {
	c, ok, fail := n.tails.mend(payload)
	if fail != nil {
		n.err = fail
		return
	}
	if !ok {
		n.x.watch.alive()
		return
	}
	n.x.chunks++
	for _, ch := range c.Choices {
		if ch.Finish != "" {
			n.x.watch.finish()
		} else {
			n.x.watch.data()
		}
		for _, call := range ch.Delta.Calls {
			if call.extra != "" {
				n.x.extras[n.x.calls] = call.extra
			}
			n.x.calls++
		}
	}
	out, err := json.Marshal(c)
	if err != nil {
		n.err = protocol("an event of the answer cannot be written again", payload)
		return
	}
	n.out.WriteString("data: ")
	n.out.Write(out)
	n.out.WriteString("\n\n")
}

// end reads what the end of the answer finishes.
func (n *normaliser) end() {
	switch n.form {
	case eventForm:
		if len(n.line) > 0 {
			n.field(n.line)
		}
		// Without its blank line an event counts if it is whole.
		if n.depth.complete() || string(bytes.TrimSpace(n.data)) == "[DONE]" {
			n.dispatch()
		}
	case jsonForm:
		n.documents()
	case pageForm:
		n.err = &Error{
			Code: CodeProtocol, What: "the address of the model server gives a page, not an answer",
			Why: pageWords(n.data), Try: "check OPENAI_BASE_URL: it mostly ends in /v1",
		}
	}
}

// documents reads an answer that is JSON: one whole answer, or chunks without
// the dress of an event stream.
func (n *normaliser) documents() {
	d := json.NewDecoder(bytes.NewReader(n.data))
	for n.err == nil {
		var raw json.RawMessage
		err := d.Decode(&raw)
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, io.ErrUnexpectedEOF):
			n.err = cut("the JSON of the answer ends in the middle")
		case err != nil:
			n.err = protocol("the answer begins as JSON but is none", n.data)
		case raw[0] == '[':
			n.err = fault(0, complaintOf(raw))
		default:
			before := n.x.chunks
			n.give(raw)
			if n.err == nil && n.x.chunks == before {
				n.err = protocol("the answer is JSON without choices", raw)
			}
		}
	}
}

// A depth follows whether the JSON object it was fed is complete.
type depth struct {
	level           int
	text, escape    bool
	begun, finished bool
}

func (d *depth) feed(b []byte) {
	for _, c := range b {
		switch {
		case d.escape:
			d.escape = false
		case d.text:
			d.escape = c == '\\'
			d.text = c != '"'
		case c == '"':
			d.text = true
		case c == '{' || c == '[':
			d.begun = true
			d.level++
		case c == '}' || c == ']':
			d.level--
		}
	}
	d.finished = d.begun && d.level == 0 && !d.text
}

func (d *depth) complete() bool { return d.finished }

// nothing is the error of an answer without any chunk.
func (x *exchange) nothing() *Error {
	why := "it is empty"
	if len(x.head) > 0 {
		why = fmt.Sprintf("it begins %q", firstOf(x.head))
	}
	return &Error{
		Code: CodeProtocol, Transient: true, Status: x.status,
		What: "the answer of the model server holds no event",
		Why:  fmt.Sprintf("HTTP %d, content type %q; %s", x.status, x.contentType, why),
		Try:  "if it stays so, " + tryAddress,
	}
}
